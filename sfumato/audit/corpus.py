"""Nasty neighbours for any policy: two databases that differ in one unit, whose rows are as odd as rows can be.

What is odd is public knowledge about the policy: ends of ranges and what lies beyond them, numbers that are none, more
rows and groups than a unit may add, keys that nobody else has, units that look alike. A corpus is small; it is for
replay (`sfumato.audit.plans`), where one run on each of two databases says all.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

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
PEOPLE = 6  # others
UNIT = 10**6  # who comes and goes


@dataclass(frozen=True)
class Database:
    """Rows of every table."""

    policy: Policy = field(repr=False)
    tables: Mapping[str, tuple[Row, ...]] = field(repr=False)

    def run(self, statements: Sequence[str]) -> list[list[tuple[object, ...]]]:
        """The rows of each statement, on tables that are gone afterwards."""
        with self.opened() as made:
            return [made.execute(sql).fetchall() for sql in statements]

    def opened(self) -> duckdb.DuckDBPyConnection:
        """The tables, in memory, for as long as somebody holds them."""
        made = duckdb.connect(config={"threads": 1})
        for name, table in self.policy.tables.items():
            kinds = column_types(table)
            listed = ", ".join(f'"{column}" {kind}' for column, kind in kinds.items())
            made.execute(f'CREATE TABLE "{name}" ({listed})')
            rows = [[row.get(column) for column in kinds] for row in self.tables.get(name, ())]
            if rows:
                made.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(kinds))})', rows)
        return made


@dataclass(frozen=True)
class Neighbours:
    """A database with one unit, and the same without."""

    name: str
    whole: Database = field(repr=False)
    without: Database = field(repr=False)


def column_types(table: Table) -> dict[str, str]:
    """The columns of a table: those of the policy, its unit, and what others are found by."""
    found = {name: TYPES[domain.kind] for name, domain in table.columns.items()}
    if not table.public and table.owner is None and isinstance(table.unit, ColumnUnit):
        found[table.unit.name] = "BIGINT"
    if table.owner is not None:
        found[table.owner.mine] = "BIGINT"
    return found


def neighbours(policy: Policy) -> tuple[Neighbours, ...]:
    """All pairs for this policy; at least 25 for any table that has a number and a text."""
    return tuple(pair for name, table in policy.tables.items() if not table.public for pair in of_table(policy, name))


def of_table(policy: Policy, name: str) -> Iterator[Neighbours]:
    table = policy.tables[name]
    plain = ordinary(table)
    for column, domain in table.columns.items():
        if column == table.unit_column or (table.owner is not None and column == table.owner.mine):
            continue
        for value in odd(domain):
            yield pair(policy, name, f"{column} is {shown(value)}", [{**plain, column: value}])
    if isinstance(table.unit, RowUnit):
        yield pair(policy, name, "an ordinary row", [plain])
        yield pair(policy, name, "the only row", [plain], others=0)
        return
    many, wide = 3 * table.rows + 5, min(table.groups + 6, 60)
    yield pair(policy, name, "the only one", [plain], others=0)
    yield pair(policy, name, "many equal rows", [plain] * many)
    for end in ("high", "low"):
        worst = {column: extreme(domain, end) for column, domain in table.columns.items()}
        yield pair(policy, name, f"many rows at the {end} ends", [{**plain, **worst}] * many)
    yield pair(policy, name, "a group for each row", [spread(table, plain, i) for i in range(wide)])
    yield pair(policy, name, "many rows in many groups", [spread(table, plain, i % wide) for i in range(4 * many)])
    yield pair(policy, name, "a unit next to another's, beyond 2^53", [plain], unit=2**53 + 1)
    yield pair(policy, name, "a negative unit", [plain] * 2, unit=-(2**63))


def pair(policy: Policy, name: str, words: str, mine: list[Row], others: int = PEOPLE, unit: int = UNIT) -> Neighbours:
    """Others' rows, with and without the rows of one unit."""
    table = policy.tables[name]
    base: dict[str, list[Row]] = {other: public_rows(policy, one) for other, one in policy.tables.items()}
    for i in range(others):
        added(base, table, 2**53 if i == 0 else i, [spread(table, ordinary(table), i), ordinary(table)])
    added(base, table, None, [ordinary(table)])  # rows of nobody count for nobody
    without = Database(policy, {key: tuple(rows) for key, rows in base.items()})
    added(base, table, unit, mine)
    return Neighbours(f"{name}: {words}", Database(policy, {key: tuple(rows) for key, rows in base.items()}), without)


def added(base: dict[str, list[Row]], table: Table, unit: int | None, rows: list[Row]) -> None:
    """Rows of one unit; where another table says whose they are, a row of that too."""
    if isinstance(table.unit, RowUnit):
        base[table.name] += rows
    elif table.owner is None:
        base[table.name] += [{**row, str(table.unit_column): unit} for row in rows]
    else:
        base[table.name] += [{**row, table.owner.mine: unit} for row in rows]
        above = table.owner.table
        added(base, above, unit, [{**ordinary(above), table.owner.theirs: unit}])


def public_rows(policy: Policy, table: Table) -> list[Row]:
    """A public table: a row for each key of each column that has some; two of the first, and another one with its key,
    so that a row of ours could find three."""
    if not table.public:
        return []
    named = {name: values for name, domain in table.columns.items() if (values := keys_of(policy, name, domain))}
    rows = [{**ordinary(table), name: value} for name, values in named.items() for value in values]
    other = [{**spread(table, rows[0], 1), name: rows[0][name]} for name in list(named)[:1]]
    return [*rows, *rows[:1], *other]


def keys_of(policy: Policy, name: str, domain: Domain) -> tuple[Value, ...]:
    """The public keys of a column, or those of a column of the same name elsewhere."""
    everywhere = [domain, *(table.columns[name] for table in policy.tables.values() if name in table.columns)]
    return next((one.keys for one in everywhere if one.keys), ())


def ordinary(table: Table) -> Row:
    """A row that is not odd."""
    return {name: usual(domain) for name, domain in table.columns.items()}


def usual(domain: Domain) -> Value:
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


def odd(domain: Domain) -> tuple[Value, ...]:
    """Values of a column that somebody may have, whatever the policy says."""
    match domain.kind:
        case Kind.NUMBER:
            ends = (domain.low, domain.high, domain.low - 1, domain.high + 1, 3 * domain.high) if domain.bounded else ()
            return (*ODD_NUMBERS, *ends)
        case Kind.TEXT:
            return (*ODD_TEXTS, *(str(key).upper() for key in (domain.keys or ())[:1]))
        case Kind.DATE:
            return ODD_DATES
    return None, False, True


def extreme(domain: Domain, end: str) -> Value:
    """As much of a number as can be."""
    if domain.kind is not Kind.NUMBER or domain.keys:
        return usual(domain)
    found: float = getattr(domain, end)
    return found if math.isfinite(found) else math.copysign(1e300, found)


def spread(table: Table, row: Row, i: int) -> Row:
    """The same row in another group: other keys, other texts, other days."""
    found = dict(row)
    for name, domain in table.columns.items():
        if domain.keys:
            found[name] = domain.keys[i % len(domain.keys)]
        elif domain.kind is Kind.TEXT:
            found[name] = f"text {i}"
        elif domain.kind is Kind.DATE:
            found[name] = f"2024-{1 + i % 12:02}-{1 + i % 28:02}"
        elif domain.kind is Kind.NUMBER and not domain.bounded:
            found[name] = float(i)
    return found


def shown(value: Value) -> str:
    text = repr(value)
    return text if len(text) < 30 else f"{text[:20]}… of {len(str(value)):,} letters"
