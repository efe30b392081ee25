"""Black-box audit: learn features of the outputs, choose one event, and certify it on held-out runs."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato import checks
from sfumato.audit.blackbox_result import Audit
from sfumato.audit.certify import Alternative, Counts, lower_bound
from sfumato.audit.features import Codes, Feature, Flags, Split, all_features
from sfumato.audit.outputs import (
    Floats,
    Labels,
    Numbers,
    Raised,
    Sides,
    append_runs,
    output_columns,
    require_different_data,
    run_many,
)
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.views.profile import most_leak, top_of

LEARN, CHOOSE = 0.2, 0.25  # shares of the runs; the rest certify
FEWEST, MOST = 64, 2**22
FIRST = 512  # runs on each side before they are doubled
# When events are compared, each loses CAUTION standard deviations for each doubling of the runs, less LEAST in all:
# otherwise the luckiest of thousands of events would win.
CAUTION, LEAST = 0.5, 0.5
POINTS = 9  # points of a profile at which a claim may be attacked
FINEST, COARSEST = 1e-4, 0.008  # steps of the ladder of claims
METHOD = "bets on held-out runs"


@dataclass(frozen=True)
class Claim:
    """The claim P₀(E) ≤ e^ε·P₁(E) + δ for all events E; unless `one_way`, also with P₀ and P₁ exchanged."""

    epsilon: float
    delta: float
    one_way: bool = False


@dataclass(frozen=True)
class ChosenEvent:
    """The event that attacks a claim: a set of codes of one feature, more likely on side `likelier`."""

    value: float
    claim: Claim
    feature: Feature
    keep: Flags
    likelier: int
    alternative: Alternative


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

    The mechanism is a function from data to an output of any kind: numbers, arrays, texts, tables, None. An exception
    counts as an output. It may also be an object with a method `release`. If it has a method `many(data, n)`, that
    method is called for n independent outputs at once. With `loss=` instead of ε and δ the claim is the whole profile,
    and it is attacked at the ε that looks weakest.

    One fifth of the runs shapes the features, one quarter chooses the event, the direction and the ε, and the event is
    counted once in the rest. If runs are independent, a correct mechanism is reported with probability at most
    1 − confidence.

    Theorem: (ε, δ)-DP bounds every event, P₀(E) ≤ e^ε·P₁(E) + δ [Dwork & Roth 2014, Def. 2.4]
    Theorem: one event fixed in advance needs no correction for those not chosen [Cox 1975, data splitting]

    >>> import sfumato as sf
    >>> found = sf.audit.audit(lambda data: len(data), [1, 2], [1, 2, 3], epsilon=1.0, samples=1000)
    >>> print(found)
    VIOLATED: the claim ε = 1 is refuted
      certified  ε ≥ 4.3679, with confidence 0.999
      ...
    """
    claims = attacked_claims(loss, epsilon, delta, samples)
    count, sure = checked_sizes(samples, confidence)
    require_different_data(d0, d1)
    sides = run_many(mechanism, (d0, d1), count)
    return audit_runs(sides, Split(int(LEARN * count), int((LEARN + CHOOSE) * count)), claims, sure, 1 - sure)


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
    """`audit` with as few runs as needed: they are doubled until the claim is refuted or `samples` are used up.

    At each stage all earlier runs choose the event, and as many fresh runs certify it. Stage k may err with probability
    α/k(k+1). These sum to less than α = 1 − confidence, so stopping at any stage is valid. The best bound of all stages
    is reported.

    Theorem: bounds that miss with α/k(k+1) at stage k all hold with 1 − α [Bonferroni; Darling & Robbins 1967]
    """
    claims = attacked_claims(loss, epsilon, delta, samples)
    most, sure = checked_sizes(samples, confidence)
    require_different_data(d0, d1)
    done, stage = min(FIRST, most), 1
    sides = run_many(mechanism, (d0, d1), done)
    at = Split(int(LEARN * done), int((LEARN + CHOOSE) * done))
    best = audit_runs(sides, at, claims, sure, (1 - sure) / 2)
    while not best.violated and done < most:
        at, done, stage = Split(done // 2, done), min(2 * done, most), stage + 1
        sides = append_runs(sides, run_many(mechanism, (d0, d1), done - at.known))
        latest = audit_runs(sides, at, claims, sure, (1 - sure) / (stage * (stage + 1)))
        best = latest if latest.margin > best.margin else replace(best, samples=done)
    return best


def checked_sizes(samples: int, confidence: float) -> tuple[int, float]:
    """The number of runs and the confidence; refused if out of range."""
    count = checks.whole("samples", samples, FEWEST, MOST)
    return count, checks.number(
        "confidence", confidence, 0.5, 1 - 1e-12, allowed="a number from 0.5 to below 1, like 0.999"
    )


def audit_runs(sides: Sides, at: Split, claims: Sequence[Claim], sure: float, alpha: float) -> Audit:
    """Choose one event by the known runs and certify it by the others; the bound is too high with chance ≤ alpha."""
    count = len(sides[0])
    held_out = count - at.known
    with np.errstate(all="ignore"):  # outputs may be arbitrarily large
        numbers, labels = output_columns(sides, at.known)
        choice = choose_event(all_features(numbers, labels, at), claims, at.learn, at.known)
        if choice is None:
            words, claim, seen, likelier, certified = "none worth trying", claims[0], (0, 0), 0, 0.0
        else:
            words, claim, likelier = choice.feature.describe(choice.keep), choice.claim, choice.likelier
            first, second = (int(np.count_nonzero(choice.keep[side])) for side in choice.feature.held_out())
            seen = (first, second)
            counts = Counts(seen[likelier], seen[1 - likelier], held_out)
            certified = lower_bound(counts, choice.alternative, claim.delta, alpha)
    return Audit(
        Bound(certified, math.inf, METHOD, "lower"),
        claim.delta,
        claim.epsilon,
        sure,
        count,
        words,
        f"d{likelier}",
        seen,
        held_out,
        (
            *remarks_on_runs(sides, numbers, labels),
            *remarks_on_claim(claim.epsilon, claim.delta, math.log(held_out / math.log(1 / alpha))),
        ),
    )


def attacked_claims(loss: PrivacyLoss | None, epsilon: float, delta: float, samples: int) -> list[Claim]:
    """The claim (ε, δ) itself, or several points of a loss's profile with δ rounded up."""
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
    far = math.log(max(samples, 2))  # events rarer than 1/samples are not observed anyway
    end = min(loss.epsilon(min(1.0, leak + 1 / max(samples, 2)), tolerance=1e-3).upper, far)
    eps = np.union1d(np.linspace(0.0, end, POINTS), [min(top_of(loss), far)])
    upper = loss.delta(eps, tolerance=1e-3).upper
    one_way = loss.relation.one_way
    points = [Claim(float(e), float(d), one_way) for e, d in zip(eps, upper, strict=True) if d < 1]
    return points or [Claim(far, 1.0, one_way)]  # a vacuous loss cannot be refuted


def choose_event(features: Iterable[Feature], claims: Sequence[Claim], learn: int, known: int) -> ChosenEvent | None:
    """The most promising attack on any of the claims, judged by the first `known` runs."""
    best: ChosenEvent | None = None
    for feature in features:
        early = count_codes(feature.codes[:, :learn], feature.size)
        late = count_codes(feature.codes[:, learn:known], feature.size)
        for family in event_families(feature, early, late, learn, known):
            for claim, likelier in directions(claims):
                k, m = family.counts[likelier], family.counts[1 - likelier]
                values, spread = expected_gain(k, m, family.runs, claim, len(claims) > 1)
                at = int(np.argmax(values))
                if values[at] > (best.value if best else -math.inf):
                    alternative = alternative_from(int(k[at]), int(m[at]), family.runs, float(spread[at]))
                    keep = fill_unseen_codes(feature, family.codes(at), (early + late).sum(axis=0) > 0)
                    best = ChosenEvent(float(values[at]), claim, feature, keep, likelier, alternative)
    return best


def alternative_from(k: int, m: int, runs: int, spread: float) -> Alternative:
    """The estimated chances of the chosen event, shrunk because it was chosen for looking good.

    q is estimated from m + 2 events: an event that was never seen on the other side may well be seen there twice in as
    many runs, and a bet tuned to q ≈ 0 would then lose everything.
    """
    p, q = (k + 0.5) / (runs + 1), (m + 2) / (runs + 2)
    return Alternative(p, q if q < p else (m + 0.5) / (runs + 1), min(max(spread / 25, FINEST), COARSEST))


@dataclass(frozen=True)
class Family:
    """Candidate events: how often each occurred on each side in `runs` runs, and the codes it consists of."""

    counts: NDArray[np.int64]
    runs: int
    codes: Callable[[int], NDArray[np.intp]]


def event_families(
    feature: Feature, early: NDArray[np.int64], late: NDArray[np.int64], learn: int, known: int
) -> Iterator[Family]:
    """Single codes, both tails, and unions by likelihood ratio.

    Anything learned from the early runs looks too good on them, so it is judged by the late runs only.
    """
    every = np.arange(feature.size)
    counts, runs = (early + late, known) if feature.fresh else (late, known - learn)
    yield Family(counts, runs, lambda at: every[at : at + 1])
    if feature.ordered:
        for tail in (every[:-1], every[-2::-1]):  # the last code of an ordered feature is NaN
            yield prefixes(tail, counts, runs)
    by_ratio = np.argsort(np.log(early[0] + 0.5) - np.log(early[1] + 0.5), kind="stable")
    for order in (by_ratio, by_ratio[::-1]):
        yield prefixes(order, late, known - learn)


def prefixes(order: NDArray[np.intp], counts: NDArray[np.int64], runs: int) -> Family:
    """The unions of the first code of an order, of the first two, and so on."""
    return Family(np.cumsum(counts[:, order], axis=1), runs, lambda at: order[: at + 1])


def directions(claims: Sequence[Claim]) -> Iterator[tuple[Claim, int]]:
    """Each claim with each side on which the event may be more likely."""
    for claim in claims:
        yield from ((claim, side) for side in ((0,) if claim.one_way else (0, 1)))


def fill_unseen_codes(feature: Feature, chosen: NDArray[np.intp], seen: Flags) -> Flags:
    """The chosen codes; an ordered code that was never seen is included if both its nearest seen codes are."""
    keep = np.zeros(feature.size, bool)
    keep[chosen] = True
    numbers = np.flatnonzero(seen[:-1])
    if feature.ordered and len(numbers):
        every = np.arange(feature.size - 1)
        right = keep[numbers[np.minimum(np.searchsorted(numbers, every, "left"), len(numbers) - 1)]]
        left = keep[numbers[np.maximum(np.searchsorted(numbers, every, "right") - 1, 0)]]
        keep[:-1] = left & right
    return keep


def count_codes(codes: Codes, size: int) -> NDArray[np.int64]:
    """How often each code occurred on each side."""
    return np.stack([np.bincount(side, minlength=size) for side in codes])


def expected_gain(k: Codes, m: Codes, n: int, claim: Claim, relative: bool) -> tuple[Floats, Floats]:
    """How good each event looks, and the standard deviation of its log ratio.

    For one claim: the ε that it will probably certify. For several (`relative`): by how many standard deviations it
    exceeds the ε of its claim.
    """
    p, q = k / n, (m + 1) / n
    useful = (p > claim.delta) & (k > 0) & ((k < n) | (m < n))
    room = np.where(useful, p - claim.delta, 1.0)
    first, second = np.sqrt(p * (1 - p) / n) / room, np.sqrt(np.maximum(1 - q, 0) / (n * q))
    spread = np.sqrt(first**2 + second**2 + 1e-12)
    if relative:
        return np.where(useful, (np.log(room / q) - claim.epsilon) / spread, -math.inf), spread
    # square roots stabilise the variance of counts, down to 0
    caution = CAUTION * math.log2(n) - LEAST
    least = np.sqrt(p) - caution / 2 * first / spread * np.sqrt((1 - p) / n)
    most = np.sqrt(q) + caution / 2 * second / spread * np.sqrt(np.maximum(1 - q, 0) / n)
    useful &= (least > 0) & (least**2 > claim.delta)
    return np.where(useful, np.log(np.where(useful, least**2 - claim.delta, 1.0)) - 2 * np.log(most), -math.inf), spread


# ---- remarks ---------------------------------------------------------------------------------------------------------


def remarks_on_runs(sides: Sides, numbers: list[Numbers], labels: list[Labels]) -> Iterator[str]:
    """Remarks about the runs: outputs that are not random, and exceptions."""
    if all(is_constant(column.values[side]) for column in numbers for side in (0, 1)) and all(
        len(set(column.values[side])) == 1 for column in labels for side in (0, 1)
    ):
        same = all(np.array_equal(c.values[0, :1], c.values[1, :1], equal_nan=True) for c in numbers)
        same = same and all(column.values[0][0] == column.values[1][0] for column in labels)
        if same:
            yield "All runs on both data sets gave the same output: perhaps the mechanism does not look at its data."
        else:
            yield "All runs on one data set gave the same output: it is not random, so no ε protects anyone."
    raised = [sum(isinstance(output, Raised) for output in side) for side in sides]
    if any(raised):
        kinds = sorted({output.kind for side in sides for output in side if isinstance(output, Raised)})
        yield (
            f"{raised[0]:,} runs on d0 and {raised[1]:,} on d1 ended in an exception ({', '.join(kinds[:3])}). "
            "An exception counts as an output: whoever asks can see it."
        )


def is_constant(values: Floats) -> bool:
    """Are all values the same double, bit for bit (NaN included)?"""
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    return bool(np.all(bits == bits[0]))


def remarks_on_claim(epsilon: float, delta: float, ceiling: float) -> Iterator[str]:
    """Remarks about the claim: one that any difference refutes, or one that so few runs cannot refute."""
    if epsilon == 0 and delta == 0:
        yield "ε = 0 claims that outputs do not depend on the data at all: any difference refutes it."
    if delta < 1 and epsilon >= ceiling:
        yield (
            f"So many runs cannot certify more than ε = {ceiling:.2g}, whatever is wrong: use replay or the white box "
            "for a claim this large."
        )
