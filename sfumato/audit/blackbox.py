"""The auditor who sees only outputs: learn what to look at, choose one event, and certify it on runs held back."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato import checks
from sfumato.audit.certify import Counts, Hunch, lower_bound
from sfumato.audit.features import Codes, Feature, Flags, Split, bank
from sfumato.audit.outputs import Floats, Sides, columns, continued, distinct_inputs, runs
from sfumato.audit.remarks import remarks
from sfumato.audit.result import Audit
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.views.profile import most_leak, top_of

LEARN, CHOOSE = 0.2, 0.25  # shares of the runs; the rest certifies
FEWEST, MOST = 64, 2**22
FIRST = 512  # runs on each side before they are doubled
CAUTION = 0.5  # standard deviations taken off for each doubling of the runs, when events are compared ...
LEAST = 0.5  # ... but for the first few: the luckiest of thousands should not win
POINTS = 9  # places of a profile at which a claim may be attacked
FINEST, COARSEST = 1e-4, 0.008  # steps of the ladder of claims
METHOD = "bets on held-out runs"


@dataclass(frozen=True)
class Claim:
    """P₀(E) ≤ e^ε·P₁(E) + δ for all events E, and the other way round too unless `one_way`."""

    epsilon: float
    delta: float
    one_way: bool = False


@dataclass(frozen=True)
class Choice:
    """The event with which to attack a claim: codes of one feature, more likely on side `likelier`."""

    value: float
    claim: Claim
    feature: Feature
    keep: Flags
    likelier: int
    hunch: Hunch


def audit(
    mechanism: object,
    d0: object,
    d1: object,
    epsilon: float = 1.0,
    delta: float = 0.0,
    samples: int = 65536,
    confidence: float = 0.999,
    *,
    loss: PrivacyLoss | None = None,
) -> Audit:
    """A lower bound on the ε of a mechanism at δ, certified from `samples` runs on each of two neighbouring data sets.

    The mechanism is a function from data to an output of any kind: numbers, arrays, texts, tables, None; an exception
    is an output, too. It may also be an object with a method `release`. If it has a method `many(data, n)`, that is
    asked for n independent outputs at once. With `loss=` in place of ε and δ the whole profile is the claim: it is
    attacked at the ε that looks weakest.

    One fifth of the runs shapes the features, one quarter chooses event, direction and place, and the rest is counted
    once. If runs are independent, a mechanism that keeps its promise is reported with probability ≤ 1 − confidence.

    Theorem: (ε, δ)-DP bounds every event, P₀(E) ≤ e^ε·P₁(E) + δ [Dwork & Roth 2014, Def. 2.4]
    Theorem: one event fixed in advance needs no correction for those not chosen [Cox 1975, data splitting]

    >>> import sfumato as sf
    >>> found = sf.audit.audit(lambda data: len(data), [1, 2], [1, 2, 3], epsilon=1.0, samples=1000)
    >>> print(found)
    VIOLATED: the claim ε = 1 is refuted
      certified  ε ≥ 4.368, with confidence 0.999
      ...
    """
    claims = claims_of(loss, epsilon, delta, samples)
    count, sure = sizes(samples, confidence)
    distinct_inputs(d0, d1)
    sides = runs(mechanism, (d0, d1), count)
    return judged(sides, Split(int(LEARN * count), int((LEARN + CHOOSE) * count)), claims, sure, 1 - sure)


def audit_until(
    mechanism: object,
    d0: object,
    d1: object,
    epsilon: float = 1.0,
    delta: float = 0.0,
    samples: int = 65536,
    confidence: float = 0.999,
    *,
    loss: PrivacyLoss | None = None,
) -> Audit:
    """The same with as few runs as it takes: they are doubled until the claim is refuted, or `samples` are spent.

    All runs of earlier stages choose the event, and fresh ones, as many again, certify it. Stage k may err with
    probability α/k(k+1); these sum to less than α = 1 − confidence, so one may stop whenever one likes. The best bound
    of all stages is reported.

    Theorem: bounds that miss with α/k(k+1) at stage k all hold with 1 − α [Bonferroni; Darling & Robbins 1967]
    """
    claims = claims_of(loss, epsilon, delta, samples)
    most, sure = sizes(samples, confidence)
    distinct_inputs(d0, d1)
    done, stage = min(FIRST, most), 1
    sides = runs(mechanism, (d0, d1), done)
    at = Split(int(LEARN * done), int((LEARN + CHOOSE) * done))
    best_yet = judged(sides, at, claims, sure, (1 - sure) / 2)
    while not best_yet.violated and done < most:
        at, done, stage = Split(done // 2, done), min(2 * done, most), stage + 1
        sides = continued(sides, runs(mechanism, (d0, d1), done - at.known))
        found = judged(sides, at, claims, sure, (1 - sure) / (stage * (stage + 1)))
        best_yet = found if found.margin > best_yet.margin else replace(best_yet, samples=done)
    return best_yet


def sizes(samples: int, confidence: float) -> tuple[int, float]:
    """The number of runs and the confidence, if they make sense."""
    count = checks.whole("samples", samples, FEWEST, MOST)
    return count, checks.number(
        "confidence", confidence, 0.5, 1 - 1e-12, allowed="a number from 0.5 to below 1, like 0.999"
    )


def judged(sides: Sides, at: Split, claims: Sequence[Claim], sure: float, alpha: float) -> Audit:
    """One event, chosen by the known runs and certified by the others: its bound is too high with chance ≤ alpha."""
    count = len(sides[0])
    held = count - at.known
    with np.errstate(all="ignore"):  # outputs may be as large as they like
        found = columns(sides, at.known)
        choice = best(bank(*found, at), claims, at.learn, at.known)
        if choice is None:
            words, claim, seen, likelier, certified = "none worth trying", claims[0], (0, 0), 0, 0.0
        else:
            words, claim, likelier = choice.feature.words(choice.keep), choice.claim, choice.likelier
            first, second = (int(np.count_nonzero(choice.keep[side])) for side in choice.feature.held())
            seen = (first, second)
            counts = Counts(seen[likelier], seen[1 - likelier], held)
            certified = lower_bound(counts, choice.hunch, claim.delta, alpha)
    return Audit(
        Bound(certified, math.inf, METHOD, "lower"),
        claim.delta,
        claim.epsilon,
        sure,
        count,
        words,
        f"d{likelier}",
        seen,
        held,
        remarks(sides, found, claim.epsilon, claim.delta, math.log(held / math.log(1 / alpha))),
    )


def claims_of(loss: PrivacyLoss | None, epsilon: float, delta: float, samples: int) -> list[Claim]:
    """(ε, δ) itself, or several points of a loss's profile, δ rounded up."""
    if loss is None:
        return [Claim(checks.non_negative("epsilon", epsilon), checks.probability("delta", delta))]
    if not isinstance(loss, PrivacyLoss):
        raise InvalidParameter(
            f"loss must be a privacy loss.\n  found:  a {type(loss).__name__}\n"
            "  do:     give what mechanism.loss(…) returns, or epsilon= and delta="
        )
    if (epsilon, delta) != (1.0, 0.0):
        raise InvalidParameter(
            "a claim is either a loss or (epsilon, delta).\n  found:  both\n  do:     leave out epsilon and delta"
        )
    leak = most_leak(loss)
    far = math.log(max(samples, 2))  # what is rarer than 1/samples is not seen anyway
    end = min(loss.epsilon(min(1.0, leak + 1 / max(samples, 2)), tolerance=1e-3).upper, far)
    eps = np.union1d(np.linspace(0.0, end, POINTS), [min(top_of(loss), far)])
    upper = loss.delta(eps, tolerance=1e-3).upper
    one_way = loss.relation.one_way
    points = [Claim(float(e), float(d), one_way) for e, d in zip(eps, upper, strict=True) if d < 1]
    return points or [Claim(far, 1.0, one_way)]  # a loss that promises nothing cannot be refuted


def best(features: Iterable[Feature], claims: Sequence[Claim], learn: int, known: int) -> Choice | None:
    """The most promising attack on any of the claims, judged by the first `known` runs."""
    found: Choice | None = None
    for feature in features:
        early = tallies(feature.codes[:, :learn], feature.size)
        late = tallies(feature.codes[:, learn:known], feature.size)
        for family in families(feature, early, late, learn, known):
            for claim, likelier in attacks(claims):
                k, m = family.counts[likelier], family.counts[1 - likelier]
                values, spread = promise(k, m, family.runs, claim, len(claims) > 1)
                at = int(np.argmax(values))
                if values[at] > (found.value if found else -math.inf):
                    hunch = guess(int(k[at]), int(m[at]), family.runs, float(spread[at]))
                    keep = rounded_off(feature, family.codes(at), (early + late).sum(axis=0) > 0)
                    found = Choice(float(values[at]), claim, feature, keep, likelier, hunch)
    return found


def guess(k: int, m: int, runs: int, spread: float) -> Hunch:
    """The chances of an event that was chosen because they look good; one that was never seen on the other side may
    well be seen there twice in as many runs, and a bet that all is lost with would be a pity."""
    p, q = (k + 0.5) / (runs + 1), (m + 2) / (runs + 2)
    return Hunch(p, q if q < p else (m + 0.5) / (runs + 1), min(max(spread / 25, FINEST), COARSEST))


@dataclass(frozen=True)
class Family:
    """Events to choose from: how often each happened on each side in so many runs, and the codes it consists of."""

    counts: NDArray[np.int64]
    runs: int
    codes: Callable[[int], NDArray[np.intp]]


def families(
    feature: Feature, early: NDArray[np.int64], late: NDArray[np.int64], learn: int, known: int
) -> Iterator[Family]:
    """Single codes, both tails, and unions by likelihood ratio.

    What was learned from the early runs looks better on them than it is, and is judged by the late ones only.
    """
    every = np.arange(feature.size)
    counts, runs = (early + late, known) if feature.fresh else (late, known - learn)
    yield Family(counts, runs, lambda at: every[at : at + 1])
    if feature.ordered:
        for tail in (every[:-1], every[-2::-1]):  # the last code of an ordered feature is NaN
            yield beginnings(tail, counts, runs)
    by_ratio = np.argsort(np.log(early[0] + 0.5) - np.log(early[1] + 0.5), kind="stable")
    for order in (by_ratio, by_ratio[::-1]):
        yield beginnings(order, late, known - learn)


def beginnings(order: NDArray[np.intp], counts: NDArray[np.int64], runs: int) -> Family:
    """The first code of an order, the first two, and so on."""
    return Family(np.cumsum(counts[:, order], axis=1), runs, lambda at: order[: at + 1])


def attacks(claims: Sequence[Claim]) -> Iterator[tuple[Claim, int]]:
    """Each claim with the sides that may be the likelier one."""
    for claim in claims:
        yield from ((claim, side) for side in ((0,) if claim.one_way else (0, 1)))


def rounded_off(feature: Feature, chosen: NDArray[np.intp], seen: Flags) -> Flags:
    """The chosen codes; where codes have an order, one that was never seen goes with its neighbours if they agree."""
    keep = np.zeros(feature.size, bool)
    keep[chosen] = True
    numbers = np.flatnonzero(seen[:-1])
    if feature.ordered and len(numbers):
        every = np.arange(feature.size - 1)
        right = keep[numbers[np.minimum(np.searchsorted(numbers, every, "left"), len(numbers) - 1)]]
        left = keep[numbers[np.maximum(np.searchsorted(numbers, every, "right") - 1, 0)]]
        keep[:-1] = left & right
    return keep


def tallies(codes: Codes, size: int) -> NDArray[np.int64]:
    """How often each code was seen on each side."""
    return np.stack([np.bincount(side, minlength=size) for side in codes])


def promise(k: Codes, m: Codes, n: int, claim: Claim, relative: bool) -> tuple[Floats, Floats]:
    """How good each event looks, and the standard deviation of its log ratio.

    For one claim: the ε that it will probably certify. For several: by how many standard deviations it beats its own.
    """
    p, q = k / n, (m + 1) / n
    useful = (p > claim.delta) & (k > 0) & ((k < n) | (m < n))
    room = np.where(useful, p - claim.delta, 1.0)
    first, second = np.sqrt(p * (1 - p) / n) / room, np.sqrt(np.maximum(1 - q, 0) / (n * q))
    spread = np.sqrt(first**2 + second**2 + 1e-12)
    if relative:
        return np.where(useful, (np.log(room / q) - claim.epsilon) / spread, -math.inf), spread
    # in square roots, counts have the same spread everywhere, down to 0
    caution = CAUTION * math.log2(n) - LEAST
    least = np.sqrt(p) - caution / 2 * first / spread * np.sqrt((1 - p) / n)
    most = np.sqrt(q) + caution / 2 * second / spread * np.sqrt(np.maximum(1 - q, 0) / n)
    useful &= (least > 0) & (least**2 > claim.delta)
    return np.where(useful, np.log(np.where(useful, least**2 - claim.delta, 1.0)) - 2 * np.log(most), -math.inf), spread
