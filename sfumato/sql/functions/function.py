"""The entry of a function that questions may use, and the few shapes of SQL that such entries emit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from sfumato.sql.domains import Domain, Kind, Scalar
from sfumato.sql.functions.costs import Argument, Cost

Sql = exp.Expression
Spelling = type[exp.Expression] | str  # a node of the parser, or the name of a function that it does not know


@dataclass(frozen=True)
class Function:
    """Everything about one function: arguments, result, spelling, SQL on each engine (which never raises), and cost.

    Other dialects refuse it unless its entry says how they write it (`same_in`, `sql_in`), or their own file does,
    for SQL that needs the dialect's helpers.
    """

    kinds: tuple[Kind | tuple[Kind, ...] | None, ...]  # of the arguments; None: any
    domain: Callable[..., Domain]
    emit: Callable[..., Sql]
    cost: Cost = field(kw_only=True)  # nanoseconds in one row at most, without its arguments' own
    after: Callable[..., Scalar] | None = None  # of released values (post-processing); None: refused for them
    spelled: tuple[Spelling, ...] = ()  # with its arguments in this order; other spellings: parse/function_syntax.py
    commutes: bool = False
    more: bool = False  # the last kind may repeat
    alike: bool = False  # all arguments are of one kind
    copies: int = 1  # how often the engine's text repeats its arguments
    strict: bool = True  # NULL among the arguments makes it NULL
    check: Callable[..., None] | None = None  # raises QueryRefused for arguments that are not allowed
    same_in: tuple[str, ...] = ()  # other dialects whose SQL for it is that of DuckDB
    sql_in: Mapping[str, Callable[..., str]] = field(default_factory=dict)  # dialect → SQL of its own
    cost_in: Mapping[str, Cost] = field(default_factory=dict)  # dialect → cost, where it takes longer than on DuckDB
    constants: tuple[tuple[Scalar, ...], ...] = ()  # last arguments that must be constants: examples that are slow


BOTH = ("postgres", "spark")


def constant_text(argument: Argument) -> str | None:
    """The text of an argument that is a constant of the question; None for anything else."""
    value = getattr(argument, "value", None)
    return value if isinstance(value, str) else None


def paren(inner: exp.Expr) -> Sql:
    return exp.Paren(this=inner)


def of_type(name: str) -> exp.DataType:
    return exp.DataType(this=exp.DataType.Type[name])


def emit_call(function: str) -> Callable[..., Sql]:
    def emit(*arguments: Sql) -> Sql:
        return exp.func(function, *arguments)  # type: ignore[return-value]

    return emit


def emit_binary(kind: type[exp.Binary]) -> Callable[[Sql, Sql], Sql]:
    return lambda a, b: paren(kind(this=paren(a), expression=paren(b)))


def emit_chain(kind: type[exp.Binary]) -> Callable[..., Sql]:
    """Many operands as a balanced tree: a long chain must not be a deep one."""

    def emit(*parts: Sql) -> Sql:
        if len(parts) == 1:
            return parts[0]
        half = len(parts) // 2
        return paren(kind(this=emit(*parts[:half]), expression=emit(*parts[half:])))

    return emit
