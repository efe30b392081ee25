"""Aggregates over the rows of one group, inside a question: exact, and the same whatever the order of rows.

Sums of doubles depend on the order in which they are added, which another unit's rows can change. So values are summed
as whole numbers of steps, and of equal numbers (-0 and 0) one spelling is kept.
"""

from sfumato.sql.dialects.base import Dialect
from sfumato.sql.domains import Kind
from sfumato.sql.emit.lattice_steps import clamped_value, is_missing
from sfumato.sql.expressions import Expression
from sfumato.sql.plan import GroupValue, Measure, Reduce, What


def plain_value(name: str, of: Expression, to: Dialect) -> str:
    """A value with one spelling: NaN is none, -0 is 0."""
    if of.domain.kind is not Kind.NUMBER:
        return name
    return f"CASE WHEN {is_missing(name, to)} THEN NULL WHEN {name} = 0 THEN {zero(to)} ELSE {name} END"


def zero(to: Dialect) -> str:
    return to.number(0.0).sql(to.name)


def group_value(value: GroupValue, names: list[str], to: Dialect) -> str:
    """The SQL of an aggregate whose expressions are the columns `names` of the rows."""
    if value.of is None:
        return to.double("COUNT(*)")
    one = plain_value(names[0], value.of, to)
    many = to.double(f"COUNT({one})")
    match value.reduce:
        case Reduce.VALUES:
            return many
        case Reduce.DISTINCT:
            return to.double(f"COUNT(DISTINCT {one})")
        case Reduce.SUM | Reduce.MEAN:
            steps = clamped_value(Measure(What.SUM, value.of, 0.0, value.exponent), names[0], names[0], to)
            total = f"{to.double(to.total(steps))} * {to.number(2.0**value.exponent).sql(to.name)}"
            total = f"{total} / {many}" if value.reduce is Reduce.MEAN else total
            return f"CASE WHEN COUNT({one}) > 0 THEN {total} END"
        case Reduce.LEAST if value.of.domain.kind is Kind.TRUTH:
            return f"BOOL_AND({one})"
        case Reduce.GREATEST if value.of.domain.kind is Kind.TRUTH:
            return f"BOOL_OR({one})"
        case Reduce.LEAST:
            return f"MIN({one})"
        case Reduce.GREATEST:
            return f"MAX({one})"
    return to.first(one, [*ordered(value, names, to), f"{one} ASC NULLS LAST"])


def ordered(value: GroupValue, names: list[str], to: Dialect) -> list[str]:
    """ORDER BY of a first value; NaN is read as NULL, as everywhere."""
    found = []
    for name, (of, descending, nulls_first) in zip(names[1:], value.order, strict=True):
        nulls = f"NULLS {'FIRST' if nulls_first else 'LAST'}"
        found.append(f"{plain_value(name, of, to)} {'DESC' if descending else 'ASC'} {nulls}")
    return found


def group_key(key: Expression, to: Dialect) -> str:
    """A key as rows are grouped by it."""
    text = to.compiled(key).sql(to.name)
    return plain_value(f"({text})", key, to) if key.domain.kind is Kind.NUMBER else text
