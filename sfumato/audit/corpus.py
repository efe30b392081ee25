"""A corpus of adversarial neighbouring databases for any policy: pairs that differ in one unit with extreme rows.

The extremes follow from the policy alone: ends of ranges and values beyond them, NaN and infinities, more rows and
groups than a unit may contribute, keys that nobody else has, unit identifiers that are equal as doubles. Databases are
small: they are for replay (`sfumato.audit.question_replay`), where one run on each of two databases is enough.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import duckdb

from sfumato.sql.domains import Domain, Kind
from sfumato.sql.plan import Table
from sfumato.sql.policy import Policy
from sfumato.sql.units import ColumnUnit, RowUnit

Value = float | int | str | bool | None
Row = dict[str, Value]
TYPES = {Kind.NUMBER: "DOUBLE", Kind.TEXT: "TEXT", Kind.TRUTH: "BOOLEAN", Kind.DATE: "DATE"}
ODD_NUMBERS = (math.nan, math.inf, -math.inf, None, -0.0, 5e-324, 1e308, -1e308, 2.0**53 + 2, 9.3e18, 0.1)
ODD_TEXTS = (None, "", " ", "nobody's key", "é😀", "'; DROP TABLE x; --", "x" * 5000, "NULL", "0")
ODD_DATES = (None, "infinity", "-infinity", "0001-01-01", "9999-12-31", "2024-02-29")
PEOPLE = 6  # other units
UNIT = 10**6  # the unit in which the databases differ
AT_ONCE = 500  # rows that one statement inserts: one by one they take much longer


@dataclass(frozen=True)
class Database:
    """The rows of every table of a policy."""

    policy: Policy = field(repr=False)
    tables: Mapping[str, tuple[Row, ...]] = field(repr=False)

    def run(self, statements: Sequence[str]) -> list[list[tuple[object, ...]]]:
        """The rows of each statement, on temporary tables."""
        with self.connect() as connection:
            return [connection.execute(sql).fetchall() for sql in statements]

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A connection to an in-memory database with these tables."""
        connection = duckdb.connect(config={"threads": 1})
        for name, table in self.policy.tables.items():
            kinds = column_types(table)
            columns = ", ".join(f'"{column}" {kind}' for column, kind in kinds.items())
            connection.execute(f'CREATE TABLE "{name}" ({columns})')
            rows = [[row.get(column) for column in kinds] for row in self.tables.get(name, ())]
            for part in (rows[start : start + AT_ONCE] for start in range(0, len(rows), AT_ONCE)):
                places = ", ".join([f"({', '.join('?' * len(kinds))})"] * len(part))
                connection.execute(f'INSERT INTO "{name}" VALUES {places}', list(chain(*part)))
        return connection


@dataclass(frozen=True)
class NeighbouringDatabases:
    """A database with one unit, and the same database without it."""

    name: str
    whole: Database = field(repr=False)
    without: Database = field(repr=False)


def column_types(table: Table) -> dict[str, str]:
    """The columns of a table and their types: those of the policy, the unit, and the foreign key to the unit."""
    types = {name: TYPES[domain.kind] for name, domain in table.columns.items()}
    if not table.public and table.owner is None and isinstance(table.unit, ColumnUnit):
        types[table.unit.name] = "BIGINT"
    if table.owner is not None:
        types[table.owner.mine] = "BIGINT"
    return types


def neighbours(policy: Policy) -> tuple[NeighbouringDatabases, ...]:
    """All pairs for this policy; at least 25 for any table with a number and a text."""
    private = [name for name, table in policy.tables.items() if not table.public]
    return tuple(pair for name in private for pair in table_neighbours(policy, name))


def table_neighbours(policy: Policy, name: str) -> Iterator[NeighbouringDatabases]:
    table = policy.tables[name]
    plain = ordinary_row(table)
    for column, domain in table.columns.items():
        if column == table.unit_column or (table.owner is not None and column == table.owner.mine):
            continue
        for value in odd_values(domain):
            yield make_pair(policy, name, f"{column} is {abbreviate(value)}", [{**plain, column: value}])
    if isinstance(table.unit, RowUnit):
        yield make_pair(policy, name, "an ordinary row", [plain])
        yield make_pair(policy, name, "the only row", [plain], others=0)
        return
    many, wide = 3 * table.rows + 5, min(table.groups + 6, 60)
    yield make_pair(policy, name, "the only one", [plain], others=0)
    yield make_pair(policy, name, "many equal rows", [plain] * many)
    for end in ("high", "low"):
        worst = {column: extreme_value(domain, end) for column, domain in table.columns.items()}
        yield make_pair(policy, name, f"many rows at the {end} ends", [{**plain, **worst}] * many)
    yield make_pair(policy, name, "a group for each row", [row_in_group(table, plain, i) for i in range(wide)])
    yield make_pair(
        policy, name, "many rows in many groups", [row_in_group(table, plain, i % wide) for i in range(4 * many)]
    )
    yield make_pair(policy, name, "a unit next to another's, beyond 2^53", [plain], unit=2**53 + 1)
    yield make_pair(policy, name, "a negative unit", [plain] * 2, unit=-(2**63))


def make_pair(
    policy: Policy, name: str, words: str, rows_of_unit: list[Row], others: int = PEOPLE, unit: int = UNIT
) -> NeighbouringDatabases:
    """The rows of other units, with and without the rows of one unit."""
    table = policy.tables[name]
    base: dict[str, list[Row]] = {other: public_rows(policy, each) for other, each in policy.tables.items()}
    for i in range(others):
        add_rows(
            base, table, 2**53 if i == 0 else i, [row_in_group(table, ordinary_row(table), i), ordinary_row(table)]
        )
    add_rows(base, table, None, [ordinary_row(table)])  # a row whose unit is NULL must not count
    without = Database(policy, {key: tuple(rows) for key, rows in base.items()})
    add_rows(base, table, unit, rows_of_unit)
    return NeighbouringDatabases(
        f"{name}: {words}", Database(policy, {key: tuple(rows) for key, rows in base.items()}), without
    )


def add_rows(base: dict[str, list[Row]], table: Table, unit: int | None, rows: list[Row]) -> None:
    """Add rows of one unit; if another table holds the unit, add a row there too."""
    if isinstance(table.unit, RowUnit):
        base[table.name] += rows
    elif table.owner is None:
        base[table.name] += [{**row, str(table.unit_column): unit} for row in rows]
    else:
        base[table.name] += [{**row, table.owner.mine: unit} for row in rows]
        above = table.owner.table
        add_rows(base, above, unit, [{**ordinary_row(above), table.owner.theirs: unit}])


def public_rows(policy: Policy, table: Table) -> list[Row]:
    """The rows of a public table: one for each key of each column with keys, and two more with the first key.

    So a join may match one private row with three public ones.
    """
    if not table.public:
        return []
    named = {name: values for name, domain in table.columns.items() if (values := keys_of(policy, name, domain))}
    rows = [{**ordinary_row(table), name: value} for name, values in named.items() for value in values]
    other = [{**row_in_group(table, rows[0], 1), name: rows[0][name]} for name in list(named)[:1]]
    return [*rows, *rows[:1], *other]


def keys_of(policy: Policy, name: str, domain: Domain) -> tuple[Value, ...]:
    """The public keys of a column, or of a column of the same name in another table."""
    everywhere = [domain, *(table.columns[name] for table in policy.tables.values() if name in table.columns)]
    return next((each.keys for each in everywhere if each.keys), ())


def ordinary_row(table: Table) -> Row:
    """A row of ordinary values."""
    return {name: ordinary_value(domain) for name, domain in table.columns.items()}


def ordinary_value(domain: Domain) -> Value:
    """A value in the middle of the domain."""
    if domain.keys:
        return domain.keys[0]
    match domain.kind:
        case Kind.NUMBER:
            return (domain.low + domain.high) / 2 if domain.bounded else 1.0
        case Kind.TEXT:
            return "usual"
        case Kind.DATE:
            return "2024-03-01"
    return True


def odd_values(domain: Domain) -> tuple[Value, ...]:
    """Extreme values that data may contain, whatever the policy says."""
    match domain.kind:
        case Kind.NUMBER:
            ends = (domain.low, domain.high, domain.low - 1, domain.high + 1, 3 * domain.high) if domain.bounded else ()
            return (*ODD_NUMBERS, *ends)
        case Kind.TEXT:
            return (*ODD_TEXTS, *(str(key).upper() for key in (domain.keys or ())[:1]))
        case Kind.DATE:
            return ODD_DATES
    return None, False, True


def extreme_value(domain: Domain, end: str) -> Value:
    """The `low` or `high` end of a number's range; an ordinary value for other kinds."""
    if domain.kind is not Kind.NUMBER or domain.keys:
        return ordinary_value(domain)
    value: float = getattr(domain, end)
    return value if math.isfinite(value) else math.copysign(1e300, value)


def row_in_group(table: Table, row: Row, i: int) -> Row:
    """A copy of the row in the i-th group, with other keys, texts and days."""
    moved = dict(row)
    for name, domain in table.columns.items():
        if domain.keys:
            moved[name] = domain.keys[i % len(domain.keys)]
        elif domain.kind is Kind.TEXT:
            moved[name] = f"text {i}"
        elif domain.kind is Kind.DATE:
            moved[name] = f"2024-{1 + i % 12:02}-{1 + i % 28:02}"
        elif domain.kind is Kind.NUMBER and not domain.bounded:
            moved[name] = float(i)
    return moved


def abbreviate(value: Value) -> str:
    """A value in the name of a pair."""
    text = repr(value)
    return text if len(text) < 30 else f"{text[:20]}… of {len(str(value)):,} letters"
