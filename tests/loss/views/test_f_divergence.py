"""Divergences by any convex f, against the library's own views and 30-digit quadrature."""

import math

import numpy as np
import pytest
from mpmath import mp

import sfumato as sf
from sfumato.errors import InvalidParameter

L = sf.loss


def kl(x: float) -> float:
    return x * math.log(x) if x else 0.0


def reverse_kl(x: float) -> float:
    return -math.log(x)


def jensen_shannon(x: float) -> float:
    return (kl(x) - (1 + x) * math.log((1 + x) / 2)) / 2


def le_cam(x: float) -> float:
    return (x - 1) ** 2 / (x + 1)


PAIRS = [
    L.GaussianLoss(1.0),
    L.GaussianLoss(0.01),
    L.GaussianLoss(4.0),
    L.LaplaceLoss(1.0),
    L.RandomizedResponseLoss(0.5, 4),
    L.ApproxLoss(0.5, 1e-3),
    L.FinitePairLoss((0.6, 0.4), (0.1, 0.9)),
    sf.Poisson(0.1).amplify(L.GaussianLoss(1.0)),
    6 * L.RandomizedResponseLoss(0.2),
    L.either(L.GaussianLoss(0.5), L.LaplaceLoss(0.5)),
]


@pytest.mark.parametrize("loss", PAIRS, ids=str)
def test_famous_divergences_are_special_cases(loss):
    cases = [
        (lambda x: abs(x - 1) / 2, {"at_infinity": 0.5}, loss.total_variation()),
        (lambda x: (math.sqrt(x) - 1) ** 2 / 2, {"at_infinity": 0.5}, loss.hellinger()),
        (lambda x: max(x - 1.4, 0.0), {"at_infinity": 1.0}, loss.hockey_stick(1.4)),
        (kl, {}, loss.kl()),
        (lambda x: (x - 1) ** 2, {}, loss.chi_squared()),
    ]
    for f, known, truth in cases:
        found = loss.f_divergence(f, **known)
        assert found.lower <= truth.upper and truth.lower <= found.upper
        if math.isfinite(truth.upper) and loss.one_pair:
            assert found.gap <= 2e-3 * truth.upper + 1e-12


@pytest.mark.parametrize("f", [jensen_shannon, le_cam, reverse_kl], ids=lambda f: f.__name__)
def test_unusual_divergences_of_normal_laws_agree_with_quadrature(f):
    mu = 1.3
    with mp.workdps(30):
        smooth = {
            "jensen_shannon": lambda x: (x * mp.log(x) - (1 + x) * mp.log((1 + x) / 2)) / 2,
            "le_cam": lambda x: (x - 1) ** 2 / (x + 1),
            "reverse_kl": lambda x: -mp.log(x),
        }[f.__name__]
        truth = float(
            mp.quad(lambda z: smooth(mp.e ** (mu * z - mp.mpf(mu) ** 2 / 2)) * mp.npdf(z), list(range(-12, 13)))
        )
    found = L.GaussianLoss(mu).f_divergence(f)
    assert found.lower <= truth <= found.upper and found.gap < 1e-4 * truth


def test_each_direction_has_its_own_divergence():
    """D_f(P‖Q) by the sum over two outcomes, and the other way round."""
    p, q = (0.6, 0.4), (0.1, 0.9)
    loss = L.FinitePairLoss(p, q)
    for side, (a, b) in ((loss.remove, (p, q)), (loss.add, (q, p))):
        truth = sum(y * le_cam(x / y) for x, y in zip(a, b, strict=True))
        found = side.f_divergence(le_cam)
        assert found.lower <= truth <= found.upper and found.gap < 1e-5
    cubic = loss.remove.f_divergence(lambda x: x**3 - 1 - 3 * (x - 1))
    assert cubic.lower <= sum(y * ((x / y) ** 3 - 1) for x, y in zip(p, q, strict=True)) <= cubic.upper


def test_an_outcome_that_only_one_has_counts_by_the_stated_limit():
    loss = L.ApproxLoss(0.5, 0.01)
    unknown, known = loss.f_divergence(jensen_shannon), loss.f_divergence(jensen_shannon, at_infinity=math.log(2) / 2)
    assert unknown.upper == math.inf and known.upper < 1 and known.gap < 1e-5
    w, e = 0.99 / (1 + math.exp(-0.5)), math.exp(-0.5)
    p, q = np.array([w, w * e, 0.01, 0.0]), np.array([w * e, w, 0.0, 0.01])
    middle = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        truth = 0.5 * np.nansum(p * np.log(p / middle)) + 0.5 * np.nansum(q * np.log(q / middle))
    assert known.lower <= truth <= known.upper


def test_a_faster_growing_f_needs_to_be_said():
    def sixth(x: float) -> float:
        return x**6 - 1 - 6 * (x - 1)

    with pytest.raises(InvalidParameter, match="grows faster"):
        L.GaussianLoss(0.5).f_divergence(sixth)
    found = L.GaussianLoss(0.5).f_divergence(sixth, growth=6)
    truth = math.expm1(15 * 0.25)  # E_Q[X^6] = e^{6·5·μ²/2}
    assert found.lower <= truth <= found.upper and found.gap < 1e-2 * truth


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: x, "must be 0"),
        (lambda x: -((x - 1) ** 2), "must be convex"),
        (lambda x: math.sin(3 * (x - 1)), "must be convex"),
        (lambda x: math.log(-x), "cannot be computed"),
        (0.5, "must be a function"),
    ],
)
def test_what_is_no_divergence_is_refused(f, words):
    with pytest.raises(InvalidParameter, match=words):
        L.LaplaceLoss(1.0).f_divergence(f)
