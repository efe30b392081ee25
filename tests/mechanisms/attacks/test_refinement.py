"""A8: rare branches of exact sampling, forced to be taken often.

With words of 64 bits, ball arithmetic decides once in thousands of draws and the tail is hardly ever sampled, so a
mistake there would stay hidden. With words of a few bits these branches are taken often. The law over all bit strings
up to a length must be the law of the mechanism: found ≤ p ≤ found + the mass of longer strings.
tests/noise/test_exact.py and test_selection.py do this for each law; here it is done for whole releases.
"""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.special import gammaincc

import sfumato as sf
from sfumato.mechanisms.choice import exponential, permute_and_flip, top_k
from sfumato.noise import Bernoulli, Rounding, Sampler, peel, select
from sfumato.noise import permute_and_flip as flip
from sfumato.noise.balls import ball, precision
from sfumato.noise.draw_table import Words
from tests.mechanisms import laws
from tests.mechanisms.oracle import e, exact, normalised
from tests.noise.sources import Recorded, Scripted, all_bit_strings

TINY = Words(guide=2, word=5, coin=2, step=1, bins=2, reach=2)
DEPTH = 12
FAR = 60  # beyond it, outcomes are one


def found_by_all_bits(mechanism, source, value, depth=DEPTH):
    def run():
        answer = mechanism.release(value)
        flat = answer.reshape(-1).tolist() if hasattr(answer, "reshape") else [answer]
        return tuple(flat) if len(flat) > 1 else flat[0]

    return all_bit_strings(run, source, depth)


def assert_is_the_law(found, left, law):
    assert left < 0.7 and len(found) >= 2
    with precision(300):
        for outcome, p in found.items():
            assert not ball(p) > law[outcome], outcome
            assert not ball(p + left) < law[outcome], outcome


def tiny(mechanism):
    """The same mechanism with tiny words."""
    vars(mechanism)["sampler"] = Sampler(mechanism.law(), TINY, mechanism.source)
    if (density := mechanism.density()) is not None:
        vars(mechanism)["rounding"] = Rounding(density, TINY, mechanism.source, fine=1)
    return mechanism


WHOLE = {
    "DiscreteLaplace": (lambda s: sf.DiscreteLaplace(1.5, source=s), laws.discrete_laplace(1.5, FAR)),
    "DiscreteGaussian": (lambda s: sf.DiscreteGaussian(1.0, source=s), laws.discrete_gaussian(1.0, FAR)),
    "Gaussian": (lambda s: sf.Gaussian(1.0, source=s), laws.rounded_gaussian(1, FAR)),
    "Laplace": (lambda s: sf.Laplace(1.0, source=s), laws.rounded_laplace(1, FAR)),
    "Staircase": (lambda s: sf.Staircase(1.0, 2.0, 0.5, source=s), laws.rounded_staircase(1, 2, Fraction(1, 2), FAR)),
    "TruncatedLaplace": (lambda s: sf.TruncatedLaplace(1.5, 4, source=s), laws.truncated_laplace(1.5, 4)),
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("value", [0, -3])
def test_whole_numbers_get_their_law(name, value):
    source = Scripted()
    make, law = WHOLE[name]
    found, left = found_by_all_bits(tiny(make(source)), source, [value])
    assert_is_the_law(found, left, laws.moved(law, value))


@pytest.mark.parametrize("v", [0.25, -0.625])
def test_real_numbers_get_their_law(v):
    for make, law in (
        (lambda s: sf.Gaussian(1.0, source=s), laws.rounded_gaussian(1, FAR, Fraction(v))),
        (lambda s: sf.Laplace(1.0, source=s), laws.rounded_laplace(1, FAR, Fraction(v))),
    ):
        source = Scripted()
        found, left = found_by_all_bits(tiny(make(source)), source, [v])
        assert_is_the_law(found, left, law)


SCORES, RATE = [0.0, 1.0, -0.5], Fraction(1, 2)


@exact
def exponential_law():
    return normalised({i: e(RATE * Fraction(score)) for i, score in enumerate(SCORES)})


@exact
def peeled_law():
    law = {}
    for i, first in exponential_law().items():
        rest = normalised({j: e(RATE * Fraction(SCORES[j])) for j in range(3) if j != i})
        law |= {(i, j): first * p for j, p in rest.items()}
    return law


@exact
def flipped_law():
    """The sum over all subsets of heads."""
    heads = [e(RATE * (Fraction(score) - Fraction(max(SCORES)))) for score in SCORES]
    law = dict.fromkeys(range(3), ball(Fraction(0)))
    for subset in range(8):
        here = [i for i in range(3) if subset >> i & 1]
        p = ball(Fraction(1))
        for i, chance in enumerate(heads):
            p *= chance if i in here else 1 - chance
        for i in here:
            law[i] += p / len(here)
    return law


CHOICES = {
    "Exponential": (lambda s: sf.Exponential(1.0, 1, source=s), exponential, "select", select, exponential_law),
    "TopK": (lambda s: sf.TopK(2, 1.0, 1, source=s), top_k, "peel", peel, peeled_law),
    "PermuteAndFlip": (
        lambda s: sf.PermuteAndFlip(1.0, 1, source=s),
        permute_and_flip,
        "permute_and_flip",
        flip,
        flipped_law,
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choices_get_their_law(name, monkeypatch):
    make, module, called, function, law = CHOICES[name]
    monkeypatch.setattr(module, called, partial(function, words=Words(guide=2, word=3, coin=2, step=1)))
    source = Scripted()
    found, left = found_by_all_bits(make(source), source, SCORES)
    assert_is_the_law(found, left, law())


@pytest.mark.parametrize("k", [2, 3])
def test_responses_get_their_law(k):
    source = Scripted()
    mechanism = sf.RandomizedResponse(1.0, k, source=source)
    vars(mechanism)["honest"] = Bernoulli(mechanism.honest.p, Words(guide=2, step=1), source)
    found, left = found_by_all_bits(mechanism, source, [1])
    assert_is_the_law(found, left, exact(lambda: normalised({i: e(Fraction(i == 1)) for i in range(k)}))())


# ---- with recorded bits, as the strings above are too short to tell laws apart that are near -------------------------


def misfit(found, law):
    """The probability of a chi-square this large if `found` has this law; outcomes that are rare are one."""
    n, outcomes = len(found), [k for k, p in law.items() if float(p) * len(found) >= 5]
    expected = np.array([float(law[k]) * n for k in outcomes])
    counts = np.array([sum(x == k for x in found) for k in outcomes])
    rest = n - expected.sum()
    chi = ((counts - expected) ** 2 / expected).sum() + ((n - counts.sum() - rest) ** 2 / rest if rest > 5 else 0)
    return float(gammaincc((len(outcomes) - (rest <= 5)) / 2, chi / 2))


def many_answers(name, value, n=4000):
    source = Recorded(f"refined {name} {value}")
    return tiny(WHOLE[name][0](source)).release(np.full(n, value)).tolist()


@pytest.mark.parametrize("name", WHOLE)
def test_many_whole_numbers_fit_their_law(name):
    assert misfit(many_answers(name, 2), laws.moved(WHOLE[name][1], 2)) > 1e-6  # the false-alarm probability


@pytest.mark.parametrize(("name", "law"), [("Gaussian", laws.rounded_gaussian), ("Laplace", laws.rounded_laplace)])
def test_many_real_numbers_fit_their_law(name, law):
    found = many_answers(name, 0.3)
    assert misfit(found, law(1, FAR, Fraction(0.3))) > 1e-6
    assert misfit(found, law(1, FAR, Fraction(0))) < 1e-6  # 0.3 away, it would be noticed


def test_a_law_that_is_slightly_wrong_is_noticed():
    assert misfit(many_answers("DiscreteLaplace", 0), laws.discrete_laplace(1.3, FAR)) < 1e-6
