"""The report of a full audit: claims, theorems, evidence of three tiers and the NIST questions, as text, JSON, HTML."""

import json
import textwrap
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from html import escape

from sfumato.audit.nist import CHECKED, ROWS, NistQuestion

TIERS = ("black box", "replay", "white box")
MARKS = {True: "✗", False: "✓", None: "·"}
WIDTH = 80
READING = (
    "A refuted claim is wrong, except for a false alarm whose probability is stated. A claim that is not refuted is "
    "not proved by the audit: the theorems prove it, and audits look for mistakes in them and in the code."
)
STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --soft: #666; --line: #ddd; --good: #00704f; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eee; --soft: #aaa; --line: #444; --good: #5fd0a8; --bad: #ff8a80; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 600; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .7rem .35rem 0; vertical-align: top; }
td.mark { text-align: center; width: 5.5rem; } th.mark { text-align: center; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; } .soft { color: var(--soft); }
summary { cursor: pointer; } details > p, details > ul { margin: .4rem 0 .4rem 1rem; }
code { font-size: .86em; overflow-wrap: anywhere; } .verdict { font-size: 1.1rem; }
"""

TIERS_EXPLAINED = """<p>Three tiers: the <b>black box</b> runs a mechanism on two neighbouring data sets and certifies
an event that distinguishes them; <b>replay</b> runs it on both with the same outcomes of all noise, and compares the
inputs of the noise; the <b>white box</b> compares the law of the actual draws with the profile that is charged.</p>"""


@dataclass(frozen=True)
class Theorem:
    """A theorem that a claim rests on, its source, and the class whose docstring states it."""

    statement: str
    source: str
    where: str


@dataclass(frozen=True)
class Evidence:
    """The result of one tier."""

    tier: str
    words: str
    refuted: bool


@dataclass(frozen=True)
class Finding:
    """One audited claim: the theorems that it rests on, and the evidence."""

    name: str
    kind: str  # the part of the package
    pair: str  # the neighbouring data sets
    claim: str
    theorems: tuple[Theorem, ...]
    evidence: tuple[Evidence, ...]

    @property
    def refuted(self) -> bool:
        return any(one.refuted for one in self.evidence)

    def mark(self, tier: str) -> str:
        """✗ refuted, ✓ not refuted, · not audited by this tier."""
        seen = [one.refuted for one in self.evidence if one.tier == tier]
        return MARKS[any(seen) if seen else None]


@dataclass(frozen=True)
class Report:
    """All findings of one audit, by one version of sfumato."""

    version: str
    when: str
    confidence: float
    findings: tuple[Finding, ...]
    rows: tuple[NistQuestion, ...] = ROWS

    @property
    def refuted(self) -> tuple[Finding, ...]:
        return tuple(one for one in self.findings if one.refuted)

    @property
    def verdict(self) -> str:
        """The result in one line."""
        if self.refuted:
            return f"REFUTED: {len(self.refuted)} of {len(self.findings)} claims: {join_names(self.refuted)}"
        return f"none of {len(self.findings)} claims is refuted"

    def false_alarm(self) -> float:
        """An upper bound on the probability of any false alarm."""
        tests = sum(len(one.evidence) for one in self.findings)
        return min(1.0, tests * (1 - self.confidence))

    def __str__(self) -> str:
        width = max([len(one.name) for one in self.findings] + [7])
        width = min(width, WIDTH - sum(len(tier) + 2 for tier in TIERS))
        lines = [*textwrap.wrap(f"sfumato {self.version}, {self.when}: {self.verdict}", WIDTH), ""]
        lines.append("  ".join(["audited".ljust(width), *TIERS]))
        lines.append("  ".join(["─" * width, *("─" * len(tier) for tier in TIERS)]))
        for one in self.findings:
            marks = (one.mark(tier).center(len(tier)) for tier in TIERS)
            lines.append("  ".join([shorten(one.name, width).ljust(width), *marks]).rstrip())
        lines.append("✓ not refuted   ✗ refuted   · not audited by this tier")
        for one in self.refuted:
            lines += ["", *textwrap.wrap(f"{one.name}: claimed {one.claim}", WIDTH)]
            lines += [
                line for seen in one.evidence if seen.refuted for line in wrap_indented(f"{seen.tier}: {seen.words}")
            ]
        count = Counter(row.status for row in self.rows)
        lines += [
            "",
            f"NIST SP 800-226: {count[CHECKED]} of {len(self.rows)} questions checked by machine; the others:",
        ]
        for row in self.rows:
            if row.status != CHECKED:
                lines += wrap_indented(f"{row.number}. {row.theme} ({row.status}): {row.answer}")
        return "\n".join([*lines, "", *textwrap.wrap(READING, WIDTH)])

    def to_json(self) -> str:
        """The report as JSON."""
        findings = [{**asdict(one), "refuted": one.refuted} for one in self.findings]
        data = {
            **asdict(self), "findings": findings, "verdict": self.verdict, "false_alarm": self.false_alarm(),
            "refuted": [one.name for one in self.refuted],
        }  # fmt: skip
        return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1)


def join_names(findings: Iterable[Finding]) -> str:
    return ", ".join(one.name for one in findings)


def shorten(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def wrap_indented(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")


def page(report: Report, docs: str = "docs") -> str:
    """The report as HTML; `docs` is the path of the documents, for links to the theorems."""
    colour = "bad" if report.refuted else "good"
    kinds = list(dict.fromkeys(finding.kind for finding in report.findings))
    head = "".join(f'<th class="mark">{tier}</th>' for tier in TIERS)
    tables = "".join(
        f"<h2>{escape(kind)}</h2><table><thead><tr><th>audited</th>{head}</tr></thead><tbody>"
        + "".join(finding_row(finding, docs) for finding in report.findings if finding.kind == kind)
        + "</tbody></table>"
        for kind in kinds
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>sfumato: audit of {escape(report.when)}</title><style>{STYLE}</style></head><body>"
        f"<h1>Audit of sfumato {escape(report.version)}</h1>"
        f'<p class="verdict {colour}">{escape(report.verdict)}</p>'
        f'<p class="soft">{escape(report.when)} · confidence {report.confidence:.10g} for each piece of evidence, so '
        f"that any false alarm at all has probability ≤ {report.false_alarm():.2g}</p><p>{escape(READING)}</p>"
        f"{TIERS_EXPLAINED}{tables}{nist_table(report, docs)}</body></html>\n"
    )


def finding_row(one: Finding, docs: str) -> str:
    marks = "".join(f'<td class="mark {colour(one, tier)}">{one.mark(tier)}</td>' for tier in TIERS)
    theorems = "".join(
        f'<li>{escape(t.statement)} <span class="soft">[{escape(t.source)}]</span>'
        f' <a href="{escape(docs)}/theorems.md"><code>{escape(t.where)}</code></a></li>'
        for t in one.theorems
    )
    evidence = "".join(f"<li>{evidence_text(seen)}</li>" for seen in one.evidence)
    opened = " open" if one.refuted else ""
    return (
        f"<tr><td><details{opened}><summary>{escape(one.name)}</summary><p>claimed: {escape(one.claim)}<br>"
        f"neighbours: {escape(one.pair)}</p><ul>{evidence}</ul><p>because</p><ul>{theorems}</ul></details></td>"
        f"{marks}</tr>"
    )


def colour(one: Finding, tier: str) -> str:
    return {"✗": "bad", "✓": "good"}.get(one.mark(tier), "soft")


def evidence_text(seen: Evidence) -> str:
    words = escape(seen.words).replace("\n", "<br>")
    return f'<b class="{"bad" if seen.refuted else "good"}">{seen.tier}</b>: {words}'


def nist_table(report: Report, docs: str) -> str:
    """The NIST questions with their answers."""
    rows = "".join(
        f"<tr><td>{one.number}</td><td><b>{escape(one.theme)}</b><br>{escape(one.question)}</td>"
        f"<td>{escape(one.answer)}<br>{'<br>'.join(f'<code>{escape(name)}</code>' for name in one.evidence)}</td>"
        f'<td class="{"good" if one.status == "checked" else "soft"}">{one.status}</td></tr>'
        for one in report.rows
    )
    return (
        "<h2>Questions of NIST SP 800-226</h2><p class='soft'>Themes of the guidelines of March 2025, in our words and "
        "from summaries: compare them with the publication. "
        f"Named tests are run by <code>make test</code>; the promises are in <a href='{escape(docs)}/promise.md'>"
        "promise.md</a>.</p><table><thead><tr><th></th><th>question</th><th>answer and tests</th><th>status</th></tr>"
        f"</thead><tbody>{rows}</tbody></table>"
    )
