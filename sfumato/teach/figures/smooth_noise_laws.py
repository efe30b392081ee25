"""Figures of noise at a smooth sensitivity: sliding and dilation, all admissible noises together, trimmed means."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure

from sfumato.loss.bound import Bound
from sfumato.loss.numeric import floats
from sfumato.loss.views.gaussian_noise import analytic
from sfumato.loss.views.renyi_curve import conversion
from sfumato.mechanisms.dependent.calibration import FAMILIES, Target, search_family
from sfumato.mechanisms.dependent.laplace_gaussian import LaplaceNoise
from sfumato.mechanisms.dependent.noise_family import Noise
from sfumato.teach.classical import smooth_noise_prices
from sfumato.teach.experiments.trimmed_means import compare_trimmed_means
from sfumato.teach.figures.style import (
    BLACK,
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
    SKY,
    Pen,
    label,
    legend,
    panels,
)

RATES = (0.003, 0.006, 0.01, 0.015, 0.02, 0.03, 0.034, 0.05, 0.07, 0.1, 0.14, 0.19)
NAMES = ("Student", "arsinh-normal", "Laplace", "Gaussian", "uniform log-normal", "Cauchy")
PENS = (Pen(BLUE), Pen(GREEN, LONG), Pen(RED), Pen(BLACK), Pen(ORANGE, MIXED), Pen(PURPLE, DOTS))


def sliding_and_dilation(noise: Noise | None = None, shift: float = 0.3, dilation: float = 0.3) -> Figure:
    """The two ways in which noise of a data-dependent scale may differ between neighbours: it slides, and it dilates.

    Solid: the density h(z). Dotted: h(z + shift), and e^dilation·h(e^dilation·z). By default Laplace noise.
    """
    law = LaplaceNoise() if noise is None else noise
    titles = (f"sliding: h(z + {shift:g})", f"dilation: $e^{{{dilation:g}}}$h($e^{{{dilation:g}}}$z)")
    figure, (left, right) = panels(2, *titles, inches=(7.6, 3.0))
    z, grow = np.linspace(-4.0, 4.0, 801), math.exp(dilation)
    for axis, other in (
        (left, law.log_density(np.abs(z + shift))),
        (right, law.log_density(np.abs(grow * z)) + dilation),
    ):
        Pen(BLUE).draw(axis, z, np.exp(law.log_density(np.abs(z))), "h(z)")
        Pen(RED, DOTS).draw(axis, z, np.exp(other), "what a neighbour has")
        label(axis, "z", "density")
        axis.set_ylim(0, 0.8)
    legend(left, "upper left")
    return figure


def smooth_noise_laws(rates: Sequence[float] = RATES, epsilon: float = 1.0, delta: float = 1e-6) -> Figure:
    """The variance that each noise needs at the smooth scale S = 1, by the dilation t; 1 is the Gaussian at S as if it
    were global. Left: the least by exact losses, as the calibration finds it (its certified price differs by less than
    1 %). Right: by the published formulas, those about zCDP at the largest ρ that gives (ε, δ).
    """
    figure, (left, right) = panels(2, "exact losses", "published formulas", inches=(7.6, 3.8))
    unit = float(analytic(epsilon, delta)) ** 2
    target = Target(epsilon**2, lambda loss: math.inf, lambda sketch: sketch.epsilon(delta) ** 2)
    for name, family, pen in zip(NAMES, FAMILIES, PENS, strict=True):
        found = [search_family(family, target, t) for t in rates]
        pen.draw(left, rates, [one[0] / unit if one else math.nan for one in found], name)
    for name, pen, variance in published_variances(epsilon, delta):
        pen.draw(right, rates, [variance(t) / unit for t in rates], name)
    for axis in (left, right):
        Pen(GREY, FAINT, 1.0).draw(axis, [min(rates), max(rates)], [1, 1])
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_ylim(0.08, 1e4)
        label(axis, "dilation t", "variance, Gaussian at S = 1")
        legend(axis, "upper left")
    return figure


def published_variances(epsilon: float, delta: float) -> list[tuple[str, Pen, Callable[[float], float]]]:
    """Each formula's least variance at S = 1, infinite where it does not apply."""
    rho = largest_rho(epsilon, delta)

    def light(noise: Callable[[float, float], tuple[float, float]], variance: float) -> Callable[[float], float]:
        s, most = noise(epsilon, delta)
        return lambda t: variance / s**2 if t <= most else math.nan

    def student(t: float) -> float:
        options = [(epsilon - (d + 1) * t, d) for d in np.linspace(2.1, 40, 200)]
        return min(
            (d / (d - 2) * ((d + 1) / (2 * math.sqrt(d) * x)) ** 2 for x, d in options if x > 0), default=math.nan
        )

    def by_shift(
        price: Callable[[float, float, float], Bound], variance: Callable[[float], float], low: float
    ) -> Callable[[float], float]:
        """√(2ρ) is linear in the shift: what the dilation leaves of it buys the shift."""

        def at(t: float) -> float:
            found = []
            for sigma in np.linspace(low, 3.0, 120):
                start, slope = (math.sqrt(2 * float(price(sigma, s, t))) for s in (0.0, 1.0))
                left = math.sqrt(2 * rho) - start
                found += [variance(sigma) * ((slope - start) / left) ** 2] if left > 0 else []
            return min(found, default=math.nan)

        return at

    return [
        ("Student (2019)", PENS[0], student),
        (
            "arsinh-normal (2019)",
            PENS[1],
            by_shift(smooth_noise_prices.arsinh_normal, lambda g: math.expm1(2 * g * g) / (2 * g * g), 0.05),
        ),
        ("Laplace (2007)", PENS[2], light(smooth_noise_prices.laplace, 2.0)),
        ("Gaussian (2007)", PENS[3], light(smooth_noise_prices.gaussian, 1.0)),
        (
            "uniform log-normal (2019)",
            PENS[4],
            by_shift(smooth_noise_prices.uniform_log_normal, lambda g: math.exp(2 * g * g) / 3, math.sqrt(2)),
        ),
        (
            "Laplace log-normal (2019)",
            Pen(SKY),
            by_shift(smooth_noise_prices.laplace_log_normal, lambda g: 2 * math.exp(2 * g * g), 0.05),
        ),
    ]


def largest_rho(epsilon: float, delta: float) -> float:
    """The largest ρ for which ρ-zCDP implies (ε, δ)-DP, by the best order."""
    orders, low, high = 1 + np.geomspace(1e-3, 1e4, 2000), 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        meets = conversion(orders, middle * orders, floats([epsilon]))[0] <= delta
        low, high = (middle, high) if meets else (low, middle)
    return low


def trimmed_means(sizes: Sequence[int] = (101, 501, 2001), sets: int = 8, rates: Sequence[float] = (0.2,)) -> Figure:
    """E(answer − mean)² of a private mean of N(0, 1) in [−50, 50] at ρ = ½, beyond what the sample errs by itself."""
    figure, (axis,) = panels(1, inches=(6.0, 3.6))
    found = [compare_trimmed_means(n, sets, rates=rates, steps=4) for n in sizes]
    Pen(RED, LONG).draw(axis, sizes, [one.worst_case for one in found], "mean, global sensitivity")
    Pen(ORANGE, MIXED).draw(axis, sizes, [one.published.size for one in found], "trimmed mean, published noise")
    Pen(BLUE, width=2.4).draw(axis, sizes, [one.ours.size for one in found], "trimmed mean, exact loss")
    Pen(GREY, DOTS, 1.4).draw(axis, sizes, [one.local.size for one in found], "local sensitivity: not private")
    Pen(GREY, FAINT, 1.2).draw(axis, sizes, [1 / n for n in sizes], "sampling error")
    axis.set_xscale("log")
    axis.set_yscale("log")
    label(axis, "people", "mean square error")
    legend(axis, "lower left")
    return figure
