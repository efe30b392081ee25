"""Above threshold, also known as the sparse vector technique: pay for the few answers that are "above" only."""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import SupportsFloat

from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import Exhausted, InvalidParameter
from sfumato.loss.kinds.coins import PureLoss
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.choice.base import below_one, score_sensitivity
from sfumato.mechanisms.choice.comparison_error import Contest, least_gap
from sfumato.mechanisms.examples import STREAM, Example, Neighbours
from sfumato.mechanisms.private_inputs import read_numbers, read_stream_value
from sfumato.mechanisms.streams.mechanism_state import Session
from sfumato.noise import DiscreteLaplace, Pool, Sampler
from sfumato.rounding import round_up
from sfumato.sensitivity import Relation, Sensitivity

MOST_QUERIES = 10**15


@dataclass(frozen=True)
class AboveThreshold(Mechanism[ArrayLike, list[bool]]):
    """Is the noisy answer to each query at least the noisy threshold? Ends after `count` times yes. ε-DP in all.

    Queries and threshold are whole numbers; one person moves no answer by more than Δ. Noise is discrete Laplace: ρ of
    scale Δ/ε₁ for the threshold, drawn once, and a fresh ν of scale 2cΔ/ε₂ for each query, ε₁ + ε₂ = ε. No noisy answer
    is released: that costs extra. `monotone` is for queries that one person moves all up or all down.

    Proof. Given ρ, answers are independent. Let q′ be the answers for a neighbour, whose threshold noise is ρ + Δ. If
    q + ν < T + ρ then q′ + ν < T + ρ + Δ: each "no" is at least as likely. "Yes" needs ν ≥ T + ρ − q, and for the
    neighbour ν ≥ T + ρ + Δ − q′, a whole number larger by at most 2Δ: as P(ν ≥ t + m) ≥ e^{−m/scale}·P(ν ≥ t), the c
    of them lose at most e^{ε₂}; and P(ρ) ≤ e^{ε₁}·P(ρ + Δ). Summing over ρ gives e^ε; ties are no exception. The number
    of "no" is not limited. Monotone: if q′ ≥ q, the larger number is larger by at most Δ; if q′ ≤ q, leave ρ as it is.

    Theorem: the sparse vector technique is ε-DP; ε₂/ε₁ = (2c)^{2/3} errs least [Dwork & Roth 2014, Thm 3.23 and 3.24;
      Lyu, Su & Li 2017, Alg. 7 and section 4.2]

    >>> AboveThreshold(eps=2.0, threshold=100).release([1, 2, 10**6, 3])
    [False, False, True]
    """

    eps: float
    threshold: int
    count: int = 1
    sensitivity: Sensitivity | SupportsFloat = 1
    moves: int = field(default=2, kw_only=True)  # how far yes may move, in Δ: 2, or 1 for `monotone` queries
    use = "for many questions of which few have a large answer"

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", checks.positive("eps", self.eps))
        object.__setattr__(self, "threshold", checks.whole("threshold", self.threshold, -(2**62), 2**62))
        object.__setattr__(self, "count", checks.whole("count", self.count, 1))
        object.__setattr__(self, "moves", checks.whole("moves", self.moves, 1, 2))
        if self.moves == 1 and self.distance.relation in (Relation.ReplaceOne, Relation.Replace):
            raise InvalidParameter(
                "queries are not monotone when one person replaces another: some go up and some go down.\n"
                f"  found:  a sensitivity about {self.distance.relation.value}\n"
                "  do:     use the general form, or the sensitivity about add/remove"
            )
        assert self.laws  # refuses what cannot be drawn

    @classmethod
    def monotone(
        cls, eps: float, threshold: int, count: int = 1, sensitivity: Sensitivity | SupportsFloat = 1
    ) -> "AboveThreshold":
        """For queries of which adding a person lowers none, or raises none, as counts: half the query noise."""
        return cls(eps, threshold, count, sensitivity, moves=1)

    @cached_property
    def distance(self) -> Sensitivity:
        return score_sensitivity(self.sensitivity)

    @cached_property
    def laws(self) -> tuple[DiscreteLaplace, DiscreteLaplace]:
        """The noise of the threshold and of the queries. ε₁ is ε/(1 + (2c)^{2/3}) nearly, and ε₂ exactly the rest."""
        whole, size = Fraction(self.eps), Fraction(self.distance.linf)
        first = whole * Fraction(1 / (1 + (self.moves * self.count) ** (2 / 3)))
        return DiscreteLaplace(size / first), DiscreteLaplace(self.moves * self.count * size / (whole - first))

    @cached_property
    def noise(self) -> Sampler:
        """The threshold's noise."""
        return Sampler(self.laws[0], source=self.source)

    @cached_property
    def pool(self) -> Pool:
        """The queries' noise."""
        return Pool(Sampler(self.laws[1], source=self.source))

    def ready(self, count: int) -> None:
        """Draw the noise of so many queries ahead."""
        self.pool.ready(count)

    def begin(self) -> "Watch":
        """A session that answers queries one by one; each may depend on earlier answers."""
        return Watch(self)

    def release(self, value: ArrayLike) -> list[bool]:
        """The answers to a row of queries, up to the last that is paid for."""
        row = read_numbers(value)
        if row.ndim != 1:
            raise InvalidParameter(
                f"the answers to queries must be a row.\n  found:  an array of shape {row.shape}\n"
                "  do:     give one dimension"
            )
        exact, watch, found = [read_stream_value(answer) for answer in row], self.begin(), []
        for answer in exact:
            if not watch.left:
                break
            found.append(watch.above(answer))
        return found

    def loss(self) -> PureLoss:
        """Pure ε, for the whole stream."""
        return PureLoss(self.eps, relation=self.distance.relation)

    def error(self, confidence: float = 0.95, *, queries: int) -> float:
        """With at least this probability no answer to so many queries is wrong, those nearer to the threshold left out.

        The least such number, for queries that do not depend on answers to nearer ones; the others see below.
        Proof. Let all lie g = t + 1 or more away; further away is right more often. Given ρ = x, "no" at T − g is right
        with probability a = P(ν < x + g), "yes" at T + g with b = P(ν ≥ x − g). While all is right, answers are known
        in advance, so that looking at them is no help; and the c-th "yes" is the last. So the worst queries are n − j
        low ones, then j ≤ c high ones: all are right with probability E[a^{n−j}b^j], and the worst j is found
        (`Contest`): exactly up to a scale of ρ of 2047, beyond it t is at most scale/900 above. Nearer queries that are
        fixed in advance only use up the count. Those who choose queries in the light of answers to nearer ones learn
        about ρ; even if they knew it, all would be right with probability E[min(aⁿ, a^{n−c}b^c)] ≥ E[aⁿb^c] at least:
        for them, give queries + count instead of queries.

        Theorem: low queries first, then high ones, are the worst case of above-threshold [the proof above]
        """
        n, miss = checks.whole("queries", queries, 1, MOST_QUERIES), 1 - below_one("confidence", confidence)
        contest = Contest(*self.laws, miss)
        return round_up(least_gap(contest, lambda gap: contest.missed_most(gap, n, self.count)) - 1)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        one, monotone = cls(1.0, 0), cls(1.0, 0, 2, moves=1)
        crossing = (Neighbours([0] * 5 + [1], [1] * 5 + [0]), Neighbours([0, 0], [-1, 1]))
        rising = (Neighbours([0] * 4, [1] * 4), Neighbours([1, 1, 0, 0], [0, 0, -1, -1]))
        return (
            Example(one, crossing, STREAM, step=Fraction(1)),
            Example(monotone, rising, STREAM, step=Fraction(1)),
        )


class Watch(Session):
    """A session of `AboveThreshold`: a noisy threshold, and how often it may still say yes."""

    def __init__(self, mechanism: AboveThreshold) -> None:
        super().__init__()
        self._mechanism, self._left = mechanism, mechanism.count
        self._level = mechanism.threshold + mechanism.noise.one()
        mechanism.ready(1)

    def __repr__(self) -> str:
        return f"Watch({self._mechanism}, left={self._left})"

    @property
    def left(self) -> int:
        """How often it may still say yes."""
        return self._left

    def above(self, answer: int) -> bool:
        """Is the noisy answer to the next query at least the noisy threshold?"""
        exact = read_stream_value(answer)
        with self.exclusive():
            if not self._left:
                raise Exhausted(
                    f"this watch has said yes {self._mechanism.count} times, which is what was paid for.\n"
                    "  do:     begin a new one and pay for it, or ask for a larger count at once"
                )
            found = self._mechanism.pool.reaches(self._level, exact)
            self._left -= found
            self._mechanism.ready(1)  # the next draw, before its query is run
            return found
