"""Joint noise: its law, what it costs, and its tails, against the definition summed point by point."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import bdtr, bdtrc

from sfumato.errors import InvalidParameter
from sfumato.noise import JointLaplace, Margin, Sampler
from sfumato.noise.balls import ball, precision
from sfumato.noise.draw_table import BRIEF, USUAL
from sfumato.noise.joint_laplace import Level, level_tail
from sfumato.noise.sampler import LARGEST
from sfumato.noise.uniform import below_each
from tests.noise.sources import RanOut, Recorded, Scripted, all_bit_strings
from tests.noise.test_exact import TINY, assert_proportional
from tests.noise.test_statistics import chi_square

F = Fraction
LAWS = {
    "a count and a sum": JointLaplace(F(1, 2), (2, 5), (F(3, 8), 0)),
    "several levels": JointLaplace(3, (2, 5), (F(3, 8), 0)),
    "no favours": JointLaplace(2, (3, 2)),
    "three": JointLaplace(2, (1, 3, 2), (F(1, 4), 0, 0)),
    "two favours": JointLaplace(2, (1, 3, 2), (F(1, 4), F(1, 8), 0)),
    "favours only": JointLaplace(F(7, 2), (3, 2), (F(1, 4), F(1, 8))),
    "one": JointLaplace(1, (3,)),
    "dear": JointLaplace(20, (2, 7), (F(3, 8), 0)),
}
every = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)


def norm(law, z):
    """N of each row of z, from the definition, as whole numbers; and what 1 is in them."""
    shares, z = [F(w) for w in law.favours], np.abs(np.asarray(z))
    whole = math.lcm(*(w.denominator for w in shares)) * math.lcm(*law.sizes) * law.levels
    levels = np.max([-(-z[..., j] * law.levels // s) for j, s in enumerate(law.sizes)], axis=0)
    own = sum(z[..., j] * int(w * whole / s) for j, (w, s) in enumerate(zip(shares, law.sizes, strict=True)))
    return own + int((1 - sum(shares)) * whole / law.levels) * levels, whole


def grid(*ends):
    """All whole points from −end to end."""
    return np.stack(np.meshgrid(*(np.arange(-e, e + 1) for e in ends), indexing="ij"), -1).reshape(-1, len(ends))


def points(law, steep=34.0):
    """All points of a box beyond which there is less than 1e-9 (steep = 25: 1e-6), and their chances."""
    every = grid(*(math.ceil(steep * s / float(law.eps)) for s in law.sizes))
    cost, whole = norm(law, every)
    weights = np.exp(-float(law.eps) / whole * cost)
    return every, weights / weights.sum()


# ---- privacy ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [None, 1, 3])
@every
def test_no_move_within_the_box_costs_more_than_epsilon(law, levels):
    """In whole numbers: all moves, from all points near 0 and from some far out. And some moves cost all of ε."""
    law = JointLaplace(law.eps, law.sizes, law.favours)
    object.__setattr__(law, "levels", levels or law.levels)  # any number of them is private
    near = grid(*(2 * s + 1 for s in law.sizes))
    start = np.concatenate([near, near + 17 * np.array(law.sizes)])
    before, whole = norm(law, start)
    costs = [norm(law, start + move)[0] - before for move in grid(*law.sizes)]
    assert np.max(costs) == whole
    assert np.min(costs) == -whole


@every
def test_weights_are_those_of_the_norm(law):
    for z in product(*([-2 * s - 1, -1, 0, s, 3 * s + 1] for s in law.sizes)):
        cost, whole = norm(law, z)
        with precision(200):
            assert law.weight(z, 150).log().overlaps(ball(-F(law.eps) * int(cost) / whole))
            assert law.weight(z, 150).rel_accuracy_bits() > 140


# ---- draws -----------------------------------------------------------------------------------------------------------

LEVELS = {
    "one part": Level(F(1, 2), (3,), 1),
    "finer than its size": Level(F(1, 2), (2,), 5),
    "in bins": Level(F(1, 9), (4, 3), 2),
    "nothing to fill": Level(F(1, 2), (), 1),
}


@pytest.mark.parametrize("law", LEVELS.values(), ids=LEVELS)
def test_a_level_has_its_law_over_all_bit_strings(law):
    """What is made of levels is exact by the same test of `DiscreteLaplace` and of `below_each`, and by Theorem 3."""
    source = Scripted()
    found, left = all_bit_strings(Sampler(law, TINY, source).round, source, 14)
    assert found.pop(None, 0) < 1
    assert left < F(1, 10)
    assert len(found) >= 6
    assert_proportional(found, left, law.weight)


@pytest.mark.parametrize("words", [USUAL, BRIEF], ids=["usual", "brief"])
@every
def test_draws_follow_their_law(law, words):
    """Recorded bits; with others each of 16 tests would fail with 1e-4."""
    n = 60_000
    noise, beyond = law.draw_with_beyond(n, words, Recorded(f"joint {law} {words.bins}"))
    assert not beyond
    every, p = points(law, 25.0)
    ends = -every[0]
    inside = (np.abs(noise) <= ends).all(axis=1)
    assert inside.sum() > n - 20
    shape = tuple(2 * e + 1 for e in ends)
    counts = np.bincount(np.ravel_multi_index(tuple((noise[inside] + ends).T), shape), minlength=math.prod(shape))
    assert chi_square(counts, n * p) > 1e-4


def test_fine_lattices_and_small_epsilons_have_the_tails_they_should():
    """Recorded bits; with others each of 24 counts would be off with 1e-7."""
    n = 40_000
    for eps, sizes in ((F(1, 1000), (2, 50 * 2**20)), (1, (1, 2**50)), (F(1, 3), (2**30, 3))):
        law = JointLaplace(eps, sizes, (F(3, 8), 0))
        noise, _ = law.draw_with_beyond(n, source=Recorded(f"tails {law}"))
        for j in range(2):
            margin = Margin(law, j)
            for m in (law.sizes[j], 2 * law.sizes[j] * int(1 + 1 / eps), 5 * law.sizes[j] * int(1 + 1 / eps)):
                p, seen = float(margin.beyond(m, 100)), int((np.abs(noise[:, j]) > m).sum())
                assert bdtr(seen, n, p) > 1e-7
                assert bdtrc(max(seen - 1, 0), n, p) > 1e-7 or seen == 0


@pytest.mark.parametrize("law", [JointLaplace(F(1, 2), (2**60, 3)), JointLaplace(F(1, 2), (2**57, 3), (F(3, 8), 0))])
def test_what_does_not_fit_into_64_bits_is_exact_too(law):
    """Half of the levels or more are beyond; sums saturate, and the tails are those of the law."""
    n, size = 4000, law.sizes[0]
    noise, beyond = law.draw_with_beyond(n, source=Recorded("far"))
    assert n / 3 < len(beyond) < n
    first = [beyond[i][0] if i in beyond else int(noise[i, 0]) for i in range(n)]
    second = [beyond[i][1] if i in beyond else int(noise[i, 1]) for i in range(n)]
    assert max(map(abs, first)) > 8 * size
    for values, place, m in ((first, 0, size // 9), (first, 0, 4 * size), (second, 1, 4), (second, 1, 20)):
        p, seen = float(Margin(law, place).beyond(m, 100)), sum(abs(k) > m for k in values)
        assert min(bdtr(seen, n, p), bdtrc(seen - 1, n, p)) > 1e-7
    values = np.full((n, 2), LARGEST - 5)
    total = law.about(values, source=Recorded("far"))
    assert total[:, 0].tolist() == [max(-LARGEST, min(LARGEST, LARGEST - 5 + k)) for k in first]
    assert total[:, 1].tolist() == [min(LARGEST, LARGEST - 5 + k) for k in second]


def test_rows_are_independent_and_signs_are_fair():
    noise, _ = LAWS["several levels"].draw_with_beyond(50_000, source=Recorded("signs"))
    x = noise[:, 0].astype(float)
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.025  # 5.5 σ
    assert abs(np.corrcoef(noise.T.astype(float))[0, 1]) < 0.025  # as signs are independent
    assert np.corrcoef(np.abs(noise.T.astype(float)))[0, 1] > 0.2  # sizes are not


def test_uniform_numbers_below_bounds_of_their_own_are_uniform():
    source, found = Scripted(), {}
    for bound in (1, 2, 3, 5, 6):
        law, left = all_bit_strings(lambda bound=bound: int(below_each(np.array([bound]), source)[0]), source, 12)
        assert set(law) == set(range(bound))
        assert all(abs(p - F(1, bound)) <= left for p in law.values())
    bounds = np.array([1, 7, 2**62 + 1, 3, 2**63 - 1] * 4000)
    found = below_each(bounds, Recorded("bounds"))
    assert (found >= 0).all()
    assert (found < bounds).all()
    assert chi_square(np.bincount(found[1::5], minlength=7), np.full(7, 4000 / 7)) > 1e-4
    assert abs((found[2::5] / 2.0**62).mean() - 0.5) < 5.5 * (1 / 12 / 4000) ** 0.5
    assert below_each(np.array([], np.int64)).size == 0
    with pytest.raises(RanOut):
        below_each(np.array([3]), Scripted("11"))


# ---- tails -----------------------------------------------------------------------------------------------------------


@every
def test_tails_are_the_sums_of_the_law(law):
    every, p = points(law)
    for j in range(len(law.sizes)):
        for m in (0, 1, 2, law.sizes[j], 3 * law.sizes[j], 7 * law.sizes[j] + 1):
            truth = p[np.abs(every[:, j]) > m].sum()
            assert float(Margin(law, j).beyond(m, 100)) == pytest.approx(truth, rel=1e-6, abs=1e-8)


@every
def test_tails_of_levels_are_the_sums_of_their_weights(law):
    def weight(r):
        sides = [r * s // law.levels for s in law.sizes]
        each = [2 * n + 1 if not w else sum(math.exp(-float(w * law.eps) * abs(k) / s) for k in range(-n, n + 1))
                for n, s, w in zip(sides, law.sizes, law.favours, strict=True)]  # fmt: skip
        return math.exp(-float(law.common) / law.levels * r) * math.prod(each)

    weights = [weight(r) for r in range(300)]
    for r in (0, 1, 5, 20):
        truth = math.fsum(weights[r + 1 :]) / math.fsum(weights)
        assert float(level_tail(law, r, 100)) == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize("eps", [1e-12, 1e-3, 0.3, 100.0])
def test_tails_are_known_at_every_scale(eps):
    """In units of size/ε they are those of the norm without levels: (1 + u/(1 + x))·e^{−u}."""
    law = JointLaplace(eps, (2**16, 2**50), (F(3, 8), 0))
    for u in (0.5, 3, 40):
        m = int(u * 2**16 / eps)
        ball = Margin(law, 0).beyond(m, 100)
        assert float(ball.rad()) < 1e-20
        assert float(ball) == pytest.approx((1 + u / 2.6) * math.exp(-u), rel=1e-2 if u < 10 else 0.05)


# ---- parameters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [(0, (1,)), (math.nan, (1,)), (1, ()), (1, (0,)), (1, (1.5,)), (1, (2**61,)), (1, (1, 2), (0.5,)),
     (1, (1, 2), (0.5, 0.5)), (1, (1, 2), (-0.1, 0)), (1, (1, 2), (math.nan, 0)), (1e5, (1,))],
)  # fmt: skip
def test_parameters_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InvalidParameter, match="do:"):
        JointLaplace(*wrong)


@pytest.mark.parametrize("level", range(4))
@every
def test_one_part_of_a_far_level_has_all_values_of_its_side_and_no_other(law, level):
    """Levels beyond 2⁶¹ are drawn one by one; the law of a part is the same as that of the others, at any level."""
    source = Recorded(f"{level}")
    for j in range(len(law.sizes)):
        side = law.side(j, level)
        drawn = [law._one(j, level, source) for _ in range(60 * (side + 1))]
        assert set(drawn) == set(range(-side, side + 1))
