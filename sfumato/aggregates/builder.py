"""Questions built in Python. They become SQL text, which is then planned like any other: there is no second planner.

The methods of a column that call an aggregate, such as col("stay").mean(), are declared by the aggregates themselves
(`Aggregate.methods`), so a new aggregate needs no change here.

curator.table("visits").where(col("cost") > 10).group_by("ward").agg(n=count(), days=col("stay").mean())
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from sfumato.aggregates.registry import AGGREGATES
from sfumato.errors import QueryRefused

A = TypeVar("A", covariant=True)
P = TypeVar("P", covariant=True)


class Asker(Protocol[A, P]):
    """The curator, as the builder uses it."""

    def ask(
        self, sql: str, *, epsilon: float | None = None, error: float | None = None,
        relative_error: float | None = None, key: str | None = None,
    ) -> A: ...  # fmt: skip

    def preview(
        self, sql: str, *, epsilon: float | None = None, error: float | None = None,
        relative_error: float | None = None,
    ) -> P: ...  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Term:
    """An expression over columns, or an aggregate of one."""

    node: exp.Expr

    def __repr__(self) -> str:
        return write(self.node)

    def __bool__(self) -> bool:
        raise QueryRefused(
            "a condition over columns is neither true nor false in Python.\n"
            "  do:     use & | ~ for and, or, not, with brackets"
        )

    def _with(self, kind: type[exp.Binary], other: object, swap: bool = False) -> "Term":
        a, b = exp.paren(self.node), exp.paren(value(other).node)
        return Term(kind(this=b, expression=a) if swap else kind(this=a, expression=b))

    def __eq__(self, other: object) -> "Term":  # type: ignore[override]
        return self._with(exp.EQ, other)

    def __ne__(self, other: object) -> "Term":  # type: ignore[override]
        return self._with(exp.NEQ, other)

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: object) -> "Term":
        return self._with(exp.LT, other)

    def __le__(self, other: object) -> "Term":
        return self._with(exp.LTE, other)

    def __gt__(self, other: object) -> "Term":
        return self._with(exp.GT, other)

    def __ge__(self, other: object) -> "Term":
        return self._with(exp.GTE, other)

    def __and__(self, other: object) -> "Term":
        return self._with(exp.And, other)

    def __or__(self, other: object) -> "Term":
        return self._with(exp.Or, other)

    def __invert__(self) -> "Term":
        return Term(exp.Not(this=exp.paren(self.node)))

    def __add__(self, other: object) -> "Term":
        return self._with(exp.Add, other)

    def __radd__(self, other: object) -> "Term":
        return self._with(exp.Add, other, swap=True)

    def __sub__(self, other: object) -> "Term":
        return self._with(exp.Sub, other)

    def __rsub__(self, other: object) -> "Term":
        return self._with(exp.Sub, other, swap=True)

    def __mul__(self, other: object) -> "Term":
        return self._with(exp.Mul, other)

    def __rmul__(self, other: object) -> "Term":
        return self._with(exp.Mul, other, swap=True)

    def __truediv__(self, other: object) -> "Term":
        return self._with(exp.Div, other)

    def __rtruediv__(self, other: object) -> "Term":
        return self._with(exp.Div, other, swap=True)

    def isin(self, *values: object) -> "Term":
        """True for one of these values: isin("north", "west"), or one list, tuple, set or range of them."""
        if len(values) == 1 and isinstance(values[0], list | tuple | set | frozenset | range):
            values = tuple(values[0])
        if not values:
            raise QueryRefused("isin takes at least one value.\n  found:  none")
        return Term(exp.In(this=exp.paren(self.node), expressions=[value(v).node for v in values]))

    def between(self, low: object, high: object) -> "Term":
        return Term(exp.Between(this=exp.paren(self.node), low=value(low).node, high=value(high).node))

    def like(self, pattern: str) -> "Term":
        return self._with(exp.Like, pattern)

    def clamp(self, low: float, high: float) -> "Term":
        """The value clamped to these bounds, so that it may be summed."""
        return Term(exp.Anonymous(this="CLAMP", expressions=[self.node, value(low).node, value(high).node]))

    def is_null(self) -> "Term":
        return Term(exp.Is(this=exp.paren(self.node), expression=exp.null()))

    def filter(self, *conditions: "Term | str") -> "Term":
        """The aggregate of those rows only for which all of these conditions hold."""
        both = exp.and_(*(exp.paren(term(one).node) for one in conditions))
        return Term(exp.Filter(this=self.node, expression=exp.Where(this=both)))

    if TYPE_CHECKING:  # the methods that aggregates declare: mean, quantile, corr, …

        def __getattr__(self, name: str) -> Callable[..., "Term"]: ...

    def histogram(self, *range_and_bins: float) -> "Term":
        """How many values lie in each bin: histogram(0, 60, 12), or histogram(12) over the policy's range."""
        return Term(exp.Anonymous(this="HISTOGRAM", expressions=[self.node, *(value(v).node for v in range_and_bins)]))


def col(name: str) -> Term:
    """A column, by its name; `table.column` where several tables have one of that name."""
    return Term(exp.column(*reversed([exp.to_identifier(part, quoted=True) for part in name.split(".", 1)])))


def count() -> Term:
    """COUNT(*)."""
    return Term(exp.Count(this=exp.Star()))


def sql(text: str) -> Term:
    """Any expression, as SQL writes it."""
    try:
        found = sqlglot.parse(text, read="duckdb")
    except (SqlglotError, RecursionError, ValueError, AttributeError, IndexError, TypeError) as problem:
        raise QueryRefused("this is not SQL that can be read.\n  do:     write one expression") from problem
    if len(found) != 1 or found[0] is None:
        raise QueryRefused(f"write one expression.\n  found:  {len(found)} statements")
    return Term(found[0])


def write(node: exp.Expr) -> str:
    """SQL text of a node, including aggregates that DuckDB does not have: the parser reads them."""
    return node.sql("duckdb", unsupported_level=ErrorLevel.IGNORE)


def value(thing: object) -> Term:
    """A term itself; anything else becomes a literal."""
    if isinstance(thing, Term):
        return thing
    if thing is None or isinstance(thing, str | int | float | bool):
        return Term(exp.convert(thing))
    raise QueryRefused(f"a question is made of columns, texts and numbers.\n  found:  a {type(thing).__name__}")


def term(thing: Term | str) -> Term:
    """A term, or SQL."""
    return thing if isinstance(thing, Term) else sql(thing)


def aggregate_method(name: str, form: str, about: str) -> Callable[..., Term]:
    """The method of a column that calls an aggregate: x.quantile(0.9) for the form QUANTILE(x, part)."""
    call = sqlglot.parse_one(form, read="duckdb")
    names = tuple(dict.fromkeys(one.name for one in call.find_all(exp.Column, bfs=False)))
    values = [Parameter(one, Parameter.POSITIONAL_OR_KEYWORD) for one in names if one != "x"]
    signature = Signature([Parameter("self", Parameter.POSITIONAL_ONLY), *values], return_annotation=Term)

    def method(self: Term, *given: object, **named: object) -> Term:
        bound = signature.bind(self, *given, **named).arguments
        nodes = {"x": self.node} | {one: value(bound[one]).node for one in names if one != "x"}
        return Term(call.transform(lambda node: nodes[node.name].copy() if isinstance(node, exp.Column) else node))

    method.__name__, method.__qualname__, method.__doc__ = name, f"Term.{name}", f"{form}. {about}"
    vars(method)["__signature__"] = signature
    return method


for kind in AGGREGATES.classes:
    for declared in kind.methods:
        name, _, form = declared.partition(" = ")
        setattr(Term, name, aggregate_method(name, form, (kind.__doc__ or "").partition("\n")[0]))


@dataclass(frozen=True)
class Rows(Generic[A, P]):
    """Rows of a table, to be filtered, grouped and aggregated; each step gives a new question."""

    asker: Asker[A, P] = field(repr=False)
    query: exp.Select = field(repr=False)

    @staticmethod
    def of(asker: Asker[A, P], table: str) -> "Rows[A, P]":
        return Rows(asker, exp.Select().from_(exp.to_identifier(table, quoted=True)))

    def where(self, *conditions: Term | str) -> "Rows[A, P]":
        """The rows for which all of these conditions hold."""
        return replace(self, query=self.query.where(*(exp.paren(term(c).node) for c in conditions)))

    def join(self, table: str, using: str | Sequence[str] = (), on: Term | str | None = None) -> "Rows[A, P]":
        """Each row joined with its match in a public table, or its matches in a private table of the same unit."""
        return self._join("", table, using, on)

    def left_join(self, table: str, using: str | Sequence[str] = (), on: Term | str | None = None) -> "Rows[A, P]":
        """A left join: rows without a match stay."""
        return self._join("left", table, using, on)

    def _join(self, side: str, table: str, using: str | Sequence[str], on: Term | str | None) -> "Rows[A, P]":
        names = [using] if isinstance(using, str) else list(using)
        condition = term(on).node if on is not None else None
        other = exp.to_identifier(table, quoted=True)
        query = self.query.join(other, join_type=side, using=names or None, on=condition)  # type: ignore[arg-type]
        return replace(self, query=query)

    def select(self, *columns: Term | str, **named: Term | str) -> "Rows[A, P]":
        """These rows with other columns: a bare text is a column, days=col("stay") a new name."""
        nodes = [(col(one) if isinstance(one, str) else one).node for one in columns]
        nodes += [exp.alias_(term(one).node, name, quoted=True) for name, one in named.items()]
        return replace(self, query=exp.Select().from_(self.query.select(*nodes).subquery("r")))

    def union_all(self, *others: "Rows[A, P]") -> "Rows[A, P]":
        """These rows followed by those of another question; columns are matched by position."""
        parts = [one.query.select("*") for one in (self, *others)]
        return replace(self, query=exp.Select().from_(exp.union(*parts, distinct=False).subquery("r")))

    def group_by(self, *keys: Term | str, **named: Term | str) -> "Rows[A, P]":
        """A group for each combination of these; a bare text is a column."""
        found = self.query
        for name, key in [*((None, k) for k in keys), *named.items()]:
            node = (col(key) if isinstance(key, str) else key).node
            found = found.select(exp.alias_(node, name, quoted=True) if name else node).group_by(node.copy())
        return replace(self, query=found)

    def agg(self, *aggregates: Term | str, **named: Term | str) -> "Asking[A, P]":
        """The aggregates of each group: n=count(), days=col("stay").mean(), or SQL: "AVG(stay)"."""
        nodes = [term(a).node for a in aggregates]
        nodes += [exp.alias_(term(a).node, name, quoted=True) for name, a in named.items()]
        return Asking(self.asker, self.query.select(*nodes))


@dataclass(frozen=True)
class Asking(Generic[A, P]):
    """A whole question, not yet asked."""

    asker: Asker[A, P] = field(repr=False)
    query: exp.Select = field(repr=False)

    @property
    def sql(self) -> str:
        """The question as SQL text."""
        return write(self.query)

    def having(self, *conditions: Term | str) -> "Asking[A, P]":
        """The groups whose released values satisfy these conditions: post-processing, so it costs nothing more."""
        return replace(self, query=self.query.having(*(exp.paren(term(c).node) for c in conditions)))

    def order_by(self, *terms: Term | str) -> "Asking[A, P]":
        """Sorted by released values; "n DESC" for the largest first."""
        nodes = [t.node if isinstance(t, Term) else t for t in terms]
        return replace(self, query=self.query.order_by(*nodes, dialect="duckdb"))

    def limit(self, number: int) -> "Asking[A, P]":
        return replace(self, query=self.query.limit(number))

    def offset(self, number: int) -> "Asking[A, P]":
        """The answer without its first rows, as many as `number`."""
        return replace(self, query=self.query.offset(number))

    def preview(
        self, *, epsilon: float | None = None, error: float | None = None, relative_error: float | None = None
    ) -> P:  # fmt: skip
        return self.asker.preview(self.sql, epsilon=epsilon, error=error, relative_error=relative_error)

    def ask(
        self, *, epsilon: float | None = None, error: float | None = None, relative_error: float | None = None,
        key: str | None = None,
    ) -> A:  # fmt: skip
        return self.asker.ask(self.sql, epsilon=epsilon, error=error, relative_error=relative_error, key=key)
