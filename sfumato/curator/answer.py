"""An answer: rows with intervals, its price, what is left, and what that means for one person."""

import csv
import datetime
import io
import json
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sfumato.wording import plural, short_number

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

Cell = float | int | str | bool | datetime.date | None  # a datetime is a date

CLAMPED = "Intervals are about clamped values."
FOR_ALL_DATA, BY_THE_TAIL, NOISE_ONLY = "for all data", "by the shape of the tail", "noise only"


class Deferred:
    """A text field of a dataclass that may be given as a function, which is called when the field is first read.

    The odds of a loss take longer to compute than all else that is shown, and most callers never read them.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"_{name}"

    def __get__(self, holder: object, owner: type) -> str:
        if holder is None:
            raise AttributeError(self.name)  # the class itself has no such text
        value = vars(holder)[self.name]
        if callable(value):
            value = vars(holder)[self.name] = value()
        return str(value)

    def __set__(self, holder: object, value: "str | Callable[[], str] | Deferred") -> None:
        vars(holder)[self.name] = "" if value is self else value  # itself, where the field is left out


@dataclass(frozen=True)
class LeftOut:
    """The effect of scaling on an answer: who counts in part, and which share of the rows is left out.

    `grade` says what intervals include: for all data (the policy states `most`), by the shape of the tail of
    contributions (a model that heavy-tailed data may break), or noise alone. `people` holds for all data with 97.5 %.
    """

    grade: str
    people: int | None = None  # at most so many count in part
    about: float = 0.0  # share of all that is counted or summed
    at_most: float = 0.0
    warning: str = ""
    clamped: dict[str, list[float]] = field(default_factory=dict)  # column → low, high, share outside, at most
    clamped_included: bool = False  # do intervals include what clamping removes, by the shape of the tail of values?
    by_row: tuple[float, ...] = ()  # the share at most in each row of the answer, where that is known by group

    @staticmethod
    def from_plain(data: Mapping[str, Any]) -> "LeftOut":
        """From plain data, as JSON holds them."""
        return LeftOut(**{**data, "by_row": tuple(data.get("by_row", ()))})

    def columns(self, rows: int) -> dict[str, list["Cell"]]:
        """The left-out shares as columns of a table with so many rows; empty where nothing is scaled."""
        if self.people is None:
            return {}
        most = list(self.by_row) if len(self.by_row) == rows else [self.at_most] * rows
        return {
            "people in part": [self.people] * rows,
            "left out": [self.about] * rows,
            "left out at most": [*most],
            "interval holds": [self.grade] * rows,
        }

    def __str__(self) -> str:
        return " ".join(filter(None, [self.in_part, self.beyond_bounds]))

    @property
    def beyond_bounds(self) -> str:
        """The clamped share of values, in words: of columns whose bounds were found automatically."""
        found = [
            f"Values of {name} were clamped to [{low:g}, {high:g}]: {about_percent(about)} lie outside, at most"
            f" {percent(most)}."
            for name, (low, high, about, most) in self.clamped.items()
        ]
        held = "Intervals include what that removes, by the shape of the tail of values."
        return " ".join([*found, held if self.clamped_included else CLAMPED]) if found else ""

    @property
    def in_part(self) -> str:
        """The left-out share, in words."""
        if self.people is None:
            return ""
        most = f"at most {percent(self.at_most)} ({self.grade})."
        if not self.people:
            return f"Probably nobody counts in part: nothing left out, {most} {self.warning}".strip()
        people = f"{self.people:,} {'person counts' if self.people == 1 else 'people count'}"
        found = f"At most {people} in part: {about_percent(self.about)} left out, {most}"
        return f"{found} {self.warning}".strip()


def about_percent(share: float) -> str:
    """An estimated share as a percentage: "about 0.3 %", "less than 0.01 %"."""
    return percent(share) if 0 < share < 1e-4 else f"about {percent(share)}"


def percent(share: float) -> str:
    """A share as a percentage with two digits; a small positive share is never written as 0 %."""
    return "0 %" if share <= 0 else "less than 0.01 %" if share < 1e-4 else f"{short_number(100 * share, 2)} %"


PREVIEWED = ("privacy",)  # the columns of EXPLAIN PRIVACY


@dataclass(frozen=True)
class Answer:
    """Column names and rows; an aggregate called n is followed by `n low` and `n high`, which hold the truth at 95 %.

    `coverage` says how often, by column: exactly for counts and sums, where a coarse lattice may give more; at least,
    for others.

    All of it is made of released values and public numbers, so it may be copied, plotted and kept.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    epsilon: float
    delta: float
    charged: bool
    left: str = field(repr=False)
    odds: Deferred = field(default=Deferred(), repr=False)
    note: str = field(default="", repr=False)  # what the intervals include
    coverage: dict[str, float] = field(default_factory=dict, repr=False)
    policy: tuple[tuple[int, float], ...] = field(
        default=(), repr=False
    )  # (size, ε) of counts by group: a public function
    left_out: LeftOut | None = field(default=None, repr=False)  # where contributions are scaled

    @classmethod
    def of_preview(cls, lines: Iterable[str], epsilon: float, delta: float, left: str) -> "Answer":
        """EXPLAIN PRIVACY: lines of a preview as an answer, which costs nothing."""
        return cls(PREVIEWED, tuple((line,) for line in lines), epsilon, delta, False, left)

    def __len__(self) -> int:
        return len(self.rows)

    def with_account(self, charged: bool, left: str) -> "Answer":
        """The answer with whether it was charged now, and with the budget that is left."""
        odds = vars(self)["_odds"]  # not read yet, perhaps
        return replace(self, charged=charged, left=left, coverage=dict(self.coverage), odds=odds)

    def column(self, name: str) -> list[Cell]:
        """One column, by its name."""
        if name not in self.columns:
            raise KeyError(f"there is no column {name!r}; there are {', '.join(map(repr, self.columns))}")
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    # ---- to other forms ---------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Everything, as one JSON object; `Answer.from_json` reads it."""
        dates = [j for j in range(len(self.columns)) if any(isinstance(row[j], datetime.date) for row in self.rows)]
        found = asdict(self) | ({"dates": dates} if dates else {})
        return json.dumps(found, ensure_ascii=False, allow_nan=False, default=str)

    @staticmethod
    def from_json(text: str) -> "Answer":
        data = json.loads(text)
        columns, listed = tuple(data.pop("columns")), data.pop("rows")
        dates = set(data.pop("dates", ()))
        rows = tuple(tuple(parse_date(cell) if j in dates else cell for j, cell in enumerate(row)) for row in listed)
        policy = tuple((size, eps) for size, eps in data.pop("policy", ()))
        missing = data.pop("left_out", None)
        return Answer(columns, rows, **data, policy=policy, left_out=LeftOut.from_plain(missing) if missing else None)

    def to_csv(self) -> bytes:
        """A header and the rows, in UTF-8; NULL is an empty field."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(self.columns)
        writer.writerows(["" if cell is None else cell for cell in row] for row in self.rows)
        return text.getvalue().encode("utf-8", "replace")

    def to_arrow_stream(self) -> bytes:
        """An Arrow IPC stream."""
        pyarrow = import_optional("pyarrow")
        table, sink = self.to_arrow(), io.BytesIO()
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue()

    def to_pandas(self) -> "pandas.DataFrame":
        """Frames have more columns where contributions are scaled: what was left out (`LeftOut.columns`)."""
        more = self._left_out_columns()
        rows = [(*row, *(cells[i] for cells in more.values())) for i, row in enumerate(self.rows)]
        return import_optional("pandas").DataFrame(rows, columns=[*self.columns, *more])

    def to_polars(self) -> "polars.DataFrame":
        found: polars.DataFrame = import_optional("polars").DataFrame(self._series(), strict=False)
        return found

    def to_arrow(self) -> "pyarrow.Table":
        return import_optional("pyarrow").table(self._series())

    def _series(self) -> dict[str, list[Cell]]:
        """The columns; numbers that are whole in some rows and not in others are all floats."""
        found = {name: [row[i] for row in self.rows] for i, name in enumerate(self.columns)}
        return {
            name: [float(c) if type(c) is int else c for c in f] if any(type(c) is float for c in f) else f
            for name, f in found.items()
        } | self._left_out_columns()

    def _left_out_columns(self) -> dict[str, list[Cell]]:
        """The columns of `LeftOut`, without names that the answer itself uses."""
        found = self.left_out.columns(len(self.rows)) if self.left_out is not None else {}
        return {name: cells for name, cells in found.items() if name not in self.columns}

    # ---- to be looked at --------------------------------------------------------------------------------------------

    @property
    def footer(self) -> str:
        """Rows, price, and what is left."""
        if self.columns == PREVIEWED and not self.charged:
            return f"a preview, nothing was charged · {self.left}"
        price = f"ε = {self.epsilon:.3g} at δ = {self.delta:.2g}" if self.charged else "free: this was answered before"
        return f"{len(self.rows):,} {'row' if len(self.rows) == 1 else 'rows'} · {price} · {self.left}"

    def within(self, width: int) -> str:
        """As text for a screen of this width: a table that is wider goes row by row, one line a column."""
        names, rows, right = format_columns(self.columns, self.rows, self.coverage)
        table = format_table(names, rows, right)
        if all(len(line) <= width for line in table.splitlines()):
            foot = [*textwrap.wrap(self.footer, width), *textwrap.wrap(self.note, min(width, 80))]
            return "\n".join([table, *foot])
        indent = max(map(len, names), default=0)
        blocks = ["\n".join(f"{n:>{indent}}  {cell}" for n, cell in zip(names, row, strict=True)) for row in rows]
        return "\n\n".join([*blocks, "\n".join(textwrap.wrap(f"{self.footer}. {self.note}", width))])

    def __repr__(self) -> str:
        """In one line, also of a million rows; print it to see them."""
        named = ", ".join(name for name in self.columns if not name.endswith((" low", " high")))
        charged = "charged" if self.charged else "free"
        return f"Answer({plural(len(self.rows), 'row')} of {named}; ε = {self.epsilon:.4g}, {charged})"

    def __str__(self) -> str:
        names, rows, right = format_columns(self.columns, self.rows, self.coverage)
        return "\n".join([format_table(names, rows, right), self.footer, *textwrap.wrap(self.note, 80)])

    def plot(self, axes: "Axes | None" = None, *, column: str | None = None) -> "Axes":
        """A chart with its intervals: points by key, or a line with a band where the key is a day or a number."""
        from sfumato.curator.plot_answer import plot_answer

        return plot_answer(self, axes, column)

    def _repr_html_(self) -> str:
        from sfumato.curator.answer_html import answer_html

        return answer_html(self)


def parse_date(cell: Cell) -> Cell:
    """A date or a timestamp as `str` writes it; any other cell is returned unchanged."""
    try:
        found = datetime.datetime.fromisoformat(cell) if isinstance(cell, str) else None
    except ValueError:
        return cell
    return cell if found is None else found.date() if len(str(cell)) == 10 else found


def import_optional(name: str) -> ModuleType:
    """Import a library that sfumato does not depend on; the error says how to install it."""
    try:
        return import_module(name)
    except ImportError as problem:
        raise ImportError(f"this needs {name}.\n  do:     pip install {name}; or use .rows, .to_json()") from problem


def format_interval(value: Cell, low: Cell, high: Cell, digits: int) -> str:
    """An interval as text; where an end is missing, the interval is open on that side."""
    if value is None:
        return f"{format_cell(low, digits)} … {format_cell(high, digits)}"
    ends = "-∞" if low is None else format_cell(low, digits), "∞" if high is None else format_cell(high, digits)
    return " … ".join(ends)


def format_columns(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], coverage: Mapping[str, float] = {}
) -> tuple[list[str], list[list[str]], list[bool]]:  # fmt: skip
    """Names, texts and which go to the right: an aggregate and its interval take two columns, with as many digits as
    the interval leaves meaningful."""
    names: list[str] = []
    texts: list[list[str]] = []
    right: list[bool] = []
    i = 0
    while i < len(columns):
        cells = [row[i] for row in rows]
        numeric = all(isinstance(c, int | float | None) and not isinstance(c, bool) for c in cells)
        if tuple(columns[i + 1 : i + 3]) == (f"{columns[i]} low", f"{columns[i]} high"):
            spans = [(row[i + 1], row[i + 2]) for row in rows]
            halves = [(b - a) / 2 for a, b in spans if isinstance(a, int | float) and isinstance(b, int | float)]
            digits = decimals(halves, 2)
            texts += [
                [format_cell(c, digits) for c in cells],
                [format_interval(c, *span, digits) for c, span in zip(cells, spans, strict=True)],
            ]
            names, right, i = (
                [*names, format_cell(columns[i]), format_coverage(coverage.get(columns[i], 0.95))],
                [*right, numeric, True],
                i + 3,
            )
        else:
            parts = [c for c in cells if type(c) is float]
            digits = decimals(parts, 4) if any(c % 1 for c in parts) else 0
            texts.append([format_cell(c, digits) for c in cells])
            names, right, i = [*names, format_cell(columns[i])], [*right, numeric], i + 1
    return names, [list(row) for row in zip(*texts, strict=True)] if rows else [], right


def format_coverage(coverage: float) -> str:
    """95 %, or more where a coarse lattice gives more: 98.8 %."""
    return "95 %" if coverage < 0.9525 else f"{math.floor(1000 * coverage) / 10:g} %"


def decimals(sizes: Sequence[float], digits: int) -> int:
    """The number of decimals with which the median of these numbers shows so many digits."""
    some = sorted(abs(s) for s in sizes if s and math.isfinite(s))
    return max(0, min(9, digits - 1 - math.floor(math.log10(some[len(some) // 2])))) if some else 0


def format_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Plain columns, numbers to the right."""
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
    lines = [
        "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)).rstrip()
        for row in [columns, *rows]
    ]
    return "\n".join([lines[0], "  ".join("─" * w for w in widths), *lines[1:]])


def format_cell(cell: Cell, digits: int = 0) -> str:
    """A cell as text: with thousands separators, without powers of ten."""
    if cell is None:
        return "NULL"
    if isinstance(cell, float):
        text = f"{cell:,.{digits}f}"
        return text[1:] if text.startswith("-") and not text.strip("-0.,") else text  # no −0
    if isinstance(cell, str):
        return "".join(sign if sign.isprintable() else "·" for sign in cell)  # a key must not move a cursor
    return f"{cell:,}" if type(cell) is int else str(cell)
