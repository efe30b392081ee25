"""Several people whose batches are drawn by Poisson sampling, with Gaussian noise: what a group loses to DP-SGD.

Each of k people is in the batch with probability q, independently, so the number J of them there is binomial. Given J
the pair is N(Jμ, 1) against N(0, 1) at worst, and one event, {x > t}, is the best test for all J at once.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato import checks
from sfumato.errors import MixedRelations
from sfumato.loss.base import TOLERANCE, PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.compose.transforms.base import spectral_moment
from sfumato.loss.compose.transforms.sampled_gaussian import (
    SampledGaussianTransform,
    Weights,
    binomial_weights,
    log_mean,
    log_mixture,
)
from sfumato.loss.kinds.gaussian import GaussianLoss, gaussian_profile
from sfumato.loss.kinds.subsampled import dilute
from sfumato.loss.kinds.wrappers import Reversed
from sfumato.loss.numeric import TINY, ULP, Enclosure, Floats, floats, log_ndtr, logsumexp, ndtr
from sfumato.loss.views.divergences import log_moment
from sfumato.sensitivity import Relation

ROOT = math.sqrt(2 * math.pi)
MOST_PEOPLE = 100
STEPS = 200  # of Newton's method: near the end of a backward profile each gains one nat
NOWHERE = 39.0  # deviations of a bell beyond which its mass rounds to zero
LARGE = 1e3  # orders from which on the whole group in the batch decides a moment


@dataclass(frozen=True)
class SampledGaussianGroupLoss(PrivacyLoss):
    """`size` people together, each in a batch with probability `rate`, and Gaussian noise with μ per person.

    P = Σ w_j N(jμ, 1), Q = N(0, 1), w_j = C(k,j)q^j(1−q)^{k−j}. With G = dP/dQ = Σ w_j e^{jμx − j²μ²/2}, which rises,
    forward: P(x > t) − e^ε Q(x > t) at log G(t) = ε;  backward: Q(x < t) − e^ε P(x < t) at log G(t) = −ε.

    Proof. Let A be the people in a batch, B the rest of it: both have the same law with and without the group. Given
    them the outputs are M(B ∪ A) and M(B), for which P_A(E) ≤ r_j(Q(E)) for every event E, j = |A|, where r_j is the
    curve of N(jμ, 1) against N(0, 1): j people one after the other. So P(E) ≤ Σ w_j r_j(Q(E)), by concavity of r_j
    also after the mean over B. {x > t} attains all r_j at once, so this is the curve of the pair above, and a count
    with Gaussian noise has this pair: nothing smaller is true.

    Theorem: groups under Poisson sampling are binomial mixtures [Schuchardt et al. 2024, and the proof above]
    """

    mu: float
    rate: float
    size: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.relation is not Relation.AddRemove:
            raise MixedRelations(f"Poisson sampling is about add/remove.\n  found:  a loss about {self.relation.value}")
        object.__setattr__(self, "mu", checks.number("mu", self.mu, 1e-100, checks.MOST, allowed="a number > 0"))
        object.__setattr__(
            self, "rate", checks.number("rate", self.rate, 1e-200, 1 - ULP / 2, allowed="a rate in (0, 1)")
        )
        object.__setattr__(self, "size", checks.whole("size", self.size, 2, MOST_PEOPLE))

    @cached_property
    def weights(self) -> Weights:
        return binomial_weights(self.size, self.rate)

    @cached_property
    def somebody(self) -> float:
        """1 − w₀, the chance that anybody of the group is in the batch; to 40 units in the last place."""
        return -math.expm1(self.size * math.log1p(-self.rate))

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        known = self.before(eps) < NOWHERE + self.size * self.mu
        x, log_missed = self.threshold(np.where(known, eps, 1.0))
        log_far, large = log_ndtr(-x), eps > 30
        few = (np.expm1(np.minimum(eps, 30.0)) + self.somebody) * ndtr(-x)
        many = np.exp(np.minimum(eps + log_far, 1.0)) * (1 - self.weights.shares[0] * np.exp(-np.maximum(eps, 30.0)))
        far = np.where(large, many, few)  # (e^ε − w₀)·Q(x > t)
        tail, slip = self.tail(x, 1)
        error = slip + ULP * far * (80 + np.where(large, 32 * (eps - log_far), 0.0))
        value = tail - far
        upper = np.where(
            np.isfinite(log_missed),
            value + error + np.exp(np.minimum(eps + log_missed, 1.0)),
            self.diluted_profile(eps),
        )
        low, high = np.maximum(value - error, 0.0) * (1 - 4 * ULP), np.clip(upper * (1 + 4 * ULP), 0.0, 1.0) + TINY
        return Enclosure(np.where(known, low, 0.0), np.minimum(np.where(known, high, TINY), 1.0))

    def diluted_profile(self, eps: Floats) -> Floats:
        """Σ_{j≥1} w_j H_β(N(jμ, 1)‖N(0, 1)), β = 1 + (e^ε − 1)/(1 − w₀): joint convexity says no less, but simply."""
        rate = min(self.somebody * (1 + 64 * ULP), 1.0)

        def given_somebody(beta: Floats) -> Enclosure:
            parts = enumerate(self.weights.shares[1:], 1)
            high = sum((share / rate * gaussian_profile(j * self.mu, beta).upper for j, share in parts), 0 * beta)
            return Enclosure(0 * beta, high * (1 + (64 + 4 * self.size) * ULP))

        return dilute(given_somebody, rate, eps).upper

    def backward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        none, grown = self.weights.shares[0], np.expm1(np.minimum(eps, 700.0))  # beyond, the profile only falls
        factor, slack = self.somebody - none * grown, 64 * ULP * (self.somebody + none * grown)  # 1 − e^ε·w₀
        inside = factor > slack
        x, log_missed = self.threshold(np.where(inside, -np.minimum(eps, 700.0), 0.0))
        tail, slip = self.tail(x, -1)
        alpha = 1 + np.where(inside, grown, 0.0)
        value = factor * ndtr(x) - alpha * tail
        error = alpha * (slip + 16 * ULP * tail + TINY) + (slack + 32 * ULP * np.abs(factor)) * ndtr(x)
        upper = np.minimum(value + error + np.exp(np.minimum(log_missed, 1.0)), factor + slack)
        low = np.where(inside & (eps <= 700), np.maximum(value - error, 0.0) * (1 - 4 * ULP), 0.0)
        high = np.where(
            inside, np.clip(upper * (1 + 4 * ULP), 0.0, 1.0) + TINY, np.where(factor > -slack, 2 * slack, 0.0)
        )
        return Enclosure(np.minimum(low, 1.0), np.minimum(high, 1.0))

    def tail(self, x: Floats, sign: int) -> tuple[Floats, Floats]:
        """P(x > t, somebody is there), or of x < t for the sign −1, and its error at most."""
        total, slip = np.zeros_like(x), np.zeros_like(x)
        for j, share in enumerate(self.weights.shares[1:], 1):
            y = sign * (j * self.mu - x)
            total = total + share * ndtr(y)
            slip = slip + share * np.exp(-y * y / 2) * (np.abs(x) + 2 * j * self.mu)
        return total, ULP * ((32 + self.size) * total + slip)

    def beyond(self, losses: Floats) -> Floats:
        """A point where log G is at least so large: one term of G is."""
        terms = enumerate(self.weights.logs[1:], 1)
        return floats(np.min([(losses - log) / (j * self.mu) + j * self.mu / 2 for j, log in terms], axis=0))

    def before(self, losses: Floats) -> Floats:
        """A point where log G is at most so large, for losses ≥ 0: every e^{jμx − j²μ²/2} is."""
        people = range(1, self.size + 1)
        return floats(np.min([losses / (j * self.mu) + j * self.mu / 2 for j in people], axis=0))

    def threshold(self, losses: Floats) -> tuple[Floats, Floats]:
        """About where log G takes these values, and log ∫ϕ|G/G* − 1| from there to the very place, from above.

        log G is convex, so Newton's method comes down to the place from any point beyond it. With d = |log G − loss|
        and η = d/(μm), m the mean number in the batch, whose logarithm has a slope of at most μ: if η is small the
        place is within 1.2η, and the integral at most 2ηd·ϕ there; if not, nothing is said.
        """
        x = self.beyond(losses)
        for _ in range(STEPS):
            found, slip = log_mixture(self.weights, self.mu, x)
            steepness = np.maximum(self.mu * np.exp(log_mean(self.weights, self.mu, x, found)), TINY)
            move = (found - losses) / steepness
            if np.all(np.abs(found - losses) <= 2 * slip + 4 * ULP * np.abs(losses)):
                break
            x = x - move
        off = np.abs(found - losses) + slip + ULP * np.abs(losses)
        away = np.minimum(off / steepness, 1e100)
        near = (away * (self.mu + np.abs(x) + 1) <= 0.05) & (off <= 0.05)
        log_missed = np.log(2 * away + TINY) + np.log(off) - x * x / 2 - math.log(ROOT)
        return x, floats(np.where(near, log_missed, math.inf))

    def supremum(self) -> tuple[float, float]:
        """The group's absence is hidden as long as nobody of it is in the batch."""
        return math.inf, -self.size * math.log1p(-self.rate) * (1 + 8 * ULP)

    def leak(self) -> tuple[float, float]:
        return 0.0, 0.0

    def transform(self) -> SampledGaussianTransform:
        return SampledGaussianTransform(self.rate, self.mu, 1, people=self.size)

    def log_moment(self, s: float) -> Bound:
        """By quadrature; for large orders between the moment of all people in the batch and `moment_ceiling`."""
        found = spectral_moment(self.transform(), s)
        if found is not None or s < LARGE:
            return found if found is not None else log_moment(self, s)
        parts = (s + 1) * self.weights.logs[-1], s * (s + 1) * (self.size * self.mu) ** 2 / 2
        return Bound(sum(parts) - 64 * ULP * (parts[1] - parts[0]), self.moment_ceiling(s), "bounds for large orders")

    def rho_ceiling(self) -> float:
        """Sampling never raises a Rényi divergence (joint convexity): kμ, if all are in the batch."""
        return GaussianLoss(self.mu).group(self.size).rho_ceiling()

    def moment_ceiling(self, s: float) -> float:
        """E_Q[G^{s+1}] ≤ Σ w_j e^{s(s+1)j²μ²/2}, by convexity."""
        powers = [log + s * (s + 1) * (j * self.mu) ** 2 / 2 for j, log in enumerate(self.weights.logs)]
        return logsumexp(floats(powers)) + 64 * ULP * (1 + self.size + max(map(abs, powers)))

    @property
    def reverse(self) -> PrivacyLoss:
        return Reversed(self, relation=self.relation.reversed)
