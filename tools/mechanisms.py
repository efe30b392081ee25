"""Write the tables of all mechanisms and sampling schemes in docs/mechanisms.md from what their classes state.

`python tools/mechanisms.py` writes the table; `python tools/mechanisms.py --check` only says whether it is current.
"""

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from sfumato.audit.exhibits import theorem_lines
from sfumato.loss.display import name
from sfumato.mechanisms import Mechanism
from sfumato.mechanisms.base import shipped_mechanisms
from sfumato.mechanisms.examples import Example
from sfumato.sampling.base import shipped_samplings

PAGE = Path(__file__).resolve().parents[1] / "docs" / "mechanisms.md"
BEGIN = "<!-- Written by tools/mechanisms.py: change the classes, then run `make docs-index`. -->"
END = "<!-- End of what tools/mechanisms.py writes. -->"
HEAD = "| mechanism | private input | theorem | an example, and its loss | choose it |\n|---|---|---|---|---|"
SAMPLING_HEAD = "| sampling | theorem |\n|---|---|"
ROOMS = {
    "additive": "Noise on numbers",
    "choice": "Choices by score, and values by rank",
    "keys": "Private keys",
    "streams": "Streams",
    "base": "Made of other mechanisms",
    "composition": "Made of other mechanisms",
    "randomized_response": "Without a trusted curator",
    "dependent": "Noise that depends on the data's own sensitivity",
    "groups": "Guarantees by group size",
}


def room(kind: type[Mechanism]) -> str:
    """The heading under which a class is listed: from the folder or file that it is in."""
    return ROOMS[kind.__module__.split(".")[2]]


def signature(kind: type) -> str:
    """The class and its parameters, without defaults."""
    names = (field.name for field in dataclasses.fields(kind) if field.name != "source")
    return f"`{kind.__name__}({', '.join(names)})`"


def price(example: Example) -> str:
    """The example and its loss on its first pair of neighbours."""
    loss = example.mechanism.loss(*example.neighbours[0].loss_arguments)
    return f"`{example.mechanism!r}`: `{name(loss)}`"


def line(*cells: str) -> str:
    """One line of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def row(kind: type[Mechanism]) -> str:
    """The line of a mechanism."""
    example = kind.examples()[0]
    theorems = theorem_lines(kind) or theorem_lines(kind.__mro__[1]) or ["that of the mechanism inside"]
    return line(signature(kind), example.inputs.name, theorems[0], price(example), kind.use)


def table() -> Iterator[str]:
    """Lines of markdown: a heading and a table for each room."""
    order = list(dict.fromkeys(ROOMS.values()))
    kinds = sorted((kind for kind in shipped_mechanisms() if kind.examples()), key=lambda kind: order.index(room(kind)))
    for heading, members in groupby(kinds, room):
        yield f"\n### {heading}\n"
        yield HEAD
        yield from map(row, members)
    yield "\n### Sampling\n"
    yield SAMPLING_HEAD
    yield from (line(signature(kind), "; ".join(theorem_lines(kind))) for kind in shipped_samplings())


def page() -> str:
    """docs/mechanisms.md with the current table."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{chr(10).join(table())}\n\n{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the table is out of date")
    found = page()
    if found == PAGE.read_text(encoding="utf-8"):
        return 0
    if parser.parse_args().check:
        print("docs/mechanisms.md is out of date: run `make docs-index`", file=sys.stderr)
        return 1
    PAGE.write_text(found, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
