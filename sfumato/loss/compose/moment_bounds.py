"""Composition of losses too large or too many for any lattice: bounds from moments and single steps, from both sides.

Log-moments add up: K(s) = Σ k·log E_P[e^{sL}]. With c(s) = s^s/(1+s)^{1+s}, the largest e^{−sx}(1 − e^{−x})₊,
    δ(ε) ≤ c(s)·e^{K(s) − sε}  for s > 0,     1 − δ(ε) = ∫min(p, e^ε q) ≤ e^{sε + K(−s)}  for 0 ≤ s ≤ 1,
the latter by min(a, b) ≤ a^{1−s}b^s. A step alone tells no more than all of them, and steps whose losses add up to at
most T shift the profile of the remaining one by at most T. Relative to ε all this is sharp when losses are large.

Theorem: Chernoff's bounds on both errors of a test between products [Chernoff 1952, Thm 1]
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, reduce

import numpy as np

from sfumato.loss.base import TOLERANCE, PrivacyLoss
from sfumato.loss.compose.discretise import ends
from sfumato.loss.compose.lattice import FAR
from sfumato.loss.compose.lattice_plan import LEFT_OUT, LIFTED
from sfumato.loss.compose.transforms.base import Refused
from sfumato.loss.compose.transforms.sampled_gaussian import SampledGaussianTransform
from sfumato.loss.numeric import TINY, ULP, Enclosure, Floats, floats, log_peaks

Terms = tuple[tuple[int, PrivacyLoss], ...]
LONGEST = 1e5  # losses of one step, beyond which a lattice has no points to spare
SHORTEST = 1e-90  # losses so small that the squares of their lattice's step underflow
MOST_TILT = 1e6  # of transforms that are asked for moments
WIDEST = 300.0  # step of a lattice of atoms: e^step must stay a float
MOST_STEPS = 10**10  # beyond, roundings add up to more than a lattice or a binomial sum can bear
ORDERS = np.append(2.0 ** np.arange(-40.0, 10.0, 2.0), 2.0 ** np.arange(10.0, 40.0, 4.0))
SHARES = np.append(2.0 ** np.arange(-39.0, 0.0, 2.0), 0.75)


def too_many(terms: Terms) -> bool:
    """More steps than roundings allow?"""
    return sum(count for count, _ in terms) > MOST_STEPS


def too_large(terms: Terms) -> bool:
    """Are the losses of one step too large for a lattice, those of all too small, or their sum beyond what it is
    asked for?
    """
    total = math.fsum(count for count, _ in terms)
    if any((atoms := loss.atoms()) is not None and atoms[0] > WIDEST for _, loss in terms):
        return True
    # the same ends as the lattice's first look asks for: they are remembered
    reach = [sum(ends(loss, LEFT_OUT / total, LIFTED / total)) for _, loss in terms]
    if max(reach) > LONGEST or max(reach) < SHORTEST:
        return True
    if math.fsum(count * end for (count, _), end in zip(terms, reach, strict=True)) <= FAR:
        return False
    # D½ = −2·K(−½) is less than the mean; it is at most ρ/2, which is known at once
    if math.fsum(count * loss.rho_ceiling() for count, loss in terms) <= FAR:
        return False
    return math.fsum(-2 * count * loss.log_moment(-0.5).upper for count, loss in terms) > FAR


@dataclass(frozen=True)
class Moments:
    """The composition of `terms` (count, loss), looked at in the forward direction."""

    terms: Terms

    method = "moments"

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        """δ between the best of the bounds."""
        above, below = table(self.terms)
        fits = exponents(above, log_peaks(ORDERS), -ORDERS, eps)
        misses = exponents(below, 0 * SHARES, SHARES, eps)
        plain = step_by_step(self.terms, eps)
        low = np.maximum(plain.lower, np.abs(np.expm1(np.minimum(misses, 0.0))) * (1 - 4 * ULP))
        high = np.minimum(plain.upper, np.exp(np.minimum(fits, 0.0)) * (1 + 4 * ULP) + TINY)
        return Enclosure(np.minimum(low, high), high)

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Callable[[Floats], Enclosure]:
        """As sharp everywhere as it gets."""
        return lambda t: self.forward(t, tolerance)


def step_by_step(terms: Terms, eps: Floats) -> Enclosure:
    """Bounds from the profiles of single steps: δ is at least that of one step, and at most the sum at equal shares
    of ε, or one step at the ε that is left when all others lose most.

    Theorem: epsilons and deltas add up [Dwork & Roth 2014, Thm 3.16]
    """
    steps = math.fsum(count for count, _ in terms)
    low = reduce(np.maximum, (loss.forward(eps).lower for _, loss in terms))
    shares = eps / steps * (1 - 4 * ULP)
    high = sum((count * loss.forward(shares).upper for count, loss in terms), start=0 * eps) * (1 + 1e-14)
    for i, (count, loss) in enumerate(terms):
        others = terms[:i] + terms[i + 1 :]
        top = math.fsum(k * other.supremum()[0] for k, other in others) * (1 + 4 * ULP)
        if count == 1 and math.isfinite(top):
            leak = min(math.fsum(k * other.leak()[0] for k, other in others), 1.0)
            left = eps * (1 - ULP) - top
            alone = (loss.forward(np.maximum(left * (1 - ULP), 0.0)).upper + leak) * (1 + 8 * ULP)
            high = np.where(left >= 0, np.minimum(high, alone), high)
    return Enclosure(low, np.minimum(high, 1.0))


@lru_cache(maxsize=64)
def table(terms: Terms) -> tuple[Floats, Floats]:
    """K(s) at the orders and K(−s) at the shares, from above."""
    sides = [
        [math.fsum(moment_of_all(count, loss, float(s)) for count, loss in terms) for s in orders]
        for orders in (ORDERS, -SHARES)
    ]
    return floats(sides[0]), floats(sides[1])


def moment_of_all(count: int, loss: PrivacyLoss, s: float) -> float:
    """count·log E_P[e^{sL}] from above, by a transform if there is one: it is as fine as the count asks for.

    For −1 < s < 0 the reversed pair's moment is that of the pair itself at −1 − s: E_Q[e^{−sL}] = E_P[e^{(−1−s)L}].
    """
    transform = loss.transform()
    if isinstance(transform, SampledGaussianTransform):
        mirrored = s < 0 and transform.sign < 0
        if not mirrored or -1 - (-1 - s) == s:
            whole = (transform.reverse if mirrored else transform).times(count)
            try:
                view = whole.tilt(-1 - s if mirrored else s)
                return view.log_moment + view.slip
            except Refused:
                pass
    elif transform is not None and 0 < s <= MOST_TILT and loss.leak()[0] == 0:  # a transform knows nothing of leaks
        try:
            view = transform.times(count).tilt(s)
            return view.log_moment + view.slip
        except Refused:
            pass
    return count * loss.log_moment(s).upper


def exponents(moments: Floats, constants: Floats, slopes: Floats, eps: Floats) -> Floats:
    """For each ε the least of moment + constant + slope·ε, rounded up; nothing is known where a moment is infinite."""
    known = moments < math.inf
    m, c, s = (column[known][:, None] for column in (moments, constants, slopes))
    if not known.any():
        return np.full_like(eps, math.inf)
    with np.errstate(invalid="ignore"):  # −∞ as a moment: certainty, whatever ε is
        powers = m + c + s * eps + 8 * ULP * (np.where(m > -math.inf, np.abs(m), 0.0) + np.abs(s) * eps + 1)
    least: Floats = powers.min(axis=0)
    return least
