"""Pages of the reference, written from docstrings, signatures and registries, so that they cannot be out of date."""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType

import click

import sfumato
from sfumato.aggregates.registry import AGGREGATES
from sfumato.audit.nist import ROWS
from sfumato.cli import main
from sfumato.cli.explain import EXPLANATIONS, all_errors, exit_code
from sfumato.server import configuration
from sfumato.server.http.problems import STATUS, status_of
from sfumato.server.postgres.problems import CODES
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.policy_keys import PARTS
from tools.site.markdown import escape
from tools.site.stage import PACKAGES

FROM_A_MODULE = re.compile(
    r"\b(?:sfumato|numpy|collections\.abc|typing|pathlib|builtins)(?:\.[a-z_]\w*)*\.(?=[A-Za-z])"
)


def pages() -> dict[str, str]:
    """All pages of the reference, by their place in the site."""
    found = {
        "reference/sql.md": sql_page(),
        "reference/policy.md": policy_page(),
        "reference/service.md": service_page(),
        "reference/command-line.md": command_page(),
        "reference/errors.md": errors_page(),
        "reference/api/index.md": top_page(),
        "nist-800-226.md": nist_page(),
    }
    for name in PACKAGES:
        found[f"reference/api/{name}.md"] = module_page(import_module(f"sfumato.{name}"), name)
    return found


# ---- Python ---------------------------------------------------------------------------------------------------------


def prose(docstring: str) -> str:
    """A docstring as Markdown: sessions and indented lines are code, everything else is shown as it is written."""
    parts: list[str] = []
    for part in re.split(r"\n\s*\n", inspect.cleandoc(docstring)):
        if part.startswith(">>>"):
            parts.append(f"```pycon\n{part}\n```")
        elif part.startswith("Theorem:"):
            parts.append(escape(" ".join(part.split())))
        elif all(line.startswith("  ") for line in part.splitlines()):
            parts.append(f"```text\n{textwrap.dedent(part)}\n```")
        elif any(re.match(r"\s+\S|[│├└]", line) for line in part.splitlines()):
            parts.append(f"```text\n{part}\n```")
        else:
            parts.append(escape(part))
    return "\n\n".join(parts)


def signature_of(name: str, thing: object) -> str:
    try:
        found = str(inspect.signature(thing))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return name
    return name + re.sub(r"<(?:[^<>]|<lambda>)* at 0x\w+>", "…", FROM_A_MODULE.sub("", found).replace("'", ""))


def described(thing: object) -> str:
    """Its own docstring; frozen data classes without one have a docstring that repeats their signature."""
    text = inspect.getdoc(thing) or ""
    return "" if re.match(r"\w+\(.*\)( -> None)?$", text, re.S) else text


def methods(kind: type) -> Iterator[tuple[str, object]]:
    """Public methods and properties that this package wrote, without those of bases that have an entry themselves."""
    own = [one for one in kind.__mro__ if one is kind or one not in shown_bases(kind)]
    for name in dir(kind):
        if name.startswith("_") or not any(name in vars(one) for one in own):
            continue
        found = inspect.getattr_static(kind, name)
        inner = found.__func__ if isinstance(found, staticmethod | classmethod) else found
        ours = getattr(inner, "__module__", "") or getattr(getattr(inner, "fget", None), "__module__", "") or ""
        if (inspect.isfunction(inner) or isinstance(inner, property)) and ours.startswith("sfumato"):
            yield name, found


@cache
def public_names() -> frozenset[str]:
    return frozenset(sfumato.PLACES).union(*(import_module(f"sfumato.{name}").__all__ for name in PACKAGES))


def shown_bases(kind: type) -> list[type]:
    """The bases that have an entry of their own."""
    return [one for one in kind.__mro__[1:] if one.__module__.startswith("sfumato") and one.__name__ in public_names()]


def entry(name: str, thing: object, level: str) -> str:
    """A heading, a signature, a docstring and, for a class, its methods."""
    lines = [f"{level} {name}", "", f"```python\n{signature_of(name, thing)}\n```", "", prose(described(thing))]
    if inspect.isclass(thing):
        rows = [method_row(one, found) for one, found in methods(thing)]
        if rows:
            lines += ["", "| method or property | |", "|---|---|", *rows]
        if bases := shown_bases(thing):
            lines += ["", f"It also has what {' and '.join(f'`{one.__name__}`' for one in bases)} has."]
    return "\n".join(lines) + "\n"


def method_row(name: str, found: object) -> str:
    inner = getattr(found, "__func__", None) or getattr(found, "fget", None) or found
    shown = name if isinstance(found, property) else signature_of(name, inner).split(" -> ")[0]
    shown = re.sub(r"\((?:self|cls)(?:, )?", "(", shown)
    first = (inspect.getdoc(inner) or "").split("\n\n")[0]
    return f"| `{cell(shown)}` | {cell(escape(' '.join(first.split())))} |"


def cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def top_page() -> str:
    """The names of `sfumato` itself."""
    lines = ["# Python: sfumato", "", prose(inspect.getdoc(sfumato) or ""), ""]
    lines += ["`import sfumato as sf`. Packages have pages of their own:", ""]
    lines += [f"- [sf.{name}]({name}.md)" for name in PACKAGES]
    for name in sorted(sfumato.PLACES, key=str.lower):
        if name not in sfumato.PACKAGES and name != "plots":
            lines += ["", entry(name, getattr(sfumato, name), "##")]
    return "\n".join(lines) + "\n"


def module_page(module: ModuleType, name: str) -> str:
    lines = [f"# Python: sf.{name}", "", prose(module.__doc__ or "")]
    for one in sorted(module.__all__, key=str.lower):
        thing = getattr(module, one)
        if inspect.ismodule(thing):
            lines += ["", f"## {one}", "", prose(thing.__doc__ or "")]
        else:
            lines += ["", entry(one, thing, "##")]
    return "\n".join(lines) + "\n"


# ---- SQL ------------------------------------------------------------------------------------------------------------


def sql_page() -> str:
    lines = [
        "# Reference: SQL", "",
        "Aggregates and functions that questions may use, from the registries of the parser. "
        "[What may be asked](../sql.md) explains how they go together.", "", "## Aggregates",
    ]  # fmt: skip
    for kind in sorted(AGGREGATES.classes, key=lambda one: one.listed or one.__name__):
        if kind.listed:
            interval = "with an interval" if kind.has_interval else "without an interval"
            lines += ["", f"### {kind.listed}", "", f"{prose(described(kind))}", "", f"{interval.capitalize()}."]
            if kind.example:
                lines += ["", f"```sql\n{kind.example}\n```"]
            if kind.methods:
                lines += ["", "In Python: " + ", ".join(f"`{one}`" for one in kind.methods)]
    lines += ["", "## Functions of a row", "", "Every function is total: where there is no result, it is NULL. "
              "Engines other than DuckDB refuse what they cannot guarantee.", "",
              "| function | arguments | engines | of released values |", "|---|---|---|---|"]  # fmt: skip
    for name, one in sorted(FUNCTIONS.items()):
        kinds = ", ".join(kind_name(kind) for kind in one.kinds) + (", …" if one.more else "")
        engines = ", ".join(["DuckDB", *(e for e in ("postgres", "spark") if e in one.same_in or e in one.sql_in)])
        lines.append(f"| `{cell(name)}` | {kinds} | {engines} | {'yes' if one.after else 'no'} |")
    return "\n".join(lines) + "\n"


def kind_name(kind: object) -> str:
    if kind is None:
        return "any"
    return " or ".join(map(kind_name, kind)) if isinstance(kind, tuple) else str(getattr(kind, "value", kind))


# ---- policies, services, commands -----------------------------------------------------------------------------------


def policy_page() -> str:
    lines = [
        "# Reference: policies", "",
        "A policy is a TOML file, written by the owner of the data. It is public. Every entry that it may have is "
        "here; any other is refused. `sfumato policy init` writes a draft, `sfumato policy check` compares it "
        "with the data. "
        "How to choose: [whose data, which budget, which bounds](../choosing.md).",
    ]  # fmt: skip
    for part, keys in PARTS.items():
        lines += [
            "",
            f"## {part[0].upper() + part[1:]}",
            "",
            "| entry | takes | without it | means |",
            "|---|---|---|---|",
        ]
        lines += [f"| `{name}` | {escape(k.takes)} | {escape(k.default)} | {k.means} |" for name, k in keys.items()]
    return "\n".join(lines) + "\n"


def service_page() -> str:
    source = inspect.getsource(configuration.Limits)
    rows = re.findall(r"^    (\w+): \w+ = (\S+)  # (.*)$", source, re.M)
    example = (configuration.__doc__ or "").split("\n\n")
    lines = [
        "# Reference: configuration of a service", "", escape(example[0]), "", f"```toml\n{example[1]}\n```", "",
        escape(" ".join("\n\n".join(example[2:]).split())), "", "## [limits]", "",
        "| entry | default | means |", "|---|---|---|",
        *(f"| `{name}` | {default} | {escape(meaning)} |" for name, default, meaning in rows), "",
        "[Run a service](../service.md) explains doors, roles and identities.",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def command_page() -> str:
    lines = ["# Reference: command line", "", "What `--help` prints, for every command."]
    for path, command in commands(main, ("sfumato",)):
        context = click.Context(command, info_name=" ".join(path), max_content_width=80)
        lines += ["", f"## {' '.join(path)}", "", f"```text\n{command.get_help(context).rstrip()}\n```"]
    return "\n".join(lines) + "\n"


def commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from commands(command.commands[name], (*path, name))


def errors_page() -> str:
    """Each error under a heading of its own name, which is what `sfumato explain NAME` is about."""
    tree = (inspect.getdoc(sfumato.errors) or "").split("\n\n")[1]
    lines = [
        "# Reference: errors", "",
        "All errors are in one tree. The same texts are printed by `sfumato explain NAME`, and a service describes "
        "each at `/v1/problems/NAME`.", "", f"```text\n{tree}\n```",
    ]  # fmt: skip
    for kind in all_errors():
        about, name = EXPLANATIONS[kind.__name__], kind.__name__
        lines += [
            "", f"## {name}", "", escape(described(kind)), "",
            "| | |", "|---|---|",
            f"| cause | {about.cause} |", f"| charged | {about.charged} |", f"| do | {about.do} |",
            f"| codes | {', '.join(codes(kind))} |",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def codes(kind: type[sfumato.errors.SfumatoError]) -> Iterator[str]:
    yield f"command line {exit_code(kind)}"
    made: Callable[..., sfumato.errors.SfumatoError] = kind
    needs: Mapping[str, tuple[object, ...]] = {"UnboundedColumn": ("", ""), "NotReached": ("", None)}
    problem = made(*needs.get(kind.__name__, ("",)))
    if any(isinstance(problem, known) for known, _ in STATUS) or status_of(problem) == 500:
        yield f"HTTP {status_of(problem)}"
    yield f"SQLSTATE {next((code for known, code in CODES if isinstance(problem, known)), 'XX000')}"


# ---- for reviewers --------------------------------------------------------------------------------------------------


def nist_page() -> str:
    """The rows that `sfumato audit` reports, with links to the tests that check them."""
    lines = [
        "# NIST SP 800-226, row by row", "",
        "Themes of “Guidelines for Evaluating Differential Privacy Guarantees” (March 2025), in our words and based on "
        "public summaries: compare them with the publication itself. `sfumato audit` runs the tests and reports "
        "these rows.", "",
        "| | theme | question | answer | state | evidence |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in ROWS:
        evidence = "<br>".join(f"[{name.rpartition('::')[2]}](../{name.split('::')[0]})" for name in row.evidence)
        texts = (str(row.number), row.theme, row.question, row.answer, row.status, evidence or "–")
        lines.append(f"| {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"
