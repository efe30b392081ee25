"""Charts of attacks: the measured success rates, and the largest ones that the claimed loss allows."""

from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from sfumato.teach.attacks.outcome import Chart
from sfumato.teach.figures.style import (
    BLACK,
    BLUE,
    DASHES,
    DOTS,
    GREEN,
    LONG,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    Pen,
    label,
    panels,
)

COLOURS = {"open": (RED, ORANGE, PURPLE), "private": (BLUE, SKY), "bound": (BLACK, "#777777"), "price": (GREEN,)}
FEW = 12  # lines with at most so many points have markers


def attack_chart(chart: Chart) -> Figure:
    """The chart of an attack.

    Lines with dots are measured success rates (± two standard deviations); thin dashed lines are the largest rates that
    the claimed loss allows.
    """
    figure, (axis,) = panels(1, chart.title, inches=(6.0, 3.9))
    drawn = dict.fromkeys(COLOURS, 0)
    for line in chart.lines:
        nth = drawn[line.role]
        drawn[line.role] += 1
        colour = COLOURS[line.role][nth % len(COLOURS[line.role])]
        if line.role in ("bound", "price"):
            Pen(colour, LONG if nth == 0 else DOTS, 1.3).draw(axis, line.x, line.y, line.label)
            continue
        Pen(colour, DASHES[nth]).draw(axis, line.x, line.y, line.label)
        if len(line.x) <= FEW:
            style: dict[str, Any] = {"fmt": "o", "color": colour, "markersize": 5, "elinewidth": 1.0, "clip_on": False}
            axis.errorbar(line.x, line.y, yerr=line.spread or None, **style)
    axis.set_xscale(chart.scales[0])
    axis.set_yscale(chart.scales[1])
    if len(chart.lines[0].x) <= FEW:
        axis.set_xticks(chart.lines[0].x, chart.ticks or [f"{x:g}" for x in chart.lines[0].x])
        axis.xaxis.set_minor_locator(NullLocator())
    axis.set_ylim(chart.low, 1.02 if chart.scales[1] == "linear" else 1.2)
    label(axis, chart.x, chart.y)
    if len(chart.lines) > 1:
        legend: dict[str, Any] = {"loc": "outside lower center", "ncols": 2, "fontsize": 8.5, "edgecolor": "none"}
        figure.legend(**legend)
    return figure
