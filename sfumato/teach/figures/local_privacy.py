"""The lecture's figure of local privacy: the error of a count without a curator, behind a shuffler, and with one."""

import math

import numpy as np

from sfumato.local.response import Response
from sfumato.local.shuffle import Shuffled
from sfumato.teach.figures.style import (
    BLUE,
    DELTA,
    DOTS,
    GREEN,
    GREY,
    LONG,
    RED,
    Pen,
    Picture,
    format_short,
    label,
    legend,
    panels,
)


def local_against_central(most: int = 10**6) -> Picture:
    """Left: the standard error of "how many have a pet?" at ε = ln 3, by two coins and by a curator: √(n/2) apart.

    Right: what two coins cost once their reports are shuffled, from both sides, and the error of a curator who promises
    that much: the gap no longer grows.
    """
    coins = Response.two_coins()
    people = np.unique(np.geomspace(10, most, 40).round()).astype(int)
    local = np.sqrt(3 * people) / 2
    bounds = [Shuffled(coins, int(n)).epsilon(DELTA) for n in people]
    low, high = (np.array([getattr(one, side) for one in bounds]) for side in ("lower", "upper"))
    figure, (errors, costs) = panels(2, "error of a count at ε = ln 3", f"ε of a report, δ = {format_short(DELTA)}")
    Pen(RED).draw(errors, people, local, "two coins, nobody trusted")
    Pen(GREEN, LONG).draw(errors, people, [central_error(eps) for eps in high], "a curator with the shuffled ε")
    Pen(BLUE).draw(errors, people, [math.sqrt(1.5)] * len(people), "a curator with the same ε")
    arrow = {"arrowstyle": "<->", "color": GREY, "lw": 0.8}
    errors.annotate("", (people[-4], local[-4]), (people[-4], math.sqrt(1.5)), arrowprops=arrow)
    errors.text(people[-5], 4, "√(n/2)", color=GREY, fontsize=9, ha="right")
    Pen(RED).draw(costs, people, [coins.epsilon] * len(people), "not shuffled")
    Pen(GREEN).draw(costs, people, high, "shuffled, never more")
    Pen(GREEN, DOTS).draw(costs, people, low, "shuffled, at least")
    label(errors, "people", "standard error")
    label(costs, "people", "ε")
    for panel in (errors, costs):
        panel.set_xscale("log")
        panel.set_yscale("log")
    errors.set_ylim(0.7, 4e3)
    costs.set_ylim(2e-3, 4)
    legend(errors, "upper left")
    legend(costs, "lower left")
    return figure


def central_error(eps: float) -> float:
    """√Var of discrete Laplace noise with this ε: √(2e^ε)/(e^ε − 1)."""
    return math.sqrt(2 * math.exp(eps)) / math.expm1(eps)
