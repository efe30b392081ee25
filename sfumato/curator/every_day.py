"""Counts that are published every day: SELECT COUNT(*) FROM visits EVERY DAY OF day FROM '2026-01-01' FOR 365 DAYS.

One price for the whole time, charged once. The answer is the count of all rows so far, at the end of each day that is
over; a day that has ended since the last time is added to it for nothing. Days are summed by the binary tree of
`TreeCounter`: noisy sums of 1, 2, 4, … days, each drawn once and stored, of which few make each count.

A unit counts `rows` rows in all, its first ones by day, and whether a row counts depends on that row alone. So its
weight on a day depends on its rows of that day and before, and stops when it is used up; later days change no count
that was published.

Theorem: a unit whose rows are only ever added moves the sums of each level by at most `rows` in all
    [docs/theorems/days.md, Theorem 2]
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sfumato.aggregates.noisy_sums import CONFIDENCE
from sfumato.aggregates.price import IndependentNoise, Price
from sfumato.curator.answer import Answer
from sfumato.curator.planner import Wanted
from sfumato.curator.purchase import Buyer
from sfumato.errors import QueryRefused
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.coins import PureLoss
from sfumato.mechanisms.additive.combined_noise import sum_radius
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.domains import Kind
from sfumato.sql.dp_syntax import EveryDay
from sfumato.sql.emit.request import Row, TableRequest
from sfumato.sql.emit.unit_rows import row_select
from sfumato.sql.expressions import Call, Column, Constant, Expression, Output
from sfumato.sql.plan import Measure, Plan, What
from sfumato.sql.question import Question
from sfumato.sql.question_bounds import AS_STATED
from sfumato.sql.reserved_names import COUNT, DAY, EACH, ROWS, UNIT, UP_TO, WEIGHT
from sfumato.sql.units import ColumnUnit
from sfumato.wording import plural

if TYPE_CHECKING:
    from sfumato.curator.curator import Curator

DAYS = "day"  # the column before the counts


@dataclass(frozen=True)
class Schedule:
    """A count that is published at the end of each day, its price, and how many rows of a unit count in all."""

    plan: Plan
    every: EveryDay
    rows: int
    price: Price
    text: str = ""  # as it was asked
    title: str = "count"  # of the column of counts

    @property
    def asked(self) -> str:
        every = self.every
        return f"{self.text} EVERY DAY OF {every.day} FROM '{every.first}' FOR {every.days} DAYS"

    @property
    def levels(self) -> int:
        """How many sums a day is part of, at most."""
        return self.every.days.bit_length()

    @cached_property
    def noise(self) -> IndependentNoise:
        """The noise on each sum."""
        return self.price.part(1 / self.levels).noise(self.rows)

    @property
    def canonical(self) -> str:
        every = f"{self.every.day} from {self.every.first} for {self.every.days} days, {self.rows} rows"
        return f"every day of {every} | {self.plan.canonical}"

    @property
    def loss(self) -> PrivacyLoss:
        return self.price.loss()

    def key(self, first: int) -> str:
        """The idempotency key of the price (0), or of the sums from a day on: one for each person who asks."""
        return hashlib.sha256(f"{first} {self.price.amount!r} {self.canonical}".encode()).hexdigest()

    def requests(self, salt: int, dialect: Dialect) -> list[TableRequest]:
        """Nothing is read when the price is paid."""
        return []

    def release(self, tables: Sequence[Sequence[Row]]) -> bytes:
        return b"{}"

    # ---- days -------------------------------------------------------------------------------------------------------

    def over(self, today: date) -> int:
        """How many of its days are over."""
        return min(max((today - self.every.first).days, 0), self.every.days)

    def day(self, number: int) -> date:
        """Day number 1, 2, …"""
        return self.every.first + timedelta(days=number - 1)

    @cached_property
    def errors(self) -> list[float]:
        """A count of so many sums is off by at most this with 95 %: of 0, 1, 2, … sums."""
        law = self.noise.law()
        return [0.0, *(float(sum_radius(law, terms, 1 - CONFIDENCE)) for terms in range(1, self.levels + 1))]

    def error(self, number: int) -> float:
        """The error of the count after so many days, at 95 %."""
        return self.errors[number.bit_count()]

    def statement(self, last: int, to: Dialect) -> str:
        """day, and how many rows count on it: of each unit `rows` in all, its first ones by day."""
        to = to.about(self.plan)
        of = Column(f"t0.{self.every.day}", self.plan.table.columns[self.every.day])
        limits = [Call("<=", (moment(self.every.first), of)), Call("<", (of, moment(self.day(last + 1))))]
        where = tuple(one for one in (self.plan.where, *limits) if one != Constant(True))
        plan = replace(self.plan, where=Call("and", where))
        start = to.date_text(to.compiled(Call("start of day", (of,))))
        rows = row_select(plan, {DAY: start}, to).sql(to.name)
        by = f"{ROWS}.{UNIT}, {ROWS}.{DAY}"
        each = f"SELECT {by}, COUNT(*) AS {COUNT} FROM ({rows}) AS {ROWS} GROUP BY {by}"
        running = f"SUM({EACH}.{COUNT}) OVER (PARTITION BY {EACH}.{UNIT} ORDER BY {EACH}.{DAY}) AS {UP_TO}"
        upto = f"SELECT {EACH}.{DAY}, {EACH}.{COUNT}, {running} FROM ({each}) AS {EACH}"
        mine, before = f"{EACH}.{UP_TO}", f"{EACH}.{UP_TO} - {EACH}.{COUNT}"
        counted = f"LEAST({mine}, {self.rows}) - LEAST({before}, {self.rows})"
        total = to.total(f"CAST({counted} AS BIGINT)")
        return f"SELECT {EACH}.{DAY}, {total} AS {WEIGHT} FROM ({upto}) AS {EACH} GROUP BY {EACH}.{DAY}"


@dataclass(frozen=True)
class Sums:
    """The noisy sums of the tree that end on days `first` to `last`. They were paid for when the schedule began."""

    schedule: Schedule
    first: int
    last: int

    @property
    def asked(self) -> str:
        return f"days {self.first} to {self.last} of {self.schedule.asked}"

    @property
    def canonical(self) -> str:
        return f"{self.schedule.canonical} | sums from day {self.first}"

    @property
    def loss(self) -> PrivacyLoss:
        return PureLoss(0.0)

    def requests(self, salt: int, dialect: Dialect) -> list[TableRequest]:
        return [TableRequest(self.schedule.statement(self.last, dialect))]

    def release(self, tables: Sequence[Sequence[Row]]) -> bytes:
        exact = {str(day)[:10]: int(str(many)) for day, many in tables[0]}
        daily = [exact.get(self.schedule.day(number).isoformat(), 0) for number in range(1, self.last + 1)]
        sums = [sum(daily[number - length(number) : number]) for number in range(self.first, self.last + 1)]
        noisy = [int(one) for one in np.atleast_1d(self.schedule.noise.release(sums))]
        return json.dumps({"last": self.last, "sums": noisy}).encode()


def length(number: int) -> int:
    """How many days the sum has that ends on this day."""
    return number & -number


def ask_every_day(curator: "Curator", wanted: Wanted, today: date) -> Answer:
    """The counts up to the last day that is over; what is new is drawn and stored, and the price is paid once."""
    buyer, schedule = curator.buyer, schedule_of(curator, wanted)
    if wanted.explained:
        delta = curator.policy.question_delta
        epsilon = schedule.loss.epsilon(delta).upper
        return Answer.of_preview(promise(schedule), epsilon, delta, curator.remaining())
    checked = buyer.check_requests(Sums(schedule, 1, schedule.every.days))
    sums: list[int] = []
    with buyer.question_lock(schedule.canonical):
        charged = not buyer.is_charged(schedule, schedule.key(0))
        if charged:
            _ = schedule.noise, schedule.error(schedule.every.days)  # nothing may fail after the charge
            paid = replace(checked, requests=())
            buyer.buy_release(schedule, buyer.loss_of_epsilon, schedule.key(0), paid)
        while len(sums) < schedule.over(today):
            missing = Sums(schedule, len(sums) + 1, schedule.over(today))
            sums += json.loads(find_sums(buyer, missing))["sums"]
    return show(curator, schedule, sums).with_account(charged, curator.remaining())


def find_sums(buyer: Buyer, missing: Sums) -> bytes:
    """The sums from this day on: those that are stored, or else new ones."""
    key = missing.schedule.key(missing.first)
    before = buyer.ledger.find_receipt(missing.loss, question=missing.canonical, who=buyer.who, key=key)
    if before is not None and before.answer is not None:
        return before.answer
    return buyer.buy_release(missing, buyer.loss_of_epsilon, key, buyer.check_requests(missing))


def schedule_of(curator: "Curator", wanted: Wanted) -> Schedule:
    """The schedule that a question with EVERY DAY asks for; QueryRefused if it cannot be published daily."""
    every = wanted.every_day
    assert every is not None
    if wanted.epsilon is None or wanted.relative_error is not None or wanted.bounds.groups is not None:
        raise refusal("an error, or groups", "give an ε, and rows: how many of a person count in all")
    question = curator.planner.plan(replace(wanted, bounds=AS_STATED))
    plan, rows = count_plan(question, every), wanted.bounds.rows or wanted.bounds.most or question.plan.table.most
    if rows is None:
        raise refusal("no number of rows", "say how many rows of a person count in the whole time: rows=20")
    title = question.columns[0][0]
    return Schedule(plan, every, rows, curator.buyer.price_of(wanted.epsilon), wanted.text.strip(), title)


def show(curator: "Curator", schedule: Schedule, sums: Sequence[int]) -> Answer:
    """Running counts: each is made of the sums that its number of days has binary ones."""
    lines, delta = [], curator.policy.question_delta
    counts = [0]
    for number, noisy in enumerate(sums, 1):
        counts.append(counts[number - length(number)] + noisy)
        off = schedule.error(number)
        lines.append((schedule.day(number), float(counts[number]), counts[number] - off, counts[number] + off))
    note = (
        f"counts at the end of {len(sums)} of {schedule.every.days} days, at one price; of a person "
        f"{plural(schedule.rows, 'row')} count in all, the first ones by day, and intervals are about these"
    )
    epsilon = schedule.loss.epsilon(delta).upper
    columns = (DAYS, schedule.title, f"{schedule.title} low", f"{schedule.title} high")
    return Answer(columns, tuple(lines), epsilon, delta, False, "", note=note, coverage={schedule.title: CONFIDENCE})


def promise(schedule: Schedule) -> list[str]:
    """The lines of EXPLAIN PRIVACY: the price and the errors."""
    days = schedule.every.days
    worst = max(range(1, days + 1), key=int.bit_count)
    return [
        f"one charge for {plural(days, 'day')} from {schedule.every.first}; a day that has ended costs nothing more",
        f"± {schedule.error(1):,.0f} on the first day, ± {schedule.error(worst):,.0f} at most, at 95 %",
        f"of a person {plural(schedule.rows, 'row')} count in all, the first ones by day",
    ]


def count_plan(question: Question, every: EveryDay) -> Plan:
    """The plan of COUNT(*) without keys, of rows that have a day."""
    plan, day = question.plan, question.plan.table.columns.get(every.day)
    simple = plan.measures == (Measure(What.ROWS),) and not (plan.keys or plan.standalone or plan.table.derived)
    if not simple or not shows_one_number(question) or not isinstance(plan.table.unit, ColumnUnit):
        raise refusal("another question", "ask SELECT COUNT(*) of one private table, with WHERE if need be")
    if plan.joins:  # a row that counted may count no longer when others are added: then its person counts again
        raise refusal("a join or a sub-select: other rows decide which count", "choose rows by their own columns")
    if day is None or day.kind is not Kind.DATE:
        raise refusal(f"no column {every.day} of dates in {plan.table.name}", "name a column with type date")
    return plan


def shows_one_number(question: Question) -> bool:
    """Is the aggregate shown as it is, and nothing else? There is no room for COUNT(*) + 1, HAVING or LIMIT."""
    title, shown = question.columns[0]
    alone = len(question.columns) == 1 and isinstance(shown, Output) and title != DAYS
    chosen = question.order or question.limit is not None or question.offset or question.having != Constant(True)
    return alone and not chosen and question.outer is None


def refusal(found: str, do: str) -> QueryRefused:
    return QueryRefused(f"EVERY DAY publishes one count.\n  found:  {found}\n  do:     {do}")


def moment(day: date) -> Expression:
    """Its midnight."""
    return Call("timestamp", (Constant(f"{day.isoformat()} 00:00:00"),))
