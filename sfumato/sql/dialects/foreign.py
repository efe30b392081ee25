"""Dialects of engines whose casts raise: each cast is written as a total expression."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sfumato.sql.dialects.base import UNWRITTEN, Dialect, integer_constants, raw
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Call
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.function import Sql

CASTS = ("number", "text", "date", "timestamp", "substr", "round to")


@dataclass(frozen=True)
class Foreign(Dialect):
    """A function is written as its entry says for this dialect, as `own` says, or, if it is a cast, by `cast`."""

    own: ClassVar[Mapping[str, Callable[..., str]]]  # functions whose SQL needs the helpers of the dialect

    def supports(self, name: str) -> bool:
        function = FUNCTIONS[name]
        return name in self.own or name in CASTS or self.name in function.same_in or self.name in function.sql_in

    def is_same(self, name: str) -> bool:
        """Is its SQL that of DuckDB?"""
        return self.name in FUNCTIONS[name].same_in

    def refusal(self, call: Call) -> str | None:
        if call.name == "text" and call.arguments[0].domain.kind is Kind.NUMBER:
            return UNWRITTEN
        return super().refusal(call)

    def copies(self, call: Call) -> int:
        """SQL of our own names a value before it repeats it."""
        return super().copies(call) if self.is_same(call.name) else 1

    def call(self, call: Call, *arguments: Sql) -> Sql:
        if self.is_same(call.name):
            return FUNCTIONS[call.name].emit(*arguments)
        first, *rest = (argument.sql(self.name) for argument in arguments)
        kind, numbers = call.arguments[0].domain.kind, integer_constants(call.arguments[1:])
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
        return raw((self.own.get(call.name) or FUNCTIONS[call.name].sql_in[self.name])(first, *rest))

    @abstractmethod
    def cast(self, name: str, kind: Kind, value: str, numbers: Sequence[int]) -> str:
        """A value of this kind as "number", "date" or "timestamp", or rounded to so many places: total."""
