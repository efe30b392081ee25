"""Parameters at the ends of what is accepted: certified answers that hold, never a NaN, a warning or a crash.

Warnings are errors in this suite. Where a closed form exists, soundness is checked against it in long arithmetic; the
sweep over all classes asks that every view answers with ordered sides, or refuses in words.
"""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.loss.kinds.run_counts import NegativeBinomialRuns
from tests import truth
from tests.checks.examples import concrete_classes

L = sf.loss
COIN = 0.1

# ---- closed forms ---------------------------------------------------------------------------------------------------


def coin_curve(eps: float) -> truth.Curve:
    def curve(u: mp.mpf) -> mp.mpf:
        return -mp.expm1(u - mp.mpf(eps)) / (1 + mp.exp(-mp.mpf(eps))) if u < eps else mp.mpf(0)

    return curve


def gaussian_curve(mu: float) -> truth.Curve:
    """The profile, and 0 where it is below e^{−10^13}: erfc does not take numbers of any size."""
    one, end = truth.gaussian(mu), mp.mpf(mu) ** 2 / 2 + mp.mpf(10) ** 7 * mu
    return lambda u: one(u) if u < end else mp.mpf(0)


def encloses(found, exact) -> bool:
    """lower ≤ exact ≤ upper, as numbers of any size."""
    return mp.mpf(float(found.lower)) <= exact <= mp.mpf(float(found.upper))


def is_profile(loss: PrivacyLoss, curve: truth.Curve, eps: list[float]) -> None:
    for e in eps:
        found, exact = loss.delta(e), truth.settled(lambda e=e: curve(mp.mpf(e)))
        exact = min(exact, mp.mpf(1))  # rounding
        assert encloses(found, exact), f"δ({e!r}) of {loss}: {found!r} misses {mp.nstr(exact, 20)}"


def is_epsilon(loss: PrivacyLoss, curve: truth.Curve, deltas: list[float]) -> None:
    """δ at the upper side is at most what was asked, and at the lower side at least."""
    for delta in deltas:
        found = loss.epsilon(delta)
        if found.upper < math.inf:
            assert truth.settled(lambda e=found.upper: curve(mp.mpf(e))) <= delta, f"{loss}: {found!r}"
        if found.lower > 0:
            assert truth.settled(lambda e=found.lower: curve(mp.mpf(e))) >= delta, f"{loss}: {found!r}"


def places(size: float, spread: float) -> list[float]:
    """ε at 0, near the largest losses, and far away."""
    inner = [size + z * spread for z in (-30.0, -3.0, -0.5, 0.0, 0.5, 3.0, 30.0)]
    return [0.0, 1e-100, 0.5, 800.0, 1e150, *(e for e in inner if e > 0)]


CLOSED = {
    "Gaussian": (L.GaussianLoss, gaussian_curve, lambda x: places(x * x / 2, x)),
    "Laplace": (L.LaplaceLoss, truth.laplace, lambda x: places(x, min(x, 1.0))),
    "coin": (L.RandomizedResponseLoss, coin_curve, lambda x: places(x, min(x, 1.0))),
}
SIZES = [1e-100, 1e-12, 100.0, 800.0, 1e4, 1e100]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", CLOSED)
def test_profiles_and_epsilons_enclose_the_closed_form(kind, size):
    build, curve, where = CLOSED[kind]
    is_profile(build(size), curve(size), where(size))
    is_epsilon(build(size), curve(size), [0.9, 1e-6, 1e-200])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["Gaussian", "Laplace"])
def test_profiles_with_a_coin_enclose_the_closed_form(kind, size):
    build, curve, where = CLOSED[kind]
    loss, one = build(size) + L.RandomizedResponseLoss(COIN), curve(size)

    def both(u: mp.mpf) -> mp.mpf:
        return truth.with_curve([truth.coin(COIN)], one, u)

    is_profile(loss, both, [*where(size), COIN / 2, COIN])
    is_epsilon(loss, both, [0.9, 1e-6])


@pytest.mark.parametrize("size", [1e-100, 1e-12, 100.0, 1e4, 1e90])
def test_a_million_gaussians_are_one(size):
    curve = gaussian_curve(mp.mpf(size) * 1000)
    loss = 10**6 * L.GaussianLoss(size)
    is_profile(loss, curve, places((1000 * size) ** 2 / 2, 1000 * size))
    is_epsilon(loss, curve, [1e-6])


@pytest.mark.parametrize("size", [1.0, 30.0, 1e4, 1e90])
def test_a_million_coins_are_binomial(size):
    k, loss = 10**6, 10**6 * L.RandomizedResponseLoss(size)

    def exact(t: float) -> mp.mpf:
        if t < 1:
            return mp.mpf(1)  # all but e^{−k/10} of the losses are larger
        if size > 1000:  # all coins say the same but for e^{−1000}
            return -mp.expm1(min(mp.mpf(t) - k * mp.mpf(size), 0))
        return truth.settled(lambda: truth.equal_coins(size, k, t))

    for t in (0.0, 1e-3, (k - 40) * size, (k - 3) * size, (k - 0.5) * size, k * size, 2 * k * size):
        found, truly = loss.delta(t), exact(t)
        assert found.lower <= truly + mp.mpf(10) ** -300, t
        assert found.upper >= truly - mp.mpf(10) ** -300, t


@pytest.mark.parametrize(("sigma", "d"), [(1.0, 10**6), (1e-3, 1), (1e-3, 10**9), (0.7, 10**9), (2.5, 10**4)])
def test_discrete_gaussians_of_large_sensitivity_enclose_the_sum(sigma, d):
    curve = truth.discrete_gaussian(sigma, d)
    exact_size = mp.mpf(d) ** 2 / (2 * mp.mpf(sigma) ** 2)
    size, spread = float(exact_size), d / sigma
    where = [0.0, 0.5, *(max(0.0, size + z * spread) for z in (-40.0, -2.0, -0.3, 0.0, 0.3, 2.0, 40.0))]
    is_profile(L.DiscreteGaussianLoss(sigma, d), curve, where)


@pytest.mark.parametrize(("scale", "d"), [(1e-3, 30), (1e-3, 10**15), (1e4, 10**6), (1e100, 10**15), (1e100, 1)])
def test_discrete_laplace_divergences_enclose_the_sum(scale, d):
    """E[e^{sL}] as two ends and a geometric series, E[L] from E|x + d| − E|x|."""
    loss = L.DiscreteLaplaceLoss(scale, d)
    with mp.workdps(400):
        r = 1 / mp.mpf(scale)
        q = mp.exp(-r)
        assert encloses(loss.kl(), r * d - 2 * r * q * (1 - q**d) / (1 - q * q))
        for order in (0.25, 0.5, 2.0, 1e3, 1e9):
            s = mp.mpf(order) - 1
            z = mp.exp((1 + 2 * s) * r)
            inner = (z**d - z) / (z - 1) if z != 1 else mp.mpf(d - 1)
            moment = (q ** (d * (1 + s)) * (1 + (1 - q) * inner) + mp.exp(s * d * r)) / (1 + q)
            assert encloses(loss.renyi(order), mp.log(moment) / s), order


# ---- divergences ----------------------------------------------------------------------------------------------------


def gaussian_renyi(x: float, a: mp.mpf) -> mp.mpf:
    return a * mp.mpf(x) ** 2 / 2


def laplace_renyi(x: float, a: mp.mpf) -> mp.mpf:
    e = mp.mpf(x)
    if a == 1:
        return e + mp.exp(-e) - 1
    c = a - mp.mpf(1) / 2
    middle = mp.exp(-e / 2) * mp.sinh(c * e) / (2 * c) if c else mp.exp(-e / 2) * e / 2
    return mp.log(mp.exp((a - 1) * e) / 2 + mp.exp(-a * e) / 2 + middle) / (a - 1)


def coin_renyi(x: float, a: mp.mpf) -> mp.mpf:
    e = mp.mpf(x)
    yes = 1 / (1 + mp.exp(-e))
    if a == 1:
        return e * yes * -mp.expm1(-e)
    return mp.log(yes * mp.exp((a - 1) * e) + yes * mp.exp(-a * e)) / (a - 1)


RENYI = {"Gaussian": gaussian_renyi, "Laplace": laplace_renyi, "coin": coin_renyi}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", RENYI)
def test_divergences_enclose_the_closed_form(kind, size):
    loss, exact = CLOSED[kind][0](size), RENYI[kind]
    with mp.workdps(500):
        for order in (1e-300, 1e-9, 0.25, 0.5, 1.0, 1.5, 2.0, 1e3, 1e9, 1e15, 1e300):
            truly = exact(size, mp.mpf(order))
            assert encloses(loss.renyi(order), truly), f"order {order}: {loss.renyi(order)!r}, {mp.nstr(truly, 20)}"
            assert encloses((10**6 * loss).renyi(order), 10**6 * truly), f"a million, order {order}"
        assert encloses(loss.chi_squared(), mp.expm1(exact(size, mp.mpf(2))))
        assert encloses(loss.hellinger(), -mp.expm1(-exact(size, mp.mpf(1) / 2) / 2))
        if kind == "Gaussian":
            assert encloses(loss.zcdp(), mp.mpf(size) ** 2 / 2)
            assert encloses(loss.gdp(), mp.mpf(size))
        if kind == "coin":
            assert encloses(loss.zcdp(), exact(size, mp.mpf(1)))  # the least order is the worst


def test_a_divergence_beyond_floats_is_larger_than_every_float():
    for loss in (L.GaussianLoss(1e4), L.LaplaceLoss(1e4), L.RandomizedResponseLoss(1e100)):
        assert loss.chi_squared().lower > 1.79e308
        assert loss.chi_squared().upper == math.inf
        assert loss.hellinger().lower > 1 - 1e-14
        assert loss.total_variation().lower > 1 - 1e-14


@pytest.mark.parametrize("size", [1e-12, 5.0, 30.0])
def test_rare_leaks_do_not_hide_in_underflow(size):
    """Sampled with a rate of 1e-200 the profile underflows where e^{st} times it does not."""
    loss, rate = L.PoissonSampledLoss(L.GaussianLoss(20 * size), 1e-200), mp.mpf(1e-200)
    with mp.workdps(600):
        for a in (2, 3):  # E_Q[(1 − q + q·e^L)^a], term by term
            m = mp.mpf(20 * size)
            terms = [
                mp.binomial(a, j) * (1 - rate) ** (a - j) * rate**j * mp.exp(j * (j - 1) * m * m / 2)
                for j in range(a + 1)
            ]
            least = mp.log(mp.fsum(terms)) / (a - 1)
            found = loss.remove.renyi(float(a))
            assert found.lower <= least <= found.upper or abs(least) < 1e-300
            assert loss.remove.renyi(a + 0.5).upper >= least
            assert loss.remove.renyi(a - 0.5).lower <= least


# ---- trade-off functions --------------------------------------------------------------------------------------------


def gaussian_trade_off(x: float, a: mp.mpf) -> mp.mpf:
    """Φ(z − μ) with Φ(−z) = a."""
    z = -mp.sqrt(2) * mp.erfinv(2 * a - 1)
    return truth.upper_tail(mp.mpf(x) - z)


def laplace_trade_off(x: float, a: mp.mpf) -> mp.mpf:
    e = mp.mpf(x)
    if a < mp.exp(-e) / 2:
        return 1 - mp.exp(e) * a
    return mp.exp(-e) / (4 * a) if a <= 0.5 else mp.exp(-e) * (1 - a)


def coin_trade_off(x: float, a: mp.mpf) -> mp.mpf:
    e = mp.mpf(x)
    return max(1 - mp.exp(e) * a, mp.exp(-e) * (1 - a), mp.mpf(0))


TRADE_OFFS = {"Gaussian": gaussian_trade_off, "Laplace": laplace_trade_off, "coin": coin_trade_off}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", TRADE_OFFS)
def test_trade_offs_enclose_the_closed_form(kind, size):
    loss = CLOSED[kind][0](size)
    with mp.workdps(400):
        for alpha in (1e-300, 1e-9, 0.05, 0.5, 1 - 1e-9):
            found, exact = loss.trade_off(alpha), TRADE_OFFS[kind](size, mp.mpf(alpha))
            assert encloses(found, exact), f"α = {alpha}: {found!r} misses {mp.nstr(exact, 20)}"


# ---- the sweep ------------------------------------------------------------------------------------------------------

replaced = sf.ReplaceOne
NOISES, SMOOTH = sf.dependent, sf.dependent.SmoothLoss
NEVER_TO_SURE = (0.0, 5e-324, 0.5, 1.0, 1.0)
MIXED = (1 - 1e-15, 1e-15), (1e-300, 1.0)
EXTREMES: list[PrivacyLoss] = [
    *(build(x) for x in (1e-100, 1e4, 1e100) for build in (L.GaussianLoss, L.LaplaceLoss, L.BoundedRangeLoss)),
    *(L.PureLoss(x) for x in (1e-100, 1e4, 1e100)),
    *(L.RandomizedResponseLoss(x, k) for x, k in ((1e-100, 3), (1.0, 10**15), (800.0, 3), (1e100, 10**15))),
    *(L.ApproxLoss(x, d) for x, d in ((1e-100, 1e-6), (1.0, 5e-324), (0.0, 1 - 2**-53), (1.0, 1.0), (1e4, 0.5))),
    *(L.StaircaseLoss(x, g) for x, g in ((1e-100, 0.3), (800.0, 0.0), (1e4, 1e-300), (1e100, 1.0))),
    *(L.DiscreteGaussianLoss(s, d) for s, d in ((1e-3, 1), (1e4, 1), (1.0, 10**6), (1e-3, 10**15), (1e100, 1))),
    *(L.DiscreteLaplaceLoss(s, d) for s, d in ((1e-3, 1), (1e4, 1), (1e4, 10**15), (1e100, 1))),
    *(L.ZcdpLoss(rho, xi) for rho, xi in ((1e-100, 0.0), (1e4, 1e4))),
    *(L.TcdpLoss(rho, omega) for rho, omega in ((1e-3, 10.0), (0.5, 50.0))),
    L.RenyiLoss((1 + 1e-15, 1e12), (1e-100, 1e100)),
    L.FinitePairLoss(*MIXED),
    L.FinitePairLoss((1.0, 5e-324), (5e-324, 1.0)),
    L.FinitePairLoss((1.0, 0.0), (0.0, 1.0)),
    L.TabulatedLoss((0.0, 1e-12, 690.0), (0.3, 0.3, 1e-300), (0.3, 0.1, 0.0), (0.3, 0.2, 0.0), (0.3, 0.0, 0.0)),
    L.either(L.GaussianLoss(1e4), L.LaplaceLoss(1e-100)),
    *(L.PoissonSampledLoss(L.GaussianLoss(x), q) for x, q in ((1e4, 1e-200), (1.0, 1 - 2**-53))),
    L.PoissonSampledLoss(L.LaplaceLoss(1e4), 1.0),
    *(L.SampledGaussianGroupLoss(x, q, k) for x, q, k in ((1e4, 1e-200, 3), (1.0, 1 - 2**-53, 100), (1e-100, 0.5, 2))),
    L.PoissonSampledLoss(L.LaplaceLoss(1e4), 0.5).reverse,
    L.WithoutReplacementLoss(L.GaussianLoss(1e4, relation=replaced), 10**15, 1),
    L.WithoutReplacementLoss(L.LaplaceLoss(1e-12, relation=replaced), 10**15, 10**15 - 1),
    L.PoissonSampledLoss(L.LaplaceLoss(1e100), 1e-3).add,
    *(L.SelectedLoss(L.GaussianLoss(x), NegativeBinomialRuns(stop)) for x, stop in ((1e-100, 0.5), (1.0, 1e-3))),
    LeakyLoss(L.GaussianLoss(1e4), 5e-324),
    LeakyLoss(L.DiscreteLaplaceLoss(1e4), 1 - 2**-53),
    *(L.GatedLoss(L.GaussianLoss(x), NEVER_TO_SURE, NEVER_TO_SURE[::-1], 5e-324) for x in (1e-100, 1e4)),
    L.GatedLoss(L.PureLoss(1e100), (5e-324, 2**-53, 1.0), (1.0, 1 - 2**-53, 0.0), 1 - 2**-53),
    L.GatedLoss(L.nothing(), (1.0,), (0.0,), 0.0),
    L.GatedLoss(
        L.PoissonSampledLoss(L.LaplaceLoss(1e4), 1e-3).add, (1e-300, 0.5), (1.0, 0.5), 0.0, relation=sf.Relation.Add
    ),
    *(SMOOTH(NOISES.StudentNoise(d), s, t) for d, s, t in ((3, 1e-4, 3.0), (200, 100.0, 0.0))),
    SMOOTH(NOISES.GaussianNoise(), 100.0, 3.0, 1, 100.0),
    SMOOTH(NOISES.CauchyNoise(2.0), 100.0, 1e-300, 2, 100.0),
    SMOOTH(NOISES.ArsinhNormalNoise(2.0), 1e-4, 1e-12),
    *(L.SignedPairLoss(x, w) for x, w in ((1e-12, 0.5), (30.0, 0.99), (1.0, 1e-12))),
    *(L.ShuffledLoss(x, n, 1 / (math.exp(x) + 1), 0.0, 0.0) for x, n in ((0.01, 2), (10.0, 10**4), (1.0, 10**5))),
    10**15 * L.PureLoss(1e-12),
    10**15 * L.PureLoss(1e100),
]


def sampled(loss: PrivacyLoss) -> PrivacyLoss:
    if loss.relation is replaced:
        return L.WithoutReplacementLoss(loss, 1000, 3)
    return loss if loss.relation.one_way else L.PoissonSampledLoss(loss, 1e-3)


SHAPES = {
    "alone": lambda loss: loss,
    "with a coin": lambda loss: loss + L.RandomizedResponseLoss(COIN, relation=loss.relation),
    "a million": lambda loss: 10**6 * loss,
    "reversed": lambda loss: loss.reverse,
    "sampled": sampled,
    "three people": lambda loss: loss.group(3),
}
FAR = np.array([0.0, 3.0, 1e200, math.inf])
LOOKS = {
    "profile": lambda loss: loss.delta(FAR, tolerance=1e-2),
    "ε": lambda loss: loss.epsilon(1e-6, tolerance=1e-2),
    "Hellinger": lambda loss: loss.hellinger(),
    "largest": lambda loss: loss.renyi(math.inf),
}
MORE_LOOKS = {
    "ε of 0": lambda loss: loss.epsilon(0.0),
    "ε of little": lambda loss: loss.epsilon(1e-300),
    "trade-off": lambda loss: loss.trade_off(0.05),
    "trade-off of little": lambda loss: loss.trade_off(1e-300),
    "Rényi": lambda loss: loss.renyi(2.0),
    "Rényi of little": lambda loss: loss.renyi(1e-300),
    "Rényi far out": lambda loss: loss.renyi(1e300),
    "KL": lambda loss: loss.kl(),
    "χ²": lambda loss: loss.chi_squared(),
    "hockey stick": lambda loss: loss.hockey_stick(0.5),
    "price": lambda loss: loss.gdp(1e-6, tolerance=1e-2),
    "price without slack": lambda loss: loss.gdp(tolerance=1e-2),
}


def problem(loss: PrivacyLoss, look) -> str | None:
    """What is wrong with an answer: sides that are no numbers or not in order, or an error that does not help."""
    try:
        found = look(loss)
    except SfumatoError as error:
        return None if "do:" in str(error) else f"unhelpful: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if np.all(np.asarray(found.lower) <= np.asarray(found.upper)) else f"crossed: {found}"


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_every_view_answers_or_refuses_in_words(shape, request):
    """Alone a loss is looked at in four ways, and in four others, which take turns; in any other shape each third loss
    is looked at in one of four. `make laws` looks at all losses in all ways."""
    thorough = bool(request.config.getoption("--examples"))
    wrong, turns, more = [], itertools.cycle(LOOKS.items()), itertools.cycle(MORE_LOOKS.items())
    for loss in EXTREMES if thorough or shape == "alone" else EXTREMES[list(SHAPES).index(shape) % 3 :: 3]:
        try:
            shaped = SHAPES[shape](loss)
        except SfumatoError as error:
            wrong += [] if "do:" in str(error) else [f"{loss}: unhelpful: {error}"]
            continue
        looks = dict([next(turns)])
        if thorough:
            looks = {**LOOKS, **MORE_LOOKS}
        elif shape == "alone":
            looks = {**LOOKS, **dict(itertools.islice(more, 4))}
        wrong += [f"{loss} {shape}, {view}: {bad}" for view, look in looks.items() if (bad := problem(shaped, look))]
    assert not wrong


def test_every_class_is_in_the_sweep():
    inside = {type(loss) for loss in EXTREMES}
    assert concrete_classes() - inside - {type(L.nothing())} == set()
