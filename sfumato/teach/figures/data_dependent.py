"""Figures of data-dependent noise: smooth sensitivity, stable values, and propose-test-release."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import ndtri

from sfumato.loss.numeric import Floats, floats
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.choice.exponential import Exponential
from sfumato.mechanisms.choice.permute_and_flip import PermuteAndFlip
from sfumato.mechanisms.dependent.calibration import for_ledger
from sfumato.mechanisms.dependent.fixed_n import Kept
from sfumato.mechanisms.dependent.noise_family import Noise
from sfumato.mechanisms.dependent.order_statistics import Quantile
from sfumato.mechanisms.dependent.private_test import Gate
from sfumato.mechanisms.dependent.propose_test_release import ProposeTestRelease
from sfumato.mechanisms.dependent.quantile_choice import ChosenQuantile
from sfumato.mechanisms.dependent.smooth import Smooth
from sfumato.mechanisms.dependent.smooth_loss import SmoothLoss
from sfumato.mechanisms.dependent.statistic import Statistic
from sfumato.mechanisms.keys.partition_selection import Keeping
from sfumato.teach.figures.style import (
    BLUE,
    DOTS,
    FAINT,
    GREEN,
    GREY,
    LONG,
    MIXED,
    ORANGE,
    PURPLE,
    RED,
    Pen,
    format_short,
    label,
    legend,
    panels,
)

MU, DILATION = math.sqrt(0.5), 0.1
GAUSSIAN = math.sqrt(2 / math.pi) / MU  # the mean size of noise for a sensitivity of 1
SIZES = (101, 201, 301, 501, 1001, 2001, 5001, 10_001)
INCOMES = Quantile(0, 1 << 20)  # in steps of one
STEP = Fraction(1, 1 << 16)


def normal_quantiles(size: int) -> Floats:
    """Equally spaced quantiles of N(0, 1), one for each person."""
    return floats(ndtri((np.arange(size) + 0.5) / size))


def smooth_noise(sizes: Sequence[int] = SIZES) -> Figure:
    """The error that noise adds to a median and to a trimmed mean, at one price: global, smooth and local sensitivity.

    All on the same Gaussian ledger, μ² = ½ and slack 1e-9. The dotted line is noise at the local sensitivity, which is
    not private: the scale itself depends on the data.
    """
    figure, (left, right) = panels(2, "median of log-normal incomes", "trimmed mean of N(0, 1)", inches=(7.6, 3.7))
    loss = for_ledger(MU**2, DILATION).loss
    incomes = [np.rint(40_000 * np.exp(0.8 * normal_quantiles(n))) for n in sizes]
    chosen = ChosenQuantile.on_ledger(INCOMES, MU)
    draw_sensitivities(left, sizes, [INCOMES] * len(sizes), incomes, loss, 1)
    Pen(GREEN, MIXED).draw(left, sizes, [error_of_choice(chosen, data) for data in incomes], "chosen by score")
    means = [Kept.trimmed(n, n // 10, -50, 50, STEP) for n in sizes]
    draw_sensitivities(right, sizes, means, [normal_quantiles(n) for n in sizes], loss, STEP)
    Pen(GREY, FAINT, 1.2).draw(right, sizes, 0.82 / np.sqrt(sizes), "sampling error")
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_yscale("log")
        label(axis, "people", "mean size of the error")
    lines = {text: line for axis in (left, right) for line, text in zip(*axis.get_legend_handles_labels(), strict=True)}
    style: dict[str, Any] = {
        "loc": "outside lower center",
        "ncols": 3,
        "fontsize": 8.5,
        "frameon": False,
        "handlelength": 3.4,
    }
    figure.legend(lines.values(), lines.keys(), **style)
    return figure


def draw_sensitivities(
    axis: Any,
    sizes: Sequence[int],
    statistics: Sequence[Statistic[Any]],
    data: Sequence[Floats],
    loss: SmoothLoss,
    step: Any,
) -> None:
    """The lines of noise at the global, the smooth and the local sensitivity."""
    ways = [Smooth(one, loss.noise, loss.shift, loss.dilation, loss.steps, step) for one in statistics]
    rungs = [float(way.ladder.scale(way.rung(x)).ball(80).mid()) for way, x in zip(ways, data, strict=True)]
    local = [float(one.local(x)) for one, x in zip(statistics, data, strict=True)]
    Pen(RED, LONG).draw(
        axis, sizes, [GAUSSIAN * float(one.everywhere) for one in statistics], "Gaussian, global sensitivity"
    )
    spread = mean_size(loss.noise) / loss.shift
    Pen(BLUE).draw(axis, sizes, [scale * spread for scale in rungs], "smooth sensitivity")
    Pen(GREY, DOTS, 1.4).draw(axis, sizes, [GAUSSIAN * size for size in local], "local sensitivity: not private")


def mean_size(noise: Noise) -> float:
    """E|Z|, by the trapezoid rule."""
    z = np.sinh(np.linspace(0.0, math.asinh(1e7), 20_001))
    return float(2 * np.trapezoid(z * np.exp(noise.log_density(z)), z))


def error_of_choice(chosen: ChosenQuantile, data: Floats) -> float:
    """The mean distance to the true quantile, from the weights of all points."""
    x = chosen.statistic.order_values(data)
    starts, lengths, scores = (floats(row) for row in chosen.runs(x))
    weights = np.exp(-float(chosen.rate) * (scores - scores.min()))
    first = starts - (float(x.at([chosen.statistic.rank(x.size)])[0]) - x.low)  # the true one is a run by itself
    away = np.abs((2 * first + lengths - 1) * lengths / 2) * weights
    return float(away.sum() / (weights * lengths).sum())


def stable_choice(eps: float = 1.0, delta: float = 1e-6) -> Figure:
    """The most frequent candidate: the probability of the true answer by its lead, and the lead needed for 95 %.

    All others are tied, which is the worst case for both choices. Votes are added or removed, so all scores move in one
    direction and both choices have their full rate ε. A stable value also costs δ, and gives no answer rather than a
    wrong one.
    """
    titles = (f"chance of naming the winner, ε = {eps:g}", "lead that is needed for 95 %")
    figure, (left, right) = panels(2, *titles)
    lead = np.linspace(0.0, 32.0, 129)
    for count, dash in ((10, DOTS), (1000, LONG), (10**6, "-")):
        p = np.exp(-eps * lead)
        Pen(RED, dash, 1.6).draw(left, lead, 1 / (1 + (count - 1) * p))
        Pen(BLUE, dash, 1.6).draw(left, lead, -np.expm1(count * np.log1p(-np.minimum(p, 1 - 1e-16))) / (count * p))
        Pen(GREY, dash, 1.6).draw(left, [-2, -1], [0, 0], f"{count:,} candidates")
    keeping, leads = Keeping(eps, delta), np.arange(33)
    Pen(GREEN, width=2.4).draw(
        left, leads, [float(keeping.probability(int(n))) for n in leads], f"stable value, δ = {format_short(delta)}"
    )
    left.set_xlim(0, 32)
    label(left, "lead of the winner, in votes", "probability")
    legend(left, "lower right")
    counts = np.unique(np.geomspace(2, 1e9, 46).astype(int))
    exponential, flipped = Exponential.monotone(eps, 1), PermuteAndFlip.monotone(eps, 1)
    Pen(RED).draw(right, counts, [exponential.error(0.95, candidates=int(k)) for k in counts], "exponential mechanism")
    Pen(BLUE).draw(right, counts, [flipped.error(0.95, candidates=int(k)) for k in counts], "permute and flip")
    Pen(GREEN, width=2.4).draw(
        right, counts, np.full(len(counts), keeping.sure(0.95)), f"stable value, δ = {format_short(delta)}"
    )
    right.set_xscale("log")
    label(right, "candidates", "votes")
    legend(right, "lower right")
    return figure


def propose_test_release(delta: float = 1e-6) -> Figure:
    """The cost of propose-test-release (the larger of two losses, not their sum), and the probability of an answer."""
    figure, (left, right) = panels(2, "what it costs: test and answer of ε = ½ each", "chance of an answer")
    way = ProposeTestRelease(Quantile(0, 1000), 1, Laplace(2.0), Laplace(2.0), delta)
    loss, eps = way.loss(), np.linspace(0.0, 1.3, 261)
    Pen(RED, LONG).draw(left, eps, (loss.inner + way.test.loss(1)).delta(eps).upper + delta, "test + answer + δ")
    Pen(BLUE, width=2.4).draw(left, eps, loss.delta(eps).upper, "propose-test-release")
    Pen(GREY, DOTS, 1.4).draw(left, eps, np.full(len(eps), loss.failure), "what unsafe neighbours lose, $p_0$")
    left.set_yscale("log")
    left.set_ylim(1e-9, 1)
    label(left, "ε", "δ(ε)")
    legend(left, "lower left")
    distance = np.arange(70)
    for test, text, pen in (
        (Laplace(2.0), "Laplace test, ε = ½", Pen(BLUE)),
        (Gaussian(2.0), "Gaussian test, μ = ½", Pen(PURPLE, LONG)),
    ):
        passes = Gate(test, delta).loss(loss.inner, loss.relation).passes
        pen.draw(right, distance, [passes[min(int(d), len(passes) - 1)] for d in distance], text)
    best = Keeping(0.5, delta)
    Pen(ORANGE, MIXED).draw(
        right, distance, [float(best.probability(int(d) + 1)) for d in distance], "best coins, (½, δ)"
    )
    label(right, "people until the bound breaks", "probability")
    legend(right, "lower right")
    return figure
