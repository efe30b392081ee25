"""Pictures of privacy: profiles, trade-off functions, Rényi curves, and what each accountant makes of a composition.

Every function returns a matplotlib Figure and touches no global state (no pyplot, no window): `figure.savefig(path)`
keeps it, a notebook shows it. One mechanism has one colour throughout, chosen to survive colour-blindness.
"""

import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compare import Comparison, Row, compare
from sfumato.loss.compose import engine
from sfumato.loss.contour import FAR, Composition, Contour, Totals
from sfumato.loss.contour_engine import ContourEngine
from sfumato.loss.display import name, profile_grid, reach, trade_off_curve
from sfumato.loss.estimates import Estimate
from sfumato.loss.gaussian import GaussianLoss
from sfumato.loss.gaussian_noise import analytic, classical_1, classical_2, slides_2
from sfumato.loss.laplace import LaplaceLoss
from sfumato.loss.numeric import Floats, floats
from sfumato.loss.signed import RandomizedResponseLoss
from sfumato.loss.sums import Sum
from sfumato.loss.views import top_of
from sfumato.sampling.poisson import Poisson

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from PIL import Image  # a dependency of matplotlib
except ImportError as problem:
    raise ImportError("pictures need matplotlib.\n  do:     pip install 'sfumato[plot]'") from problem

Losses = PrivacyLoss | Mapping[str, PrivacyLoss] | Iterable[PrivacyLoss]
Dash = str | tuple[float, tuple[float, ...]]

# Okabe & Ito's palette; the family decides, so that a mechanism looks the same in every picture.
BLUE, RED, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, GREY, BLACK = "#E69F00", "#56B4E9", "#666666", "#000000"
FAMILIES = {"GaussianLoss": BLUE, "LaplaceLoss": RED, "RandomizedResponseLoss": GREEN, "ApproxLoss": PURPLE}
ACCOUNTANTS = {
    "optimal (sfumato)": BLUE,
    "basic": GREY,
    "advanced": ORANGE,
    "advanced, zCDP mean": RED,
    "optimal for (ε, δ)": PURPLE,
    "Rényi": GREEN,
    "central limit": SKY,
}
SOLID: Dash = "-"
LONG: Dash = (0, (6, 1.5))
DOTS: Dash = (0, (1.2, 1.2))
MIXED: Dash = (0, (6, 1.5, 1.2, 1.5))
FAINT: Dash = (0, (3, 3))
DASHES = (SOLID, LONG, DOTS, MIXED)
INCHES = (7.6, 3.3)  # two panels fill the column of a README
ALPHAS = np.unique(np.concatenate([np.geomspace(1e-5, 0.5, 150), 1 - np.geomspace(1e-4, 0.5, 150), [0.0, 1.0]]))
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
DELTA = 1e-6


class Picture(Figure):
    """A matplotlib Figure that notebooks show without pyplot."""

    def _repr_png_(self) -> bytes:
        page = io.BytesIO()
        self.savefig(page, format="png", dpi=110)
        return page.getvalue()


# ---- the same hand for every picture ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pen:
    """How a line looks."""

    colour: str
    dash: Dash = SOLID
    width: float = 1.9

    def draw(self, axis: Axes, x: npt.ArrayLike, y: npt.ArrayLike, text: str = "") -> None:
        """A line; with a text it has an entry in the legend."""
        style: dict[str, Any] = {"color": self.colour, "linestyle": self.dash, "linewidth": self.width}
        axis.plot(np.asarray(x), np.asarray(y), label=text or None, **style)

    def dot(self, axis: Axes, x: float, y: float, text: str = "", *, hollow: bool = False) -> None:
        """A point, on top of the lines."""
        style: dict[str, Any] = {"color": self.colour, "markerfacecolor": "white" if hollow else self.colour}
        axis.plot([x], [y], "o", markersize=7, zorder=3, clip_on=False, label=text or None, **style)


def panels(count: int, *titles: str, inches: tuple[float, float] = INCHES, rows: int = 1) -> tuple[Picture, list[Axes]]:
    """An empty picture with its panels side by side, in one row or more."""
    figure = Picture(figsize=inches, layout="constrained", facecolor="white")
    axes = [figure.add_subplot(rows, count // rows, i + 1) for i in range(count)]
    for axis, title in zip(axes, titles, strict=False):
        axis.set_title(title, fontsize=10)
    for axis in axes:
        axis.grid(True, color="#dddddd", linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8.5)
    return figure, axes


def label(axis: Axes, x: str, y: str) -> None:
    """Names of the axes."""
    axis.set_xlabel(x, fontsize=9.5)
    axis.set_ylabel(y, fontsize=9.5)


def legend(axis: Axes, where: str = "best") -> None:
    """A plain legend."""
    style: dict[str, Any] = {"loc": where, "fontsize": 8.5, "framealpha": 0.9, "edgecolor": "none", "handlelength": 2.6}
    axis.legend(**style)


def short(number: float) -> str:
    """1e-6 rather than 1e-06."""
    return f"{number:g}".replace("e-0", "e-")


def blind(axis: Axes) -> None:
    """The unit square of both errors, with the diagonal 1 − α of an attacker who does not look."""
    Pen(GREY, FAINT, 1.0).draw(axis, [0, 1], [1, 0])
    style: dict[str, Any] = {"rotation_mode": "anchor", "transform_rotates_text": True, "fontsize": 8, "color": GREY}
    axis.text(0.27, 0.77, "blind guessing", rotation=-45, **style)
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 1)
    axis.set_aspect("equal")


def named(losses: Losses) -> dict[str, PrivacyLoss]:
    """Losses by the label they get."""
    if isinstance(losses, PrivacyLoss):
        return {name(losses): losses}
    return dict(losses) if isinstance(losses, Mapping) else {name(loss): loss for loss in losses}


def pens(losses: Mapping[str, PrivacyLoss]) -> list[Pen]:
    """A pen per loss: colour by family (that of the term, for k-fold sums), dashes by position."""
    colours, spare = dict(FAMILIES), [ORANGE, SKY, BLACK, GREY]
    result = []
    for index, loss in enumerate(losses.values()):
        part = loss.terms[0][1] if isinstance(loss, Sum) and len(loss.terms) == 1 else loss
        colour = colours.setdefault(type(part).__name__, spare[(len(colours) - len(FAMILIES)) % len(spare)])
        result.append(Pen(colour, DASHES[index % len(DASHES)]))
    return result


# ---- views of losses -------------------------------------------------------------------------------------------------


def renyi_curves(losses: Losses, orders: Sequence[float] | None = None) -> Figure:
    """D_a against the order a. A Gaussian is the line aμ²/2 through the origin, ε-DP losses level off at ε."""
    figure, (axis,) = panels(1, inches=(5.6, 3.4))
    shown, grid = named(losses), floats(orders if orders is not None else np.linspace(1.0, 10.0, 46))
    for (text, loss), pen in zip(shown.items(), pens(shown), strict=True):
        pen.draw(axis, grid, [float(loss.renyi(a)) for a in grid], text)
    finite = [top_of(loss) for loss in shown.values() if 0 < top_of(loss) < math.inf]
    if finite and len(finite) < len(shown):  # the unbounded would flatten the others
        axis.set_ylim(0, 2.5 * max(finite))
    axis.set_xlim(grid[0], grid[-1])
    axis.set_ylim(bottom=0)
    label(axis, "order $a$", "Rényi divergence $D_a$")
    legend(axis)
    return figure


def trade_off_functions(losses: Losses) -> Figure:
    """Type II against type I error of the best attack; on the right the corner of few false alarms, on log scales."""
    figure, (whole, corner) = panels(2, "trade-off function", "the corner that matters: few false alarms")
    blind(whole)
    shown = named(losses)
    for (text, loss), pen in zip(shown.items(), pens(shown), strict=True):
        beta = trade_off_curve(loss, ALPHAS)
        pen.draw(whole, ALPHAS, beta)
        pen.draw(corner, ALPHAS[1:], 1 - beta[1:], text)
    Pen(GREY, FAINT, 1.0).draw(corner, [1e-5, 1], [1e-5, 1])
    corner.set_xscale("log")
    corner.set_yscale("log")
    corner.set_xlim(1e-4, 1)
    corner.set_ylim(1e-4, 1.2)
    label(whole, "type I error (false alarm)", "type II error (miss)")
    label(corner, "type I error", "power = 1 − type II error")
    legend(corner, "lower right")
    return figure


def profiles(losses: Losses) -> Figure:
    """δ(ε), linear and logarithmic: the mechanism is (ε, δ)-DP on and above its line."""
    figure, (plain, log) = panels(2, "privacy profile δ(ε)", "the same, δ on a log scale")
    shown = named(losses)
    end = 1.1 * max(reach(loss) for loss in shown.values()) or 1.0
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
    """The trade-off function as the envelope of its (ε, δ(ε)) lines: a point of the profile is a pair of tangents."""
    figure, (left, right) = panels(2, "every (ε, δ) is a pair of tangents …", "… and a point of the profile")
    x = np.array([0.0, 1.0])
    for eps, colour in zip(epsilons, (GREEN, ORANGE, RED, PURPLE, SKY), strict=False):
        delta = float(loss.delta(eps))
        Pen(colour, width=1.3).draw(left, x, 1 - delta - math.exp(eps) * x)
        Pen(colour, width=1.3).draw(left, x, math.exp(-eps) * (1 - delta - x))
        Pen(colour).dot(right, eps, delta, f"ε = {eps:g}, δ = {delta:.3g}")
    grid = profile_grid(loss, 1.3 * max(epsilons) or 1.0)
    blind(left)
    Pen(BLACK, width=2.2).draw(left, ALPHAS, trade_off_curve(loss, ALPHAS))
    Pen(BLACK, width=2.2).draw(right, grid, loss.delta(grid).upper, name(loss))
    right.set_xlim(left=0)
    right.set_ylim(bottom=0)
    label(left, "type I error α", "type II error β")
    label(right, "ε", "δ")
    legend(right, "upper right")
    return figure


# ---- accountants -----------------------------------------------------------------------------------------------------


def composition(loss: PrivacyLoss, delta: float = DELTA, counts: Sequence[int] = COUNTS) -> Figure:
    """ε of k-fold repetition by every accountant, and how much more than the truth that is. Dots promise nothing."""
    figure, (left, right) = panels(2, f"k × {name(loss)}", "times the truth")
    answers = [compare(checks.whole("count", k, 1) * loss, delta).rows for k in counts]
    truth = floats([said(rows[0]) for rows in answers])
    for rows in reversed(list(zip(*answers, strict=True))):  # the truth is drawn last, on top
        eps, pen = floats([said(row) for row in rows]), accountant_pen(rows[-1])
        pen.draw(left, counts, eps, rows[0].name)
        pen.draw(right, counts, eps / truth)
    left.set_yscale("log")
    for axis in (left, right):
        axis.set_xscale("log")
    right.set_ylim(0.7, 2.5)
    label(left, "compositions k", f"ε at δ = {short(delta)}")
    label(right, "compositions k", "ε / exact ε")
    handles, texts = left.get_legend_handles_labels()
    style: dict[str, Any] = {"loc": "outside right center", "fontsize": 8.5, "frameon": False, "handlelength": 2.6}
    figure.legend(handles[::-1], texts[::-1], **style)
    return figure


def accountants(comparison: Comparison) -> Figure:
    """One composition, every accountant: its ε on a logarithmic axis. Hollow marks promise nothing."""
    figure, (axis,) = panels(1, inches=(6.4, 2.9))
    rows = [row for row in reversed(comparison.rows) if 0 < said(row) < math.inf]
    for height, row in enumerate(rows):
        accountant_pen(row).dot(axis, said(row), height, hollow=isinstance(row.epsilon, Estimate))
        axis.annotate(f"{said(row):.4g}", (said(row), height), (8, -3), textcoords="offset points", fontsize=8.5)
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter("{x:g}")
    axis.margins(x=0.15, y=0.1)
    axis.set_yticks(range(len(rows)), [row.name for row in rows])
    label(axis, f"ε at δ = {short(comparison.delta)}", "")
    return figure


def said(row: Row) -> float:
    """The ε that an accountant reports; NaN where it has no answer."""
    if row.epsilon is None:
        return math.nan
    return row.epsilon.value if isinstance(row.epsilon, Estimate) else row.epsilon.upper


def accountant_pen(row: Row) -> Pen:
    """One colour per accountant; estimates are dotted, the truth is thick."""
    pen = Pen(ACCOUNTANTS.get(row.name, BLACK), DOTS if isinstance(row.epsilon, Estimate) else SOLID, 1.6)
    return replace(pen, width=2.6) if pen.colour == BLUE else pen


def gaussian_noise(delta: float = DELTA) -> Figure:
    """The σ that each formula asks for, and how much of it is too much: the analytic one is the least that will do."""
    figure, (left, right) = panels(2, f"noise for δ = {short(delta)}", "times the least noise")
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
        blind(axis)
        label(axis, "type I error", "type II error")
        legend(axis, "upper right")
    return figure


# ---- how a composition is computed -----------------------------------------------------------------------------------


def contour(loss: PrivacyLoss, delta: float = DELTA) -> Figure:
    """The inversion integral of a composition in four steps: a line through the complex plane, how |Φ| falls along it,
    what the sum of its nodes makes of δ, and how sharp that is. Bands and ceilings are those of the engine."""
    composed, eps = contour_engine(loss), loss.epsilon(delta).upper
    line = composed.contour(eps, 1e-8)
    titles = ("1. |integrand|: a line across its pass", "2. along the line it falls, and stays low")
    more = ("3. the sum of the nodes tends to δ …", "4. … and later nodes make it certain")
    figure, (plane, decay, total, gap) = panels(4, *titles, *more, inches=(7.6, 6.4), rows=2)
    draw_plane(plane, composed, line, eps)
    draw_decay(decay, composed, line)
    draw_sums(total, gap, composed, line, eps)
    return figure


def contour_engine(loss: PrivacyLoss) -> Composition:
    """What the contour engine knows of a sum, read forward."""
    found = engine(loss) if isinstance(loss, Sum) else None
    if not isinstance(found, ContourEngine):
        raise InvalidParameter(
            "this picture is about sums that are composed on a contour.\n"
            f"  found:  {name(loss)}, method {loss.method!r}\n"
            "  do:     give it a sum such as 1000 * sf.Poisson(0.01).amplify(sf.loss.GaussianLoss(1))"
        )
    return found.composition


def sizes(composed: Composition, theta: float, omega: Floats) -> tuple[float, Floats]:
    """log M(θ), and log |Φ| at equally spaced frequencies."""
    views = [part.tilted(theta) for part in composed.transforms]
    found = np.sum([view.discs(omega).log.real for view in views], axis=0)
    return sum(view.log_moment for view in views), floats(found)


def draw_plane(axis: Axes, composed: Composition, line: Contour, eps: float) -> None:
    """|integrand| in powers of ten, its saddle point and the nodes."""
    heard = line.line.omega[line.totals.discs.log.real > math.log(1e-13)]
    omega, theta = np.linspace(0.0, 1.15 * float(heard[-1]), 90), line.theta * np.geomspace(0.3, 2.2, 80)
    height = np.empty((len(omega), len(theta)))
    for column, tilt in enumerate(theta.tolist()):
        log_moment, log_size = sizes(composed, tilt, omega)
        z = tilt + 1j * omega
        height[:, column] = (log_moment - tilt * eps + log_size - np.log(np.abs(z * (z + 1)))) / math.log(10)
    saddle = int(np.argmin(height[0]))
    levels = np.arange(math.floor(height[0, saddle]) - 9, math.ceil(height[0, saddle]) + 3)
    filled = axis.contourf(theta, omega, height, levels=levels, cmap="Blues", extend="both")
    axis.contour(theta, omega, height, levels=levels, colors="white", linewidths=0.5, linestyles="solid")
    bar = axis.figure.colorbar(filled, ax=axis, pad=0.02)
    bar.ax.tick_params(labelsize=8)
    bar.set_label("power of ten", fontsize=8.5)
    dots: dict[str, Any] = {"color": RED, "markersize": 4, "linewidth": 1.0, "clip_on": False, "zorder": 3}
    axis.plot(np.full_like(heard, line.theta), heard, "o-", label="nodes θ + inD", **dots)
    Pen(BLACK).dot(axis, float(theta[saddle]), 0.0, "saddle point", hollow=True)
    axis.set_xlim(theta[0], theta[-1])
    axis.set_ylim(0, omega[-1])
    axis.grid(False)
    label(axis, "tilt θ", "frequency ω")
    legend(axis, "upper right")


def draw_decay(axis: Axes, composed: Composition, line: Contour) -> None:
    """|Φ|, the ceiling above it, and what the ceiling must cover."""
    last = float(line.line.omega[-1])
    omega = np.linspace(0.0, 1.3 * last, 300)
    ceiling = np.sum([part.tilted(line.theta).log_ceiling(omega[1:]) for part in composed.transforms], axis=0)
    axis.axvspan(last, float(omega[-1]), color="#e4e4e4", linewidth=0)
    Pen(GREEN, LONG).draw(axis, omega, np.exp(np.append(0.0, ceiling)), "ceiling")
    Pen(BLUE).draw(axis, omega, np.exp(sizes(composed, line.theta, omega)[1]), "|Φ(ω)|")
    marks: dict[str, Any] = {"color": RED, "markersize": 4, "zorder": 3}
    axis.plot(line.line.omega, np.exp(line.totals.discs.log.real), "o", label="nodes", **marks)
    axis.text(last * 1.02, 3e-9, "dropped:\nunder the\nceiling", fontsize=8, color="#444444")
    axis.set_yscale("log")
    axis.set_ylim(1e-13, 3)
    axis.set_xlim(0, omega[-1])
    label(axis, "frequency ω", "size of the transform")
    legend(axis, "upper right")


def draw_sums(total: Axes, gap: Axes, composed: Composition, line: Contour, eps: float) -> None:
    """The certified δ from ever more nodes, and how far its sides are from the truth."""
    t = np.array([eps])
    truth = float(np.mean([side[0] for side in composed.contour(eps, 1e-13).delta(t)]))
    count = np.arange(2, len(line.terms) + 1)
    low, middle, high = floats([partial(composed, line, nodes, t) for nodes in count.tolist()]).T / truth
    total.fill_between(count, low, high, color=BLUE, alpha=0.25, linewidth=0, label="certified")
    Pen(RED).draw(total, count, middle, "sum of the nodes")
    Pen(BLACK, DOTS, 1.0).draw(total, count, np.ones_like(middle), "δ")
    total.set_xlim(2, min(14, count[-1]))
    total.set_ylim(0, 2)
    label(total, "nodes", "sum / δ")
    legend(total, "upper right")
    Pen(BLUE).draw(gap, count, high - low, "certified gap / δ")
    error = np.maximum(np.abs(middle - 1), 1e-16)
    Pen(RED, LONG).draw(gap, count, error, "true error / δ")
    gap.annotate("what is left are the aliases", (count[-1], 0.7 * error[-1]), fontsize=8, ha="right", va="top")
    gap.set_yscale("log")
    gap.set_ylim(0.05 * error[-1], 100)
    gap.set_xlim(2, count[-1])
    label(gap, "nodes", "relative to δ")
    legend(gap, "upper right")


def partial(composed: Composition, line: Contour, nodes: int, t: Floats) -> tuple[float, float, float]:
    """δ from below, the bare sum, and δ from above, by the first nodes of a line alone."""
    last, spread = (nodes - 1) * line.line.step, line.line.saddle.spread
    far = floats([last, *(FAR[last * spread < FAR] / spread)])
    first = replace(line.line, nodes=nodes - 1, far=far)
    totals = Totals.together([Totals.of(part, first) for part in composed.transforms])
    sides = (cut := Contour(first, totals, composed.surely, composed.leak)).delta(t)
    main = float(cut.sums(t)[0, 0]) * math.exp(cut.log_moment - cut.theta * float(t[0]))
    return float(sides.lower[0]), composed.leak + main, float(sides.upper[0])


# ---- the lecture's drawings ------------------------------------------------------------------------------------------


def bell(x: Floats, centre: float) -> Floats:
    """Density of N(centre, 1)."""
    return floats(np.exp(-((x - centre) ** 2) / 2) / math.sqrt(2 * math.pi))


def hockey_stick(mu: float = 1.0, epsilon: float = 0.5) -> Figure:
    """The function (x − e^ε)₊ that names the divergence, and the area it measures: where P exceeds e^ε times Q."""
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
    """A test of "is Alice in the data?": both errors as areas, and the same test as a point of the trade-off."""
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
    blind(right)
    Pen(BLUE).draw(right, ALPHAS, trade_off_curve(GaussianLoss(mu), ALPHAS))
    Pen(BLACK, DOTS, 1.0).draw(right, [alpha, alpha, 0], [0, beta, beta])
    Pen(BLACK).dot(right, alpha, beta)
    right.text(alpha + 0.03, beta + 0.02, f"({alpha:.2f}, {beta:.2f})", fontsize=8.5)
    label(right, "type I error α", "type II error β")
    return figure


def region(epsilon: float = 1.0, delta: float = 0.1) -> Figure:
    """What (ε, δ)-DP says about attacks: the two errors lie on or above two lines."""
    figure, (axis,) = panels(1, f"({epsilon:g}, {delta:g})-DP", inches=(5.0, 3.8))
    growth, kink = math.exp(epsilon), (1 - delta) / (1 + math.exp(epsilon))
    floor = np.maximum(np.maximum(1 - delta - growth * ALPHAS, (1 - delta - ALPHAS) / growth), 0)
    blind(axis)
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


def lecture_figures(directory: str | Path) -> list[Path]:
    """Write the drawings that the tutorial uses, as PNG files; returns their paths in the order of the tutorial.

    Randomized response and Laplace are 1-DP; the Gaussian has μ = 1, so that it is ½-zCDP as every 1-DP mechanism is.
    """
    three = {
        "Gaussian, μ = 1": GaussianLoss(1.0),
        "Laplace, ε = 1": LaplaceLoss(1.0),
        "randomized response, ε = 1": RandomizedResponseLoss(1.0),
    }
    drawings: dict[str, Callable[[], Figure]] = {
        "hockey_stick": hockey_stick,
        "profiles": lambda: profiles(three),
        "two_errors": two_errors,
        "region": region,
        "tangents": lambda: tangents(GaussianLoss(1.0)),
        "trade_off_functions": lambda: trade_off_functions(three),
        "renyi_curves": lambda: renyi_curves(three),
        "composition": lambda: composition(LaplaceLoss(0.1)),
        "central_limit": central_limit,
        "contour": lambda: contour(10_000 * Poisson(0.01).amplify(GaussianLoss(1 / 0.8))),
        "gaussian_noise": gaussian_noise,
    }
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    return [saved(draw(), folder / f"{title}.png") for title, draw in drawings.items()]


def saved(figure: Figure, path: Path) -> Path:
    """A small PNG: 64 colours are enough for lines, and it holds no date, so that equal pictures are equal files."""
    page = io.BytesIO()
    figure.savefig(page, format="png", dpi=150)
    with Image.open(page) as picture:
        picture.convert("RGB").quantize(64).save(path, optimize=True)
    return path
