"""A parsed question: the plan of what is released, and its post-processing."""

from dataclasses import dataclass, field
from functools import cached_property

from sfumato.sql.aggregate import Aggregate
from sfumato.sql.domains import Scalar
from sfumato.sql.expressions import Expression
from sfumato.sql.plan import Measure, Plan, Table


@dataclass(frozen=True)
class Question:
    """Outputs 0 … k−1 are the keys, then come the aggregates; `columns`, `having` and `order` are made of them.

    `outer` is SQL over the answers to this question and to others; what is charged and stored does not depend on it.
    """

    plan: Plan
    aggregates: tuple[Aggregate, ...]
    sums: tuple[tuple[Measure, ...], ...]  # of each aggregate, in the order in which it reads them
    columns: tuple[tuple[str, Expression], ...]
    having: Expression
    order: tuple[tuple[Expression, bool], ...]  # (what, descending)
    limit: int | None
    offset: int = 0
    outer: "Outer | None" = None
    text: str = field(default="", compare=False, repr=False)  # what was asked, as it was spelled

    @cached_property
    def several(self) -> bool:
        """Is it SQL over several different releases?"""
        return self.outer is not None and len(self.outer.plans) > 1

    @cached_property
    def sum_indexes(self) -> dict[Aggregate, tuple[int, ...]]:
        """Indexes of each aggregate's sums among the measures of the plan; standalone aggregates have none."""
        place = {m: j for j, m in enumerate(self.plan.measures)}
        return {one: tuple(place[m] for m in sums) for one, sums in zip(self.aggregates, self.sums, strict=True)}


@dataclass(frozen=True)
class ReleasedPart:
    """Rows of a released table: of a question, for each column the place of its own column, or a constant."""

    question: int
    columns: tuple[int | None, ...]  # None: the constant
    constants: tuple[Scalar, ...]


@dataclass(frozen=True)
class ReleasedTable:
    """A table of released values that an outer query reads: the answers to one question, or to several, one below the
    other."""

    name: str
    titles: tuple[str, ...]
    parts: tuple[ReleasedPart, ...]
    consistent: bool = False  # grouping sets of the same bounded rows: their sums add up


@dataclass(frozen=True)
class Outer:
    """SQL over released tables and public ones, which runs where no private rows are.

    Theorem: any function of released values and public tables has the privacy loss of the releases alone
        [post-processing: Dwork & Roth 2014, Prop. 2.1]
    """

    sql: str
    questions: tuple[Question, ...]
    tables: tuple[ReleasedTable, ...]
    public: tuple[Table, ...] = ()
    titles: tuple[str, ...] = ()  # of its columns, as the text names them; empty where it does not
    columns: tuple[tuple[str, str], ...] = ()  # names and types of the result, once it was bound
    traced: "Traced | None" = None

    def __post_init__(self) -> None:
        """Check that only public tables are read row by row, however the text was parsed."""
        if any(not table.public for table in self.public):
            raise ValueError("only public tables are read for SQL over released values")

    @property
    def plans(self) -> tuple[str, ...]:
        """The canonical texts of the different releases."""
        return tuple(dict.fromkeys(one.plan.canonical for one in self.questions))

    @property
    def with_interval(self) -> tuple[int, ...]:
        """Indexes of the columns that an answer shows with an interval."""
        if self.traced is None or not self.traced.sql:
            return ()
        return tuple(j for j, tree in enumerate(self.traced.trees) if tree is not None)


# ---- which released values the columns of an outer query are made of ------------------------------------------------


@dataclass(frozen=True)
class TracedValue:
    """A hidden column of the traced query: a value without noise, or which rows of a released column are read.

    `how` is what is made of these: "known", "cell" (one row), "sum", "mean", "min" or "max" (a list of rows).
    """

    how: str
    hidden: int
    table: str = ""
    title: str = ""


@dataclass(frozen=True)
class TracedCall:
    """A function of traced values, by the name that `sfumato.aggregates.arithmetic_intervals` gives it."""

    name: str
    arguments: tuple["TracedTree", ...]


@dataclass(frozen=True)
class TracedNumber:
    value: float


TracedTree = TracedValue | TracedCall | TracedNumber


@dataclass(frozen=True)
class Traced:
    """An outer query with hidden columns after its own; and, for each of its own columns, how it is made of them."""

    sql: str = field(repr=False)
    trees: tuple[TracedTree | None, ...]  # None: no interval is known, or none is needed
    noisy: tuple[bool, ...]  # is it made of noisy values at all?
