"""Write docs/theorems.md, the index of all theorems the package rests on, from the docstrings that cite them.

A docstring cites a theorem on a line of its own, which may wrap until its closing bracket:

    Theorem: <short name of the statement> [<author, year, number>]

`python tools/theorems.py` writes the index; `python tools/theorems.py --check` only says whether it is current.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INDEX = Path("docs/theorems.md")
SHAPE = re.compile(r"Theorem: +(?P<statement>.+?) +\[(?P<source>[^\[\]]+)\]\.?")

INTRODUCTION = """\
<!-- Written by tools/theorems.py: change the docstrings, then run `make docs-index`. -->
# Theorems

What the code rests on. Each row is a `Theorem:` line in the docstring of the place that uses it,
so the statement, its source and the lines that depend on it can be read side by side.
"""

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Malformed(Exception):
    """A line starts like a theorem but cannot be read as one."""


@dataclass(frozen=True)
class Theorem:
    """A cited statement and the place that uses it; `file` is relative to the repository."""

    statement: str
    source: str
    where: str
    file: Path


def documented(node: ast.AST, name: str) -> Iterator[tuple[str, Documented]]:
    """A module and all classes and functions in it, in the order they are written, with dotted names."""
    if isinstance(node, Documented):
        yield name, node
    for child in ast.iter_child_nodes(node):
        is_named = isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        yield from documented(child, f"{name}.{child.name}" if is_named else name)


def cited(docstring: str) -> Iterator[tuple[str, str]]:
    """(statement, source) of each theorem that a docstring cites."""
    lines = [line.strip() for line in docstring.splitlines()]
    for start, line in enumerate(lines):
        if not line.startswith("Theorem:"):
            continue
        text, following = line, iter(lines[start + 1 :])
        while not (match := SHAPE.fullmatch(text)):
            more = next(following, "")
            if not more or more.startswith("Theorem:"):
                raise Malformed(text)
            text = f"{text} {more}"
        yield match["statement"], match["source"]


def theorems(root: Path) -> list[Theorem]:
    """All theorems cited in the package, sorted by file, then by line."""
    found = []
    for path in sorted((root / "sfumato").rglob("*.py")):
        file = path.relative_to(root)
        module = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
        for where, node in documented(ast.parse(path.read_text(encoding="utf-8")), module):
            try:
                pairs = list(cited(ast.get_docstring(node) or ""))
            except Malformed as problem:
                raise Malformed(
                    f"{file}: the docstring of {where} has a theorem that cannot be read.\n"
                    f"  found:  {problem}\n"
                    "  do:     write  Theorem: <short name of the statement> [<author, year, number>]"
                ) from None
            found += [Theorem(statement, source, where, file) for statement, source in pairs]
    return found


def cell(text: str) -> str:
    """Text as it must be written in a table; a bare | would end the cell."""
    return text.replace("|", r"\|")


def proofs(root: Path) -> list[Path]:
    """The pages that hold proofs of our own."""
    return sorted((root / INDEX).with_suffix("").glob("*.md"))


def title(page: Path) -> str:
    return page.read_text(encoding="utf-8").lstrip().splitlines()[0].lstrip("# ")


def index(root: Path) -> str:
    """The text of docs/theorems.md."""
    rows = [
        f"| {cell(t.statement)} | {cell(t.source)} | [`{t.where}`](../{t.file.as_posix()}) |" for t in theorems(root)
    ]
    text = INTRODUCTION + "\n" + "\n".join(["| theorem | source | where |", "|---|---|---|", *rows]) + "\n"
    if pages := proofs(root):
        text += "\n## Proofs of our own\n\n" + "".join(f"- [{title(p)}](theorems/{p.name})\n" for p in pages)
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description="Write docs/theorems.md from the docstrings of the package.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the file is not current")
    check = parser.parse_args().check
    try:
        text = index(ROOT)
    except Malformed as problem:
        print(problem, file=sys.stderr)
        return 1
    path = ROOT / INDEX
    if not check:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    elif not path.exists() or path.read_text(encoding="utf-8") != text:
        print(f"{INDEX} does not match the docstrings; run `make docs-index` and commit the result.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
