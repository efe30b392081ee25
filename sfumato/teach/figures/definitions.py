"""Figures that explain the definitions: the hockey stick, the two errors, the (ε, δ) region."""

import math

import numpy as np
from matplotlib.figure import Figure

from sfumato.loss.display import trade_off_curve
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.numeric import Floats, floats
from sfumato.teach.figures.style import (
    ALPHAS,
    BLACK,
    BLUE,
    DOTS,
    GREEN,
    GREY,
    LONG,
    PURPLE,
    RED,
    SKY,
    Pen,
    draw_blind_guessing,
    label,
    legend,
    panels,
)


def bell(x: Floats, centre: float) -> Floats:
    """Density of N(centre, 1)."""
    return floats(np.exp(-((x - centre) ** 2) / 2) / math.sqrt(2 * math.pi))


def hockey_stick(mu: float = 1.0, epsilon: float = 0.5) -> Figure:
    """The function (x − e^ε)₊ that names the divergence, and the area that it measures, where P exceeds e^ε·Q."""
    titles = ("the hockey stick $(x-e^\\varepsilon)_+$", "its divergence: the area of P above $e^\\varepsilon$ Q")
    figure, (left, right) = panels(2, *titles)
    x = np.linspace(0.0, 4.0, 200)
    for eps, pen in ((0.0, Pen(GREEN, DOTS)), (epsilon, Pen(RED)), (2 * epsilon, Pen(PURPLE, LONG))):
        pen.draw(left, x, np.maximum(x - math.exp(eps), 0), f"ε = {eps:g}")
    label(left, "likelihood ratio $x = P/Q$", "$f(x)$")
    legend(left)
    x = np.linspace(-3.5, 3.5 + mu, 400)
    p, q = bell(x, mu), math.exp(epsilon) * bell(x, 0.0)
    Pen(BLUE).draw(right, x, p, "P, Alice is in the data")
    Pen(GREY, LONG).draw(right, x, q, f"$e^{{{epsilon:g}}}\\,$Q, she is not")
    area = f"area δ = {float(GaussianLoss(mu).delta(epsilon)):.3f}"
    right.fill_between(x, q, p, where=p > q, color=BLUE, alpha=0.3, linewidth=0, label=area)
    right.set_ylim(0, 1.45 * q.max())
    label(right, "output", "density")
    legend(right, "upper left")
    return figure


def two_errors(mu: float = 1.5, threshold: float = 1.0) -> Figure:
    """A test of "is Alice in the data?": both errors as areas, and the same test on the trade-off function."""
    titles = ("one test: say “she is in” beyond the threshold", "all tests: the trade-off function")
    figure, (left, right) = panels(2, *titles)
    x = np.linspace(-3.2, 3.2 + mu, 400)
    p, q = bell(x, mu), bell(x, 0.0)
    Pen(GREY, LONG).draw(left, x, q, "Q, Alice is not in the data")
    Pen(BLUE).draw(left, x, p, "P, Alice is in the data")
    alarm, miss = "type I error (false alarm)", "type II error (miss)"
    left.fill_between(x, q, where=x >= threshold, color=RED, alpha=0.45, linewidth=0, label=alarm)
    left.fill_between(x, p, where=x <= threshold, color=SKY, alpha=0.45, linewidth=0, label=miss)
    Pen(BLACK, width=1.0).draw(left, [threshold, threshold], [0, 0.44])
    left.set_ylim(0, 0.74)
    label(left, "output", "density")
    legend(left, "upper left")
    alpha = 0.5 * math.erfc(threshold / math.sqrt(2))
    beta = float(GaussianLoss(mu).trade_off(alpha))
    draw_blind_guessing(right)
    Pen(BLUE).draw(right, ALPHAS, trade_off_curve(GaussianLoss(mu), ALPHAS))
    Pen(BLACK, DOTS, 1.0).draw(right, [alpha, alpha, 0], [0, beta, beta])
    Pen(BLACK).dot(right, alpha, beta)
    right.text(alpha + 0.03, beta + 0.02, f"({alpha:.2f}, {beta:.2f})", fontsize=8.5)
    label(right, "type I error α", "type II error β")
    return figure


def region(epsilon: float = 1.0, delta: float = 0.1) -> Figure:
    """The meaning of (ε, δ)-DP for attacks: the two errors lie on or above two lines."""
    figure, (axis,) = panels(1, f"({epsilon:g}, {delta:g})-DP", inches=(5.0, 3.8))
    growth, kink = math.exp(epsilon), (1 - delta) / (1 + math.exp(epsilon))
    floor = np.maximum(np.maximum(1 - delta - growth * ALPHAS, (1 - delta - ALPHAS) / growth), 0)
    draw_blind_guessing(axis)
    axis.fill_between(ALPHAS, floor, color=PURPLE, alpha=0.18, linewidth=0)
    Pen(PURPLE, width=2.2).draw(axis, ALPHAS, floor)
    Pen(PURPLE).dot(axis, kink, kink)
    axis.text(0.06, 0.09, "no attack\ngets here", fontsize=9, color="#70405c")
    thin = {"arrowstyle": "-", "linewidth": 0.7}
    steep, gentle = (0.45 * kink, 1 - delta - growth * 0.45 * kink), (0.62, (0.38 - delta) / growth)
    axis.annotate("slope $-e^{\\varepsilon}$", steep, (0.20, 0.51), fontsize=9, arrowprops=thin)
    axis.annotate("slope $-e^{-\\varepsilon}$", gentle, (0.42, 0.24), fontsize=9, arrowprops=thin)
    axis.set_yticks([0, 0.5, 1 - delta, 1], ["0", "0.5", "1−δ", "1"])
    axis.set_xticks([0, 0.5, 1 - delta, 1], ["0", "0.5", "1−δ", "1"])
    label(axis, "type I error α", "type II error β")
    return figure
