"""Random losses whose profiles are known from elsewhere: the package's expression on one side, the truth on the other.

A seed is a configuration, the same for ever, so a failure is repeated by its number.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import mpmath as mp
import numpy as np

from sfumato.loss import (
    ApproxLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PoissonSampledLoss,
    PrivacyLoss,
    PureLoss,
    RandomizedResponseLoss,
    StaircaseLoss,
)
from sfumato.loss.kinds.finite import FinitePairLoss
from tests import truth
from tests.truth import Curve, Finite

Terms = tuple[tuple[int, PrivacyLoss], ...]
Truths = Callable[[float], tuple[mp.mpf, mp.mpf]]  # ε ↦ (H(P‖Q), H(Q‖P))


@dataclass(frozen=True)
class Configuration:
    """A loss, its terms for an engine that takes terms, and the true profiles in both directions."""

    family: str
    terms: Terms
    exact: Truths
    eps: np.ndarray

    @property
    def loss(self) -> PrivacyLoss:
        return sum(count * term for count, term in self.terms)

    def both(self, eps: float) -> tuple[mp.mpf, mp.mpf]:
        return self.exact(float(eps))

    def worse(self, eps: float) -> mp.mpf:
        return max(self.both(eps))


def magnitude(r: Random, low: float, high: float) -> float:
    """A number whose logarithm is uniform."""
    return 10 ** r.uniform(math.log10(low), math.log10(high))


def arguments(r: Random, top: float, count: int = 6) -> np.ndarray:
    """0, the far end, and places between, also close to both."""
    inner = [r.uniform(0, top) for _ in range(count)] + [top * magnitude(r, 1e-6, 1), top * (1 - magnitude(r, 1e-9, 1))]
    return np.array(sorted({0.0, *inner, top, 1.5 * top}))


# ---- one mechanism, a closed form -----------------------------------------------------------------------------------


def symmetric(curve: Curve) -> Truths:
    def both(eps: float) -> tuple[mp.mpf, mp.mpf]:
        found = truth.settled(lambda: curve(mp.mpf(eps)))
        return found, found

    return both


def one_gaussian(r: Random) -> Configuration:
    mu = magnitude(r, 1e-6, 1e3) if r.random() < 0.9 else magnitude(r, 1e-90, 1e90)
    eps = [max(0.0, mu * mu / 2 + mu * z) for z in (0.0, r.uniform(-5, 5), r.uniform(0, 12), r.uniform(0, 38))]
    eps += [0.0, magnitude(r, 1e-12, 1e4), mu * magnitude(r, 1e-6, 10)]
    return Configuration("gaussian", ((1, GaussianLoss(mu)),), symmetric(truth.gaussian(mu)), np.array(sorted(eps)))


def several_gaussians(r: Random) -> Configuration:
    terms = tuple((r.randrange(1, 10_000), GaussianLoss(magnitude(r, 1e-4, 1))) for _ in range(r.randrange(1, 4)))

    def curve(u: mp.mpf) -> mp.mpf:
        return truth.gaussian(mp.sqrt(mp.fsum(k * mp.mpf(loss.mu) ** 2 for k, loss in terms)))(u)

    mu = math.sqrt(sum(k * loss.mu**2 for k, loss in terms))
    return Configuration(
        "gaussians", terms, symmetric(curve), np.array([max(0.0, mu * mu / 2 + mu * z) for z in (-1.0, 0.0, 3.0, 9.0)])
    )


def one_laplace(r: Random) -> Configuration:
    eps = magnitude(r, 1e-9, 1e3)
    return Configuration("laplace", ((1, LaplaceLoss(eps)),), symmetric(truth.laplace(eps)), arguments(r, eps))


def one_bounded_range(r: Random) -> Configuration:
    eps = magnitude(r, 1e-6, 1e2)
    curve = truth.bounded_range(eps)
    return Configuration("bounded range", ((1, BoundedRangeLoss(eps)),), symmetric(curve), arguments(r, eps, 1))


def one_discrete_gaussian(r: Random) -> Configuration:
    sigma, d = magnitude(r, 0.15, 12), r.randrange(1, 6)
    mu = d / sigma
    eps = [max(0.0, mu * mu / 2 + mu * z) for z in (r.uniform(-3, 3), r.uniform(0, 8), r.uniform(0, 25))]
    loss = DiscreteGaussianLoss(sigma, d)
    return Configuration(
        "discrete gaussian", ((1, loss),), symmetric(truth.discrete_gaussian(sigma, d)), np.array(sorted([0.0, *eps]))
    )


def one_sampled_gaussian(r: Random) -> Configuration:
    rate, mu = magnitude(r, 1e-6, 1), magnitude(r, 0.01, 20)
    remove, add = truth.sampled_gaussian(rate, mu)

    def both(eps: float) -> tuple[mp.mpf, mp.mpf]:
        return tuple(truth.settled(lambda curve=curve: curve(mp.mpf(eps))) for curve in (remove, add))

    hidden = -math.log1p(-rate)
    top = math.log1p(rate * math.expm1(min(mu * mu / 2 + 6 * mu, 300)))
    eps = sorted({0.0, *(hidden * r.random() for _ in range(3)), *(top * r.random() for _ in range(4))})
    return Configuration("sampled gaussian", ((1, PoissonSampledLoss(GaussianLoss(mu), rate)),), both, np.array(eps))


# ---- pairs with a list of outcomes ----------------------------------------------------------------------------------


def dyadic(r: Random, outcomes: int) -> tuple[float, ...]:
    """Probabilities that sum to one exactly, some of them 0."""
    cuts = sorted(r.randrange(0, 2**20 + 1) for _ in range(outcomes - 1))
    return tuple((b - a) / 2**20 for a, b in zip([0, *cuts], [*cuts, 2**20], strict=True))


def finite_loss(r: Random, least: float = 1e-3, most: float = 3.0) -> tuple[PrivacyLoss, Callable[[], Finite]]:
    """A loss with few outcomes and its pair."""
    eps, kind = magnitude(r, least, most), r.randrange(8)
    if kind == 0:
        return PureLoss(eps), lambda: truth.coin(eps)
    if kind == 1:
        leak = magnitude(r, 1e-15, 0.1)
        return ApproxLoss(eps, leak), lambda: truth.coin(eps, leak)
    if kind == 2:
        k = r.choice([2, 3, 5])
        return RandomizedResponseLoss(eps, k), lambda: truth.responses(eps, k)
    if kind == 3:
        scale, d = 1 / eps, r.randrange(1, 5)
        return DiscreteLaplaceLoss(scale, d), lambda: truth.discrete_laplace(scale, d)
    if kind == 4:
        gamma = r.choice([0.0, 0.5, 1.0, r.random(), 1 / (1 + math.exp(eps / 2))])
        return StaircaseLoss(eps, gamma), lambda: truth.staircase(eps, gamma)
    if kind == 5:
        rate = magnitude(r, 1e-3, 1)
        return PoissonSampledLoss(RandomizedResponseLoss(eps), rate), lambda: truth.sampled(truth.coin(eps), rate)
    n = r.randrange(2, 5)
    p, q = dyadic(r, n), dyadic(r, n)
    return FinitePairLoss(p, q), lambda: [(mp.mpf(a), mp.mpf(b)) for a, b in zip(p, q, strict=True)]


def one_finite(r: Random) -> Configuration:
    loss, pair = finite_loss(r, 1e-8, 30.0)
    return Configuration("one finite", ((1, loss),), listed([(1, pair)]), arguments(r, finite_top(loss)))


def finite_top(loss: PrivacyLoss) -> float:
    """About how large the finite losses are; at least something."""
    return max(*(x for x in loss.supremum() if math.isfinite(x)), 1e-6)


def listed(pairs: list[tuple[int, Callable[[], Finite]]]) -> Truths:
    """Both directions of a product of finite pairs, outcome by outcome."""

    def both(eps: float) -> tuple[mp.mpf, mp.mpf]:
        with mp.workprec(truth.BITS + 64):
            ahead = [pair() for count, pair in pairs for _ in range(count)]
        back = [truth.reverse(pair) for pair in ahead]
        return truth.enumerated(ahead, [eps])[0], truth.enumerated(back, [eps])[0]

    return both


def several_finite(r: Random) -> Configuration:
    """Two or three kinds, up to five steps, as enumerable products."""
    parts, size, scale = [], 1, magnitude(r, 1e-3, 1)
    for _ in range(r.choice([2, 2, 3])):
        loss, pair = finite_loss(r, scale / 10, 3 * scale)
        width = len(pair())
        count = r.choice([1, 1, 2, 3])
        if any(loss == other for _, other, _ in parts) or size * width**count > 700:
            continue
        size *= width**count
        parts.append((count, loss, pair))
    terms = tuple((count, loss) for count, loss, _ in parts)
    top = sum(count * finite_top(loss) for count, loss in terms)
    return Configuration("finite product", terms, listed([(c, pair) for c, _, pair in parts]), arguments(r, top, 3))


def equal_coins(r: Random) -> Configuration:
    k, eps = round(magnitude(r, 2, 1000)), magnitude(r, 1e-4, 3)
    leak = r.choice([0.0, magnitude(r, 1e-15, 1e-3)])
    top, mean = k * eps, k * eps * math.tanh(eps / 2)
    spread = eps * math.sqrt(k)
    eps_list = [mean + z * spread for z in (-1, 0, 2, 5, 8)] + [top, top * r.random()]
    loss = ApproxLoss(eps, leak) if leak else PureLoss(eps)

    def both(t: float) -> tuple[mp.mpf, mp.mpf]:
        found = truth.settled(lambda: truth.equal_coins(eps, k, t, leak))
        return found, found

    return Configuration("equal coins", ((k, loss),), both, np.array(sorted(max(0.0, t) for t in eps_list)))


def equal_laplaces(r: Random) -> Configuration:
    k, eps = r.randrange(2, 8), magnitude(r, 1e-3, 4)

    def both(t: float) -> tuple[mp.mpf, mp.mpf]:
        found = truth.settled(lambda: truth.equal_laplaces(eps, k, t))
        return found, found

    return Configuration("equal laplaces", ((k, LaplaceLoss(eps)),), both, arguments(r, k * eps, 2))


# ---- a curve together with finite pairs -----------------------------------------------------------------------------


def with_finite(r: Random) -> Configuration:
    """A Gaussian, Laplace, bounded-range or sampled Gaussian loss and one to three finite steps."""
    scale, kind = magnitude(r, 1e-2, 2), r.randrange(4)
    if kind == 0:
        mu = scale * magnitude(r, 0.1, 3)
        loss, ahead = GaussianLoss(mu), truth.gaussian(mu)
        back, top = ahead, mu * mu / 2 + 7 * mu
    elif kind == 1:
        loss, ahead = LaplaceLoss(scale), truth.laplace(scale)
        back, top = ahead, scale
    elif kind == 2:
        loss, ahead = BoundedRangeLoss(scale), logistic(scale)
        back, top = ahead, scale
    else:
        rate, mu = magnitude(r, 1e-3, 0.9), magnitude(r, 0.1, 3)
        loss = PoissonSampledLoss(GaussianLoss(mu), rate)
        (ahead, back), top = truth.sampled_gaussian(rate, mu), math.log1p(rate * math.expm1(mu * mu / 2 + 5 * mu))
    step, pair = finite_loss(r, scale / 5, 2 * scale)
    count = r.choice([1, 2, 3]) if len(pair()) <= 3 else 1
    reach = top + count * min(finite_top(step), 8.0)

    def both(eps: float) -> tuple[mp.mpf, mp.mpf]:
        def way(curve: Curve, turn: Callable[[Finite], Finite]) -> mp.mpf:
            return truth.settled(lambda: truth.with_curve([turn(pair())] * count, curve, eps), 30)

        return way(ahead, list), way(back, truth.reverse)

    return Configuration("curve and finite", ((1, loss), (count, step)), both, arguments(r, reach, 2))


def coins_and_curve(r: Random) -> Configuration:
    """Two to five distinct coins, some of them leaky, and a Gaussian, a Laplace or a sampled Gaussian."""
    scale, kind = magnitude(r, 1e-2, 2), r.randrange(3)
    if kind == 0:
        mu = scale * magnitude(r, 0.1, 3)
        loss, ahead = GaussianLoss(mu), truth.gaussian(mu)
        back, top = ahead, mu * mu / 2 + 7 * mu
    elif kind == 1:
        eps = scale * magnitude(r, 0.2, 3)
        loss, ahead = LaplaceLoss(eps), truth.laplace(eps)
        back, top = ahead, eps
    else:
        rate, mu = magnitude(r, 1e-2, 0.9), magnitude(r, 0.1, 2)
        loss = PoissonSampledLoss(GaussianLoss(mu), rate)
        (ahead, back), top = truth.sampled_gaussian(rate, mu), math.log1p(rate * math.expm1(mu * mu / 2 + 4 * mu))
    coins = [
        (scale * magnitude(r, 0.2, 3), r.choice([0.0, magnitude(r, 1e-15, 1e-3)])) for _ in range(r.randrange(2, 6))
    ]
    terms = tuple((1, ApproxLoss(eps, leak) if leak else PureLoss(eps)) for eps, leak in coins)

    def both(t: float) -> tuple[mp.mpf, mp.mpf]:
        def way(curve: Curve) -> mp.mpf:
            kept = mp.fprod(1 - mp.mpf(leak) for _, leak in coins)
            faces = [truth.coin(eps)[1:3] for eps, _ in coins]  # without a leak a coin reads the same both ways
            return 1 - kept + kept * truth.with_curve(faces, curve, t)

        return truth.settled(lambda: way(ahead), 30), truth.settled(lambda: way(back), 30)

    reach = top + sum(eps for eps, _ in coins)
    return Configuration("coins and curve", ((1, loss), *terms), both, arguments(r, reach, 2))


def many_sampled_gaussians(r: Random) -> Configuration:
    """Hundreds to a million equal steps, near where δ is neither 1 nor out of reach: a plain inversion integral."""
    rate, mu = magnitude(r, 1e-2, 0.9), magnitude(r, 0.1, 1.5)
    count = round(magnitude(r, max(300, 50 / rate), 1e6))
    square = count * rate * rate * math.expm1(mu * mu)  # of the Gaussian that so many steps tend to
    eps = [max(0.1, square / 2 + r.uniform(0.5, 4) * math.sqrt(square)) for _ in range(1)]

    def both(t: float) -> tuple[mp.mpf, mp.mpf]:
        return truth.settled_fold(rate, mu, 1, count, t, 18), truth.settled_fold(rate, mu, -1, count, t, 18)

    loss = PoissonSampledLoss(GaussianLoss(mu), rate)
    return Configuration("many sampled gaussians", ((count, loss),), both, np.array(eps))


def logistic(eps: float) -> Curve:
    """A logistic law and its shift by ε, the pair that dominates bounded range ε: density ratio from e^ε down to e^−ε.

    With y = e^x the density of X is y/(1 + y)², that of X + ε is e^ε·y/(e^ε + y)²: the ratio e^ε(1 + y)²/(e^ε + y)²
    rises in y, so one threshold suffices.
    """

    def curve(u: mp.mpf) -> mp.mpf:
        e = mp.mpf(eps)
        if u >= e:
            return mp.mpf(0)
        if u <= -e:
            return 1 - mp.exp(u)
        c = mp.exp((e - u) / 2)  # the ratio is e^u where (e^ε + y)/(1 + y) = c
        if c <= 1:  # u = ε up to rounding
            return mp.mpf(0)
        y = (mp.exp(e) - c) / (c - 1)
        p = mp.exp(e) / (mp.exp(e) + y)  # P[X + ε > x]
        q = 1 / (1 + y)  # P[X > x]
        return p - mp.exp(u) * q

    return curve


FAMILIES = (
    one_gaussian,
    several_gaussians,
    one_laplace,
    one_bounded_range,
    one_discrete_gaussian,
    one_sampled_gaussian,
    one_finite,
    several_finite,
    equal_coins,
    equal_laplaces,
    with_finite,
    coins_and_curve,
    many_sampled_gaussians,
)


def configuration(family: Callable[[Random], Configuration], seed: int) -> Configuration:
    """The configuration with this number."""
    return family(Random(f"{family.__name__} {seed}"))


def violations(case: Configuration, found: list[tuple[np.ndarray, np.ndarray]]) -> list[str]:
    """Where (lower, upper) of the two directions does not enclose the truth, in words."""
    wrong = []
    for i, eps in enumerate(case.eps):
        for direction, exact, (lower, upper) in zip(("forward", "backward"), case.both(eps), found, strict=True):
            if not mp.mpf(float(lower[i])) <= exact <= mp.mpf(float(upper[i])):
                wrong.append(
                    f"{direction} of {case.terms} at ε = {float(eps)!r}: "
                    f"[{lower[i]!r}, {upper[i]!r}] misses {mp.nstr(exact, 20)}"
                )
    return wrong
