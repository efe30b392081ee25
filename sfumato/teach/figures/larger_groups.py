"""Figures of guarantees that depend on group size: the loss of a member under every mechanism, and the lower bound."""

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sfumato.mechanisms.groups.groupwise import GroupwiseLoss
from sfumato.mechanisms.groups.lower_bound import psi
from sfumato.mechanisms.groups.product_of_gaussians import ProductOfGaussians, ProductPair
from sfumato.mechanisms.groups.proportional_gaussian import ProportionalGaussian, ScaledPair
from sfumato.mechanisms.groups.relative_error import contract
from sfumato.mechanisms.groups.transformed import Transformed
from sfumato.mechanisms.groups.transforms import Asinh, Estimator, Identity, Log, SquareRoot, Transform
from sfumato.teach.figures.style import (
    BLUE,
    DELTA,
    DOTS,
    FAINT,
    GREEN,
    GREY,
    LONG,
    MIXED,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    Pen,
    format_short,
    label,
    legend,
    panels,
)  # fmt: skip

SIZES = np.unique(np.rint(np.geomspace(1, 1e6, 73)).astype(int))
RHO, R = 0.5, 0.1


def matching_asinh(rho: float, r: float) -> Transformed:
    """The asinh-Gaussian with the mean and the variance of noise on noise, r²x² + (1 + r²)/2ρ."""
    t = math.log1p(r * r)
    return Transformed(Asinh(math.sqrt((1 + r * r) / (2 * rho * math.sinh(t)))), math.sqrt(t))


def with_error(transform: Transform, error: float, at: int) -> Transformed:
    """The transform with the noise that gives a count of `at` this root mean square error."""
    low, high = 1e-3, 1e3
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        small = transform.square_error(at, middle, transform.estimators[0]) <= error * error
        low, high = (middle, high) if small else (low, middle)
    return Transformed(transform, low)


def larger_groups(sizes: Sequence[int] = tuple(SIZES.tolist())) -> Figure:
    """v(x) of every mechanism with the same error of 10 % (√(r²x² + 1.01)) at 100 people, and ε of contracts."""
    figure, (left, right) = panels(
        2, "v(x), all with an error of 10 at x = 100", "contracts, floor 10", inches=(7.6, 4.1)
    )
    ours = matching_asinh(RHO, R)
    error = ours.root_mean_square_error(100)
    lines = (
        (with_error(Identity(), error, 100), "identity", Pen(GREY, LONG, 1.4)),
        (with_error(SquareRoot(), error, 100), "square root", Pen(ORANGE, LONG, 1.6)),
        (with_error(Log(1.0), error, 100), "logarithm of x + 1", Pen(GREEN, MIXED, 1.6)),
        (ours, "asinh", Pen(BLUE, width=2.4)),
    )
    for mechanism, text, pen in lines:
        pen.draw(left, sizes, [mechanism.policy.v(x).upper for x in sizes], text)
    left.fill_between(list(sizes), RHO / 2, RHO, color=RED, alpha=0.25, linewidth=0, label="noise on noise: in here")
    proportional, large = ProportionalGaussian(R), [x for x in sizes if x >= 4]
    half = [proportional.truncated(x, float(proportional.last_order(x)) / 2).upper for x in large]
    Pen(PURPLE, DOTS, 1.6).draw(left, large, half, "in proportion, orders < x/4")
    best = psi(Transformed(Asinh(1.0), ours.sigma, estimator=Estimator.UNBIASED).absolute_error(1e9) / 1e9).lower / 2
    far = [x for x in sizes if x >= 100]
    Pen("#000000", FAINT, 1.2).draw(left, far, [best / x**2 for x in far], "lower bound")
    left.set_yscale("log")
    left.set_ylim(1e-11, 3)
    label(left, "size of the group, x", "v(x): $D_a \\leq a\\,v(x)$")
    for r, pen in ((0.2, Pen(SKY)), (0.1, Pen(BLUE)), (0.05, Pen(GREEN, LONG)), (0.01, Pen(RED, MIXED))):
        policy = contract(r, 10).policy
        pen.draw(right, sizes, [policy.epsilon(x, DELTA).upper for x in sizes], f"{100 * r:g} %")
    right.set_yscale("log")
    right.set_ylim(1e-4, 200)
    label(right, "size of the group, x", f"ε of a member at δ = {format_short(DELTA)}")
    for axis in (left, right):
        axis.set_xscale("log")
    legend(right, "lower left")
    legend_below(figure, left)
    return figure


def guarantees(
    policies: Mapping[str, GroupwiseLoss], delta: float = DELTA, sizes: Sequence[int] = tuple(SIZES.tolist())
) -> Figure:
    """v(x), and ε at δ, of group-wise guarantees by the size of the group."""
    figure, (left, right) = panels(2, "v(x)", f"ε of a member at δ = {format_short(delta)}")
    for (text, policy), colour in zip(policies.items(), cycle((BLUE, RED, GREEN, PURPLE, ORANGE, SKY)), strict=False):
        Pen(colour).draw(left, sizes, [policy.v(x).upper for x in sizes], text)
        Pen(colour).draw(right, sizes, [policy.epsilon(x, delta).upper for x in sizes], text)
    for axis, name in ((left, "v(x)"), (right, "ε")):
        axis.set_xscale("log")
        axis.set_yscale("log")
        label(axis, "size of the group, x", name)
        legend(axis, "lower left")
    return figure


def all_orders(largest: float = 512.0) -> Figure:
    """D_a/a by the order a, for one group: constant for asinh, ρ/2 for noise on noise; proportional noise diverges."""
    figure, axes = panels(2, "10 people, error of 50 %", "100 people, error of 50 %", inches=(7.6, 3.5))
    r = 0.5
    orders = np.geomspace(1.05, largest, 60)
    for axis, x in zip(axes, (10, 100), strict=True):
        product = ProductOfGaussians(RHO, r)
        pairs = [
            ProductPair(product.law(x + 1), product.law(x), largest),
            ProductPair(product.law(x), product.law(x - 1), largest),
        ]
        worst = [max(pair.renyi(float(a)) for pair in pairs) / a for a in orders]
        Pen(RED).draw(axis, orders, worst, "noise on noise")
        Pen(GREY, FAINT, 1.2).draw(axis, orders, np.full(orders.size, RHO / 2), "ρ/2")
        last = float(ProportionalGaussian(r).last_order(x))
        below = np.concatenate([orders[orders < 0.99 * last], [0.99 * last, 0.999 * last]])
        Pen(PURPLE, DOTS).draw(
            axis, below, [ScaledPair(x, x - 1, r).renyi(float(a)) / a for a in below], "in proportion"
        )
        v = matching_asinh(RHO, r).policy.v(x).upper
        Pen(BLUE, width=2.4).draw(axis, orders, np.full(orders.size, v), "asinh, same variance")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_ylim(1e-4, 1)
        label(axis, "order a", "$D_a/a$, the worst neighbour")
    legend_below(figure, axes[0])
    return figure


def legend_below(figure: Figure, axis: Axes) -> None:
    """Put the legend of one panel below all panels."""
    handles, texts = axis.get_legend_handles_labels()
    style: dict[str, Any] = {
        "loc": "outside lower center",
        "ncols": 4,
        "fontsize": 8.5,
        "columnspacing": 1.4,
        "frameon": False,
    }
    figure.legend(handles, texts, **style)
