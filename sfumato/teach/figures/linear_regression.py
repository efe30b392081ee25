"""Figures of a lecture's example, private linear regression: who is exposed, and what data-dependent noise gains."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sfumato.learn.exposure import ExposureReport, NoisyCoefficients, RidgeFit, regression_behind_test
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.dependent.calibration import for_ledger
from sfumato.mechanisms.dependent.prediction_variance import PredictionVariance
from sfumato.mechanisms.dependent.smooth import Smooth
from sfumato.teach.figures.data_dependent import mean_size
from sfumato.teach.figures.style import BLUE, DOTS, FAINT, GREEN, GREY, LONG, RED, Pen, label, legend, panels

Vector = NDArray[np.float64]
STEP = 2.0**-20
TRUTH = np.array([0.5, -0.4, 0.3, 0.2])
MU = 0.236  # (1, 10⁻⁶)-DP for Gaussian noise
DILATION = 0.05
SIZES = (300, 600, 1000, 2000, 5000, 10_000, 30_000)


def people(count: int, rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Rows spread evenly in the unit ball, and targets with a little noise."""
    rows = rng.normal(size=(count, len(TRUTH)))
    rows *= (rng.random(count) ** (1 / len(TRUTH)) / np.linalg.norm(rows, axis=1))[:, None]
    return rows, np.clip(rows @ TRUTH + rng.normal(0, 0.1, count), -1, 1)


def exposed_people(count: int = 2000, seed: int = 3) -> Figure:
    """Each person's own loss from released coefficients: exact (private), bounded by a report, and at worst."""
    rows, target = people(count, np.random.default_rng(seed))
    target[:20] = -np.sign(rows[:20] @ TRUTH)  # some whom the model gets wrong
    fit, noise = RidgeFit(len(TRUTH)), Gaussian(0.02, STEP)
    own = np.array([loss.mu for loss in fit.exposures((rows, target), noise)])
    report = ExposureReport(NoisyCoefficients(fit, noise), Gaussian(8.0)).release((rows, target))
    bounds = np.array([report.loss(x, y).mu for x, y in zip(rows, target, strict=True)])
    figure, (left, right) = panels(2, "by residual", "from the least to the most exposed", inches=(7.6, 3.5))
    residual = np.abs(target - rows @ fit.coefficients((rows, target)))
    left.scatter(residual, own, s=5, color=BLUE, linewidths=0)
    label(left, "residual", "own loss μ (private)")
    share = np.arange(1, count + 1) / count
    Pen(BLUE).draw(right, share, np.sort(own), "own loss (private)")
    Pen(GREEN, LONG).draw(right, share, np.sort(bounds), "bound from the report")
    worst = fit.moves(report.least) / noise.sigma
    Pen(GREY, DOTS).draw(right, [0, 1], [worst, worst], "anybody, given the report")
    worst = fit.moves(fit.ridge) / noise.sigma
    Pen(RED, FAINT).draw(right, [0, 1], [worst, worst], "anybody, in any data")
    right.set_yscale("log")
    label(right, "share of people", "μ")
    legend(right, "lower right")
    return figure


def private_regressions(sizes: Sequence[int] = SIZES, repeats: int = 12, seed: int = 4) -> Figure:
    """Errors of three private regressions at (1, 10⁻⁶), and of a prediction's variance, by the number of people.

    Noise for the worst data set; the same noise for good data behind a test (generalised propose-test-release); and
    noisy sufficient statistics with a ridge that adapts to the noisy least eigenvalue (AdaSSP). The variance is that of
    a prediction at a public point, with noise for the global and for the smooth sensitivity.
    """
    rng = np.random.default_rng(seed)
    figure, (left, right) = panels(2, "coefficients", "variance of a prediction", inches=(7.6, 3.7))
    names = ("noise for the worst data", "behind a test", "AdaSSP")
    errors = np.array([[regression_errors(n, rng) for _ in range(repeats)] for n in sizes])
    for name, pen, row in zip(
        names, (Pen(GREY, DOTS), Pen(GREEN, LONG), Pen(BLUE)), errors.mean(axis=1).T, strict=True
    ):
        pen.draw(left, sizes, row, name)
    Pen(RED, FAINT, 1.2).draw(left, sizes, [float(np.linalg.norm(TRUTH))] * len(sizes), "answering 0")
    spread = [variance_errors(n, rng) for n in sizes]
    kinds = (
        (Pen(GREY, DOTS), "noise, global sensitivity"),
        (Pen(BLUE), "noise, smooth sensitivity"),
        (Pen(RED, FAINT, 1.2), "the variance itself"),
    )
    for (pen, name), row in zip(kinds, zip(*spread, strict=True), strict=True):
        pen.draw(right, sizes, list(row), name)
    for axis, name in ((left, "mean distance from the truth"), (right, "mean size")):
        axis.set_xscale("log")
        axis.set_yscale("log")
        label(axis, "people", name)
    left.set_ylim(3e-4, 60)
    legend(left, "lower left")
    legend(right, "lower left")
    return figure


def regression_errors(count: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """How far three private fits are from the truth; a failed test answers 0."""
    data, fit = people(count, rng), RidgeFit(len(TRUTH))
    worst = NoisyCoefficients(fit, Gaussian(fit.moves(fit.ridge) / MU, STEP)).release(data)
    proposed = count / 10  # a public guess: rows in the ball have λ near n/6
    noise = Gaussian(fit.moves(proposed) / (MU * 0.9), STEP)
    tested = regression_behind_test(fit, proposed, noise, Gaussian(1 / (MU * math.sqrt(1 - 0.9**2))), 5e-7)
    found = tested.release(data) or [0.0] * len(TRUTH)
    fits = (worst, found, ada_ssp(data, MU))
    errors = [min(float(np.linalg.norm(np.asarray(one) - TRUTH)), 1e6) for one in fits]
    return errors[0], errors[1], errors[2]


def ada_ssp(data: tuple[Vector, Vector], mu: float) -> Vector:
    """AdaSSP: a noisy least eigenvalue, a noisy Gram matrix and noisy XᵀY, a third of μ² each; then ridge regression.

    Each of the three moves by at most 1 if a person with |x|, |y| ≤ 1 joins (the Gram matrix in the Frobenius norm,
    counting each pair of columns once or twice).

    Theorem: the ridge makes up for the noise where the least eigenvalue is small [Wang 2018, Alg. 2 (AdaSSP)]
    """
    rows, target = data
    d, noise = rows.shape[1], Gaussian(math.sqrt(3) / mu, STEP)
    upper = np.triu_indices(d)
    gram, cross = rows.T @ rows, rows.T @ target
    least = float(np.asarray(noise.release(float(np.linalg.eigvalsh(gram)[0]))))
    noisy = np.zeros((d, d))
    noisy[upper] = np.asarray(noise.release(gram[upper]), np.float64)
    noisy += np.triu(noisy, 1).T
    right = np.asarray(noise.release(cross), np.float64)
    ridge = max(0.0, math.sqrt(d * math.log(2 * d * d / 0.05)) * noise.sigma - max(least, 0.0))
    return np.asarray(np.linalg.solve(noisy + (ridge + 1e-9) * np.eye(d), right))


def variance_errors(count: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """The scale of noise on x·(XᵀX + 1)⁻¹·x for the global and the smooth sensitivity, and that number."""
    statistic = PredictionVariance((0.5, 0.5, 0.5, 0.5))
    rows, _ = people(count, rng)
    loss = for_ledger(MU**2, DILATION).loss
    way = Smooth(statistic, loss.noise, loss.shift, loss.dilation, loss.steps, Fraction(1, 1 << 30))
    scale = float(way.ladder.scale(way.rung(rows)).ball(80).mid())
    overall = float(statistic.everywhere) * math.sqrt(2 / math.pi) / MU
    return overall, scale * mean_size(loss.noise) / loss.shift, float(statistic.value(rows))
