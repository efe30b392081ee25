"""Very many losses at tiny rates: the normal law's certified error against exact sums in long arithmetic."""

import math

import mpmath as mp
import numpy as np
import pytest

import sfumato as sf
from sfumato.loss.compose.normal_limit import normal, of_step
from sfumato.loss.numeric import Enclosure
from tests import truth

L = sf.loss
SIDES = ["forward", "backward"]
RATES = [1e-3, 1e-6, 1e-12, 1e-40]


class KnowsNothing:
    """Stands for the other engine: all that is sharp comes from the normal law."""

    method = "nothing"

    def forward(self, eps, tolerance=0.0):
        return Enclosure(np.zeros_like(eps), np.ones_like(eps))


def sampled_coin(rate: float, eps: float, side: str) -> tuple[L.PrivacyLoss, truth.Finite]:
    """A sampled coin looked at from one side, as a loss and as two outcomes."""
    loss, pair = sf.Poisson(rate).amplify(L.PureLoss(eps)), truth.sampled(truth.coin(eps), rate)
    kept = [outcome for outcome in pair if outcome[0]]
    return (loss, kept) if side == "forward" else (loss.reverse, truth.reverse(kept))


def counted(pair: truth.Finite, count: int) -> list[tuple[mp.mpf, mp.mpf]]:
    """The probabilities of each number of first outcomes among `count`."""
    (a, b), _ = pair
    ways = (math.comb(count, i) for i in range(count + 1))
    return [(way * a**i * (1 - a) ** (count - i), way * b**i * (1 - b) ** (count - i)) for i, way in enumerate(ways)]


def many_coins(pair: truth.Finite, count: int, t: float) -> mp.mpf:
    """δ(t) of so many coins that their number is nearly continuous.

    Σ_{i ≥ m} f(i) is ∫ from m − ½, by the formula of Euler and Maclaurin, but for f′(m − ½)/24 and less: relative to δ
    some 1/count.
    """
    (p, _), _ = pair = sorted(pair, key=lambda both: both[0] / both[1], reverse=True)
    q = pair[0][1]
    gain, drop = mp.log(p / q), mp.log((1 - p) / (1 - q))
    first = mp.ceil((t - count * drop) / (gain - drop))
    ends = mp.loggamma(count + 1)

    def f(i: mp.mpf) -> mp.mpf:
        ways = ends - mp.loggamma(i + 1) - mp.loggamma(count - i + 1)
        return mp.exp(ways + i * mp.log(p) + (count - i) * mp.log(1 - p)) * -mp.expm1(t - i * gain - (count - i) * drop)

    start, spread = first - mp.mpf(1) / 2, mp.sqrt(count * p * (1 - p))
    last = max(start, count * p) + 14 * spread
    return mp.quad(f, mp.linspace(start, last, 12))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("eps", [0.01, 1.0, 4.0])
def test_moments_of_a_sampled_coin_are_enclosed(rate, eps, side):
    loss, pair = sampled_coin(rate, eps, side)
    found = of_step(loss)
    with mp.workdps(200):
        _, pair = sampled_coin(rate, eps, side)
        losses = [(a, mp.log(a / b)) for a, b in pair]
        mean = mp.fsum(a * x for a, x in losses)
        central = {j: mp.fsum(a * abs(x - mean) ** j for a, x in losses) for j in (2, 3, 4, 6)}
    assert found.mean[0] <= mean <= found.mean[1]
    assert found.variance[0] <= central[2] <= found.variance[1]
    assert found.variance[1] - found.variance[0] <= 2 * rate * math.exp(eps) * found.variance[1] + 1e-11 * central[2]
    assert all(bound >= central[j] for j, bound in ((3, found.third), (4, found.fourth), (6, found.sixth)))
    assert found.third <= 10 * central[3] and found.sixth <= 30 * central[6]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("mu", [0.1, 1.25])
def test_moments_of_a_sampled_gaussian_are_enclosed(mu, side):
    rate = 1e-3
    loss = sf.Poisson(rate).amplify(L.GaussianLoss(mu))
    found = of_step(loss if side == "forward" else loss.reverse)
    with mp.workdps(25):

        def expected(f):
            def density(x):
                ratio = mp.log1p(rate * mp.expm1(mu * x - mp.mpf(mu) ** 2 / 2))
                weight = mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)
                return weight * (mp.exp(ratio) * f(ratio) if side == "forward" else f(-ratio))

            return mp.quad(density, mp.linspace(-12, 20, 17))

        mean = expected(lambda x: x)
        variance = expected(lambda x: (x - mean) ** 2)
        third, sixth = expected(lambda x: abs(x - mean) ** 3), expected(lambda x: (x - mean) ** 6)
    assert found.mean[0] <= mean <= found.mean[1]
    assert found.variance[0] <= variance <= found.variance[1]
    assert found.third >= third and found.sixth >= sixth


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("rate", "eps", "count"), [(1e-3, 1.0, 2000), (1e-3, 3.0, 4000), (1e-4, 0.5, 3000)])
def test_a_profile_of_sampled_coins_is_enclosed(rate, eps, count, side):
    with mp.workdps(60):
        loss, pair = sampled_coin(rate, eps, side)
        law = normal(((count, loss),), KnowsNothing())
        table = counted(pair, count)
        for z in (0.0, 0.3, 1.0, 2.0, 3.0, 8.0):
            t = z * law.deviation
            scale = mp.exp(t)
            exact = mp.fsum(max(a - scale * b, mp.mpf(0)) for a, b in table)
            found = law.alone(np.array([t]))
            assert found.lower[0] <= exact <= found.upper[0]
            assert found.upper[0] - found.lower[0] <= 0.7 * law.deviation  # Berry and Esseen: some 1/√count


@pytest.mark.parametrize("side", SIDES)
def test_a_profile_of_two_kinds_of_sampled_coins_is_enclosed(side):
    with mp.workdps(40):
        (one, first), (two, second) = sampled_coin(1e-3, 1.0, side), sampled_coin(5e-4, 2.0, side)
        law = normal(((200, one), (150, two)), KnowsNothing())
        tables = counted(first, 200), counted(second, 150)
        for z in (0.0, 1.0, 2.5):
            t = z * law.deviation
            scale = mp.exp(t)
            exact = mp.fsum(max(a * c - scale * b * d, mp.mpf(0)) for a, b in tables[0] for c, d in tables[1])
            found = law.alone(np.array([t]))
            assert found.lower[0] <= exact <= found.upper[0]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("rate", "eps", "count"), [(1e-12, 1.0, 10**15), (1e-9, 2.0, 10**12), (1e-5, 0.5, 10**11)])
def test_very_many_sampled_coins_are_enclosed_and_sharp(rate, eps, count, side):
    loss = count * sf.Poisson(rate).amplify(L.PureLoss(eps))
    with mp.workdps(45):
        _, pair = sampled_coin(rate, eps, side)
        spread = mp.sqrt(count * mp.fsum(a * mp.log(a / b) ** 2 for a, b in pair))
        for z in (0.5, 1.5, 3.0):
            t = float(z * spread)
            exact, found = many_coins(pair, count, t), getattr(loss, side)(np.array([t]))
            assert found.lower[0] <= exact <= found.upper[0]
            assert z > 2 or found.upper[0] - found.lower[0] <= 1e-2 * found.upper[0]


@pytest.mark.parametrize("delta", [1e-5, 1e-7])
def test_epsilon_of_very_many_sampled_coins_is_enclosed_and_sharp(delta):
    loss = 10**15 * sf.Poisson(1e-12).amplify(L.PureLoss(1.0))
    found = loss.epsilon(delta)
    with mp.workdps(45):
        pairs = [sampled_coin(1e-12, 1.0, side)[1] for side in SIDES]
        low, high = (max(many_coins(pair, 10**15, t) for pair in pairs) for t in (found.lower, found.upper))
    assert high <= delta <= low
    assert found.gap <= 5e-3 * found.upper


def test_a_budget_above_total_variation_needs_no_epsilon():
    loss = 10**15 * sf.Poisson(1e-12).amplify(L.GaussianLoss(1.0))
    assert loss.epsilon(1e-3).upper == 0.0
    assert 0 < loss.delta(0.0).upper < 1e-4


def test_losses_without_the_moments_are_left_to_other_engines():
    nothing = KnowsNothing()
    assert normal(((10**12, L.PureLoss(1e-9)),), nothing) is None
    assert normal(((10**12, sf.Poisson(0.1).amplify(L.PureLoss(1.0))),), nothing) is None
    assert normal(((10**12, sf.Poisson(1e-9).amplify(L.ApproxLoss(1.0, 1e-9))),), nothing) is None
    assert normal(((10**12, sf.Poisson(1e-9).amplify(L.GaussianLoss(8.0))),), nothing) is None  # E R⁶ = e^{960}
