"""Values of rows as whole numbers of lattice steps: clamped to their range, so that no value can overflow or raise."""

from sfumato.sql.dialects.base import Dialect, raw
from sfumato.sql.domains import Kind
from sfumato.sql.plan import Measure, What


def clamped_value(measure: Measure, name: str, counted: str, to: Dialect) -> str:
    """What one row adds, in steps: an integer, and 0 where `counted` has no value.

    A row that counts adds a number of the span, also if its own value is missing: the span times the count bounds the
    sum.
    """
    if measure.of is None:
        return "1"
    if measure.what is What.VALUES:
        missing = is_missing(name, to) if measure.of.domain.kind is Kind.NUMBER else f"{name} IS NULL"
        return f"CASE WHEN {missing} THEN 0 ELSE 1 END"
    domain, (low, high) = measure.of.domain, measure.span()
    value = f"(LEAST(GREATEST({name}, {domain.low!r}), {domain.high!r}) - ({measure.centre!r}))"
    squared = measure.what is What.SQUARES  # of whole steps, as those that are summed: else variances would be off
    scale = 2.0 ** -(measure.exponent // 2 if squared else measure.exponent)
    steps = to.floor(f"{to.scaled(value, scale)} + 0.5")
    steps = f"CAST({f'{steps} * {steps}' if squared else steps} AS {to.whole(low, high)})"
    missing = f" WHEN {is_missing(name, to)} THEN {min(max(0, low), high)}" if counted != name else ""
    return f"CASE WHEN {is_missing(counted, to)} THEN 0{missing} ELSE LEAST(GREATEST({steps}, {low}), {high}) END"


def is_missing(name: str, to: Dialect) -> str:
    """Is there no number?"""
    return f"{name} IS NULL OR {to.is_nan(raw(name)).sql(to.name)}"
