"""Naive implementations: correct on paper and broken on a machine. Never use these."""

import numpy as np


class NaiveLaplace:
    """v + Laplace(1) in doubles, by the inverse of its distribution function, from a generator with a seed."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)

    def release(self, value):
        shape = np.shape(value)
        return value + self.rng.choice([-1.0, 1.0], shape) * np.log1p(-self.rng.random(shape))


class NaiveGaussian(NaiveLaplace):
    """v + N(0, 1) in doubles."""

    def release(self, value):
        return value + self.rng.normal(size=np.shape(value))


class NaiveSum(NaiveLaplace):
    """A sum of floats, one after the other, plus noise."""

    def release(self, data):
        return float(np.add.accumulate(np.asarray(data, float))[-1]) + super().release(0.0)


class NaiveCounter(NaiveLaplace):
    """A sum in 64 bits, plus whole noise in 64 bits."""

    def release(self, data):
        with np.errstate(over="ignore"):
            noise = np.rint(super().release(np.zeros(1))).astype(np.int64)
            return int(np.asarray(data, np.int64).sum() + noise[0])


class OneBuffer:
    """A source that hands out views of one buffer, and fills it again for the next."""

    def __init__(self, seed=0):
        self.rng, self.buffer = np.random.default_rng(seed), np.empty(1 << 12, np.uint64)

    def words(self, count, bits):
        self.buffer[:count] = self.rng.integers(0, 1 << bits, count, np.uint64)
        return self.buffer[:count]
