"""Aggregates in one form: COUNT(1) and SUM(1) are COUNT(*), and a FILTER that all aggregates share is a WHERE."""

from collections.abc import Sequence
from dataclasses import replace

from sfumato.sql.expressions import Call, Column, Constant, Expression
from sfumato.sql.nullable import never_nan, never_null, present
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.parse.sums import Wanted
from sfumato.sql.plan import Window, window
from sfumato.sql.policy import Table
from sfumato.sql.possible_keys import possible_keys
from sfumato.sql.simplify import call
from sfumato.sql.statistics import Mode, Trimmed, mode, trimmed

ONE, ZERO, NOTHING = Constant(1), Constant(0), Constant(None)


def normal_aggregates(rows: Scope, keys: Sequence[Expression], wanted: list[Wanted]) -> tuple[Scope, list[Wanted]]:
    """The same aggregates of the same rows, in one form; each stays in its place.

    On every data set each gives the same number as before where no bound of the policy is met.
    Proof. Of a sum of ones, and of ones and zeros: it is a count. Of a count of what is never missing in these rows: it
    is the count of rows. Of a shared FILTER c: an aggregate of v over rows where c is true is that over WHERE c; groups
    without such rows have no rows then, so keys must be public (all are shown) and the same keys must be possible with
    and without c (else WHERE would leave out groups that FILTER shows). ∎
    """
    wanted = [as_count(one, wanted) for one in wanted]
    condition = shared_filter(wanted)
    if condition is not None:
        where = call("and", rows.where, condition)
        if all(key.domain.keys is not None for key in keys) and all(
            possible_keys(key, where) == possible_keys(key, rows.where) for key in keys
        ):
            rows, wanted = replace(rows, where=where), [without_filter(one) for one in wanted]
    known = present(rows.where)
    return rows, [one if has_mean(one, wanted) else as_row_count(one, rows.table, known) for one in wanted]


def has_mean(one: Wanted, wanted: Sequence[Wanted]) -> bool:
    """Is there a mean of the same? It has the sum and the count of values anyway; another number would cost more."""
    return any((name, argument(one)) in wanted for name in ("avg", "variance", "stddev"))


def as_count(one: Wanted, wanted: Sequence[Wanted]) -> Wanted:
    """SUM(1) and SUM(CASE WHEN c THEN 1 ELSE 0 END) as counts."""
    match one:
        case _ if has_mean(one, wanted):
            return one
        case ("sum", Constant() as of) if of == ONE:
            return "count", ONE
        case ("sum", Call("case", (condition, first, last))) if (first, last) == (ONE, ZERO):
            return "count", Call("case", (condition, ONE, NOTHING))
    return one


def shared_filter(wanted: Sequence[Wanted]) -> Expression | None:
    """The condition that all of them have, as CASE WHEN condition THEN … END."""
    found = {condition_of(one) for one in wanted}
    return found.pop() if len(found) == 1 else None


def argument(one: Wanted) -> Expression | None:
    match one:
        case (_, of):
            return of
        case Window(of) | Trimmed(Window(of)) | Mode(of):
            return of
    return None


def condition_of(one: Wanted) -> Expression | None:
    match argument(one):
        case Call("case", (condition, _, last)) if last == NOTHING:
            return condition
    return None


def without_filter(one: Wanted) -> Wanted:
    """The same aggregate of what stands after THEN."""
    of = argument(one)
    assert isinstance(of, Call)
    value = of.arguments[1]
    match one:
        case (name, _):
            return name, value
        case Window(part=part):
            return window(value, part, "")
        case Trimmed(Window(part=part)):
            return trimmed(value, part, "")
    return mode(value, "")


def as_row_count(one: Wanted, table: Table, known: frozenset[Expression]) -> Wanted:
    """COUNT of what every row has is COUNT(*); COUNT(DISTINCT unit) is a count of units."""
    match one:
        case ("distinct", of) if of is not None and is_unit(of, table):
            return "units", None
        case ("count", of) if of is not None and (never_null(of) or of in known) and never_nan(of):
            return "count", None
        case ("count", of) if of is not None and is_unit(of, table):
            return "count", None  # rows of no unit are left out
    return one


def is_unit(of: Expression, table: Table) -> bool:
    return isinstance(of, Column) and of.origin == table.unit_origin
