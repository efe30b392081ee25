"""sfumato: exact draws from the operating system's entropy."""

import time
from fractions import Fraction
from itertools import cycle
from math import log
from secrets import randbits

import numpy as np
from scipy.special import gammaincc

import sfumato as sf
from sfumato import noise
from sfumato.noise.balls import precision

PACKAGE, PREPARES, CLOCK = "sfumato", True, time.process_time
LAWS = {
    "rounded Gaussian": noise.rounded_gaussian,
    "discrete Gaussian": noise.DiscreteGaussian,
    "discrete Laplace": noise.DiscreteLaplace,
    "rounded Laplace": noise.rounded_laplace,
    "staircase": lambda scale: noise.rounded_staircase(1, scale),
}
TIMES = 1000
REACH = 400


def worked(act, per=1):
    """The act, and how often it is done in one go."""

    def work():
        act()
        return {"per": [per]}

    return work


def draws(law, scale, count):
    sampler = noise.Sampler(LAWS[law](scale))
    return worked(lambda: sampler.draw(count))


def about(scale, count):
    rounding = noise.Rounding(noise.GaussianDensity(scale))
    values = 100 * np.random.default_rng().standard_normal(count)
    return worked(lambda: rounding.about(values))


def one(law, scale):
    sampler = noise.Sampler(LAWS[law](scale))
    return worked(lambda: [sampler.one() for _ in range(TIMES)], TIMES)


def pooled(law, scale):
    pool = noise.Pool(noise.Sampler(LAWS[law](scale)), 1 << 17)
    pool.ready(1 << 17)  # more than all repetitions take
    return worked(lambda: [pool.take() for _ in range(TIMES)], TIMES)


def release(value):
    mechanism = sf.Gaussian(10.0)
    mechanism.release(value)
    return worked(lambda: [mechanism.release(value) for _ in range(TIMES)], TIMES)


def release_all(mechanism, scale, count):
    """What users call: noise on each number of an array."""
    made, rng = getattr(sf, mechanism)(scale), np.random.default_rng()
    rows = cycle([rng.integers(0, 1000, count) for _ in range(4)])
    made.release(next(rows))  # makes the table
    return worked(lambda: made.release(next(rows)))


def scores(kind, count):
    """Several arrays in turn: none is left in the cache."""
    rng = np.random.default_rng()
    make = {
        "normal": lambda: 10 * rng.standard_normal(count),
        "all equal": lambda: np.full(count, 1.0),  # zeros would share one page of memory
        "one far above": lambda: np.where(np.arange(count) == count // 3, 1e9, 0.0),
        "whole": lambda: rng.integers(0, 1000, count),
    }[kind]
    return cycle([make() for _ in range(4)])


def choice(way, kind, count):
    mechanism = (sf.Exponential if way == "exponential" else sf.PermuteAndFlip)(1.0, 1)
    rows = scores(kind, count)
    return worked(lambda: mechanism.release(next(rows)))


def flips(count):
    mechanism, truth = sf.RandomizedResponse(log(2)), np.random.default_rng().random(count) < 0.5
    return worked(lambda: mechanism.release(truth))


def coins(count):
    x = 3 * np.random.default_rng().random(count)
    return worked(lambda: noise.exponential_coins(x))


def weights(count):
    row = np.random.default_rng().random(count)
    return worked(lambda: noise.choose(row))


def set_up(law, scale):
    """Each time a scale that was not there before."""
    return worked(lambda: noise.Sampler(LAWS[law](scale + Fraction(randbits(40), 1 << 50))))


# ---- what is not timed -----------------------------------------------------------------------------------------------


def latency(mechanism, value, scale, count):
    """Rank correlation of the time of a release with the size of its noise; the slowest 2 % are left out."""
    found = getattr(sf, mechanism)(scale)
    found.release(value)

    def work():
        return {"rho": [correlation(*timed(found.release, value, count))]}

    return work


def timed(release, value, count):
    times, sizes, clock = np.empty(count), np.empty(count), time.perf_counter_ns
    for i in range(count):
        start = clock()
        answer = release(value)
        times[i] = clock() - start
        sizes[i] = abs(answer - value)
    return times, sizes


def correlation(times, sizes):
    kept = times <= np.quantile(times, 0.98)
    rng = np.random.default_rng(0)  # ties are broken by chance
    ranks = [np.argsort(np.argsort(x[kept] + 1e-3 * rng.random(kept.sum()))) for x in (times, sizes)]
    return float(np.corrcoef(*ranks)[0, 1])


def fit(law, scale, count):
    """The p-value of chi-square over single integers; those expected less than ten times are left out."""
    built = LAWS[law](scale)

    def work():
        with precision(100):
            mass = np.array([float(built.weight(abs(k), 64)) for k in range(-REACH, REACH + 1)])
        expected = count * mass / mass.sum()
        seen = np.bincount(np.clip(noise.Sampler(built).draw(count), -REACH, REACH) + REACH, minlength=2 * REACH + 1)
        large = expected >= 10
        chi = ((seen - expected)[large] ** 2 / expected[large]).sum()
        return {"p": [float(gammaincc((large.sum() - 1) / 2, chi / 2))]}

    return work
