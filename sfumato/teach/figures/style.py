"""The style that all figures share: colours, dashes, panels, legends."""

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.sums import Sum
from sfumato.loss.display import name

Losses = PrivacyLoss | Mapping[str, PrivacyLoss] | Iterable[PrivacyLoss]
Dash = str | tuple[float, tuple[float, ...]]

# Okabe & Ito's palette; the family decides, so that a mechanism looks the same in every figure.
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


@dataclass(frozen=True)
class Pen:
    """The colour, dash and width of a line."""

    colour: str
    dash: Dash = SOLID
    width: float = 1.9

    def draw(self, axis: Axes, x: npt.ArrayLike, y: npt.ArrayLike, text: str = "") -> None:
        """Draw a line; with a text it has an entry in the legend."""
        style: dict[str, Any] = {"color": self.colour, "linestyle": self.dash, "linewidth": self.width}
        axis.plot(np.asarray(x), np.asarray(y), label=text or None, **style)

    def dot(self, axis: Axes, x: float, y: float, text: str = "", *, hollow: bool = False) -> None:
        """Draw a point on top of the lines."""
        style: dict[str, Any] = {"color": self.colour, "markerfacecolor": "white" if hollow else self.colour}
        axis.plot([x], [y], "o", markersize=7, zorder=3, clip_on=False, label=text or None, **style)


def panels(count: int, *titles: str, inches: tuple[float, float] = INCHES, rows: int = 1) -> tuple[Picture, list[Axes]]:
    """An empty figure with its panels in one row or more."""
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
    """Label the axes."""
    axis.set_xlabel(x, fontsize=9.5)
    axis.set_ylabel(y, fontsize=9.5)


def legend(axis: Axes, where: str = "best") -> None:
    """Add a plain legend."""
    style: dict[str, Any] = {"loc": where, "fontsize": 8.5, "framealpha": 0.9, "edgecolor": "none", "handlelength": 2.6}
    axis.legend(**style)


def format_short(number: float) -> str:
    """A number as 1e-6 rather than 1e-06."""
    return f"{number:g}".replace("e-0", "e-")


def draw_blind_guessing(axis: Axes) -> None:
    """The unit square of both errors, with the diagonal 1 − α of blind guessing."""
    Pen(GREY, FAINT, 1.0).draw(axis, [0, 1], [1, 0])
    style: dict[str, Any] = {"rotation_mode": "anchor", "transform_rotates_text": True, "fontsize": 8, "color": GREY}
    axis.text(0.27, 0.77, "blind guessing", rotation=-45, **style)
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 1)
    axis.set_aspect("equal")


def label_losses(losses: Losses) -> dict[str, PrivacyLoss]:
    """Losses by their labels."""
    if isinstance(losses, PrivacyLoss):
        return {name(losses): losses}
    return dict(losses) if isinstance(losses, Mapping) else {name(loss): loss for loss in losses}


def pens(losses: Mapping[str, PrivacyLoss]) -> list[Pen]:
    """A pen for each loss: colour by family (for k-fold sums, the family of the term), dashes by position."""
    colours, spare = dict(FAMILIES), [ORANGE, SKY, BLACK, GREY]
    result = []
    for index, loss in enumerate(losses.values()):
        part = loss.terms[0][1] if isinstance(loss, Sum) and len(loss.terms) == 1 else loss
        colour = colours.setdefault(type(part).__name__, spare[(len(colours) - len(FAMILIES)) % len(spare)])
        result.append(Pen(colour, DASHES[index % len(DASHES)]))
    return result
