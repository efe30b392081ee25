"""The rows of a public table, as the policy types them: for queries over released values."""

from sqlglot import exp

from sfumato.sql.dialects.base import Dialect
from sfumato.sql.domains import Kind
from sfumato.sql.emit.unit_rows import stored_table, with_alias
from sfumato.sql.expressions import Constant
from sfumato.sql.parse.scopes import columns_of
from sfumato.sql.plan import Plan, Table
from sfumato.sql.reserved_names import table_alias

MOST_PUBLIC = 100_000
TYPES = {Kind.NUMBER: "DOUBLE", Kind.TEXT: "VARCHAR", Kind.TRUTH: "BOOLEAN", Kind.DATE: "TIMESTAMP"}


def public_columns(table: Table) -> tuple[tuple[str, str], ...]:
    """Names and types."""
    return tuple((name, TYPES[domain.kind]) for name, domain in table.columns.items())


def public_rows(table: Table, dialect: Dialect) -> str:
    """A statement for at most MOST_PUBLIC + 1 rows; dates are texts. Of a private table there is none: ValueError."""
    if not table.public:
        raise ValueError("rows of a private table are never read as they are")
    to = dialect.about(Plan(table, (), Constant(True), (), ()))
    chosen = []
    for name, column in columns_of(table, 0).items():
        read = to.compiled(column)
        text = column.domain.kind is Kind.DATE
        chosen.append(exp.alias_(exp.cast(read, "TEXT") if text else read, name, quoted=True))
    select = exp.select(*chosen).from_(with_alias(stored_table(table.name), table_alias(0))).limit(MOST_PUBLIC + 1)
    return select.sql(to.name)
