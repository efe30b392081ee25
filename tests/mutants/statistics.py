"""Sums, means and bounds that one person moves further than was said; tests without a test."""

import os

import numpy as np

import sfumato as sf
from sfumato.audit import audit, replay
from sfumato.mechanisms.additive import bounded_statistics as statistics
from sfumato.noise import entropy
from tests.mutants.plant import SURE, mutant


def sum_of(low, high, **more):
    return sf.BoundedSum(sf.Laplace(3.0), low, high, **more)


def audit_14():
    total = sum_of(0, 3)
    return replay(total, [1, 2, 9], [1, 2], total.loss())


@mutant(14, "replay", audit_14)
def nothing_clipped(patch):
    """Values are not put into their bounds.

    Proof. Who has 9 moves the sum by 9, and the noise is priced for a move by 3: e^{9/3} > e.
    """

    def unclipped(data, lattice, first, last):
        return np.array([statistics.round_value(x, lattice) for x in data], np.int64)

    patch(statistics, "clip_to_steps", unclipped)


def audit_15():
    total = sum_of(0, 3)
    return replay(total, [1.0, 2.0, float("nan")], [1.0, 2.0], total.loss())


@mutant(15, "replay", audit_15)
def nothing_caught_of_nan(patch):
    """NaN passes between the bounds, as it is neither above nor below, and becomes the least integer.

    Proof. Who has NaN moves the sum by 2⁶³ steps: the noise would have to be as large.
    """

    def clipped(data, lattice, first, last):
        values = np.array([float(x) for x in data])
        inside = np.where(values > last, last, np.where(values < first, first, values))
        with np.errstate(invalid="ignore"):
            return inside.astype(np.int64)

    patch(statistics, "clip_to_steps", clipped)


def audit_16():
    mean = sf.BoundedMean(sf.Laplace(2.0), sf.Laplace(1.0), 0, 4)
    return audit(mean, [1, 2], [1, 2, 3], loss=mean.loss(), samples=1000, confidence=SURE)


@mutant(16, "black box", audit_16)
def true_count(patch):
    """A mean is a noisy sum over the true count.

    Proof. Multiples of ½ come out for two people and multiples of ⅓ for three: ⅓ is possible for one data set only.
    """

    def release(self, data):
        total = sum(min(max(x, self.low), self.high) for x in data)
        return self.sum_noise.release(int(total)) / len(data)

    patch(sf.BoundedMean, "release", release)


def audit_21():
    total = sum_of(50, 60)
    return replay(total, [55, 60], [55], total.loss())


@mutant(21, "replay", audit_21)
def width_for_size(patch):
    """The sensitivity of a sum over [50, 60] is high − low where people are added.

    Proof. Who comes with 60 moves the sum by 60, and 10 is covered.
    """

    def one_value(lattice, first, last, relation):
        size = float((last - first) * lattice.step)
        return sf.Sensitivity(l0=1, linf=size, l1=size, l2=size, relation=relation)

    patch(statistics, "value_sensitivity", one_value)


def audit_22():
    most = 2.0**59
    total = sf.BoundedSum(sf.Laplace(most), 0, most)
    return replay(total, [most] * 16, [most] * 15, total.loss())


@mutant(22, "replay", audit_22)
def sum_that_wraps(patch):
    """Sums are of 64 bits, and wrap.

    Proof. Sixteen values of 2⁵⁹ are −2⁶³ then, and fifteen are 2⁶³ − 2⁵⁹: one value moves the sum by 31 times itself.
    """

    patch(statistics, "exact_sum", lambda values: int(values.sum()))


def audit_23():
    total = sum_of(0, 3)
    return replay(total, [1, 1, 50], [1, 1], total.loss())


@mutant(23, "replay", audit_23)
def bounds_from_data(patch):
    """Bounds, and with them noise, are taken from the data.

    Proof. The noise of [1, 1] has scale 1 and that of [1, 1, 50] has scale 50: their ratio in the tail has no bound.
    """

    def release(self, data):
        return sf.Laplace(float(max(data))).release(int(sum(data)))

    patch(statistics.BoundedSum, "release", release)


def audit_26():
    return forked_draws(sf.noise.Keystream())


@mutant(26, "faults", audit_26)
def same_bits_after_fork(patch):
    """A forked child goes on with the bits of its parent.

    Proof. Both draw the same noise: the difference of their answers is that of the data.
    """

    patch(entropy.Process, "current", lambda self: 1)


def audit_28():
    return audit(PoissonCount(), 0, 1, loss=PoissonCount.claim(), samples=1 << 15, confidence=SURE)


@mutant(28, "black box", audit_28)
def rate_squared(patch):
    """Poisson sampling is priced at the square of its rate. (Training is not built yet: this is its heart.)

    Proof. A count of a tenth with Gaussian noise of σ = 1 has δ(0) = 0.1·0.383, and 0.01·0.383 is claimed.
    """
    right = sf.Poisson.amplify
    patch(sf.Poisson, "amplify", lambda self, loss: right(sf.Poisson(self.rate**2), loss))


def audit_29():
    stable = sf.dependent.GaussianStableValue(3.0, 0.3)
    d0, d1 = sf.dependent.Stable("a", 0), sf.dependent.Stable("b", 0)
    return audit(stable, d0, d1, loss=stable.loss(), samples=2000, confidence=SURE)


@mutant(29, "black box", audit_29)
def test_without_threshold(patch):
    """A test passes if distance + noise is above 0, not above log(1/δ)/ε.

    Proof. Two data sets at distance 0 with other values pass half of the time: δ(ε) ≥ ½ for every ε; 0.3 is claimed.
    """

    patch(sf.dependent.Gate, "opens", lambda self, distance: self.noise.pool.reaches(0, distance))


class PoissonCount:
    """A count of a sampled batch, with Gaussian noise: as one step of training does it."""

    def many(self, present, count):
        taken = sf.noise.Bernoulli(0.1).draw(count)
        return sf.Gaussian(1.0).release(np.where(taken, present, 0))

    @staticmethod
    def claim():
        return sf.Poisson(0.1).amplify(sf.Gaussian(1.0).loss(1))


class Drawn:
    """What two processes drew."""

    def __init__(self, ours, theirs):
        self.violated, self.verdict = ours == theirs, "a child draws the bits of its parent"


def forked_draws(source):
    """64 bits of this process and of a child, from one source."""
    source.bits(8)
    read, write = os.pipe()
    if not (child := os.fork()):
        try:
            os.write(write, source.bits(64).to_bytes(8))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    theirs = int.from_bytes(os.read(read, 8))
    os.close(read)
    return Drawn(source.bits(64), theirs)
