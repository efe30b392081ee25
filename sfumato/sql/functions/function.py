"""What an allowed function is, and the few shapes in which an engine is told of one."""

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from sfumato.sql.domains import Domain, Kind, Scalar
from sfumato.sql.functions.costs import Cost

Sql = exp.Expression
Spelling = type[exp.Expression] | str  # a node of the parser, or the name of a function that it does not know


@dataclass(frozen=True)
class Function:
    """What an allowed function takes and gives, and how an engine is told of it without ever raising."""

    kinds: tuple[Kind | tuple[Kind, ...] | None, ...]  # of the arguments; None: any
    domain: Callable[..., Domain]
    emit: Callable[..., Sql]
    cost: Cost = field(kw_only=True)  # nanoseconds in one row at most, without its arguments' own
    after: Callable[..., Scalar] | None = None  # of released values; None: not for them
    spelled: tuple[Spelling, ...] = ()  # with its arguments in this order; other spellings: reading/special.py
    commutes: bool = False
    more: bool = False  # the last kind may repeat
    alike: bool = False  # all arguments are of one kind
    copies: int = 1  # how often the engine's text repeats its arguments
    strict: bool = True  # NULL among the arguments makes it NULL


def paren(inner: exp.Expr) -> Sql:
    return exp.Paren(this=inner)


def of_type(name: str) -> exp.DataType:
    return exp.DataType(this=exp.DataType.Type[name])


def named(function: str) -> Callable[..., Sql]:
    def emit(*arguments: Sql) -> Sql:
        return exp.func(function, *arguments)  # type: ignore[return-value]

    return emit


def binary(kind: type[exp.Binary]) -> Callable[[Sql, Sql], Sql]:
    return lambda a, b: paren(kind(this=paren(a), expression=paren(b)))


def folded(kind: type[exp.Binary]) -> Callable[..., Sql]:
    """Many operands as a balanced tree: a long chain must not be a deep one."""

    def emit(*parts: Sql) -> Sql:
        if len(parts) == 1:
            return parts[0]
        half = len(parts) // 2
        return paren(kind(this=emit(*parts[:half]), expression=emit(*parts[half:])))

    return emit
