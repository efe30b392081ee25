"""A figure of the contour method for compositions, step by step."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.choose_engine import engine
from sfumato.loss.compose.contour import FAR, Composition, Contour, Totals
from sfumato.loss.compose.contour_engine import ContourEngine
from sfumato.loss.compose.sums import Sum
from sfumato.loss.display import name
from sfumato.loss.numeric import Floats, floats
from sfumato.teach.figures.style import BLACK, BLUE, DELTA, DOTS, GREEN, LONG, RED, Pen, label, legend, panels


def contour(loss: PrivacyLoss, delta: float = DELTA) -> Figure:
    """The inversion integral of a composition in four panels.

    A line through the complex plane, the decay of |Φ| along it, δ from the sum of its nodes, and the error of that sum.
    Bands and ceilings are those of the engine.
    """
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
    """The forward direction of a sum, as the contour engine represents it."""
    chosen = engine(loss) if isinstance(loss, Sum) else None
    if not isinstance(chosen, ContourEngine):
        raise InvalidParameter(
            "this figure is for sums that are composed on a contour.\n"
            f"  found:  {name(loss)}, method {loss.method!r}\n"
            "  do:     give it a sum such as 1000 * sf.Poisson(0.01).amplify(sf.loss.GaussianLoss(1))"
        )
    return chosen.composition


def sizes(composed: Composition, theta: float, omega: Floats) -> tuple[float, Floats]:
    """log M(θ), and log |Φ| at these frequencies."""
    views = [part.tilt(theta) for part in composed.transforms]
    found = np.sum([view.discs(omega).log.real for view in views], axis=0)
    return sum(view.log_moment for view in views), floats(found)


def draw_plane(axis: Axes, composed: Composition, line: Contour, eps: float) -> None:
    """|integrand| in powers of ten, its saddle point and the nodes."""
    relevant = line.line.points.omega[line.totals.discs.log.real > math.log(1e-13)]
    omega, theta = np.linspace(0.0, 1.15 * float(relevant[-1]), 90), line.theta * np.geomspace(0.3, 2.2, 80)
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
    axis.plot(np.full_like(relevant, line.theta), relevant, "o-", label="nodes θ + inD", **dots)
    Pen(BLACK).dot(axis, float(theta[saddle]), 0.0, "saddle point", hollow=True)
    axis.set_xlim(theta[0], theta[-1])
    axis.set_ylim(0, omega[-1])
    axis.grid(False)
    label(axis, "tilt θ", "frequency ω")
    legend(axis, "upper right")


def draw_decay(axis: Axes, composed: Composition, line: Contour) -> None:
    """|Φ|, the ceiling above it, and the dropped frequencies, which the ceiling covers."""
    last = float(line.line.points.omega[-1])
    omega = np.linspace(0.0, 1.3 * last, 300)
    ceiling = np.sum([part.tilt(line.theta).log_ceiling(omega[1:]) for part in composed.transforms], axis=0)
    axis.axvspan(last, float(omega[-1]), color="#e4e4e4", linewidth=0)
    Pen(GREEN, LONG).draw(axis, omega, np.exp(np.append(0.0, ceiling)), "ceiling")
    Pen(BLUE).draw(axis, omega, np.exp(sizes(composed, line.theta, omega)[1]), "|Φ(ω)|")
    marks: dict[str, Any] = {"color": RED, "markersize": 4, "zorder": 3}
    axis.plot(line.line.points.omega, np.exp(line.totals.discs.log.real), "o", label="nodes", **marks)
    axis.text(last * 1.02, 3e-9, "dropped:\nunder the\nceiling", fontsize=8, color="#444444")
    axis.set_yscale("log")
    axis.set_ylim(1e-13, 3)
    axis.set_xlim(0, omega[-1])
    label(axis, "frequency ω", "size of the transform")
    legend(axis, "upper right")


def draw_sums(total: Axes, gap: Axes, composed: Composition, line: Contour, eps: float) -> None:
    """The certified δ by the number of nodes, and its distance from the truth."""
    t = np.array([eps])
    truth = float(np.mean([side[0] for side in composed.contour(eps, 1e-13).delta(t)]))
    count = np.arange(2, len(line.terms) + 1)
    low, middle, high = floats([partial_sum(composed, line, nodes, t) for nodes in count.tolist()]).T / truth
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


def partial_sum(composed: Composition, line: Contour, nodes: int, t: Floats) -> tuple[float, float, float]:
    """The lower bound on δ, the bare sum, and the upper bound, from the first nodes of a line."""
    last, spread = (nodes - 1) * line.line.step, line.line.saddle.spread
    far = floats([last, *(FAR[last * spread < FAR] / spread)])
    first = replace(line.line, nodes=nodes - 1, far=far)
    totals = Totals.together([Totals.of(part, first) for part in composed.transforms])
    sides = (cut := Contour(first, totals, composed.surely, composed.leak)).delta(t)
    main = float(cut.sums(t)[0, 0]) * math.exp(cut.log_moment - cut.theta * float(t[0]))
    return float(sides.lower[0]), composed.leak + main, float(sides.upper[0])
