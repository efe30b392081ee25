"""Where in the text a refusal applies, and all refusals of a question at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches

from sqlglot import exp

from sfumato.errors import QueryRefused, UnboundedColumn

SHOWN = 96  # characters of a line
ALIKE = 0.75


def place_of(node: exp.Expr) -> int | None:
    """The first character of a node in the text; None if it was not read from there."""
    found = [start for one in node.walk() if isinstance(start := (one._meta or {}).get("start"), int)]
    return min(found, default=None)


@contextmanager
def placed(node: exp.Expr) -> Iterator[None]:
    """A refusal in here is about this node, unless it knows better."""
    try:
        yield
    except QueryRefused as problem:
        if problem.place is None:
            problem.place = place_of(node)
        raise


@dataclass
class Problems:
    """The refusals of the parts of a question."""

    found: list[QueryRefused] = field(default_factory=list)

    @contextmanager
    def noted(self, node: exp.Expr) -> Iterator[None]:
        """A refusal in here is told together with the others."""
        try:
            with placed(node):
                yield
        except QueryRefused as problem:
            self.found.append(problem)

    def refuse(self) -> None:
        """Raise what was found. Bounds are found only for questions that have no other problem."""
        plain = [one for one in self.found if not isinstance(one, UnboundedColumn)]
        if not self.found:
            return
        if len(plain) < 2:
            raise (plain or self.found)[0]
        together = QueryRefused("\n".join(dict.fromkeys(map(str, plain))))
        together.parts = tuple({str(one): one for one in plain}.values())
        raise together


def with_places(problem: QueryRefused, text: str) -> QueryRefused:
    """The same refusal, each part with its line and a caret; `text` is the question."""
    parts = problem.parts or (problem,)
    if all(one.place is None for one in parts):
        return problem
    problem.args = ("\n".join(with_caret(str(one), one.place, text) for one in parts),)
    return problem


def with_caret(words: str, place: int | None, text: str) -> str:
    """A refusal with the place that it is about after its first line."""
    if place is None or place >= len(text) or "\n  at:" in words:
        return words
    before = text[:place]
    line, column = before.count("\n") + 1, place - (before.rfind("\n") + 1)
    whole = text.split("\n")[line - 1]
    first = max(0, column - SHOWN // 2)
    shown = whole[first : first + SHOWN].replace("\t", " ")
    caret = " " * (column - first) + "^"
    head, *rest = words.split("\n")
    mark = [f"  at:     line {line}, column {column + 1}", f"          {shown}", f"          {caret}"]
    return "\n".join([head, *mark, *rest])


def closest(name: str, known: list[str]) -> str:
    """The name that was probably meant; "" if none is close."""
    found = get_close_matches(name.lower(), known, 1, ALIKE)
    return found[0] if found else ""
