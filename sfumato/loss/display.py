"""How a loss looks: its name in words, its curves as points, and the card that a notebook shows.

The curves here are for the eye: the profile is the certified upper side, the trade-off function the lower side, drawn
through enough points that a pixel cannot tell the difference.
"""

import html as escape
import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

import numpy as np

from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import Enclosure, Floats, floats
from sfumato.loss.views.profile import most_leak, top_of
from sfumato.sensitivity import Relation

ROUGH = 1e-3  # relative gap asked of drawn curves: half a pixel
FAR = 600.0  # e^ε must stay a number
FAINT = 1e-6  # the δ of the card; the trade-off panel cannot show what lies below it
GREEK = {"eps": "ε", "delta": "δ", "mu": "μ", "sigma": "σ", "rho": "ρ", "xi": "ξ", "gamma": "γ"}
COLOURS = ("#2b8cd6", "#e07b1a")  # both readable on white and on black


# ---- names -----------------------------------------------------------------------------------------------------------


def name(loss: PrivacyLoss) -> str:
    """The loss in one line: `1,000 × RandomizedResponse(ε=0.1)`."""
    return words(loss.description)


def words(data: object) -> str:
    """A description as text."""
    if isinstance(data, dict):
        if "part" in data:
            inside = ", ".join(f"{GREEK.get(key, key)}={words(value)}" for key, value in data.items() if key != "part")
            return f"{data['part']}({inside})"
        return sum_in_words(data["terms"]) if data["loss"] == "Sum" else loss_in_words(data)
    if isinstance(data, list):
        return f"[{', '.join(map(words, data))}]"
    return f"{data:.6g}" if isinstance(data, float) else str(data)


def loss_in_words(data: dict[str, object]) -> str:
    """Class name and parameters; tables are only counted, the relation is mentioned where it is not the default."""
    given = {key: value for key, value in data.items() if key not in ("loss", "relation")}
    rows = [len(value) for value in given.values() if isinstance(value, list) and len(value) > 4]
    inside = [f"{rows[0]:,} values"] if rows else []
    for key, value in given.items():
        if not (isinstance(value, list) and len(value) > 4):
            inside.append(words(value) if isinstance(value, dict) else f"{GREEK.get(key, key)}={words(value)}")
    if data.get("relation", Relation.AddRemove.value) != Relation.AddRemove.value:
        inside.append(str(data["relation"]))
    return f"{str(data['loss']).removesuffix('Loss')}({', '.join(inside)})"


def sum_in_words(terms: Iterable[tuple[int, object]]) -> str:
    """`3 × a + b`, or what the empty sum means."""
    return " + ".join(words(loss) if count == 1 else f"{count:,} × {words(loss)}" for count, loss in terms) or "nothing"


def rounded_up(value: float, digits: int = 4) -> str:
    """A cost with a few digits, rounded up; what is within 1e-9 of a short number is that number."""
    if value == 0 or math.isinf(value):
        return "0" if value == 0 else "∞"
    nearest = float(f"{value:.{digits}g}")
    exact = Decimal(nearest if abs(nearest - value) <= 1e-9 * value else value)
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{float((exact / step).to_integral_value(ROUND_CEILING) * step):.{digits}g}"


def guesses(total_variation: Bound) -> str:
    """How often the best attacker is right, in words.

    Theorem: with even odds beforehand the best guess is right with chance ½ + ½·TV [Lehmann & Romano 2005, Thm 13.1.1]
    """
    times = math.ceil(1000 * (0.5 + 0.5 * float(total_variation)) - 1e-9) / 10
    return f"an attacker who sees the output guesses right at most {times:g} times in 100 (without it: 50)"


# ---- curves ----------------------------------------------------------------------------------------------------------


def visible_end(loss: PrivacyLoss) -> float:
    """The ε beyond which nothing is left to see: δ is within 1e-6 of what it keeps for ever."""
    found = loss.epsilon(min(1.0, most_leak(loss) * (1 + 1e-9) + FAINT), tolerance=ROUGH).upper
    return min(found, FAR)


def profile_grid(loss: PrivacyLoss, end: float) -> Floats:
    """ε from 0 to end, dense where a bounded loss drops to its last value."""
    top, even = top_of(loss), np.linspace(0.0, end, 101)
    near = top * (1 - 2.0 ** -np.arange(2, 30)) if 0 < top <= end else np.empty(0)
    return np.unique(np.concatenate([even, near, [min(top, end)]]))


def drawing_grid(loss: PrivacyLoss, end: float) -> Floats:
    """The ε to ask for. Half of one direction’s trade-off function comes from the other, which may reach further."""
    here = profile_grid(loss, end)
    return np.union1d(here, profile_grid(loss.reverse, visible_end(loss.reverse))) if loss.relation.one_way else here


@dataclass(frozen=True)
class DirectionCurves:
    """The curves drawn of one direction: its profile H_{e^ε}(P‖Q) at some ε, and that of the other direction."""

    label: str
    eps: Floats
    ahead: Enclosure
    back: Enclosure

    def trade_off(self, alpha: Floats) -> Floats:
        """Least type II error at each type I error: the highest of all lines of (ε, δ), so never above the truth."""
        slope, a = np.exp(self.eps), alpha[:, None]
        steep = (1 - self.ahead.upper - slope * a).max(axis=1)
        gentle = ((1 - self.back.upper - a) / slope).max(axis=1)
        return floats(np.maximum(np.maximum(steep, gentle), 0.0))


def directions(loss: PrivacyLoss, eps: Floats) -> list[DirectionCurves]:
    """The loss itself, or its two directions by name where they differ."""
    ahead = loss.forward(eps, ROUGH)
    back = ahead if loss.reverse == loss else loss.backward(eps, ROUGH)
    if back is ahead or loss.relation.one_way:
        return [DirectionCurves("", eps, ahead, back)]
    first, second = ("remove", "add") if loss.relation is Relation.AddRemove else ("one way", "other way")
    return [DirectionCurves(first, eps, ahead, back), DirectionCurves(second, eps, back, ahead)]


def trade_off_curve(loss: PrivacyLoss, alpha: Floats) -> Floats:
    """The trade-off function at many type I errors, never above the truth: the convex hull of both directions."""
    eps = drawing_grid(loss, visible_end(loss))
    ahead = loss.worst(eps, ROUGH)
    back = loss.reverse.worst(eps, ROUGH) if loss.relation.one_way else ahead
    return DirectionCurves("", eps, ahead, back).trade_off(alpha)


# ---- pictures --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """A rectangle of the page with its own axes: x from 0 to x_end, y from y_start (bottom) to y_end."""

    left: float
    x_end: float
    y_start: float
    y_end: float
    width: float = 200.0
    height: float = 140.0
    top: float = 22.0

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Where (x, y) lies on the page; what is outside is put on the frame."""
        share = min(max((y - self.y_start) / (self.y_end - self.y_start), 0.0), 1.0)
        return self.left + self.width * min(max(x / self.x_end, 0.0), 1.0), self.top + self.height * (1 - share)

    def line(self, xs: Floats, ys: Floats, colour: str, extra: str = "") -> str:
        """A polyline through the points."""
        spots = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(self.point, xs.tolist(), ys.tolist()))
        return f'<polyline points="{spots}" fill="none" stroke="{colour}" stroke-width="1.8" {extra}/>'

    def frame(self, title: str, below: str, x_marks: list[float], y_marks: dict[float, str]) -> str:
        """Title, axis labels and faint grid lines."""
        middle, bottom = self.left + self.width / 2, self.top + self.height
        parts = [text(middle, self.top - 8, title), text(middle, bottom + 30, below)]
        for mark in x_marks:
            x, _ = self.point(mark, self.y_start)
            parts += [rule(x, self.top, x, bottom), text(x, bottom + 14, f"{mark:.4g}")]
        for mark, label in y_marks.items():
            _, y = self.point(0.0, mark)
            parts += [rule(self.left, y, self.left + self.width, y), text(self.left - 5, y + 3.5, label, anchor="end")]
        return "".join(parts)


def text(x: float, y: float, words: str, *, anchor: str = "middle", fill: str = "currentColor") -> str:
    """One label; it takes the colour of the page."""
    style = f'text-anchor="{anchor}" fill="{fill}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape.escape(words)}</text>'


def rule(x1: float, y1: float, x2: float, y2: float) -> str:
    """A faint straight line."""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="currentColor" stroke-opacity="0.18"/>'


def marks(end: float) -> list[float]:
    """Three to six round numbers from 0 to end."""
    rough = end / 5
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * nice for nice in (1, 2, 5, 10) if size * nice >= rough)
    return [step * i for i in range(int(end / step) + 1)]


def power_of_ten(exponent: int) -> str:
    """10⁻⁶ as people write it."""
    return "1" if exponent == 0 else "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def profile_panel(found: list[DirectionCurves], end: float) -> str:
    """δ(ε) on a logarithmic scale, one line per direction."""
    panel = Panel(left=44, x_end=end, y_start=-8.0, y_end=0.0)
    inside = found[0].eps <= end
    decades = {float(e): power_of_ten(e) for e in (0, -2, -4, -6, -8)}
    parts = [panel.frame("profile δ(ε)", "ε", marks(panel.x_end), decades)]
    for way, colour in zip(found, COLOURS, strict=False):
        delta = np.log10(np.maximum(way.ahead.upper[inside], 1e-300))
        parts.append(panel.line(way.eps[inside], delta, colour))
    return "".join(parts)


def trade_off_panel(found: list[DirectionCurves]) -> str:
    """Type II against type I error, one line per direction, under the diagonal of blind guessing."""
    panel = Panel(left=296, x_end=1.0, y_start=0.0, y_end=1.0)
    parts = [panel.frame("trade-off: type II error", "type I error", [0, 0.5, 1], {0: "0", 0.5: "0.5", 1: "1"})]
    corners = np.array([0.0, 1.0])
    parts.append(panel.line(corners, 1 - corners, "currentColor", 'stroke-opacity="0.45" stroke-dasharray="4 3"'))
    alpha = np.sin(np.linspace(0.0, math.pi / 2, 90)) ** 4  # dense at both ends, where the curve bends
    alpha = np.unique(np.concatenate([alpha, 1 - alpha]))
    for way, colour, height in zip(found, COLOURS, (18, 32), strict=False):
        parts.append(panel.line(alpha, way.trade_off(alpha), colour))
        parts.append(text(panel.left + panel.width - 8, panel.top + height, way.label, anchor="end", fill=colour))
    return "".join(parts)


def worse_delta(found: list[DirectionCurves], eps: float, method: str) -> Bound:
    """δ at one of the drawn ε, in the worse direction."""
    sides = [(way.ahead.lower[way.eps == eps][0], way.ahead.upper[way.eps == eps][0]) for way in found]
    return Bound(float(max(low for low, _ in sides)), float(max(high for _, high in sides)), method)


def picture(found: list[DirectionCurves], end: float) -> str:
    """Both panels as one inline SVG."""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 510 200" width="510" role="img" '
        'aria-label="privacy profile and trade-off function" style="max-width:100%;font:11px sans-serif">'
        f"{profile_panel(found, end)}{trade_off_panel(found)}</svg>"
    )


def html(loss: PrivacyLoss) -> str:
    """The card that a notebook shows: name, three numbers, the attacker's odds, profile and trade-off function.

    Composed profiles are costly to ask one by one, so that all of the card is read off one array per direction.
    """
    with np.errstate(all="ignore"):
        epsilon = loss.epsilon(FAINT, tolerance=ROUGH)
        seen = 1.15 * (visible_end(loss) if most_leak(loss) > 0 else min(epsilon.upper, FAR))
        end = seen if seen > 1e-300 else 1.0
        found = directions(loss, np.union1d(drawing_grid(loss, end), [0.0, 1.0]))
        drawing = picture(found, end)
    delta, advantage = (worse_delta(found, eps, loss.method) for eps in (1.0, 0.0))
    numbers = {"ε at δ = 10⁻⁶": epsilon, "δ at ε = 1": delta, "advantage (total variation)": advantage}
    cell = "padding:1px 14px 1px 0;text-align:left;border:0;background:none"
    rows = "".join(
        f'<tr style="background:none"><td style="{cell}">{label}</td>'
        f'<td style="{cell}" title="{escape.escape(repr(bound))}"><b>{rounded_up(float(bound))}</b></td></tr>'
        for label, bound in numbers.items()
    )
    return (
        f'<div style="font-family:sans-serif;font-size:13px;max-width:520px"><b>{escape.escape(name(loss))}</b>'
        f' <span style="opacity:0.65">{escape.escape(loss.relation.value)}</span>'
        f'<table style="border-collapse:collapse;margin:4px 0;color:inherit">{rows}</table>'
        f'<div style="margin:0 0 6px">{escape.escape(guesses(advantage))}</div>{drawing}</div>'
    )
