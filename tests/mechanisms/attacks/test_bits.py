"""A1, precision, and A9, reachability: the bits of a double reveal the value that noise was added to.

v + noise in doubles has fewer low bits the larger v is, and many doubles can be reached from one v only (Mironov 2012;
Haney et al. 2022). Answers on a public lattice are the same doubles for all v.

Random bits are recorded. With other bits, a correct mechanism would be reported with probability below 1e-3 in all:
some 80 cuts with two bounds each, at 1e-6.
"""

from dataclasses import fields, is_dataclass
from numbers import Number

import numpy as np
import pytest

import sfumato as sf
from tests.checks.mechanism_examples import EXAMPLES
from tests.mechanisms.attacks.common import answers, excess, promised
from tests.mechanisms.attacks.naive import NaiveGaussian, NaiveLaplace
from tests.noise.sources import Recorded

N = 10_000
CUTS = range(-75, 4)
FINE = [example for example in EXAMPLES if example.step != 1 and not isinstance(example.neighbours[0].first, dict)]
PAIRS = [(example, pair) for example in FINE for pair in example.neighbours]
NAIVE = [(NaiveLaplace, sf.Laplace(1.0).loss(1)), (NaiveGaussian, sf.Gaussian(1.0).loss(1))]


def lowest_bit(x):
    """The exponent of the lowest set bit of each double; that of 0 is large."""
    mantissa, exponent = np.frexp(np.asarray(x, np.float64))
    whole = (mantissa * 2.0**53).astype(np.int64)
    return np.where(whole == 0, 9999, np.log2(np.maximum(whole & -whole, 1)).astype(int) + exponent - 53)


def numbers(output):
    """The numbers inside an answer, place by place: of a report, those of its fields; what is no number is none."""
    if is_dataclass(output):
        return [x for field in fields(output) for x in numbers(getattr(output, field.name))]
    if isinstance(output, dict):
        return numbers(list(output.values()))
    if isinstance(output, list | tuple | np.ndarray):
        return [x for part in output for x in numbers(part)]
    return [float(output)] if isinstance(output, Number) else []


def lowest_bits(*sides):
    """For each answer the lowest bit in all its numbers but those that never change: they would hide the others."""
    rows = [list(map(numbers, side)) for side in sides]
    width = max(len(row) for side in rows for row in side)
    wide = [np.array([row + [0.0] * (width - len(row)) for row in side]) for side in rows]  # a 0 has no lowest bit
    both = np.concatenate(wide)
    moving = np.any(both != both[0], axis=0)
    assert np.any(moving), "nothing in the answers changes: there is nothing to attack"
    return [lowest_bit(side[:, moving]).min(axis=1) for side in wide]


def precision_attack(found, loss):
    """The worst excess over all events "the lowest set bit is below 2^c"."""
    bits = lowest_bits(*found)
    n, promises = len(bits[0]), promised(loss)
    return max(excess([int((side < c).sum()) for side in bits], n, promises) for c in CUTS)


def test_the_lowest_bit():
    assert lowest_bit([1.0, 0.75, 6.0, -(2.0**-40), 0.0, 1 + 2.0**-52]).tolist() == [0, -2, 1, -40, 9999, -52]


def test_numbers_are_found_wherever_they_are():
    public = sf.dependent.PredictionVariance((0.6, 0.8))
    assert numbers(sf.dependent.Passed(3, 0.5)) == [3.0, 0.5]
    assert numbers(sf.dependent.Leverages(public, 7)) == [0.6, 0.8, 1.0, 7.0]
    assert numbers({"a": [1, (2.5, None)], "b": np.array([[0.25]])}) == [1.0, 2.5, 0.25]
    sides = [[sf.dependent.Leverages(public, 7 + i) for i in range(k, k + 2)] for k in (0, 1)]
    assert [side.tolist() for side in lowest_bits(*sides)] == [[0, 3], [3, 0]]  # 0.6 is the same in all
    assert [side.tolist() for side in lowest_bits([None, 2.0], [0.5, None])] == [[9999, 1], [-1, 9999]]


def test_every_float_release_is_attacked():
    assert {type(example.make(Recorded("a"))).__name__ for example in FINE} >= {
        "Gaussian",
        "Laplace",
        "DiscreteGaussian",
        "DiscreteLaplace",
        "Staircase",
        "BoundedSum",
        "BoundedMean",
        "SearchTestRelease",
        "LeverageReport",
    }


@pytest.mark.parametrize(("example", "pair"), PAIRS, ids=str)
def test_precision_tells_nothing(example, pair):
    mechanism = example.make(Recorded(f"precision {example}"))
    n = N if example.rows else N // 10
    found = [answers(mechanism, value, n, example.rows) for value in (pair.first, pair.second)]
    assert precision_attack(found, mechanism.loss(*pair.loss_arguments)) <= 0


@pytest.mark.parametrize(("naive", "loss"), NAIVE, ids=["Laplace", "Gaussian"])
def test_precision_breaks_naive_noise(naive, loss):
    found = [answers(naive(), value, N, rows=True) for value in (0.0, 1.0)]
    assert precision_attack(found, loss) > 0.1


# ---- A9: from which values can an answer be reached? -----------------------------------------------------------------


def reachable_by_the_naive_laplace(y, value):
    """Is there a uniform u = k/2⁵³ and a sign with value ± log(1 − u) = y in doubles? Near the only u there can be."""
    found = np.zeros(len(y), bool)
    for sign in (-1.0, 1.0):
        near = np.rint(-np.expm1(-np.abs(y - value)) * 2.0**53)
        for k in range(-40, 41):
            u = np.clip(near + k, 0, 2.0**53 - 1) / 2.0**53
            found |= value + sign * np.log1p(-u) == y
    return found


def test_reachability_breaks_naive_noise():
    found = [answers(NaiveLaplace(seed), value, N, rows=True) for seed, value in enumerate((0.0, 1.0))]
    own = [reachable_by_the_naive_laplace(y, value).mean() for y, value in zip(found, (0.0, 1.0), strict=True)]
    assert min(own) > 0.999  # all answers come from somewhere, and the search finds it
    hits = [int((~reachable_by_the_naive_laplace(y, 1.0)).sum()) for y in found]
    assert excess(hits, N, promised(sf.Laplace(1.0).loss(1))) > 0.1


@pytest.mark.parametrize("example", [x for x in FINE if x.step], ids=str)
def test_every_answer_can_be_reached_from_every_value(example):
    """All answers are multiples of the step, and the low bits of the multiples take all values on both sides."""
    mechanism = example.make(Recorded(f"reach {example}"))
    for pair in example.neighbours:
        seen = []
        for value in (pair.first, pair.second):
            found = np.asarray(answers(mechanism, value, 2000, example.rows), np.float64).reshape(-1)
            multiples = np.ldexp(found, -int(np.log2(float(example.step))))  # exact
            assert np.all(multiples == np.rint(multiples))
            seen.append(set((multiples.astype(np.int64) & 15).tolist()))
        assert seen[0] == seen[1]
        assert len(seen[0]) >= (16 if example.step < 0.1 else 2)
