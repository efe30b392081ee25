"""Engines whose casts are not total: they are told of them in words of ours."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sfumato.errors import QueryRefused
from sfumato.sql.dialects.base import UNWRITTEN, Dialect, constants, raw
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Call
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.function import Sql
from sfumato.sql.plan import Plan


@dataclass(frozen=True)
class Foreign(Dialect):
    """`same` functions are told as to DuckDB, `own` ones as stands there, and casts by `cast`."""

    same: ClassVar[frozenset[str]]
    own: ClassVar[Mapping[str, Callable[..., str]]]

    @property
    def functions(self) -> frozenset[str]:
        return frozenset({*self.same, *self.own, "number", "text", "date", "timestamp", "substr", "round to"})

    def accepts(self, plan: Plan) -> None:
        if plan.table.edges or not all(one.portable for one in plan.standalone):
            raise QueryRefused(f"TRIMMED_MEAN, MODE and tables of edges are for DuckDB, and this is {self.name}.")
        super().accepts(plan)

    def refusal(self, call: Call) -> str | None:
        if call.name == "text" and call.arguments[0].domain.kind is Kind.NUMBER:
            return UNWRITTEN
        return super().refusal(call)

    def copies(self, call: Call) -> int:
        """Our own words name a value before they repeat it."""
        return super().copies(call) if call.name in self.same else 1

    def call(self, call: Call, *arguments: Sql) -> Sql:
        if call.name in self.same:
            return FUNCTIONS[call.name].emit(*arguments)
        first, *rest = (argument.sql(self.name) for argument in arguments)
        kind, numbers = call.arguments[0].domain.kind, constants(call.arguments[1:])
        match call.name, kind:
            case "substr", _:
                return raw(f"SUBSTRING({first}, {numbers[0]}, {numbers[1]})")
            case ("number", Kind.NUMBER) | ("text", Kind.TEXT) | ("timestamp", Kind.DATE):
                return arguments[0]
            case "text", Kind.DATE:
                return self.date_text(arguments[0])
            case "text", _:
                return self.as_text(arguments[0])
            case "round to" | "number" | "date" | "timestamp", _:
                return raw(self.cast(call.name, kind, first, numbers))
        return raw(self.own[call.name](first, *rest))

    @abstractmethod
    def cast(self, name: str, kind: Kind, value: str, numbers: Sequence[int]) -> str:
        """A value of this kind as "number", "date" or "timestamp", or rounded to so many places: total."""
