"""White-box audit: compare the stated law, the actual draws and the claimed loss with each other.

Samples alone cannot certify more than ε ≈ log(runs), and need a million runs for an error of 1 %. Knowing the law that
a mechanism states makes stronger tests possible:

- law against claim: the profile of the two stated laws is a deterministic sum. It must not exceed the claim at any ε,
  however large, and at any δ, however small;
- draws against law: the mean of −log p(draw) must be the entropy of the law, which detects a scale that is wrong by 1
  %; every tail is counted as well. Both directions count: too much noise is an error, too;
- draws against claim: for vectors, whose joint profile is not a short sum, the privacy loss L = log p₀/p₁ of actual
  draws. E (1 − e^{ε−L})₊ is δ(ε), and its lower confidence limit must not exceed the claim.

Theorem: δ(ε) = E_P (1 − e^{ε−L})₊, L = log dP/dQ [Balle & Wang 2018, Thm 5; Steinke 2022, Prop. 7]
Theorem: P(mean of n copies of X ≥ m) ≤ e^{−n·sup_t(tm − log E e^{tX})} [Chernoff 1952]
Theorem: a mean of [0, 1] is above m̂ − √(2v̂·l/n) − 7l/3(n−1), l = log 2/α, with 1 − α [Maurer & Pontil 2009, Thm 4]
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import checks
from sfumato.audit.certify import clopper_pearson
from sfumato.audit.outputs import require_different_data
from sfumato.audit.stated_laws import Floats, StatedLaw, stated_law
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.views.profile import top_of

SLACK = 1e-9  # relative: more than the rounding error of sums of doubles
TINY = 1e-14
PLACES = 64  # ε at which profiles are compared
SLOPES = np.concatenate(
    [np.geomspace(1e-4, 0.5, 40), -np.geomspace(1e-4, 2.0, 40)]
)  # each gives a valid Chernoff bound


class NoStatedLaw(InvalidParameter):
    """No law is written down for this mechanism on these inputs."""


@dataclass(frozen=True)
class WhiteBox:
    """The result of a white-box audit. `problems` is empty if law, draws and claim agree."""

    problems: tuple[str, ...]
    worst: float  # the largest ratio of stated to claimed δ(ε); 1 if the claim is tight
    samples: int
    confidence: float

    @property
    def violated(self) -> bool:
        """Is there any disagreement?"""
        return bool(self.problems)

    @property
    def verdict(self) -> str:
        """The result in one line."""
        if self.problems:
            return f"VIOLATED: {self.problems[0]}"
        share = f" (stated δ up to {self.worst:.3f} of claimed)" if self.worst else ""
        return f"no violation found: law, {self.samples:,} draws and claim agree{share}"

    def __str__(self) -> str:
        return "\n".join([self.verdict, *(f"  and: {problem}" for problem in self.problems[1:])])

    def to_json(self) -> str:
        """The result as JSON."""
        data = {
            "violated": self.violated,
            "problems": list(self.problems),
            "worst": self.worst,
            "samples": self.samples,
            "confidence": self.confidence,
        }
        return json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def white_box(
    mechanism: Any, d0: object, d1: object, loss: PrivacyLoss, samples: int = 1 << 20, confidence: float = 0.999999
) -> WhiteBox:
    """Compare law, draws and claimed loss on two inputs: numbers on the lattice, vectors of them, or scores.

    A correct mechanism of sfumato is reported with probability at most 1 − confidence.

    >>> import sfumato as sf
    >>> noise = sf.Gaussian(1.0)
    >>> print(sf.audit.white_box(noise, 0, 1, noise.loss(0.99), samples=1000).verdict)
    VIOLATED: the stated laws have δ = 0.383 at ε = 0; claimed: 0.379
    """
    count = checks.whole("samples", samples, 100, 1 << 24)
    alpha = 1 - checks.number("confidence", confidence, 0.5, 1 - 1e-12, allowed="a number from 0.5 to below 1")
    if not isinstance(loss, PrivacyLoss):
        raise InvalidParameter(
            f"loss must be a privacy loss.\n  found:  a {type(loss).__name__}\n"
            "  do:     give what mechanism.loss(…) returns"
        )
    require_different_data(d0, d1)
    laws = laws_by_coordinate(mechanism, d0, d1)
    places = np.linspace(0.0, min(top_of(loss), 60.0), PLACES)
    claimed = loss.delta(places, tolerance=1e-3).upper
    problems: list[str] = []
    moving = [pair for pair in laws if not are_equal(*pair)]
    worst = 0.0
    if len(moving) == 1:
        worst, words = compare_profiles(moving[0], places, claimed, one_way=loss.relation.one_way)
        problems += words
    draws = [draw_outputs(mechanism, value, count) for value in (d0, d1)]
    for j, pair in enumerate(laws):
        for side in (0, 1):
            problems += check_fit(pair[side], draws[side][:, j], alpha / (4 * len(laws)))
    if len(moving) > 1 and not problems:
        problems += check_losses(laws, draws[0], places, claimed, alpha / 2)
    return WhiteBox(tuple(dict.fromkeys(problems)), worst, count, 1 - alpha)


def laws_by_coordinate(mechanism: Any, d0: object, d1: object) -> list[tuple[StatedLaw, StatedLaw]]:
    """The stated laws on both inputs; for vectors, one pair of laws for each coordinate."""
    alone = stated_law(mechanism, d0), stated_law(mechanism, d1)
    if alone[0] is not None and alone[1] is not None:
        return [(alone[0], alone[1])]
    if isinstance(d0, Sequence) and isinstance(d1, Sequence) and len(d0) == len(d1):
        pairs = [(stated_law(mechanism, a), stated_law(mechanism, b)) for a, b in zip(d0, d1, strict=True)]
        known = [(a, b) for a, b in pairs if a is not None and b is not None]
        if len(known) == len(pairs):
            return known
    raise NoStatedLaw(
        "no law is stated for this mechanism on these inputs.\n"
        f"  found:  a {type(mechanism).__name__}\n"
        "  do:     give numbers on its lattice; else use sf.audit.audit(…), or add the law\n"
        "          to sfumato/audit/stated_laws.py"
    )


def draw_outputs(mechanism: Any, value: object, count: int) -> NDArray[np.generic]:
    """Fresh outputs, [run, coordinate]."""
    one = np.asarray(value)
    try:
        outputs = np.asarray(mechanism.release(np.broadcast_to(one, (count, *one.shape)).copy()))
        if outputs.shape != (count, *one.shape):
            raise ValueError
    except Exception:  # it takes one value at a time
        outputs = np.asarray([mechanism.release(value) for _ in range(count)])
    return outputs.reshape(count, -1)


def are_equal(one: StatedLaw, other: StatedLaw) -> bool:
    return one.first == other.first and np.array_equal(one.chances, other.chances)


def align(one: StatedLaw, other: StatedLaw) -> tuple[Floats, Floats]:
    """The probabilities of both laws on the union of their outcomes."""
    first = min(one.first, other.first)
    size = max(law.first + len(law.chances) for law in (one, other)) - first
    both = np.zeros((2, size))
    for row, law in zip(both, (one, other), strict=True):
        row[law.first - first : law.first - first + len(law.chances)] = law.chances
    return both[0], both[1]


def compare_profiles(
    pair: tuple[StatedLaw, StatedLaw], places: Floats, claimed: Floats, one_way: bool
) -> tuple[float, list[str]]:
    """The profile of the stated laws, rounded down, against the claim: the largest ratio, and problems."""
    p, q = align(*pair)
    worst, problems = 0.0, list[str]()
    for a, b in [(p, q)] if one_way else [(p, q), (q, p)]:
        for eps, allowed in zip(places.tolist(), claimed.tolist(), strict=True):
            spent = float(np.maximum(a - math.exp(eps) * b, 0.0).sum()) * (1 - SLACK) - TINY
            worst = max(worst, spent / allowed if allowed > 1e-12 else 0.0)
            if spent > allowed and not problems:
                problems.append(f"the stated laws have δ = {spent:.3g} at ε = {eps:.3g}; claimed: {allowed:.3g}")
    return worst, problems


# ---- draws against the law -------------------------------------------------------------------------------------------


def check_fit(law: StatedLaw, outputs: NDArray[np.generic], alpha: float) -> Iterator[str]:
    """Problems if the outputs do not follow the law; a false alarm has probability at most alpha."""
    places = law.places(outputs)
    missed = int(np.count_nonzero((places < 0) | (law.chances[places] == 0)))
    if missed > len(places) * 1e-12 and missed > 0:
        yield f"{missed:,} of {len(places):,} draws are impossible under the stated law"
        return
    yield from check_entropy(law, places, alpha / 2)
    yield from check_tails(law, places, alpha / 2)


def check_entropy(law: StatedLaw, places: NDArray[np.int64], alpha: float) -> Iterator[str]:
    """The mean of −log p against the entropy, by Chernoff's bound on both sides."""
    p = law.chances[law.chances > 0]
    surprise = -np.log(p)
    n, seen = len(places), float(-np.log(law.chances[places]).mean())
    expected = float(p @ surprise)
    for side, slopes in ((1, SLOPES[SLOPES > 0]), (-1, SLOPES[SLOPES < 0])):
        if side * (seen - expected) <= 0:
            continue
        growth = np.array([math.log(float(np.sum(p * np.exp(t * (surprise - expected))))) for t in slopes.tolist()])
        exponent = float(np.max(slopes * (seen - expected) - growth))
        if n * exponent > math.log(2 / alpha) * (1 + SLACK):
            more = "more" if side > 0 else "less"
            yield f"the noise is {more} spread than stated: the mean of −log p is {seen:.5f}, stated: {expected:.5f}"


def check_tails(law: StatedLaw, places: NDArray[np.int64], alpha: float) -> Iterator[str]:
    """The probabilities of about forty tails, by exact intervals."""
    below = np.cumsum(law.chances)
    cuts = np.unique(np.searchsorted(below, [*(2.0 ** -np.arange(1, 20)), *(1 - 2.0 ** -np.arange(1, 20))]))
    cuts = cuts[cuts < len(below) - 1]
    counts = np.cumsum(np.bincount(places, minlength=len(below)))
    for cut in cuts.tolist():
        low, high = clopper_pearson(int(counts[cut]), len(places), alpha / len(cuts))
        if not low * (1 - SLACK) - TINY <= below[cut] <= high * (1 + SLACK) + TINY:
            seen = counts[cut] / len(places)
            place = law.step * (law.first + cut)
            yield f"a share of {seen:.5f} of the draws is at most {place:g}; stated: {below[cut]:.5f}"
            return


def check_losses(
    laws: Sequence[tuple[StatedLaw, StatedLaw]],
    draws: NDArray[np.generic],
    places: Floats,
    claimed: Floats,
    alpha: float,
) -> list[str]:
    """The privacy losses of actual draws on d0, over all coordinates together, against the claim."""
    total = np.zeros(len(draws))
    for j, (one, other) in enumerate(laws):
        with np.errstate(divide="ignore"):
            here, there = (np.log(law.chances[law.places(draws[:, j])]) for law in (one, other))
        outside = other.places(draws[:, j]) < 0
        total += np.where(outside, np.inf, here - there)
    n, log_term = len(total), math.log(2 * len(places) / alpha)
    for eps, allowed in zip(places.tolist(), claimed.tolist(), strict=True):
        gain = np.maximum(-np.expm1(eps - total), 0.0)
        spare = math.sqrt(2 * float(gain.var(ddof=1)) * log_term / n) + 7 * log_term / (3 * (n - 1))
        if (lower := float(gain.mean()) - spare) > allowed:
            return [f"draws have δ ≥ {lower:.3g} at ε = {eps:.3g}; claimed: {allowed:.3g}"]
    return []
