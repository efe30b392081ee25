"""Bounds that a condition gives: AVG(x) … WHERE x BETWEEN 0 AND 100 needs none from the policy.

Rows in which the condition does not hold do not count, so clamping the value to that range changes no row that does.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TypeVar

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Call, Column, Constant, Expression
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.possible_keys import conjuncts
from sfumato.sql.simplify import call

T = TypeVar("T")
VALUES = (exp.Func, exp.Binary, exp.Paren, exp.Neg, exp.Cast)


def with_ranges(parse: Callable[[Scope], T], rows: Scope) -> T:
    """What `parse` makes over these rows; if it is refused, what it makes over rows whose values the condition
    bounds."""
    try:
        return parse(rows)
    except QueryRefused:
        if rows.where == Constant(True):
            raise
        given = {one.name: getattr(rows, one.name) for one in fields(Scope)}
        ranged = RangedScope(**given)
        try:
            found = parse(ranged)
        except QueryRefused:
            found = None
        if found is None or not ranged.narrowed:
            raise
        return found


@dataclass(frozen=True)
class RangedScope(Scope):
    """A scope in which values without bounds are clamped to the range that WHERE leaves them."""

    busy: set[int] = field(default_factory=set)
    narrowed: list[Expression] = field(default_factory=list)

    def find(self, alias: str, name: str) -> Expression:
        return self.clamped(super().find(alias, name))

    def resolve(self, node: exp.Expression) -> Expression | None:
        known = super().resolve(node)
        if known is not None or not isinstance(node, VALUES) or id(node) in self.busy:
            return known
        self.busy.add(id(node))
        try:
            return self.clamped(parse_expression(node, self))
        finally:
            self.busy.discard(id(node))

    def clamped(self, value: Expression) -> Expression:
        domain = value.domain
        if domain.kind is not Kind.NUMBER or domain.bounded or not isinstance(value, Column | Call):
            return value
        low, high = range_under(value, self.where)
        narrower = low > domain.low or high < domain.high
        low, high = max(low, domain.low), min(high, domain.high)
        if not narrower or low > high:
            return value
        self.narrowed.append(value)
        if math.isfinite(low) and math.isfinite(high):
            return call("clamp", value, Constant(low), Constant(high))
        limit = Constant(low if math.isfinite(low) else high)
        held = call("greatest" if math.isfinite(low) else "least", value, limit)  # which pass over NULL
        return call("case", call("is null", value), Constant(None), held)


def range_under(value: Expression, where: Expression) -> tuple[float, float]:
    """Between which ends a value lies wherever the condition holds."""
    low, high, text = -math.inf, math.inf, repr(value)
    for part in conjuncts(where):
        match part:
            case Call("<" | "<=", (Constant(float() | int() as end), of)) if repr(of) == text:
                low = max(low, float(end))
            case Call("<" | "<=", (of, Constant(float() | int() as end))) if repr(of) == text:
                high = min(high, float(end))
            case Call("=", (Constant(float() | int() as end), of)) | Call(
                "=", (of, Constant(float() | int() as end))
            ) if repr(of) == text:
                low, high = max(low, float(end)), min(high, float(end))
            case Call("in", (of, *listed)) if repr(of) == text:
                ends = [float(one.value) for one in listed
                        if isinstance(one, Constant) and isinstance(one.value, int | float)]  # fmt: skip
                if len(ends) == len(listed):
                    low, high = max(low, min(ends)), min(high, max(ends))
    return low, high
