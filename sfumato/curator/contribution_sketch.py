"""The sketch of contributions, bought once: previews can then say what is left out, and how exact answers are.

For a table whose contributions are scaled: the histograms of norms of the common questions. For one whose bounds the
policy states: how many units have 1, 2, 3–4, 5–8, … rows, and for each column that may be a key, how many have so many
different values of it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sfumato.aggregates.price import IndependentNoise, Price
from sfumato.curator.planner import require_positive
from sfumato.curator.purchase import Buyer
from sfumato.curator.steps import NormHistogram
from sfumato.ledger import Ledger
from sfumato.loss.base import PrivacyLoss
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.domains import Kind
from sfumato.sql.emit.request import TableRequest
from sfumato.sql.emit.unit_rows import first_table, unit_of
from sfumato.sql.expressions import Column, Constant
from sfumato.sql.plan import Measure, Plan, Table, What
from sfumato.sql.policy import Policy
from sfumato.sql.reserved_names import BIN, COUNT, EACH, SIZES, table_alias
from sfumato.sql.units import RowUnit, unit_text

BINS = 21  # up to 2²⁰ and more
SEEN = 5.0  # σ below which a bin is taken to be empty: one that is not would weigh as much as all others


@dataclass(frozen=True)
class Sketch:
    """Histograms of one table, with noise on every bin.

    A unit is in one bin of each of h histograms, and each histogram has a share 1/h of the price.
    """

    table: Table
    price: Price

    @property
    def asked(self) -> str:
        return f"register: contributions in {self.table.name}"

    @property
    def canonical(self) -> str:
        return sketch_key(self.table)

    @property
    def loss(self) -> PrivacyLoss:
        return self.price.loss()

    @property
    def columns(self) -> list[str]:
        return groupable_columns(self.table)

    @cached_property
    def histogram_price(self) -> Price:
        """The share of the price for one histogram."""
        return self.price.part(1 / (1 + len(self.columns)))

    @cached_property
    def noise(self) -> IndependentNoise:
        return self.histogram_price.noise(1)

    def statements(self, dialect: str | Dialect) -> list[str]:
        """bin, number of units: for the rows, then for each column."""
        to, found = dialect_of(dialect), []
        unit, rows = unit_of(self.table, table_alias(0), to).sql(to.name), first_table(self.table, to).sql(to.name)
        for what in ["COUNT(*)", *(self.distinct_values(name, to) for name in self.columns)]:
            each = f"SELECT {what} AS {COUNT} FROM {rows} WHERE NOT {unit} IS NULL GROUP BY {unit}"
            size = " ".join(f"WHEN {EACH}.{COUNT} <= {2**b} THEN {b}" for b in range(BINS - 1))
            each = f"SELECT CASE {size} ELSE {BINS - 1} END AS {BIN} FROM ({each}) AS {EACH}"
            found.append(f"SELECT {SIZES}.{BIN}, COUNT(*) FROM ({each}) AS {SIZES} GROUP BY {SIZES}.{BIN}")
        return found

    def requests(self, salt: int, dialect: str | Dialect) -> list[TableRequest]:
        return [TableRequest(sql) for sql in self.statements(dialect)]

    def distinct_values(self, name: str, to: Dialect) -> str:
        """How many groups a unit has: NULL is one."""
        value = to.compiled(Column(f"t0.{name}", self.table.columns[name])).sql(to.name)
        return f"(COUNT(DISTINCT {value}) + MAX(CASE WHEN {value} IS NULL THEN 1 ELSE 0 END))"

    def release(self, tables: Sequence[Sequence[tuple[object, ...]]]) -> bytes:
        """Noisy histograms, each with all its bins."""
        found = {}
        for name, rows in zip(["*", *self.columns], tables, strict=True):
            exact = [0] * BINS
            for place, many in rows:
                exact[int(place)] = int(many)  # type: ignore[call-overload]
            found[name] = [int(n) for n in np.atleast_1d(self.noise.release(exact))]
        return json.dumps({"sigma": self.histogram_price.deviation(1), "units": found}).encode()


def sketch_key(table: Table) -> str:
    """The canonical text of a sketch. It does not depend on the price, since a sketch is bought once."""
    return f"sketch | {table.name} | {unit_text(table.unit)} | {groupable_columns(table)!r}"


def groupable_columns(table: Table) -> list[str]:
    """The columns that questions may group by."""
    plain = [name for name, d in table.columns.items() if d.keys is not None or d.kind is Kind.TEXT]
    return sorted(name for name in plain if name != table.unit_column)


def tables_to_sketch(policy: Policy) -> list[Table]:
    """The tables for which a sketch is useful."""
    return [table for table in policy.tables.values() if not table.public and not isinstance(table.unit, RowUnit)]


def common_norms(table: Table, price: Price) -> list[NormHistogram]:
    """Histograms of the norms of COUNT(*), alone and by each column that may be a key."""
    keys = [(), *((Column(f"t0.{name}", table.columns[name]),) for name in groupable_columns(table))]
    plans = [Plan(table, (), Constant(True), key, (Measure(What.ROWS),)) for key in keys]
    return list({(step := NormHistogram(plan, price)).canonical: step for plan in plans}.values())


def missing_norms(tables: Sequence[Table], price: Price, ledger: Ledger) -> list[NormHistogram]:
    """The common histograms of these tables that are not stored; those of a table share this price evenly."""
    found = []
    for table in {table.name: table for table in tables}.values():
        every = common_norms(table, price)
        lacking = [one for one in every if replace(one, price=price.part(1 / len(every))).find(ledger) is None]
        found += [replace(one, price=price.part(1 / len(lacking))) for one in lacking]
    return found


def register_contributions(buyer: Buyer, epsilon: float) -> None:
    """Buy the histograms that show how much people contribute, unless they are stored.

    For each table whose contributions are scaled: a histogram of norms for COUNT(*), alone and by each column that may
    be a key. For other tables: a sketch of what the bounds of the policy cut off. Tables share ε evenly, and so do the
    histograms of a table.
    """
    require_positive("epsilon", epsilon)
    whole, tables = buyer.price_of(epsilon), tables_to_sketch(buyer.policy)
    scaled = [table for table in tables if table.scaled]
    norms = missing_norms(scaled, whole.part(1 / max(1, len(tables))), buyer.ledger)
    cut = [table for table in tables if not table.scaled and buyer.ledger.recall(sketch_key(table)) is None]
    items = len(cut) + len({step.plan.table.name for step in norms})
    if not items:
        return
    buyer.require_affordable([whole.loss()], whole.loss(), buyer.loss_of_epsilon)
    for step in missing_norms([one.plan.table for one in norms], whole.part(1 / items), buyer.ledger):
        buyer.buy_step(step, buyer.loss_of_epsilon)
    for table in cut:
        sketch = Sketch(table, whole.part(1 / items))
        checked = buyer.check_requests(sketch)
        with buyer.question_lock(sketch.canonical):
            if buyer.ledger.recall(sketch.canonical) is None:
                buyer.buy_release(sketch, buyer.loss_of_epsilon, None, checked)


def describe_truncation(plan: Plan, stored: bytes) -> list[str]:
    """The shares that the bounds of the policy leave out, in words; without regard to WHERE."""
    data = json.loads(stored)
    found, column = [], plan.keys[0] if len(plan.keys) == 1 else None
    name = column.origin.partition(".")[2] if isinstance(column, Column) and column.origin.startswith("t0.") else ""
    if not plan.keys:
        share = share_beyond(data["units"]["*"], data["sigma"], plan.rows)
        found.append(f"about {100 * share:.2g} % of the rows lie beyond {plan.rows} for a person, and are left out")
    if name in data["units"]:
        share = share_beyond(data["units"][name], data["sigma"], plan.groups)
        found.append(f"about {100 * share:.2g} % of what people have in groups of {name} lies beyond {plan.groups}"
                     " for a person, and is left out")  # fmt: skip
    return found


def share_beyond(counts: Sequence[float], sigma: float, most: int) -> float:
    """The share of all that lies beyond so many for a unit, from noisy numbers of units with 1, 2, 3–4, … of them."""
    seen = [(n, 1.0 if b == 0 else 0.75 * 2**b + 0.5) for b, n in enumerate(counts) if n > SEEN * sigma]
    whole = sum(n * size for n, size in seen)
    return sum(n * max(0.0, size - most) for n, size in seen) / whole if whole else 0.0
