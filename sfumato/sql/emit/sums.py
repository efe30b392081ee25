"""All sums of a plan as one statement for an engine."""

from sqlglot import exp

from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.emit.bounding import bounding_of
from sfumato.sql.emit.rows import row_wise
from sfumato.sql.plan import Plan, What
from sfumato.sql.reserved_names import ONE, ROWS, measure


def statement(plan: Plan, salt: int, dialect: str | Dialect) -> str:
    """SQL that gives, for each group: its keys, then its measures as integers, bounded for each unit."""
    to = dialect_of(dialect).about(plan)
    summed = [m for m in plan.measures if m.what is not What.DISTINCT]
    values = {measure(j): to.compiled(m.of) for j, m in enumerate(summed) if m.of} or {ONE: exp.Literal.number("1")}
    rows = f"({row_wise(plan, values, to).sql(to.name)}) AS {ROWS}"
    return bounding_of(plan).sums(plan, summed, rows, salt, to)
