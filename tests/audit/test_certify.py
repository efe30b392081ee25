"""The bound from two counts holds as often as stated: by enumeration of all counts, without sampling."""

import math

import numpy as np
import pytest
from scipy import special
from scipy.special import gammaln, xlog1py, xlogy

from sfumato.audit.certify import Alternative, Counts, best_bets, clopper_pearson, is_refuted, lower_bound, tail

N = 18


def binomial(n, p):
    k = np.arange(n + 1)
    return np.exp(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p) + xlog1py(n - k, -p))


def bounds(alternative, delta, alpha):
    """lower_bound at all pairs of counts."""
    return np.array(
        [[lower_bound(Counts(k, m, N), alternative, delta, alpha) for m in range(N + 1)] for k in range(N + 1)]
    )


@pytest.mark.parametrize("alternative", [Alternative(0.9, 0.3, 0.05), Alternative(0.5, 0.02, 0.07)], ids=str)
@pytest.mark.parametrize("delta", [0.0, 0.15])
def test_no_pair_of_chances_is_overestimated_more_often_than_promised(alternative, delta):
    alpha = 0.1
    table, most = bounds(alternative, delta, alpha), 0.0
    for eps in (0.0, 0.4, 1.0, 2.0, 3.0):
        for q in np.linspace(0.0, (1 - delta) * math.exp(-eps), 41):
            p = min(1.0, math.exp(eps) * q + delta)
            missed = binomial(N, p) @ (table > eps) @ binomial(N, q)
            assert missed <= alpha
            most = max(most, missed)
    assert most > alpha / 4  # the promise is not kept by saying nothing


def test_more_is_certified_than_by_two_separate_intervals():
    n, alpha = 32768, 0.001
    counts, alternative = Counts(round(0.5 * n), round(0.5 / math.e * n), n), Alternative(0.5, 0.5 / math.e, 0.002)
    low, high = clopper_pearson(counts.first, n, alpha)[0], clopper_pearson(counts.second, n, alpha)[1]
    apart = math.log(low / high)
    assert apart + 0.01 < lower_bound(counts, alternative, 0.0, alpha) < 1


def test_the_bound_is_at_least_the_bet_alone():
    counts, alternative, alpha = Counts(900, 200, 2000), Alternative(0.45, 0.1, 0.01), 0.01
    ladder = np.arange(0.0, 3.0, 0.01)
    lost = best_bets(alternative, ladder, 0.0).wealth(counts) >= math.log(1 / alpha) + 1e-6
    assert lower_bound(counts, alternative, 0.0, alpha) >= ladder[np.argmin(lost) - 1] - 1e-9 > 1


@pytest.mark.parametrize("delta", [0.0, 0.01, 0.3])
def test_bets_are_fair_on_the_border_and_worse_inside(delta):
    bets = best_bets(Alternative(0.8, 0.1, 0.1), np.linspace(0, 1.9, 20), delta)
    assert (bets.stake > 0).sum() >= 5
    for r, p, q, u in zip(bets.r, bets.p, bets.q, bets.stake, strict=True):
        assert p == pytest.approx(r * q + delta, rel=1e-12)
        assert 1 - u * p >= 0
        assert 1 - r * u * (1 - q) >= 0
        for true_q in np.linspace(0, (1 - delta) / r, 50):
            for true_p in (r * true_q + delta, (r * true_q + delta) / 2):
                mean = (1 + u * (true_p - p)) * (1 - r * u * (true_q - q))
                assert mean <= 1 + 1e-12


@pytest.mark.parametrize(("n", "p", "q"), [(50, 0.3, 0.05), (3000, 0.5, 0.2), (3000, 0.01, 0.001), (40, 1.0, 0.0)])
def test_the_exact_tail_is_the_sum_over_all_counts(n, p, q):
    a, b = 0.7, 1.9
    statistic = a * np.arange(n + 1)[:, None] - b * np.arange(n + 1)
    joint = np.outer(binomial(n, p), binomial(n, q))
    for t in (a * n * p - b * n * q + s for s in (-5.03, 0.01, 3.07, 20.03)):
        truth = joint[statistic >= t].sum()
        assert truth <= tail(a, b, t, n, p, q) <= truth * (1 + 1e-6) + 1e-11


def test_the_exact_law_refutes_whatever_the_bet_refutes_clearly():
    """P(T ≥ t) ≤ 1/wealth by Markov, up to the cells' width and the share of the interval."""
    counts, alternative = Counts(1000, 300, 2000), Alternative(0.5, 0.15, 0.01)
    bets = best_bets(alternative, np.arange(0.8, 1.2, 0.02), 0.0)
    exact = [is_refuted(counts, bets, i, 0.0, 0.01) for i in range(len(bets.r))]
    clear = bets.wealth(counts) >= math.log(100) + 0.3
    assert clear.any()
    assert not all(exact)
    assert all(np.array(exact)[clear])


def test_counts_that_say_nothing_certify_nothing():
    for k, m in ((0, 0), (0, 500), (500, 500), (1000, 1000), (250, 260)):
        assert lower_bound(Counts(k, m, 1000), Alternative(0.5, 0.1, 0.01), 0.0, 0.01) == 0


def test_an_event_that_never_happens_on_one_side_certifies_the_most_there_is():
    n, alpha = 10_000, 0.001
    found = lower_bound(Counts(n, 0, n), Alternative(1 - 0.5 / n, 0.5 / n, 0.01), 0.0, alpha)
    assert math.log(n / math.log(1 / alpha)) - 0.1 < found < math.log(n / math.log(1 / alpha))


def test_intervals_are_those_of_clopper_and_pearson():
    for k, n in ((0, 10), (3, 10), (10, 10), (700, 1000)):
        low, high = clopper_pearson(k, n, 0.02)
        assert k == 0 or special.bdtrc(k - 1, n, low) == pytest.approx(0.01, rel=1e-5)
        assert k == n or special.bdtr(k, n, high) == pytest.approx(0.01, rel=1e-5)
        assert low <= k / n <= high
