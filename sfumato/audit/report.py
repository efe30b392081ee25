"""The report of a full audit, for a reviewer: claims, theorems, evidence of three tiers, and the NIST questions."""

import json
import textwrap
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from sfumato.audit.nist import CHECKED, ROWS, Question

TIERS = ("black box", "replay", "white box")
MARKS = {True: "✗", False: "✓", None: "·"}
WIDTH = 80
READING = (
    "A refuted claim is wrong, except for a false alarm whose probability is stated. A claim that is not refuted is "
    "not proved by the audit: the theorems prove it, and audits look for mistakes in them and in the code."
)


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
    rows: tuple[Question, ...] = ROWS

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
