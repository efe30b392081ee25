"""Fits in the database: the sums that an estimator needs, bought like any answer, and solved afterwards.

Where a row is a unit and DuckDB holds the data, one pass adds up small integers (`FitSums`). Otherwise sums of all
rows, or of classes, are an ordinary question, in which units may own any number of rows. Either is planned, priced,
charged, stored and free on repetition; what is made of its answer is post-processing.
"""

import json
from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlglot
from sqlglot import exp

from sfumato.aggregates.price import Mu, Price
from sfumato.aggregates.sum import Sum
from sfumato.curator.answer import Answer
from sfumato.curator.automatic_bounds import unbounded_columns, widest_bounds
from sfumato.curator.planner import Planner, Wanted, require_positive
from sfumato.curator.steps import Step
from sfumato.curator.suggest_bounds import bounds_are_stored, suggest_bounds
from sfumato.errors import QueryRefused
from sfumato.learn.base import Estimator, Table
from sfumato.learn.database_pass import NoisyPass, add_noise, read_noisy
from sfumato.learn.spending import GaussianSpending, PureSpending, Spending
from sfumato.learn.supervised import Classifier, array_of_labels
from sfumato.learn.tables import Bounds, plain
from sfumato.ledger.meter import odds
from sfumato.noise.draw_table import Integers
from sfumato.sensitivity import AddRemove
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.emit.lattice_rows import STEPS, Block, ByLabel, LatticeRows, Term
from sfumato.sql.emit.request import Row, TableRequest
from sfumato.sql.question import Question
from sfumato.sql.units import RowUnit

if TYPE_CHECKING:
    from sfumato.curator.curator import Curator

NORMAL = 1.959964  # half widths of intervals at 95 % are so many deviations
MOST_COLUMNS = 60
BOUNDS_SHARE = 0.2  # of ε, for bounds that neither the estimator nor the policy states


# ---- what is fitted: pure, from parameters and text -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FitWanted:
    """An estimator, the SELECT of its rows, the columns in its order, and the target if it has one."""

    estimator: Estimator
    sql: str
    features: tuple[str, ...]
    target: str | None

    @staticmethod
    def of(estimator: object, sql: str, y: str | None) -> "FitWanted":
        if not isinstance(estimator, Estimator) or not (blocks_known(estimator)):
            raise QueryRefused(
                "this cannot be fitted in the database: no sums of one pass suffice for it.\n"
                f"  found:  a {type(estimator).__name__}\n"
                "  do:     give a LinearRegression, Covariance, PCA, StandardScaler, QuantileBinner, SelectColumns,"
                " GaussianNB or RandomForestClassifier; or fit rows outside of the database"
            )
        needs = estimator.number_target or estimator.label_target
        names = selected_columns(sql, 2 if needs else 1)
        if (y is not None) != needs or (y is not None and y not in names):
            raise QueryRefused(
                f"{type(estimator).__name__} has {'a' if needs else 'no'} target among the columns.\n"
                f"  found:  y = {y!r}, and the columns {', '.join(names)}\n"
                f"  do:     {'select the target, and name it as y' if needs else 'leave y out'}"
            )
        features = tuple(name for name in names if name != y)
        if len(names) > MOST_COLUMNS:
            raise QueryRefused(f"a fit has at most {MOST_COLUMNS} columns.\n  found:  {len(names)}")
        return FitWanted(estimator, sql, features, y)

    def check(self) -> None:
        """Raise if the parameters of the estimator make no sense, or do not fit its columns. The price is the fit's."""
        copy(self.estimator).set_params(epsilon=1.0, budget=None).check_params()
        if getattr(self.estimator, "solver", "auto") not in ("auto", "statistics"):
            raise QueryRefused(
                "in the database a regression is solved from its moments.\n  found:  a solver that descends on rows\n"
                '  do:     give solver="auto" or "statistics", or fit rows outside of the database'
            )
        self.estimator.check_columns(len(self.features), self.features)

    def bounds_as_parameters(self, found: Mapping[str, tuple[float, float]]) -> dict[str, object]:
        """These bounds of its features, and perhaps of its target, as parameters of the estimator."""
        of_target = {"y_bounds": found[str(self.target)]} if self.target in found else {}
        return {"bounds": {name: found[name] for name in self.features}, **of_target}

    @cached_property
    def bounds(self) -> Bounds:
        """Of the columns, then of a target that is a number."""
        found = Bounds.of(getattr(self.estimator, "bounds", None), len(self.features), self.features, "bounds")
        if not self.estimator.number_target:
            return found
        target = Bounds.of(getattr(self.estimator, "y_bounds", None), 1, None, "y bounds")
        return Bounds(np.append(found.low, target.low), np.append(found.high, target.high))

    @property
    def numbers(self) -> list[str]:
        """The columns that are summed, in the order of their bounds."""
        return [*self.features, *([str(self.target)] if self.estimator.number_target else [])]

    def question(self) -> str:
        """A SELECT whose sums name the columns, and the label: it is parsed for them, and not asked."""
        ends = zip(self.numbers, self.bounds.low.tolist(), self.bounds.high.tolist(), strict=True)
        sums = [f"SUM(CLAMP({quote_column(name)}, {low!r}, {high!r}))" for name, low, high in ends]
        if self.estimator.label_target:
            places = enumerate(self.estimator.class_list())
            cases = " ".join(f"WHEN {quote_column(str(self.target))} = {literal(one)} THEN {k}" for k, one in places)
            sums.append(f"SUM(CASE {cases} ELSE -1 END)")
        return f"SELECT {', '.join(sums)} FROM ({self.sql}) AS rows_of_fit"

    def sums_question(self) -> str:
        """One SELECT of the sums of all blocks, of columns scaled to [−1, 1]; rows with a NULL are left out."""
        bounds, names = self.bounds, self.numbers
        scaled = [
            f"(CLAMP({quote_column(name)}, {low!r}, {high!r}) - {middle!r}) / {half!r} AS c{j}"
            for j, (name, low, high, middle, half) in enumerate(
                zip(names, *(end.tolist() for end in (bounds.low, bounds.high, bounds.middle, bounds.half)),
                    strict=True)
            )
        ]  # fmt: skip
        given = " AND ".join(f"{quote_column(name)} IS NOT NULL" for name in names)
        if self.estimator.label_target:
            scaled.append(f"{quote_column(str(self.target))} AS label")
        inner = f"SELECT {', '.join(scaled)} FROM ({self.sql}) AS chosen WHERE {given}"
        sums = [self.sum_of(term, cell) for block in self.blocks for cell in range(block.count) for term in block.terms]
        return f"SELECT {', '.join(sums)} FROM ({inner}) AS rows_of_fit"

    def sum_of(self, term: Term, cell: int) -> str:
        """Of products of two of (1, columns), over all rows or those of a class."""
        product = " * ".join(f"c{j - 1}" for j in term if j > 0)
        if self.estimator.label_target:
            label = literal(self.estimator.class_list()[cell])
            return f"SUM(CASE WHEN label = {label} THEN {product or 1} ELSE 0 END)"
        return f"SUM({product})" if product else "COUNT(*)"

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return self.estimator.database_blocks(len(self.features))

    @property
    def is_question(self) -> bool:
        """Can its sums be those of an ordinary question: of all rows, or by class?"""
        return all(block.cell is None or isinstance(block.cell, ByLabel) for block in self.blocks)

    @property
    def table(self) -> Table:
        """The public facts of the table, without rows."""
        return Table(np.zeros((0, len(self.features))), None, self.features, None)

    def finish(self) -> None:
        """The attributes that every fitted estimator has."""
        self.estimator.n_features_in_ = len(self.features)
        self.estimator.feature_names_in_ = np.array(self.features, object)
        if isinstance(self.estimator, Classifier):
            self.estimator.classes_ = array_of_labels(self.estimator.class_list())


def same_column_refusal() -> QueryRefused:
    return QueryRefused("two columns of this fit are the same.\n  do:     select each of them once")


def blocks_known(estimator: Estimator) -> bool:
    """Does its class name the sums of one pass?"""
    return type(estimator).database_blocks is not Estimator.database_blocks


def selected_columns(sql: str, least: int) -> list[str]:
    """The names of what a SELECT selects: each must have one. The text is checked again when it is planned."""
    try:
        root = sqlglot.parse_one(sql, read="duckdb")
    except sqlglot.errors.SqlglotError as problem:
        raise QueryRefused(
            "this is not a SELECT.\n  do:     give such as SELECT age, stay, cost FROM visits"
        ) from problem
    names = root.named_selects if isinstance(root, exp.Select) else []
    if len(names) < least or not all(names) or len(set(names)) != len(names) or "*" in names:
        raise QueryRefused(
            f"a fit needs a SELECT of at least {'two columns' if least == 2 else 'one column'} with different names.\n"
            f"  found:  {len(names)} names\n  do:     give such as SELECT age, stay, cost FROM visits"
        )
    return names


def quote_column(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(label: Hashable) -> str:
    """A class as a literal of SQL."""
    value = plain(label)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float) and abs(value) < 1e15:
        return repr(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    raise QueryRefused(
        "classes in the database are texts, numbers or truth values.\n  found:  another type\n  do:     name them so"
    )


# ---- one pass over single rows --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FitSums(Step):
    """The sums of an estimator's blocks, with noise: exact integers of rows that are units.

    Theorem: cells of one block are about different rows, and blocks share the price [`database_pass.add_noise`]
    """

    rows: LatticeRows
    blocks: tuple[Block, ...]

    @property
    def asked(self) -> str:
        return f"sums of a fit to {self.plan.table.name}"

    @property
    def canonical(self) -> str:
        what = f"{self.rows.bounds!r} {self.rows.columns!r} {self.rows.label!r} {self.blocks!r}"
        return f"sums of a fit | {STEPS} steps | {what} | {self.plan.of_columns_read().canonical}"

    @property
    def spending(self) -> Spending:
        return spending_of_price(self.price)

    def requests(self, salt: int, dialect: Dialect) -> list[TableRequest]:
        to = dialect_of(dialect).about(self.plan)
        return [TableRequest(self.rows.statement(block, to)) for block in self.blocks]

    def release(self, tables: Sequence[Sequence[Row]]) -> bytes:
        exact = [table_of(block, rows) for block, rows in zip(self.blocks, tables, strict=True)]
        noisy = add_noise(self.blocks, exact, self.spending)
        return json.dumps({"amount": self.price.amount, "noisy": [one.tolist() for one in noisy]}).encode()

    def learn(self, stored: bytes, wanted: FitWanted) -> float:
        """Fit the estimator to what is stored; returns about how many rows there were."""
        data = json.loads(stored)
        spending = spending_of_price(self.price.with_amount(data["amount"]))
        found = read_noisy(self.blocks, [np.array(one, np.int64) for one in data["noisy"]], spending)
        wanted.estimator.learn_from_sums(found, wanted.table, spending)
        wanted.finish()
        return float(np.sum(found.sums[0][:, self.blocks[0].terms.index((0, 0))]))


def table_of(block: Block, rows: Sequence[Row]) -> Integers:
    """Exact sums with a row for each cell; cells that nobody is in hold 0, and rows in no cell are dropped."""
    found = np.zeros((block.count, len(block.terms)), np.int64)
    for row in rows:
        cell: Any = 0
        sums = row
        if block.cell is not None:
            cell, *sums = row  # type: ignore[assignment]
        if cell is not None and 0 <= int(cell) < block.count:
            found[int(cell)] = [int(x or 0) for x in sums]  # type: ignore[call-overload]
    return found


def spending_of_price(price: Price) -> Spending:
    return (GaussianSpending if isinstance(price, Mu) else PureSpending)(price.amount, AddRemove)


def lattice_rows(wanted: FitWanted, question: Question) -> LatticeRows | None:
    """The rows as integers; None where a row is not a unit, or is counted more than once."""
    plan, sums = question.plan, question.aggregates
    if not isinstance(plan.table.unit, RowUnit) or plan.rows != 1 or plan.crossed or plan.table.derived:
        return None
    expressions = tuple(one.of for one in sums if isinstance(one, Sum))
    bounds, count = wanted.bounds, len(wanted.numbers)
    if len(expressions) != count + wanted.estimator.label_target:
        raise same_column_refusal()
    places = tuple(zip(bounds.middle.tolist(), bounds.half.tolist(), strict=True))
    return LatticeRows(plan, expressions[:count], places, expressions[count] if len(expressions) > count else None)


# ---- the road of a fit ----------------------------------------------------------------------------------------------


def fit_in_database(
    curator: "Curator", estimator: object, sql: str, y: str | None, epsilon: float, key: str | None
) -> Answer:
    """Buy the sums, or find them stored, and fit the estimator to them."""
    require_positive("epsilon", epsilon)
    wanted = FitWanted.of(estimator, sql, y)
    epsilon = find_bounds(curator, wanted, epsilon)
    buyer, step = curator.buyer, sums_of_fit(curator, wanted, epsilon)
    if step is None:
        return fit_by_question(curator, wanted, epsilon, key)
    charged = step.find(curator.ledger) is None and buyer.buy_step(step, buyer.loss_of_epsilon, key)
    stored = step.find(curator.ledger)
    assert stored is not None, "what was bought is kept"
    count = step.learn(stored, wanted)
    delta = curator.policy.question_delta
    answer = Answer(("rows",), ((count,),), step.loss.epsilon(delta).upper, delta, charged, "", odds(step.loss),
                    "The noisy number of rows that the estimator was fitted to.")  # fmt: skip
    return replace(answer, left=curator.remaining())


def sums_of_fit(curator: "Curator", wanted: FitWanted, epsilon: float) -> FitSums | None:
    """The sums of one pass; None where moments are an ordinary question. QueryRefused if it can be neither."""
    wanted.check()
    question = curator.planner.plan(Wanted.of(wanted.question(), epsilon))
    rows = lattice_rows(wanted, question) if curator.engine.dialect == "duckdb" else None
    if rows is not None:
        return FitSums(question.plan, curator.buyer.price_of(epsilon), rows, wanted.blocks)
    if wanted.is_question:
        return None
    raise QueryRefused(
        "this is fitted in DuckDB, where a row is a unit.\n"
        f"  found:  {type(wanted.estimator).__name__}, and units of several rows or another engine\n"
        "  do:     fit sums of all rows or of classes there (LinearRegression, Covariance, PCA, StandardScaler,"
        " GaussianNB), or fit rows outside of the database"
    )


def find_bounds(curator: "Curator", wanted: FitWanted, epsilon: float) -> float:
    """Give an estimator without bounds those of the policy, and buy what the policy does not state; returns what is
    left of ε. Bounds that were bought are stored, and free for whoever needs them again.

    Theorem: histograms for a share of a price, bounds that are any function of them, and sums under these bounds for
        the rest cost the price together [docs/theorems/contributions.md, Theorem 2: adaptive composition]
    """
    estimator, buyer = wanted.estimator, curator.buyer
    target = estimator.number_target and getattr(estimator, "y_bounds", None) is None
    if getattr(estimator, "bounds", 0) is not None:
        return epsilon
    listed = [*wanted.features, *([str(wanted.target)] if target else [])]
    text = f"SELECT {', '.join(f'SUM({quote_column(name)})' for name in listed)} FROM ({wanted.sql}) AS rows_of_fit"
    asked = Wanted.of(text, epsilon)
    unknown = unbounded_columns(curator.planner, asked)
    if any(one.owner is not None for one in unknown):
        raise QueryRefused(
            "bounds are bought for columns of the policy only.\n"
            f"  found:  {', '.join(one.name for one in unknown if one.owner is not None)}, computed by a GROUP BY\n"
            "  do:     CLAMP(…, low, high) it in the SELECT"
        )
    rest = epsilon * (1 - BOUNDS_SHARE) if unknown else epsilon
    each = epsilon * BOUNDS_SHARE / max(1, len(unknown))
    missing = [one.name for one in unknown if not bounds_are_stored(buyer, one.name, each)]
    if missing:  # whatever bounds are found, the fit must be possible and affordable: refused before the first charge
        ends = wanted.bounds_as_parameters(
            bounds_of_sums(curator.planner.with_bounds(widest_bounds(unknown)), asked, listed)
        )
        check_fit(curator, replace(wanted, estimator=copy(estimator).set_params(**ends)), rest)
        charges = [*(buyer.price_of(each).loss() for _ in missing), buyer.price_of(rest).loss()]
        buyer.require_affordable(charges, buyer.price_of(epsilon).loss(), buyer.loss_of_epsilon)
    bought = [suggest_bounds(buyer, one.name, each) for one in unknown]
    stated = tuple(one.with_bounds(b.low, b.high) for one, b in zip(unknown, bought, strict=True))
    found = bounds_of_sums(curator.planner.with_bounds(stated), asked, listed)
    estimator.set_params(**wanted.bounds_as_parameters(found))
    return rest


def bounds_of_sums(planner: Planner, asked: Wanted, listed: Sequence[str]) -> dict[str, tuple[float, float]]:
    """The bounds of the columns that a question sums, in this order."""
    sums = [one.of for one in planner.plan(asked).aggregates if isinstance(one, Sum)]
    if len(sums) != len(listed):
        raise same_column_refusal()
    return {name: (of.domain.low, of.domain.high) for name, of in zip(listed, sums, strict=True)}


def check_fit(curator: "Curator", wanted: FitWanted, epsilon: float) -> None:
    """Try everything that can fail before the first charge of a fit under these bounds."""
    step = sums_of_fit(curator, wanted, epsilon)
    if step is not None:
        curator.buyer.check_requests(step)
    else:
        curator.buyer.check_with_steps(curator.planner.offer(Wanted.of(wanted.sums_question(), epsilon)))


def fit_by_question(curator: "Curator", wanted: FitWanted, epsilon: float, key: str | None) -> Answer:
    """Sums as an ordinary question: where units own several rows, or another engine holds the data."""
    answer = curator.ask(wanted.sums_question(), epsilon=epsilon, key=key)
    spending = spending_of_price(curator.buyer.price_of(epsilon))
    wanted.estimator.learn_from_sums(sums_of_answer(answer, wanted.blocks), wanted.table, spending)
    wanted.finish()
    return answer


def sums_of_answer(answer: Answer, blocks: Sequence[Block]) -> NoisyPass:
    """The released numbers, a row for each cell of a block; the deviation of their noise from half widths."""
    (row,) = answer.rows
    values, lows, highs = (np.array(row[start::3], np.float64) for start in range(3))  # each number with its interval
    sums, deviations, place = [], [], 0
    for block in blocks:
        own = slice(place, place := place + block.count * len(block.terms))
        products = np.array([0 not in term for term in block.terms] * block.count)
        halves = (highs - lows)[own][products] / 2
        sums.append(values[own].reshape(block.count, -1))
        deviations.append(float(np.sqrt(np.mean(halves**2))) / NORMAL)
    return NoisyPass(tuple(sums), tuple(deviations))
