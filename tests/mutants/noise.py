"""Noise of the wrong size, or of the wrong kind."""

import math
from fractions import Fraction

import numpy as np

import sfumato as sf
from sfumato.audit import audit, white_box
from sfumato.audit.exhibits import RowByRow
from sfumato.loss.kinds import gaussian
from sfumato.loss.numeric import Enclosure
from sfumato.mechanisms.additive import base as additive
from sfumato.mechanisms.additive import laplace
from sfumato.noise import rounded_gaussian
from sfumato.rounding import quotient_up
from sfumato.sensitivity import Sensitivity
from tests.mutants.plant import SURE, mutant


def audit_1():
    return audit(RowByRow(sf.Laplace.of(0.5, 1, 2**-6)), 0.0, 1.0, epsilon=0.5, samples=4096, confidence=SURE)


@mutant(1, "black box", audit_1)
def scale_upside_down(patch):
    """Laplace.of takes scale = ε/Δ instead of Δ/ε.

    Proof. At ε = ½, Δ = 1 the scale is ½: P(0 | 0)/P(0 | 1) of the rounded noise tends to e² as the step shrinks, and
    e² > e^½.
    """

    def of(epsilon, sensitivity=1, step=1):
        return sf.Laplace(quotient_up(epsilon, float(sensitivity)), step)

    patch(laplace.Laplace, "of", staticmethod(of))


def audit_3():
    noise = sf.Gaussian(4.0)
    return audit(RowByRow(noise), 0, 4, loss=noise.loss(4), samples=8192, confidence=SURE)


@mutant(3, "black box", audit_3)
def variance_for_deviation(patch):
    """Gaussian noise takes its σ for a variance.

    Proof. At σ = 4 the noise has deviation 2, so that a move by 4 is 2-GDP, and 1-GDP is claimed.
    """

    patch(sf.Gaussian, "law", lambda self: rounded_gaussian(Fraction(math.sqrt(self.sigma)) / self.lattice.step))


def audit_4():
    noise = sf.Gaussian.analytic(20.0, 0.01, 1, 2**-6)
    return white_box(noise, 0, 1, sf.loss.ApproxLoss(20.0, 0.01), samples=20_000)


@mutant(4, "white box", audit_4)
def classical_beyond_one(patch):
    """The textbook's σ = √(2 ln(1.25/δ))/ε where ε is above 1.

    Proof. At ε = 20, δ = 0.01 it is σ = 0.155: μ = 6.44, and δ(20) = Φ(μ/2 − 20/μ) − e²⁰Φ(−μ/2 − 20/μ) = 0.48 > 0.01.
    """

    def classical(epsilon, delta, sensitivity=1, step=1):
        return sf.Gaussian(sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon, step)

    patch(sf.Gaussian, "analytic", staticmethod(classical))


def audit_5():
    noise, moved = sf.Laplace(math.sqrt(8)), Sensitivity(l0=8, linf=1)
    return white_box(noise, [0] * 8, [1] * 8, noise.loss(moved), samples=100_000)


@mutant(5, "white box", audit_5)
def euclidean_for_manhattan(patch):
    """Laplace noise is priced by the L2 distance of a row.

    Proof. Eight numbers that move by 1 have L1 distance 8 and L2 distance √8; with scale √8 the densities' ratio at 0
    is e^{8/√8} = e^2.83, and ε = 1 is claimed.
    """

    def loss(self, sensitivity=1):
        return sf.loss.LaplaceLoss(quotient_up(Sensitivity.of(sensitivity).l2, self.scale))

    patch(sf.Laplace, "loss", loss)


def audit_9():
    noise = sf.DiscreteLaplace(10.0)
    return white_box(noise, 0, 10, noise.loss(10), samples=1 << 17)


@mutant(9, "white box", audit_9)
def ten_percent_less(patch):
    """All scaled noise has 0.9 of its scale.

    Proof. Noise of scale 0.9·b costs Δ/0.9b, and Δ/b is claimed: 1.11 for 1.
    """

    right = additive.Scaled.units.func
    patch(additive.Scaled, "units", property(lambda self: right(self) * Fraction(9, 10)))


def audit_25():
    noise = sf.Laplace(1.0, 2**-40)
    return audit(RowByRow(noise), 0.0, 1.0, loss=noise.loss(1), samples=4096, confidence=SURE)


@mutant(25, "black box", audit_25)
def noise_in_doubles(patch):
    """Real numbers get v + Laplace in doubles, without a lattice.

    Proof. A double x with |x| < ½ that 1 + N gives is a multiple of 2⁻⁵³, as N is one, being near −1; 0 + N = x has
    lower bits with positive probability. Those never come out for v = 1: δ(ε) > 0 for every ε.
    """

    rng = np.random.default_rng(25)

    def release(self, value):
        return np.asarray(value) + rng.laplace(scale=self.scale, size=np.shape(value))

    patch(additive.Additive, "release", release)


def audit_27():
    noise = sf.Gaussian(1.0)
    return white_box(noise, 0, 1, noise.loss(1), samples=20_000)


@mutant(27, "white box", audit_27)
def profile_rounded_down(patch):
    """The profile of Gaussian noise is rounded down, to four digits.

    Proof. δ(0) at μ = 1 is 0.38292…, and 0.3829 is reported: less than the truth.
    """

    right = gaussian.gaussian_profile

    def rounded(mu, eps):
        found = right(mu, eps)
        return Enclosure(np.floor(found.lower * 1e4) / 1e4, np.floor(found.upper * 1e4) / 1e4)

    patch(gaussian, "gaussian_profile", rounded)
