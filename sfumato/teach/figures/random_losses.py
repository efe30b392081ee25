"""Figures of the privacy loss as a random variable: both directions, as probabilities and as tails."""

import numpy as np
from matplotlib.figure import Figure

from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.numeric import Floats
from sfumato.loss.views.law import LossLaw
from sfumato.sampling.poisson import Poisson
from sfumato.teach.figures.style import BLUE, GREY, LONG, RED, Pen, label, legend, panels

BINS = 60


def loss_law(loss: PrivacyLoss | None = None) -> Figure:
    """P[L in a bin] and P[L > t] of both directions: log P/Q under P, and log Q/P under Q.

    By default a Gaussian with μ = 1.5 on half of the people: an asymmetric pair. Somebody's presence can be given
    away by a large output; absence never can, so the loss of (Q, P) is bounded by −log(1 − q).
    """
    shown = Poisson(0.5).amplify(GaussianLoss(1.5)) if loss is None else loss
    figure, (left, right) = panels(2, "probability of the loss, in bins", "how often it exceeds t", inches=(7.6, 3.4))
    laws = {"log P/Q under P (she is in)": LossLaw(shown), "log Q/P under Q (she is not)": LossLaw(shown.reverse)}
    low, high = window(laws["log P/Q under P (she is in)"]), window(laws["log Q/P under Q (she is not)"])
    edges = np.linspace(min(low[0], high[0]), max(low[1], high[1]), BINS + 1)
    top = 0.0
    for (text, law), pen in zip(laws.items(), (Pen(BLUE), Pen(RED, LONG)), strict=True):
        tails = law.exceeds(edges)
        middle = (tails.lower + tails.upper) / 2
        pen.draw(left, *stairs(edges, -np.diff(middle)), text)
        top = max(top, float((-np.diff(middle)).max()))
        right.fill_between(edges, np.maximum(tails.lower, 1e-9), tails.upper, color=pen.colour, alpha=0.25, linewidth=0)
        pen.draw(right, edges, np.maximum(tails.upper, 1e-12), text)
    for axis in (left, right):
        Pen(GREY, width=0.8).draw(axis, [0, 0], [0, 1])
    left.set_ylim(0, 1.1 * top)
    right.set_yscale("log")
    right.set_ylim(1e-5, 1.5)
    label(left, "loss", "probability")
    label(right, "t", "P[loss > t]")
    legend(right, "lower left")
    return figure


def window(law: LossLaw) -> tuple[float, float]:
    """Where all but a ten-thousandth of the law lies."""
    low, high = law.quantile(1e-4).lower, law.quantile(1 - 1e-4 - law.loss.leak()[0]).upper
    room = 0.05 * (min(high, 50.0) - max(low, -50.0)) + 1e-3
    return max(low, -50.0) - room, min(high, 50.0) + room


def stairs(edges: Floats, heights: Floats) -> tuple[Floats, Floats]:
    """A histogram as a line."""
    return np.repeat(edges, 2)[1:-1], np.repeat(heights, 2)
