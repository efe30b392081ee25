"""Exact noise against NumPy's generator and, if it is installed, OpenDP: rates in one run, and time against value.

python bench/bench_noise.py [--latency 100000]
"""

import argparse
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy.special import gammaincc

from sfumato import noise
from sfumato.noise.balls import precision
from sfumato.noise.monotone import _table
from sfumato.noise.table import USUAL

COUNT = 10**6
SCALES = (1, 10, 50, 10**3, 10**6, 10**12)
LAWS: dict[str, Callable[[int], noise.Law]] = {
    "rounded Gaussian": noise.rounded_gaussian,
    "discrete Gaussian": noise.DiscreteGaussian,
    "discrete Laplace": noise.DiscreteLaplace,
    "rounded Laplace": noise.rounded_laplace,
    "staircase": lambda scale: noise.rounded_staircase(1, scale),
}


def seconds(act: Callable[[], object], repeat: int = 7) -> float:
    """The best time of several: the others were disturbed."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return min(times)


def opendp_rates(scale: int) -> tuple[float, float] | None:
    """Discrete Gaussian and discrete Laplace draws per second of OpenDP, if it is here."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    zeros, domain = np.zeros(20_000, np.int32), dp.vector_domain(dp.atom_domain(T="i32"))
    gaussian = dp.m.make_gaussian(domain, dp.l2_distance(T="i32"), scale=float(scale))
    laplace = dp.m.make_laplace(domain, dp.l1_distance(T="i32"), scale=float(scale))
    return zeros.size / seconds(lambda: gaussian(zeros), 3), zeros.size / seconds(lambda: laplace(zeros), 3)


def rates() -> None:
    generator = np.random.default_rng()
    print(f"{COUNT:,} draws, int64; NumPy: rint(normal). OpenDP: discrete Gaussian and Laplace, int32.")
    for scale in SCALES:
        numpy_rate = COUNT / seconds(lambda s=scale: np.rint(generator.standard_normal(COUNT) * s).astype(np.int64))
        peers = opendp_rates(scale)
        text = f"{peers[0] / 1e3:.0f} and {peers[1] / 1e3:.0f} k/s" if peers else "not installed"
        print(f"\nscale {scale:.0e}: NumPy {numpy_rate / 1e6:.0f} M/s, OpenDP {text}")
        for name, law in LAWS.items():
            built, peer = law(scale), peers and peers["Gaussian" not in name]
            set_up = seconds(lambda law=built: _table.__wrapped__(law, USUAL), 5)
            sampler = noise.Sampler(built)
            rate = COUNT / seconds(lambda s=sampler: s.draw(COUNT))
            one = seconds(lambda s=sampler: [s.one() for _ in range(1000)]) / 1000
            print(
                f"  {name:18} {rate / 1e6:6.1f} M/s  {rate / numpy_rate:5.2f} x NumPy"
                + (f"  {rate / peer:6.0f} x OpenDP" if peer else "")
                + f"  one {one * 1e6:.1f} µs  set-up {set_up * 1e3:.1f} ms"
            )


def others() -> None:
    generator = np.random.default_rng()
    values = generator.standard_normal(COUNT) * 100
    print()
    for scale in (1, 10**3, 10**6):
        rounding = noise.Rounding(noise.GaussianDensity(scale))
        ours = seconds(lambda r=rounding: r.about(values))
        theirs = seconds(
            lambda s=scale: np.rint(values + s * generator.standard_normal(COUNT)).astype(np.int64),
        )
        print(f"round(v + N), sigma {scale:.0e}: {COUNT / ours / 1e6:.0f} M/s, {theirs / ours:.2f} x NumPy")
    pool = noise.Pool(noise.Sampler(noise.rounded_gaussian(10)), 1 << 17)
    pool.ready(1 << 17)
    print(f"pooled: {seconds(lambda: [pool.take() for _ in range(10_000)]) / 10_000 * 1e9:.0f} ns")


def bits() -> None:
    """Randomized response: 10⁶ true bits, each turned over with probability 1/3."""
    generator = np.random.default_rng()
    truth, coin, limit = generator.random(COUNT) < 0.5, noise.Bernoulli(Fraction(1, 3)), np.uint16(65536 // 3)
    ours = seconds(lambda: truth ^ coin.draw(COUNT))
    ways = {
        "random() < p": lambda: truth ^ (generator.random(COUNT) < 1 / 3),
        "16 bits < p, not exact": lambda: truth ^ (generator.integers(0, 65536, COUNT, dtype=np.uint16) < limit),
    }
    compared = ", ".join(f"{seconds(way) / ours:.2f} x NumPy ({name})" for name, way in ways.items())
    print(f"\nrandomized response, p = 1/3: {COUNT / ours / 1e6:.0f} M/s, {compared}")


def selection() -> None:
    """One of 10⁶ candidates by score. Scores of several kinds, since time should not tell them."""
    generator, rate = np.random.default_rng(), Fraction(1, 2)
    kinds: dict[str, Callable[[], np.ndarray]] = {
        "normal": lambda: 10 * generator.standard_normal(COUNT),
        "all equal": lambda: np.full(COUNT, 1.0),  # zeros would share one page of memory
        "one far above": lambda: np.where(np.arange(COUNT) == COUNT // 3, 1e9, 0.0),
        "counts, int64": lambda: generator.integers(0, 1000, COUNT),
    }
    print(f"\none of {COUNT:,} candidates, M/s; NumPy: (rate * scores + gumbel).argmax()")
    for name, kind in kinds.items():
        fresh = [kind() for _ in range(8)]  # another array each time: none is left in the cache
        rates = {}
        for way, act in {
            "select": lambda s: noise.select(s, rate),
            "permute and flip": lambda s: noise.permute_and_flip(s, rate),
            "NumPy": lambda s: (0.5 * s + generator.gumbel(size=COUNT)).argmax(),
        }.items():
            turns = iter(fresh)
            rates[way] = COUNT / seconds(lambda act=act, turns=turns: act(next(turns)), len(fresh)) / 1e6
        text = ", ".join(f"{way} {value:.0f}" for way, value in rates.items())
        print(f"  {name:14} {text}: select {rates['select'] / rates['NumPy']:.1f} x NumPy")
    x, weights, few = 3 * generator.random(COUNT), generator.random(COUNT), generator.random(10)
    theirs = seconds(lambda: generator.random(COUNT) < np.exp(-x))
    ours = seconds(lambda: noise.exponential_coins(x))
    print(f"coins of 10⁶ probabilities e^-x: {COUNT / ours / 1e6:.0f} M/s, {theirs / ours:.1f} x NumPy")
    for name, row in (("doubles", weights), ("int64", (1000 * weights).astype(np.int64))):
        ours, theirs = seconds(lambda row=row: noise.choose(row)), seconds(lambda row=row: _by_sums(generator, row))
        print(f"one of 10⁶ fresh weights, {name}: {COUNT / ours / 1e6:.0f} M/s, {theirs / ours:.1f} x NumPy (cumsum)")
    ten = seconds(lambda: [noise.select(few, rate) for _ in range(100)]) / 100
    print(f"one of 10 candidates: {ten * 1e6:.0f} µs")


def _by_sums(generator: np.random.Generator, row: np.ndarray) -> int:
    ends = np.cumsum(row)
    return int(np.searchsorted(ends, generator.random() * ends[-1], "right"))


def latency(count: int) -> None:
    """Rank correlation of the time of a pooled draw with |draw|."""
    for law in (noise.DiscreteLaplace(10), noise.rounded_gaussian(10**6)):
        pool = noise.Pool(noise.Sampler(law), count)
        pool.ready(count)
        times, draws, clock, take = np.empty(count), np.empty(count), time.perf_counter_ns, pool.take
        for i in range(count):
            start = clock()
            draw = take()
            times[i] = clock() - start
            draws[i] = abs(draw)
        kept = times <= np.quantile(times, 0.98)
        ranks = [np.argsort(np.argsort(x + np.random.default_rng(0).random(count))) for x in (times, draws)]
        rho = np.corrcoef(ranks[0][kept], ranks[1][kept])[0, 1]
        print(f"latency against |draw|, {law}: rho {rho:+.4f} over {kept.sum():,} (bar: 0.05)")


def fit(count: int) -> None:
    """Chi-square of many draws of small laws."""
    for name, law in LAWS.items():
        built = law(10)
        draws = noise.Sampler(built).draw(count)
        reach = 400
        with precision(100):
            weights = np.array([float(built.weight(abs(k), 64)) for k in range(-reach, reach + 1)])
        expected = count * weights / weights.sum()
        counts = np.bincount(draws + reach, minlength=2 * reach + 1)
        large = expected >= 10
        chi = ((counts - expected)[large] ** 2 / expected[large]).sum()
        print(f"chi-square, {name}, {count:,} draws: p = {gammaincc((large.sum() - 1) / 2, chi / 2):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=int, default=200_000, help="pooled draws to time")
    parser.add_argument("--draws", type=int, default=10**7, help="draws per chi-square")
    options = parser.parse_args()
    rates()
    others()
    bits()
    selection()
    latency(options.latency)
    fit(options.draws)


if __name__ == "__main__":
    main()
