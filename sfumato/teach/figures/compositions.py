"""Figures of compositions: the answers of every accountant, Gaussian noise, and the central limit theorem."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sfumato import checks
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.display import name, trade_off_curve
from sfumato.loss.kinds.coins import RandomizedResponseLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.laplace import LaplaceLoss
from sfumato.loss.numeric import floats
from sfumato.loss.views.gaussian_noise import analytic, classical_1, classical_2, slides_2
from sfumato.teach.classical.approximations import Estimate
from sfumato.teach.classical.compare import Comparison, Row, compare
from sfumato.teach.figures.style import (
    ACCOUNTANTS,
    ALPHAS,
    BLACK,
    BLUE,
    COUNTS,
    DELTA,
    DOTS,
    GREEN,
    LONG,
    MIXED,
    ORANGE,
    PURPLE,
    RED,
    SOLID,
    Pen,
    draw_blind_guessing,
    format_short,
    label,
    legend,
    panels,
)


def composition(loss: PrivacyLoss, delta: float = DELTA, counts: Sequence[int] = COUNTS) -> Figure:
    """ε of a k-fold composition by every accountant, and its ratio to the exact ε. Dotted lines are not bounds."""
    figure, (left, right) = panels(2, f"k × {name(loss)}", "times the truth")
    answers = [compare(checks.whole("count", k, 1) * loss, delta).rows for k in counts]
    truth = floats([reported_epsilon(rows[0]) for rows in answers])
    for rows in reversed(list(zip(*answers, strict=True))):  # the optimal answer is drawn last, on top
        eps, pen = floats([reported_epsilon(row) for row in rows]), accountant_pen(rows[-1])
        pen.draw(left, counts, eps, rows[0].name)
        pen.draw(right, counts, eps / truth)
    left.set_yscale("log")
    for axis in (left, right):
        axis.set_xscale("log")
    right.set_ylim(0.7, 2.5)
    label(left, "compositions k", f"ε at δ = {format_short(delta)}")
    label(right, "compositions k", "ε / exact ε")
    handles, texts = left.get_legend_handles_labels()
    style: dict[str, Any] = {"loc": "outside right center", "fontsize": 8.5, "frameon": False, "handlelength": 2.6}
    figure.legend(handles[::-1], texts[::-1], **style)
    return figure


def accountants(comparison: Comparison) -> Figure:
    """ε of one composition by every accountant, on a logarithmic axis. Hollow marks are not bounds."""
    figure, (axis,) = panels(1, inches=(6.4, 2.9))
    rows = [row for row in reversed(comparison.rows) if 0 < reported_epsilon(row) < math.inf]
    for height, row in enumerate(rows):
        accountant_pen(row).dot(axis, reported_epsilon(row), height, hollow=isinstance(row.epsilon, Estimate))
        axis.annotate(
            f"{reported_epsilon(row):.4g}",
            (reported_epsilon(row), height),
            (8, -3),
            textcoords="offset points",
            fontsize=8.5,
        )
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter("{x:g}")
    axis.margins(x=0.15, y=0.1)
    axis.set_yticks(range(len(rows)), [row.name for row in rows])
    label(axis, f"ε at δ = {format_short(comparison.delta)}", "")
    return figure


def reported_epsilon(row: Row) -> float:
    """The ε that an accountant reports; NaN where it has no answer."""
    if row.epsilon is None:
        return math.nan
    return row.epsilon.value if isinstance(row.epsilon, Estimate) else row.epsilon.upper


def accountant_pen(row: Row) -> Pen:
    """One colour per accountant; estimates are dotted, the optimal answer is thick."""
    pen = Pen(ACCOUNTANTS.get(row.name, BLACK), DOTS if isinstance(row.epsilon, Estimate) else SOLID, 1.6)
    return replace(pen, width=2.6) if pen.colour == BLUE else pen


def gaussian_noise(delta: float = DELTA) -> Figure:
    """The σ of each formula, and its ratio to the least possible σ (analytic Gaussian mechanism)."""
    figure, (left, right) = panels(2, f"noise for δ = {format_short(delta)}", "times the least noise")
    eps = np.geomspace(0.03, 30.0, 41)
    least = floats([float(analytic(e, delta)) for e in eps])
    formulas = {
        "classical 1: ε < 1 only": (classical_1, Pen(ORANGE, LONG)),
        "classical 2": (classical_2, Pen(RED, DOTS)),
        "slides’ version 2": (slides_2, Pen(PURPLE, MIXED)),
    }
    for text, (formula, pen) in formulas.items():
        valid = eps < (1 if formula is classical_1 else math.inf)
        sigma = floats([float(formula(e, delta)) for e in eps[valid]])
        pen.draw(left, eps[valid], sigma, text)
        pen.draw(right, eps[valid], sigma / least[valid])
    Pen(BLUE).draw(left, eps, least, "analytic: exact")
    Pen(BLUE).draw(right, eps, np.ones_like(eps))
    left.set_yscale("log")
    for axis in (left, right):
        axis.set_xscale("log")
    right.set_ylim(bottom=0.9)
    label(left, "ε", "σ per unit of sensitivity")
    label(right, "ε", "σ / least σ")
    legend(left)
    return figure


def central_limit(mu: float = 1.0, counts: Sequence[int] = (1, 4, 16)) -> Figure:
    """k-fold randomized response and Laplace at ε = μ/√k: their trade-off functions approach that of one Gaussian.

    Theorem: central limit theorem for trade-off functions [Dong, Roth & Su 2022, Thm 3.5]
    """
    figure, axes = panels(2, "randomized response", "Laplace")
    shades = (("#8fd6bd", GREEN, "#00513b"), ("#f5b27d", RED, "#7a3500"))
    for axis, kind, colours in zip(axes, (RandomizedResponseLoss, LaplaceLoss), shades, strict=True):
        limit = trade_off_curve(GaussianLoss(mu), ALPHAS)
        Pen("#a6cbe3", width=4.5).draw(axis, ALPHAS, limit, f"Gaussian, μ = {mu:g}")
        for k, colour, dash in zip(counts, colours, (LONG, DOTS, SOLID), strict=False):
            eps = mu / math.sqrt(k)
            Pen(colour, dash, 1.5).draw(axis, ALPHAS, trade_off_curve(k * kind(eps), ALPHAS), f"{k} × ε = {eps:.3g}")
        draw_blind_guessing(axis)
        label(axis, "type I error", "type II error")
        legend(axis, "upper right")
    return figure
