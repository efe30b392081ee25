"""Relative accuracy by successive refinement: buy a little, look, buy more.

How dear a relative error is depends on the answer, so it cannot be known in advance. Each round is an ordinary
question, charged before it is drawn, with fresh noise; whether another one follows is decided by released values alone.
"""

import json
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from sfumato.aggregates.linear import Linear, NumberEstimate
from sfumato.aggregates.noisy_sums import CONFIDENCE
from sfumato.aggregates.price import Mu, Price
from sfumato.curator.answer import Answer
from sfumato.curator.layout import left_out, minimum_coverage
from sfumato.curator.offer import Offer
from sfumato.curator.planner import Planner, Wanted
from sfumato.errors import BudgetExceeded, NotReached, QueryRefused
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.sql.question import Question

if TYPE_CHECKING:
    from sfumato.curator.curator import Curator

ROUNDS = 8  # each doubles what has been bought


def refine(curator: "Curator", question: Question, wanted: Wanted, key: str | None) -> Answer:
    """Buy rounds of growing price until every number is within this share of itself, at 95 %; ε limits their price.

    If that does not suffice, or the budget ends, `NotReached` holds the best answer so far.
    """
    buyer, limit, goal = curator.buyer, float(wanted.epsilon or 0.0), float(wanted.relative_error or 0.0)
    offers = rounds(question, limit, buyer.policy.question_delta, buyer.currency)
    bought, charged = Refinement(), False
    if question.plan.table.scaled:
        whole = buyer.price_of(limit)
        first = buyer.complete(Offer(question, whole), key)
        share = first.price.amount**2 / whole.amount**2
        offers = tuple(replace(first, price=one.price.part(share), whole=None, draw=one.draw) for one in offers)
        bought = Refinement(steps=math.sqrt(max(0.0, whole.amount**2 - first.price.amount**2)))
    try:
        for i, offer in enumerate(offers):
            own_key = f"{key} round {i}" if key is not None else None
            purchase = buyer.find(offer, own_key) or buyer.buy(offer, own_key)
            bought, charged = bought.with_round(purchase.offer, purchase.noisy), charged or purchase.charged
            if bought.largest_relative_error() <= goal:
                return refined_answer(curator.planner, bought).with_account(charged, curator.remaining())
    except BudgetExceeded:
        if not bought.offers:
            raise
    answer = refined_answer(curator.planner, bought).with_account(charged, curator.remaining())
    raise NotReached(
        f"a relative error of {100 * goal:.3g} % was not reached.\n"
        f"  found:  {100 * bought.largest_relative_error():.3g} % after ε = {answer.epsilon:.3g}, already charged\n"
        "  do:     use the `answer` of this error, or ask with a larger epsilon: what was bought counts",
        answer,
    )


def refined_answer(planner: Planner, bought: "Refinement") -> Answer:
    last = bought.offers[-1]
    missing = left_out(last, json.loads(bought.tables[-1])) if last.scaled else None
    return planner.show(bought.combined_offer, bought.read(), minimum_coverage(bought.combined_offer), missing)


def rounds(question: Question, epsilon: float, delta: float, currency: type[Price]) -> tuple[Offer, ...]:
    """The offers of all rounds: shares 2⁻⁷, 2⁻⁷, 2⁻⁶, … ½ of what (ε, δ) buys."""
    require_refinable(question, currency)
    whole = currency.for_epsilon(epsilon, delta, 0.0)
    shares = [2.0 ** -(ROUNDS - 1), *(2.0 ** (i - ROUNDS) for i in range(1, ROUNDS))]
    return tuple(Offer(question, whole.part(share), draw=i) for i, share in enumerate(shares, 1))


def require_refinable(question: Question, currency: type[Price]) -> None:
    """Refuse questions whose errors do not shrink with further rounds, or are not known."""
    odd = [one.name for one in question.aggregates if not one.refinable]
    private = question.plan.public is None
    if odd or private or currency is not Mu:
        found = "keys that are private" if private else odd[0].upper() if odd else "a budget of pure ε"
        raise QueryRefused(
            "a relative error is possible for counts, sums and means by public keys, on a Gaussian budget.\n"
            f"  found:  {found}\n  do:     ask by epsilon=, and look at the interval of the answer"
        )


@dataclass(frozen=True)
class Refinement:
    """Rounds that were drawn, averaged by their inverse variances.

    Theorem: intervals at 1 − 0.05/ROUNDS hold the truth in all rounds at once with 95 %, so that they do in the last,
        whenever one stops [union bound]
    """

    offers: tuple[Offer, ...] = ()
    tables: tuple[bytes, ...] = ()
    steps: float = 0.0  # μ of what was bought before the first round

    def with_round(self, offer: Offer, noisy: bytes) -> "Refinement":
        return Refinement((*self.offers, offer), (*self.tables, noisy), self.steps)

    @cached_property
    def weights(self) -> list[float]:
        """Variances are as 1/μ²."""
        squares = [offer.price.amount**2 for offer in self.offers]
        return [square / math.fsum(squares) for square in squares]

    @cached_property
    def combined_offer(self) -> Offer:
        """One offer that costs as much as all rounds together."""
        mu = math.sqrt(math.fsum(offer.price.amount**2 for offer in self.offers) + self.steps**2) * (1 + 1e-15)
        return replace(self.offers[0], price=Mu(mu), draw=0, whole=None, whole_leak=0.0)

    @cached_property
    def noise(self) -> tuple[Gaussian | None, ...]:
        """The noise of the averages, apart from rounding."""
        found: list[Gaussian | None] = []
        for each in zip(*(offer.noise for offer in self.offers), strict=True):
            sigmas = [w * n.sigma for w, n in zip(self.weights, each, strict=True) if isinstance(n, Gaussian)]
            found.append(Gaussian(math.hypot(*sigmas) * (1 + 1e-14)) if sigmas else None)
        return tuple(found)

    def read(self) -> list[tuple[list[str | float | None], list[NumberEstimate]]]:
        """Keys, and (value, low, high) of each aggregate."""
        first, question = self.offers[0], self.offers[0].question
        sure = 1 - (1 - CONFIDENCE) / ROUNDS
        readers = [
            one.reader(replace(first.noisy_sums(question.sum_indexes[one], sure), noise=self.noise, averaged=True))
            for one in question.aggregates
            if isinstance(one, Linear)
        ]
        data = [json.loads(table) for table in self.tables]
        found = []
        for key, *rows in zip(data[0]["keys"], *(one["noisy"] for one in data), strict=True):
            parts = [
                math.fsum(w * z for w, z in zip(self.weights, each, strict=True)) for each in zip(*rows, strict=True)
            ]
            found.append((key, [reader.read(parts) for reader in readers]))
        return found

    def largest_relative_error(self) -> float:
        """The largest relative error of a cell: how far off its value may be, against how near 0 the truth may be."""
        return max((relative_error_of(*cell) for _, cells in self.read() for cell in cells), default=0.0)


def relative_error_of(value: float, low: float, high: float) -> float:
    least = max(low, -high)  # from 0 to the nearer end, if 0 is outside
    return max(high - value, value - low) / least if least > 0 else math.inf
