"""The pure half of a curator: from what is wanted to a plan, from a plan to an offer, from stored values to an answer.

Text, policy, dialect and currency decide; no data and no ledger. So what was worked out once is looked up the next
time: a repeated question is neither parsed nor priced nor laid out again.
"""

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, reduce
from operator import add
from types import MappingProxyType

from sfumato.aggregates.arithmetic_intervals import Cells
from sfumato.aggregates.mean import RatioColumn
from sfumato.aggregates.noisy_sums import CONFIDENCE
from sfumato.aggregates.price import Price
from sfumato.aggregates.registry import parse_question
from sfumato.curator.answer import Answer, LeftOut
from sfumato.curator.expression_intervals import FixedCells, ReleasedCells
from sfumato.curator.grouping_sets import combine
from sfumato.curator.layout import (
    Estimates,
    bounding_note,
    coverage_by_column,
    estimates,
    lay_out_rows,
    left_out,
    left_out_by_row,
    plain_values,
)
from sfumato.curator.offer import Offer, offer_for_epsilon, offer_for_relative_error
from sfumato.curator.outer_query import Processor, ReleasedRows, bind, run
from sfumato.curator.price_for_error import offer_for_error
from sfumato.curator.relative_counts import describe_policy, is_grouped_count, policy_by_group_size
from sfumato.engines.postprocessing import SmallTable, shared_postprocessor
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.ledger.meter import epsilon_at, odds
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dp_syntax import EveryDay, parse_dp_syntax
from sfumato.sql.parameters import Parameters, with_parameters
from sfumato.sql.policy import Policy, names_unit
from sfumato.sql.question import Outer, Question
from sfumato.sql.question_bounds import AS_STATED, QuestionBounds

REMEMBERED = 64  # questions
ColumnBounds = tuple[str, str, float, float]  # table, column, low, high


@dataclass(frozen=True)
class Wanted:
    """A plain SELECT with either an ε or an error; with a relative error, ε is the most that it may cost."""

    text: str
    epsilon: float | None = None
    error: float | None = None
    relative_error: float | None = None
    unit: str | None = None  # the unit that the text names
    explained: bool = False  # EXPLAIN PRIVACY: only the preview is asked for
    bounds: QuestionBounds = AS_STATED  # tighter than those of the policy
    every_day: EveryDay | None = None  # a count that is published every day
    delta: float | None = None  # smaller than that of the policy

    @staticmethod
    def of(
        sql: str, epsilon: float | None = None, error: float | None = None, relative_error: float | None = None,
        bounds: QuestionBounds = AS_STATED, parameters: Parameters | None = None,
    ) -> "Wanted":  # fmt: skip
        """From a text and arguments; raises InvalidParameter for numbers out of range."""
        if not isinstance(sql, str):
            raise QueryRefused("a question is a text.")
        text = parse_dp_syntax(sql)
        goal = text.relative_error if text.relative_error is not None else relative_error
        if goal is not None:
            require_share(goal, text.epsilon or epsilon, error)
        if text.epsilon is not None:
            epsilon, error = text.epsilon, None
        if (epsilon is None) == (error is None):
            raise InvalidParameter("say how much privacy or how much accuracy: epsilon=0.5, or error=5")
        for name, value in (("epsilon", epsilon), ("error", error)):
            if value is not None:
                require_positive(name, value)
        chosen = bounds if text.bounds == AS_STATED else text.bounds
        question = with_parameters(text.text, parameters)
        return Wanted(question, epsilon, error, goal, text.unit, text.explained, chosen, text.every_day, text.delta)

    def require_own_delta(self, problem: QueryRefused | None = None) -> None:
        """Refuse a δ of its own for a question that is several purchases, each at the δ of the policy."""
        if self.delta is not None:
            raise problem or QueryRefused(
                "OPTIONS: a question that is bought in parts has the delta of the policy.\n  do:     leave it out"
            )

    def needs_rounds(self, question: Question) -> bool:
        """Is a relative error wanted that only refinement gives? Counts by group have a contract instead."""
        return self.relative_error is not None and not is_grouped_count(question)


def require_positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not (isinstance(value, int | float) and 1e-6 <= value <= 1e15):
        raise InvalidParameter(f"{name} is out of range.\n  found:  {value!r}\n  do:     give a positive number")


def require_share(goal: object, epsilon: float | None, error: float | None) -> None:
    """A relative error is a share, and ε limits its price."""
    share = not isinstance(goal, bool) and isinstance(goal, int | float) and 0 < goal < 1
    if epsilon is None or error is not None or not share:
        raise InvalidParameter(
            "a relative error is a share, and needs a limit to its price.\n"
            f"  found:  relative_error = {goal!r}, epsilon = {epsilon!r}, error = {error!r}\n"
            "  do:     give such as relative_error=0.05, epsilon=1.0"
        )


@dataclass(frozen=True, eq=False)
class Planner:
    """Plans, prices and lays out questions under one policy, for one engine and one currency."""

    policy: Policy = field(repr=False)
    namespace: str
    dialect: str
    currency: type[Price]
    processor: Processor = field(default_factory=shared_postprocessor, repr=False)  # for SQL over released values
    public: dict[str, SmallTable] = field(default_factory=dict, repr=False)  # public tables that such SQL reads

    def __post_init__(self) -> None:
        for name in ("question", "offer", "known_offers", "answer", "with_bounds"):
            object.__setattr__(self, name, lru_cache(REMEMBERED)(getattr(self, name)))

    def with_bounds(self, bounds: tuple[ColumnBounds, ...]) -> "Planner":
        """A planner for the policy in which these columns have these bounds; values that a question computes, too."""
        tables, values = dict(self.policy.tables), dict(self.policy.value_bounds)
        for name, column, low, high in bounds:
            table = tables[name]
            if column not in table.columns:
                values[column] = low, high
                continue
            bounded = replace(table.columns[column], low=low, high=high)
            tables[name] = replace(table, columns={**table.columns, column: bounded})
        return replace(self, policy=replace(self.policy, tables=tables, value_bounds=values))

    def plan(self, wanted: Wanted) -> Question:
        """The question that a text asks, or QueryRefused; the price has no part in it."""
        return self.question(wanted.text, wanted.unit, wanted.bounds)

    def question(self, text: str, unit: str | None, bounds: QuestionBounds) -> Question:
        """The question from text, unit and bounds, which decide it: a text is parsed once for all prices."""
        question = parse_question(text, self.policy, self.namespace, bounds)
        if not names_unit(unit, question.plan.table):
            raise QueryRefused(
                f"{unit!r} is not the unit here.\n  found:  {str(question.plan.table.unit)!r} in the policy"
            )
        for one in question.outer.questions if question.outer is not None else (question,):
            dialect_of(self.dialect).accepts(one.plan)
        if question.outer is None:
            return question
        return replace(question, outer=bind(question.outer, self.processor))

    def offer(self, wanted: Wanted) -> Offer:
        """The noise that this much privacy or accuracy buys, and its loss."""
        offer = replace(self.price(wanted), known=self.known_offers(wanted.text, wanted.unit, wanted.bounds))
        return offer.at_price(offer.price)

    def known_offers(self, text: str, unit: str | None, bounds: QuestionBounds) -> dict[Hashable, Offer]:
        """The offers of a question at all prices at which it was asked or answered."""
        return {}

    def price(self, wanted: Wanted) -> Offer:
        """The offer, worked out."""
        question, delta = self.plan(wanted), self.delta_of(wanted)
        if question.several:
            raise QueryRefused(
                "this question has several private aggregations, which cannot be offered as one.\n"
                "  do:     ask it by epsilon=; CLAMP columns that have no bounds in the policy"
            )
        if wanted.epsilon is None:
            return offer_for_error(question, float(wanted.error or 0), delta, self.policy.epsilon, self.currency)
        if wanted.relative_error is not None and is_grouped_count(question):
            return offer_for_relative_error(
                question, float(wanted.epsilon), delta, float(wanted.relative_error), self.currency
            )
        return offer_for_epsilon(question, float(wanted.epsilon), delta, self.currency)

    def delta_of(self, wanted: Wanted) -> float:
        """The δ at which the ε of a question is meant: the policy's, or a smaller one that the question states."""
        most = self.policy.question_delta
        if wanted.delta is not None and wanted.delta > most:
            raise QueryRefused(
                f"OPTIONS: delta is at most what the policy says.\n  found:  {wanted.delta:g}, above {most:g}\n"
                "  do:     leave it out, or state less"
            )
        return most if wanted.delta is None else wanted.delta

    def answer(self, offer: Offer, noisy: bytes) -> Answer:
        """The columns that were asked for, made of stored noisy values alone; what is left of the budget is not known
        here."""
        if offer.question.outer is not None:
            return self.outer_answer(offer.question.outer, (offer,), (noisy,))
        missing = left_out(offer, json.loads(noisy)) if offer.scaled else None
        ratios, readings = offer.ratio_columns, estimates(offer, noisy)
        cells = ReleasedCells(offer, json.loads(noisy), [found for _, found in readings])
        if missing is not None and missing.people is not None:
            missing = replace(missing, by_row=left_out_by_row(offer, noisy, readings))
        return self.show(offer, readings, coverage_by_column(offer), missing, ratios, cells)

    def outer_answer(self, outer: Outer, offers: tuple[Offer, ...], tables: tuple[bytes, ...]) -> Answer:
        """The answer to SQL over released tables: `offers` and what is stored for them, one for each different plan."""
        stored = {offer.plan.canonical: (offer, noisy) for offer, noisy in zip(offers, tables, strict=True)}
        pairs = [stored[question.plan.canonical] for question in outer.questions]
        mine = [replace(offer, question=question) for question, (offer, _) in zip(outer.questions, pairs, strict=True)]
        released: dict[int, ReleasedRows] = {}
        for table in outer.tables:
            numbers = list(dict.fromkeys(part.question for part in table.parts))
            found = combine([mine[i] for i in numbers], [pairs[i][1] for i in numbers]) if table.consistent else None
            for place, i in enumerate(numbers):
                readings = estimates(mine[i], pairs[i][1])
                cells: Cells = ReleasedCells(mine[i], json.loads(pairs[i][1]), [one for _, one in readings])
                if found is not None:
                    cells = found[place]
                    readings = [(key, one) for (key, _), one in zip(readings, found[place].estimates, strict=True)]
                released[i] = ReleasedRows(outer.questions[i], plain_values(readings), cells)
        missing = left_out(offers[0], json.loads(tables[0])) if offers[0].scaled and len(offers) == 1 else None
        return self.show_outer(outer, released, offers, missing)

    def show_outer(
        self, outer: Outer, released: Mapping[int, ReleasedRows], offers: Sequence[Offer], missing: LeftOut | None
    ) -> Answer:  # fmt: skip
        found = run(outer, released, {one.name: self.public[one.name] for one in outer.public}, self.processor)
        loss = reduce(add, (offer.paid_loss for offer in offers))
        delta = self.policy.question_delta
        notes = [bounding_note(offers[0].plan, missing)]
        if found.without:
            notes.append(f"No interval is known for {', '.join(found.without)}.")
        return Answer(
            found.columns, found.rows, epsilon_at(loss, delta), delta, False, "", partial(odds, loss),
            " ".join(filter(None, notes)), dict.fromkeys(found.with_interval, CONFIDENCE), (), missing,
        )  # fmt: skip

    def show(
        self, offer: Offer, rows: Estimates, coverage: dict[str, float], missing: LeftOut | None = None,
        ratios: Mapping[int, RatioColumn] = MappingProxyType({}), released: Cells | None = None,
    ) -> Answer:  # fmt: skip
        """The answer from estimates; those of columns that are ratios come last."""
        released = released or FixedCells([found for _, found in rows])
        if (outer := offer.question.outer) is not None:
            answers = {i: ReleasedRows(one, plain_values(rows), released) for i, one in enumerate(outer.questions)}
            return self.show_outer(outer, answers, (offer,), missing)
        names, cells = lay_out_rows(offer.question, rows, released, ratios)
        delta = self.policy.question_delta
        count = offer.relative
        policy = policy_by_group_size(count, offer.plan.groups, delta) if count is not None else ()
        notes = [bounding_note(offer.plan, missing), describe_policy(policy) if policy else ""]
        return Answer(
            names, cells, epsilon_at(offer.paid_loss, delta), delta, False, "", partial(odds, offer.paid_loss),
            " ".join(filter(None, notes)), coverage, policy, missing,
        )  # fmt: skip
