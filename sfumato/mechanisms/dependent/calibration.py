"""Calibration: the noise of least variance that meets a privacy target, for a public dilation.

A larger shift s means less noise (S/s)·Z and a higher price, by Lemma 1 of docs/theorems/dilation.md. So each law has
one best s, and each family is searched by its one parameter. The search is approximate and needs no proof: the loss
that is returned is priced once more on its full ladder, with certified bounds, and meets the target.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr

from sfumato import checks
from sfumato.errors import OutOfReach
from sfumato.loss.numeric import Floats, floats
from sfumato.mechanisms.dependent.cells import log_tail_bound
from sfumato.mechanisms.dependent.laplace_gaussian import GaussianNoise, LaplaceNoise
from sfumato.mechanisms.dependent.log_normal import ArsinhNormalNoise, UniformLogNormalNoise
from sfumato.mechanisms.dependent.noise_family import Noise
from sfumato.mechanisms.dependent.shifted_pairs import Atoms, log_excess
from sfumato.mechanisms.dependent.smooth_loss import SmoothLoss
from sfumato.mechanisms.dependent.student_cauchy import CauchyNoise, StudentNoise
from sfumato.sensitivity import AddRemove, Relation

ORDERS = (1e-6, 0.1, 0.3, 0.6, *(2.0**k for k in range(8)))  # Rényi orders minus one, for the search
SLACK = "a number from 1e-40 to 0.5"


@dataclass(frozen=True)
class Family:
    """Noise laws with one parameter between `low` and `high`; the search is over its logarithm."""

    make: Callable[[float], Noise]
    low: float
    high: float


HEAVY = (Family(StudentNoise, 2.1, 200.0), Family(ArsinhNormalNoise, 0.05, 2.0))
OTHERS = (
    Family(lambda _: LaplaceNoise(), 1.0, 1.0),
    Family(lambda _: GaussianNoise(), 1.0, 1.0),
    Family(UniformLogNormalNoise, 0.06, 2.0),
    Family(lambda x: CauchyNoise(3 + x), 0.1, 20.0),
)
FAMILIES = HEAVY + OTHERS
BOUNDED = (HEAVY[0], OTHERS[-1])  # pure ε: only polynomial tails have bounded losses
# Laplace log-normal noise is left out: it is slow to price, and arsinh-normal noise was smaller in every comparison.


@dataclass(frozen=True)
class Calibrated:
    """A loss that meets the target; `variance` is that of its noise at scale S = 1."""

    loss: SmoothLoss

    @property
    def variance(self) -> float:
        return self.loss.noise.variance / self.loss.shift**2


@dataclass(frozen=True)
class Target:
    """A goal for a price that grows with the shift, about quadratically; `guess` is a fast estimate of the price."""

    goal: float
    price: Callable[[SmoothLoss], float]
    guess: Callable[["Sketch"], float]


def least_noise(
    target: Target, dilation: float, steps: int, families: Sequence[Family], relation: Relation
) -> Calibrated:
    """The noise of least variance in these families that meets the target."""
    found = [best for family in families if (best := search_family(family, target, dilation)) is not None]
    if not found:
        raise OutOfReach(
            f"no noise of finite variance meets this target at this dilation.\n  found:  dilation = {dilation:g}\n"
            "  do:     give a smaller dilation (about μ/5, or √(2ρ)/5), or allow a larger privacy loss"
        )
    _, noise, shift = min(found, key=lambda best: best[0])
    return Calibrated(certify(noise, shift, target, dilation, steps, relation))


def certify(noise: Noise, shift: float, target: Target, dilation: float, steps: int, relation: Relation) -> SmoothLoss:
    """The loss with certified bounds on the full ladder; its shift is adjusted until the target is met closely."""
    kept: SmoothLoss | None = None
    for _ in range(40):
        loss = SmoothLoss(noise, shift, dilation, steps, relation=relation)
        ratio = target.price(loss) / target.goal
        if ratio <= 1:
            kept = loss if kept is None or loss.shift > kept.shift else kept
            if ratio > 1 - 1e-4:
                return kept
        elif kept is not None:
            return kept
        shift /= math.sqrt(min(max(ratio, 0.25), 4.0)) * (1 + 2e-5)
    if kept is None:
        raise OutOfReach("no shift was found that meets the target.\n  do:     allow a larger privacy loss")
    return kept


Best = tuple[float, Noise, float]  # variance, noise, shift


def search_family(family: Family, target: Target, dilation: float) -> Best | None:
    """The best law of a family: a coarse grid, then golden section around its best point; None if no law qualifies."""
    seen: dict[float, Best | None] = {}
    start = math.sqrt(target.goal)

    def at(x: float) -> float:
        nonlocal start
        if x not in seen:
            noise = family.make(math.exp(x))
            s = largest_shift(noise, target, dilation, start) if math.isfinite(noise.variance) else None
            seen[x], start = (None, start) if s is None else ((noise.variance / s**2, noise, s), s)
        found = seen[x]
        return math.inf if found is None else found[0]

    low, high = math.log(family.low), math.log(family.high)
    places = [low + (high - low) * i / 5 for i in range(6)] if high > low else [low]
    values = [at(x) for x in places]
    i = min(range(len(places)), key=values.__getitem__)
    if not math.isfinite(values[i]):
        return None
    a, b = places[max(i - 1, 0)], places[min(i + 1, len(places) - 1)]
    golden = (math.sqrt(5) - 1) / 2
    while b - a > 0.08:
        x, y = b - golden * (b - a), a + golden * (b - a)
        a, b = (a, y) if at(x) <= at(y) else (x, b)
    return min((found for found in seen.values() if found), key=lambda found: found[0])


class Sketch(NamedTuple):
    """A loss approximated on few points, without error bounds: for the search only."""

    pairs: list[Atoms]
    limit: float  # limit of D_a/a at large orders

    @staticmethod
    def of(noise: Noise, shift: float, dilation: float) -> "Sketch":
        end = 4.0
        while log_tail_bound(noise, end) > -34.0:
            end *= 1.3
        z = np.sinh(np.linspace(-1.0, 1.0, 1601) * math.asinh(50 * end)) / 50 + shift / 2
        width = np.gradient(z)
        first = noise.log_density(np.abs(z))
        pairs = []
        for size in (0.0, dilation):
            second = noise.log_density(np.abs(z - shift) * math.exp(-size)) - size
            for a, b in ((first, second), (second, first))[: 2 if size else 1]:
                pairs.append(Atoms.of(a - b, np.exp(a) * width, np.exp(b) * width, 0 * z + 1e-15))
        _, rate = noise.growth(end) or (0.0, 0.0)
        return Sketch(pairs, (rate * dilation) ** 2 * noise.power_limit(1e9) if rate else 0.0)

    def profile(self, eps: Floats) -> Floats:
        return floats(np.max([way.profile(eps)[0] for way in self.pairs], axis=0))

    def epsilon(self, delta: float) -> float:
        low, high = 0.0, max(float(way.loss[0]) for way in self.pairs)
        for _ in range(4 if delta else 0):  # up to 32⁻⁴ of the largest loss
            places = np.linspace(low, high, 33)
            first = max(int(np.argmax(self.profile(places) <= delta)), 1)  # at the last place the profile is 0
            low, high = float(places[first - 1]), float(places[first])
        return high

    def rho(self) -> float:
        found = (np.logaddexp(0.0, log_excess(way, s, 1)) / (s * (s + 1)) for way in self.pairs for s in ORDERS)
        return max(self.limit, float(max(found)))

    def mu(self, slack: float) -> float:
        eps = np.linspace(0.0, self.epsilon(slack), 64)
        goal, low, high = (self.profile(eps) - slack) / (1 - slack), 1e-6, 100.0
        for _ in range(40):
            mu = math.sqrt(low * high)
            found = ndtr(mu / 2 - eps / mu) - np.exp(eps + log_ndtr(-mu / 2 - eps / mu))
            low, high = (low, mu) if np.all(found >= goal) else (mu, high)
        return high


def largest_shift(noise: Noise, target: Target, dilation: float, start: float) -> float | None:
    """The shift s whose price is about the goal; None if even a tiny shift costs more."""
    low, high, s, power = 2e-4, 50.0, min(max(start, 1e-3), 20.0), 2.0  # prices grow with s², about
    last: tuple[float, float] | None = None
    for _ in range(40):
        ratio = target.guess(Sketch.of(noise, s, dilation)) / target.goal
        low, high = (s, high) if ratio <= 1 else (low, s)
        if abs(ratio - 1) < 1e-4 or high / low < 1 + 1e-5:
            return s
        if high < 4e-4:
            return None
        if last is not None and 0 < ratio < math.inf and s != last[0]:
            power = min(max(math.log(ratio / last[1]) / math.log(s / last[0]), 0.2), 20.0)
        last = (s, ratio) if 0 < ratio < math.inf else None
        wanted = s / ratio ** (1 / power) if last else 0.0
        s = wanted if low < wanted < high and 0.2 < wanted / s < 5 else math.sqrt(low * high)
    return low


@lru_cache(maxsize=64)
def for_ledger(
    mu_squared: float,
    dilation: float,
    slack: float = 1e-9,
    steps: int = 4,
    relation: Relation = AddRemove,
    families: tuple[Family, ...] = FAMILIES,
) -> Calibrated:
    """The noise of least variance in these families that costs at most (μ², slack) on a Gaussian ledger.

    Theorem: Gaussian domination with slack [Dong, Roth & Su 2022, Thm 2.7; docs/theorems/price.md]
    """
    goal, spared = checks.positive("mu_squared", mu_squared), checks.number("slack", slack, 1e-40, 0.5, allowed=SLACK)

    target = Target(goal, lambda loss: loss.gdp(spared, tolerance=1e-5).upper ** 2, lambda x: x.mu(spared) ** 2)
    return least_noise(target, dilation, steps, families, relation)


@lru_cache(maxsize=64)
def for_zcdp(
    rho: float,
    dilation: float,
    steps: int = 4,
    relation: Relation = AddRemove,
    families: tuple[Family, ...] = HEAVY,
) -> Calibrated:
    """The noise of least variance that is ρ-zCDP, in these families: their losses need all moments.

    Theorem: zCDP is a linear bound on the Rényi curve [Bun & Steinke 2016, Def. 1.1]
    """
    goal = checks.positive("rho", rho)

    return least_noise(Target(goal, lambda loss: loss.zcdp().upper, Sketch.rho), dilation, steps, families, relation)


@lru_cache(maxsize=64)
def for_epsilon(
    epsilon: float,
    delta: float,
    dilation: float,
    steps: int = 4,
    relation: Relation = AddRemove,
    families: tuple[Family, ...] | None = None,
) -> Calibrated:
    """The noise of least variance that is (ε, δ)-DP, in these families; δ = 0 means pure differential privacy.

    Theorem: (ε, δ)-DP is a bound on the hockey-stick divergence [Barthe & Olmedo 2013; Balle & Wang 2018, Thm 5]
    """
    eps, small = checks.positive("epsilon", epsilon), checks.probability("delta", delta)

    def price(loss: SmoothLoss) -> float:
        return (max(loss.supremum()) if small == 0 else loss.epsilon(small, tolerance=1e-5).upper) ** 2 * (1 + 1e-12)

    tried = families or (FAMILIES if small else BOUNDED)
    return least_noise(Target(eps * eps, price, lambda x: x.epsilon(small) ** 2), dilation, steps, tried, relation)
