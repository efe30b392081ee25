"""The trusted curator: plan, price, find or charge, release, keep, show.

`Curator.ask` is the road of a question. The planner is its pure half; the buyer is the half that reads data and spends
the budget. Questions that need several purchases (automatic bounds, refinement) walk the same road several times.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from sfumato.aggregates.builder import Rows
from sfumato.curator.answer import Answer
from sfumato.curator.automatic_bounds import ask_unbounded, preview_unbounded
from sfumato.curator.bounded_cache import BoundedTables
from sfumato.curator.contribution_sketch import register_contributions
from sfumato.curator.every_day import ask_every_day
from sfumato.curator.failure_guard import Clock
from sfumato.curator.fit_in_database import fit_in_database
from sfumato.curator.layout import describe_expected_left_out
from sfumato.curator.offer import Offer
from sfumato.curator.open import Data, open_engine, open_ledger, require_admitted, require_same_promise
from sfumato.curator.outer_query import read_public
from sfumato.curator.planner import Planner, Wanted
from sfumato.curator.precheck import require_engine
from sfumato.curator.preview import Preview, Standing, budget_standing, build_preview
from sfumato.curator.purchase import Buyer, Purchase
from sfumato.curator.refinement import refine, require_refinable
from sfumato.curator.several_aggregations import ask_several, preview_several
from sfumato.curator.steps import Steps
from sfumato.curator.suggest_bounds import Bounds, suggest_bounds
from sfumato.engines.base import Engine
from sfumato.errors import QueryRefused, UnboundedColumn
from sfumato.learn.base import Estimator
from sfumato.ledger import Ledger
from sfumato.ledger.amounts import share_left
from sfumato.ledger.journal import ignore
from sfumato.ledger.shares import OWNER
from sfumato.sql.parameters import Parameters
from sfumato.sql.parse.from_where import MAIN
from sfumato.sql.policy import VIEWS, Policy
from sfumato.sql.question import Outer, Question
from sfumato.sql.question_bounds import QuestionBounds
from sfumato.wording import format_share


@dataclass(frozen=True)
class Curator:
    """Answers questions about a database under a policy, and charges a ledger for them."""

    engine: Engine
    policy: Policy
    ledger: Ledger
    who: str = OWNER
    charges: bool = True  # False: only stored answers
    bounded_tables: BoundedTables = field(default_factory=lambda: BoundedTables(VIEWS), repr=False)
    probe: Callable[[str], None] = field(default=ignore, repr=False)  # called at each step: for fault tests
    clock: Clock = field(default=Clock(), repr=False)

    @staticmethod
    def open(
        data: Data, policy: str | os.PathLike[str] | Policy, *,
        ledger: str | os.PathLike[str] | Ledger | None = None, anchor: str | os.PathLike[str] | None = None,
    ) -> "Curator":  # fmt: skip
        """The curator of a database under a policy. `data` is a file, a folder or a pattern of Parquet files, an
        address (postgresql://…), data frames by name ({"visits": frame}), a connection of DuckDB, or an engine.
        `ledger` is a file, an address (postgresql://…?schema=clinic) or a Ledger; by default a file beside the data.
        The ledger must have the budget of the policy. The policy's shares are set in it, which appends a line if they
        are new."""
        stated = policy if isinstance(policy, Policy) else Policy.load(policy)
        engine = open_engine(data, stated.limits, stated.delimiters)
        require_engine(engine, stated)
        return Curator(
            engine,
            stated,
            open_ledger(ledger, engine, stated, anchor),
            bounded_tables=BoundedTables(stated.limits.views),
        )

    def __post_init__(self) -> None:
        """Checked however a curator is made: the ledger has the policy's budget, and this person may ask."""
        if isinstance(self.ledger, Ledger):
            require_same_promise(self.ledger, self.policy)
        require_admitted(self.policy, self.who)

    def analyst(self, who: str) -> "Curator":
        """This curator, asked by this person."""
        asked = replace(self, who=who)
        vars(asked)["planner"] = self.planner  # plans do not depend on who asks
        return asked

    def __repr__(self) -> str:
        """Short: an engine may know a password, and a policy is long."""
        return f"Curator({', '.join(sorted(self.policy.tables))}; asked by {self.who})"

    def _repr_html_(self) -> str:
        from sfumato.curator.answer_html import meter_html, tables_html

        tables = {name: tuple(table.columns) for name, table in self.policy.tables.items()}
        return tables_html("What can be asked", tables) + meter_html(
            f"Budget left for {self.who}", self.budget.left, f"{format_share(self.budget.left)} left"
        )

    def stored_only(self) -> "Curator":
        """This curator with stored answers only: it charges nothing, and other questions raise NotStored."""
        asked = replace(self, charges=False)
        vars(asked)["planner"] = self.planner
        return asked

    @cached_property
    def planner(self) -> Planner:
        """The pure half: plans, prices and layouts."""
        namespace = getattr(self.engine, "namespace", MAIN)
        return Planner(self.policy, namespace, self.engine.dialect, self.buyer.currency)

    @cached_property
    def buyer(self) -> Buyer:
        """The half that charges the ledger and reads data."""
        return Buyer(
            self.engine, self.policy, self.ledger, self.who, self.charges, self.bounded_tables, self.probe, self.clock
        )

    def table(self, name: str) -> "Rows[Answer, Preview]":
        """A question built in Python: table("visits").where(…).group_by(…).agg(…).ask(epsilon=…)."""
        return Rows.of(self, name)

    # ---- the road of a question -------------------------------------------------------------------------------------

    def ask(
        self, sql: str, *, epsilon: float | None = None, error: float | None = None,
        relative_error: float | None = None, key: str | None = None, rows: int | None = None,
        groups: int | None = None, most: int | None = None, parameters: Parameters | None = None,
    ) -> Answer:  # fmt: skip
        """A private answer. Charged durably before data are read, stored durably before it is returned.

        With a relative error, ε is the price of a count by group, and a limit for other questions (see `refine`).
        `key` is an idempotency key: the same request with the same key is charged once.
        `rows`, `groups`, `most`: tighter bounds than the policy's, for this question alone.
        `parameters`: values of ? and $1 in their order, or of $name by name; each becomes a literal of its type.
        """
        self.probe("ask: asked")
        wanted = Wanted.of(sql, epsilon, error, relative_error, QuestionBounds(rows, groups, most), parameters)
        if wanted.every_day is not None:
            return ask_every_day(self, wanted, self.clock.today())
        try:
            question = self.planner.plan(wanted)  # pure: text and policy, or QueryRefused
        except UnboundedColumn as problem:
            wanted.require_own_delta(problem)
            return ask_unbounded(self, wanted, key)  # buys bounds, and comes back here
        if (answer := self.ask_in_steps(question, wanted, key)) is not None:
            return answer
        offer = self.planner.offer(wanted)  # pure: noise, loss and promised errors
        self.probe("ask: priced")
        if (stored := self.buyer.find(offer, key)) is not None:  # no noise is made for the key of stored answers
            return self.show(stored)
        return self.show(self.buyer.buy(offer, key))  # check, charge, read and add noise, keep

    def ask_in_steps(self, question: Question, wanted: Wanted, key: str | None) -> Answer | None:
        """The answer to a question that is not one purchase at a known price; None for all others."""
        if wanted.explained:
            return self.explain(self.preview_question(question, wanted))
        if question.outer is not None:
            self.load_public(question.outer)
        if question.several:
            wanted.require_own_delta()
            return ask_several(self, question, wanted, key)
        if wanted.needs_rounds(question):
            return refine(self, question, wanted, key)
        if question.plan.table.scaled and wanted.epsilon is None:
            return self.show(self.buyer.buy_for_error(question, float(wanted.error or 0.0), key))
        return None

    def preview(
        self, sql: str, *, epsilon: float | None = None, error: float | None = None,
        relative_error: float | None = None, rows: int | None = None, groups: int | None = None,
        most: int | None = None, parameters: Parameters | None = None,
    ) -> Preview:  # fmt: skip
        """Price, errors and odds of a question. Free; no data are read."""
        wanted = Wanted.of(sql, epsilon, error, relative_error, QuestionBounds(rows, groups, most), parameters)
        if wanted.every_day is not None:
            raise QueryRefused(
                "the price of EVERY DAY is the ε that it is asked for.\n  do:     EXPLAIN PRIVACY SELECT … EVERY DAY …"
            )
        try:
            return self.preview_question(self.planner.plan(wanted), wanted)
        except UnboundedColumn:
            return preview_unbounded(self, wanted)

    def show(self, purchase: Purchase) -> Answer:
        """The columns that were asked for, from stored noisy values: post-processing."""
        answer = self.planner.answer(purchase.offer, purchase.noisy)
        self.probe("ask: shown")
        return answer.with_account(purchase.charged, self.remaining())

    def load_public(self, outer: Outer) -> None:
        """Read the public tables of a query over released values, once; EngineUnavailable if that fails."""
        for table in outer.public:
            if table.name not in self.planner.public:
                self.planner.public[table.name] = read_public(self.engine, table)

    # ---- previews ---------------------------------------------------------------------------------------------------

    def offer(
        self, sql: str, epsilon: float | None = None, error: float | None = None, relative_error: float | None = None
    ) -> Offer:  # fmt: skip
        """The offer that a preview describes."""
        return self.planner.offer(Wanted.of(sql, epsilon, error, relative_error))

    def preview_question(self, question: Question, wanted: Wanted) -> Preview:
        if question.several:
            return preview_several(self, question, wanted)
        if wanted.needs_rounds(question):
            require_refinable(question, self.buyer.currency)
        if question.plan.table.scaled and wanted.epsilon is None:
            return self.preview_of(self.buyer.preview_offer_for_error(question, float(wanted.error or 0.0)))
        return self.preview_of(self.planner.offer(wanted))

    def preview_of(self, offer: Offer) -> Preview:
        """The preview of an offer; errors are known where the histograms of norms that it needs are stored."""
        preview = build_preview(offer, self.ledger, self.who, self.policy.question_delta)
        steps = Steps.of(offer, self.ledger) if offer.incomplete and not preview.free else None
        if steps is None or None in steps.known or not offer.plan.parts:
            return preview
        sharp = steps.complete_offer()
        return replace(preview, sharp=sharp, lost=(*preview.lost, *describe_expected_left_out(sharp)))

    def explain(self, preview: Preview) -> Answer:
        """EXPLAIN PRIVACY: the preview as an answer, which costs nothing."""
        delta = self.policy.question_delta
        lines, epsilon = str(preview).splitlines(), preview.offer.loss.epsilon(delta).upper
        return Answer.of_preview(lines, epsilon, delta, self.remaining())

    # ---- the budget, fits, and purchases for the owner --------------------------------------------------------------

    @property
    def budget(self) -> Standing:
        """The budget: promised, spent and left, with what that means for one person."""
        return budget_standing(self.ledger, self.who, self.policy.question_delta)

    def remaining(self) -> str:
        """The share of the paying account that is left, in words."""
        return f"{format_share(share_left(*self.ledger.account(self.who)[1:]))} of the budget left"

    def fit(
        self, estimator: Estimator, sql: str, *, y: str | None = None, epsilon: float, key: str | None = None
    ) -> Answer:
        """Fit an estimator to the rows of a SELECT, in the database, for ε in all; `y` is the column of its target.

        The estimator's bounds and classes are public. Noisy sums leave the database as one answer, which is charged,
        stored and free on repetition; the estimator is fitted to it.
        """
        return fit_in_database(self, estimator, sql, y, epsilon, key)

    def suggest_bounds(self, column: str, *, epsilon: float) -> Bounds:
        """Bounds for a column such as "visits.stay", from two noisy histograms; charged like any answer."""
        return suggest_bounds(self.buyer, column, epsilon)

    def register(self, *, epsilon: float) -> None:
        """Buy once the histograms that show how much people contribute: previews then say how exact an answer will be,
        and questions need not buy them again."""
        register_contributions(self.buyer, epsilon)
