"""OpenDP: exact draws, one after the other. Fewer are drawn than asked for, and the time of one is compared."""

import time

import numpy as np
import opendp.prelude as dp

PACKAGE, PREPARES, CLOCK = "opendp", True, time.process_time
FEW, TIMES = 5000, 50
dp.enable_features("contrib")


def worked(act, per=1):
    def work():
        act()
        return {"per": [per]}

    return work


def vector(law, scale):
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if "Gaussian" in law:
        return dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), scale=float(scale))
    return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=float(scale))


def scalar(law, scale):
    make = dp.m.make_gaussian if "Gaussian" in law else dp.m.make_laplace
    return make(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), scale=float(scale))


def draws(law, scale, count):
    """The bars are about `count` draws, so the time of one is multiplied."""
    zeros, measure = np.zeros(FEW, np.int64), vector(law, scale)

    def work():
        measure(zeros)
        return {"per": [FEW / count]}

    return work


def one(law, scale):
    measure = scalar(law, scale)
    return worked(lambda: [measure(0) for _ in range(TIMES)], TIMES)


pooled = one


def choice(way, kind, count):
    few = count // 10
    rng = np.random.default_rng()
    domain = dp.vector_domain(dp.atom_domain(T="f64", nan=False))
    measure = dp.m.make_noisy_max(domain, dp.linf_distance(T="f64"), dp.max_divergence(), scale=2.0)
    row = {
        "normal": lambda: 10 * rng.standard_normal(few),
        "all equal": lambda: np.full(few, 1.0),
        "one far above": lambda: np.where(np.arange(few) == few // 3, 1e9, 0.0),
        "whole": lambda: rng.integers(0, 1000, few).astype(float),
    }[kind]()
    return worked(lambda: measure(row), few / count)


def flips(count):
    few = count // 10
    measure = dp.m.make_randomized_response_bitvec(dp.bitvector_domain(max_weight=few), dp.discrete_distance(), f=2 / 3)
    bits = np.packbits(np.random.default_rng().random(few) < 0.5).tobytes()
    return worked(lambda: measure(bits), few / count)


def latency(mechanism, value, scale, count):
    """Rank correlation of the time of a release with the size of its noise; the slowest 2 % are left out."""
    release = scalar("Gaussian" if "Gaussian" in mechanism else "Laplace", scale)

    def work():
        times, sizes = np.empty(count), np.empty(count)
        for i in range(count):
            start = time.perf_counter_ns()
            answer = release(value)
            times[i] = time.perf_counter_ns() - start
            sizes[i] = abs(answer - value)
        kept = times <= np.quantile(times, 0.98)
        rng = np.random.default_rng(0)
        ranks = [np.argsort(np.argsort(x[kept] + 1e-3 * rng.random(kept.sum()))) for x in (times, sizes)]
        return {"rho": [float(np.corrcoef(*ranks)[0, 1])]}

    return work
