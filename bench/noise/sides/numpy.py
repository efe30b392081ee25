"""NumPy's generator: fast, predictable, and in doubles. A limit for what noise can cost, not a way to make it."""

import time
from itertools import cycle

import numpy as np

PACKAGE, PREPARES, CLOCK = "numpy", True, time.process_time
rng = np.random.default_rng()


def worked(act, per=1):
    def work():
        act()
        return {"per": [per]}

    return work


def draws(law, scale, count):
    """rint(normal) for every law, the quickest there is."""
    return worked(lambda: np.rint(rng.standard_normal(count) * scale).astype(np.int64))


def about(scale, count):
    values = 100 * rng.standard_normal(count)
    return worked(lambda: np.rint(values + scale * rng.standard_normal(count)).astype(np.int64))


def release_all(mechanism, scale, count):
    """rint(noise) + v: neither secure, nor exact, nor saturated."""
    draw = rng.laplace if "Laplace" in mechanism else rng.normal
    rows = cycle([rng.integers(0, 1000, count) for _ in range(4)])
    return worked(lambda: np.rint(draw(0, scale, count)).astype(np.int64) + next(rows))


def choice(way, kind, count):
    """Gumbel noise, and the highest."""
    make = {
        "normal": lambda: 10 * rng.standard_normal(count),
        "all equal": lambda: np.full(count, 1.0),
        "one far above": lambda: np.where(np.arange(count) == count // 3, 1e9, 0.0),
        "whole": lambda: rng.integers(0, 1000, count),
    }[kind]
    rows = cycle([make() for _ in range(4)])
    return worked(lambda: (0.5 * next(rows) + rng.gumbel(size=count)).argmax())


def flips(count):
    truth = rng.random(count) < 0.5
    return worked(lambda: truth ^ (rng.random(count) < 1 / 3))


def coins(count):
    x = 3 * rng.random(count)
    return worked(lambda: rng.random(count) < np.exp(-x))


def weights(count):
    row = rng.random(count)

    def draw():
        ends = np.cumsum(row)
        return int(np.searchsorted(ends, rng.random() * ends[-1], "right"))

    return worked(draw)
