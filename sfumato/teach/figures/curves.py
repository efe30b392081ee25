"""Figures of the views of a loss: Rényi curves, trade-off functions, profiles, tangents."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from sfumato.loss.base import PrivacyLoss
from sfumato.loss.display import name, profile_grid, trade_off_curve, visible_end
from sfumato.loss.numeric import floats
from sfumato.loss.views.profile import top_of
from sfumato.teach.figures.style import (
    ALPHAS,
    BLACK,
    FAINT,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    Losses,
    Pen,
    draw_blind_guessing,
    label,
    label_losses,
    legend,
    panels,
    pens,
)


def renyi_curves(losses: Losses, orders: Sequence[float] | None = None) -> Figure:
    """D_a against the order a. A Gaussian is the line aμ²/2 through the origin; ε-DP losses level off at ε."""
    figure, (axis,) = panels(1, inches=(5.6, 3.4))
    shown, grid = label_losses(losses), floats(orders if orders is not None else np.linspace(1.0, 10.0, 46))
    for (text, loss), pen in zip(shown.items(), pens(shown), strict=True):
        pen.draw(axis, grid, [float(loss.renyi(a)) for a in grid], text)
    finite = [top_of(loss) for loss in shown.values() if 0 < top_of(loss) < math.inf]
    if finite and len(finite) < len(shown):  # unbounded curves would flatten the others
        axis.set_ylim(0, 2.5 * max(finite))
    axis.set_xlim(grid[0], grid[-1])
    axis.set_ylim(bottom=0)
    label(axis, "order $a$", "Rényi divergence $D_a$")
    legend(axis)
    return figure


def trade_off_functions(losses: Losses) -> Figure:
    """Type II against type I error of the best attack; on the right few false alarms, on log scales."""
    figure, (full, corner) = panels(2, "trade-off function", "the corner that matters: few false alarms")
    draw_blind_guessing(full)
    shown = label_losses(losses)
    for (text, loss), pen in zip(shown.items(), pens(shown), strict=True):
        beta = trade_off_curve(loss, ALPHAS)
        pen.draw(full, ALPHAS, beta)
        pen.draw(corner, ALPHAS[1:], 1 - beta[1:], text)
    Pen(GREY, FAINT, 1.0).draw(corner, [1e-5, 1], [1e-5, 1])
    corner.set_xscale("log")
    corner.set_yscale("log")
    corner.set_xlim(1e-4, 1)
    corner.set_ylim(1e-4, 1.2)
    label(full, "type I error (false alarm)", "type II error (miss)")
    label(corner, "type I error", "power = 1 − type II error")
    legend(corner, "lower right")
    return figure


def profiles(losses: Losses) -> Figure:
    """δ(ε), linear and logarithmic; the mechanism is (ε, δ)-DP on and above its line."""
    figure, (plain, log) = panels(2, "privacy profile δ(ε)", "the same, δ on a log scale")
    shown = label_losses(losses)
    end = 1.1 * max(visible_end(loss) for loss in shown.values()) or 1.0
    for (text, loss), pen in zip(shown.items(), pens(shown), strict=True):
        for axis, last in ((plain, end / 2), (log, end)):
            eps = profile_grid(loss, last)
            pen.draw(axis, eps, np.maximum(loss.delta(eps).upper, 1e-300), text)
    plain.set_xlim(0, end / 2)
    plain.set_ylim(bottom=0)
    log.set_yscale("log")
    log.set_xlim(0, end)
    log.set_ylim(1e-7, 1.5)
    label(plain, "ε", "δ")
    label(log, "ε", "δ")
    legend(plain)
    return figure


def tangents(loss: PrivacyLoss, epsilons: Sequence[float] = (0.0, 0.5, 1.0, 2.0)) -> Figure:
    """The trade-off function as the envelope of its (ε, δ(ε)) lines; a point of the profile is a pair of tangents."""
    figure, (left, right) = panels(2, "every (ε, δ) is a pair of tangents …", "… and a point of the profile")
    x = np.array([0.0, 1.0])
    for eps, colour in zip(epsilons, (GREEN, ORANGE, RED, PURPLE, SKY), strict=False):
        delta = float(loss.delta(eps))
        Pen(colour, width=1.3).draw(left, x, 1 - delta - math.exp(eps) * x)
        Pen(colour, width=1.3).draw(left, x, math.exp(-eps) * (1 - delta - x))
        Pen(colour).dot(right, eps, delta, f"ε = {eps:g}, δ = {delta:.3g}")
    grid = profile_grid(loss, 1.3 * max(epsilons) or 1.0)
    draw_blind_guessing(left)
    Pen(BLACK, width=2.2).draw(left, ALPHAS, trade_off_curve(loss, ALPHAS))
    Pen(BLACK, width=2.2).draw(right, grid, loss.delta(grid).upper, name(loss))
    right.set_xlim(left=0)
    right.set_ylim(bottom=0)
    label(left, "type I error α", "type II error β")
    label(right, "ε", "δ")
    legend(right, "upper right")
    return figure
