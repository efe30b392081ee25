"""What can be asked, from the policy alone: tables, columns, bounds, public keys and example questions. All public."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from sfumato.sql.domains import Domain, Scalar
from sfumato.sql.plan import Table
from sfumato.sql.policy import Policy
from sfumato.sql.policy_draft import describe_table, example_questions
from sfumato.sql.schema_check import NAMES


@dataclass(frozen=True)
class ColumnEntry:
    """A column: its kind, and what of its values is public."""

    name: str
    type: str
    low: float | None = None
    high: float | None = None
    step: float | None = None
    keys: tuple[Scalar, ...] | None = None


@dataclass(frozen=True)
class TableEntry:
    """A table that questions may name."""

    name: str
    public: bool
    unit: str | None  # whose data a row is
    about: str
    columns: tuple[ColumnEntry, ...]
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Catalogue:
    """All tables of a policy."""

    tables: tuple[TableEntry, ...]

    @staticmethod
    def of(policy: Policy) -> "Catalogue":
        return Catalogue(tuple(map(describe, policy.tables.values())))

    def to_dict(self) -> Mapping[str, object]:
        return asdict(self)


def describe(table: Table) -> TableEntry:
    return TableEntry(
        table.name,
        table.public,
        None if table.public else str(table.unit),
        describe_table(table),
        tuple(column(name, domain) for name, domain in table.columns.items()),
        tuple(example_questions(table)),
    )


def column(name: str, domain: Domain) -> ColumnEntry:
    low, high = (domain.low, domain.high) if domain.bounded else (None, None)
    return ColumnEntry(name, NAMES[domain.kind], low, high, domain.step, domain.keys)
