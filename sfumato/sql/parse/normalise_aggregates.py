"""Canonical aggregates: COUNT(1) and SUM(1) become COUNT(*), and a FILTER that all aggregates share becomes a WHERE."""

from collections.abc import Sequence
from dataclasses import replace

from sfumato.sql.aggregate import Aggregate
from sfumato.sql.expressions import Call, Constant, Expression
from sfumato.sql.nullable import non_null_where
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.possible_keys import possible_keys
from sfumato.sql.simplify import call

NOTHING = Constant(None)


def normalise(
    rows: Scope, keys: Sequence[Expression], aggregates: Sequence[Aggregate]
) -> tuple[Scope, tuple[Aggregate, ...]]:
    """The aggregates of these rows in canonical form; each stays in its place.

    On every data set each gives the same number as before where no bound of the policy is met.
    Proof. Of a sum of ones, and of ones and zeros: it is a count. Of a count of what is never missing in these rows: it
    is the count of rows. Of a shared FILTER c: an aggregate of v over rows where c is true is that over WHERE c; groups
    without such rows have no rows then, so keys must be public (all are shown) and the same keys must be possible with
    and without c (else WHERE would leave out groups that FILTER shows). ∎
    """
    found = [one if has_mean(one, aggregates) else one.as_count() for one in aggregates]
    condition = shared_condition(found)
    if condition is not None:
        where = call("and", rows.where, condition)
        if all(key.domain.keys is not None for key in keys) and all(
            possible_keys(key, where) == possible_keys(key, rows.where) for key in keys
        ):
            rows, found = replace(rows, where=where), [without_condition(one) for one in found]
    known = non_null_where(rows.where)
    return rows, tuple(one if has_mean(one, found) else one.as_row_count(rows.table, known) for one in found)


def has_mean(one: Aggregate, aggregates: Sequence[Aggregate]) -> bool:
    """Is there a mean of the same values? It needs their sum and count anyway; another number would cost more."""
    return any(other.centred and other.arguments == one.arguments for other in aggregates)


def shared_condition(aggregates: Sequence[Aggregate]) -> Expression | None:
    """The condition c, if all values of all aggregates are CASE WHEN c THEN … END."""
    found = {condition_of(value) for one in aggregates for value in one.arguments or (NOTHING,)}
    return found.pop() if len(found) == 1 else None


def condition_of(value: Expression) -> Expression | None:
    match value:
        case Call("case", (condition, _, last)) if last == NOTHING:
            return condition
    return None


def without_condition(one: Aggregate) -> Aggregate:
    """The aggregate without its condition: of the values after THEN."""
    return one.with_arguments(*(value.arguments[1] for value in one.arguments if isinstance(value, Call)))
