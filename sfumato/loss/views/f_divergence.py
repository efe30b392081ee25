"""D_f(P‖Q) = E_Q[f(P/Q)] for any convex f, from the two profiles: between certified sides.

Replace f by the polygon f̃ through its values at nodes. With slopes that increase by β_j ≥ 0 at the node e^{ε_j} > 1 and
by β'_j at e^{−ε_j} < 1, and by β₀ at 1,
    E_Q[f̃(P/Q)] = β₀·H(1) + Σ β_j·F(ε_j) + Σ β'_j·e^{−ε_j}·B(ε_j),   F(ε) = H_{e^ε}(P‖Q), B(ε) = H_{e^ε}(Q‖P):
all terms are positive. A chord lies above a convex f, so this bounds D_f from above. The continued chords of the two
cells next door lie below f, so f̃ exceeds f by at most a known sag in each cell, which bounds D_f from below.

Theorem: f-divergences are mixtures of hockey-stick divergences [Sason & Verdú 2016, Thm 11]
"""

import math
from collections.abc import Callable
from typing import NamedTuple, SupportsFloat

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound, worst
from sfumato.loss.numeric import LARGEST, ULP, Enclosure, Floats, exp, floats

Convex = Callable[[float], float]

CELLS, FEW_CELLS = 8192, 1024  # on each side: of a quick profile, and of one that engines compute
QUICK = frozenset({"closed form", "tabulated"})
ERROR = 2.0**-44  # f is taken to be computed to this relative precision
FAINT = 1e-25  # the profile is followed until it is so small
GAINS = tuple(4.0**k for k in range(10))  # orders above that of f, whose moments bound the tail


def f_divergence(
    loss: PrivacyLoss,
    f: Convex,
    growth: SupportsFloat = 2.0,
    at_zero: SupportsFloat | None = None,
    at_infinity: SupportsFloat = math.inf,
) -> Bound:
    """E_Q[f(P/Q)], in the worse direction.

    >>> import math, sfumato as sf
    >>> loss = sf.loss.GaussianLoss(1.0)
    >>> found = loss.f_divergence(lambda x: x * math.log(x) if x else 0.0)
    >>> found.lower < 0.5 < found.upper and found.gap < 1e-5
    True
    """
    if not callable(f):
        raise InvalidParameter(
            f"f must be a function of the likelihood ratio.\n  found:  a {type(f).__name__}\n"
            "  do:     give a convex function with f(1) = 0, such as lambda x: (x - 1)**2"
        )
    power = checks.number("growth", growth, 1.0, 64.0, allowed="a power from 1 to 64")
    origin = value_at_zero(f) if at_zero is None else limit("at_zero", at_zero)
    slope = limit("at_infinity", at_infinity)
    start = value(f, 1.0)
    if abs(start) > 1e-12:
        raise InvalidParameter(
            f"f(1) must be 0, so that equal distributions have no divergence.\n  found:  f(1) = {start:g}\n"
            "  do:     subtract f(1) from f"
        )
    ahead, back = Half(f, slope, power), Half(lambda y: y * f(1 / y), origin, power)
    one = one_way(loss, ahead, back)
    return one if loss.relation.one_way or loss.reverse == loss else worst(one, one_way(loss.reverse, ahead, back))


class Half(NamedTuple):
    """f on x ≥ 1, the limit of f(x)/x, and a power that f does not outgrow. For x < 1 it is f*(y) = y·f(1/y), y = 1/x.

    D_f(P‖Q) = D_{f*}(Q‖P), so both sides of 1 are integrals over a profile.
    """

    f: Convex
    slope: float
    growth: float


class Piece(NamedTuple):
    """One half of the divergence from below and above, and the slope of the polygon right of 1."""

    low: float
    high: float
    slope: tuple[float, float]


def one_way(loss: PrivacyLoss, ahead: Half, back: Half) -> Bound:
    """D_f(P‖Q): the half beyond 1, the half below it, and the bend of the polygon at 1 itself.

    f right of 1 starts with the slope s, and f* with s*; left of 1 the slope of f is −s* there, so that the bend at 1
    is s + s* times δ(0).
    """
    zero = np.zeros(1)
    at_one = loss.forward(zero), loss.backward(zero)
    tv = float(max(at_one[0].lower[0], at_one[1].lower[0])), float(min(at_one[0].upper[0], at_one[1].upper[0]))
    right, left = half(loss, ahead), half(loss.reverse, back)
    bend = max(right.slope[0] + left.slope[0], 0.0), max(right.slope[1] + left.slope[1], 0.0)
    low, high = right.low + left.low + bend[0] * tv[0], right.high + left.high + bend[1] * tv[1]
    low = max(min(low * (1 - 8 * ULP), LARGEST), 0.0) if loss.one_pair else 0.0
    return Bound(low, max(high * (1 + 8 * ULP), low), "integral of the profiles")


def half(loss: PrivacyLoss, side: Half) -> Piece:
    """Σ β_j·F(ε_j) over the nodes beyond 1, less what the polygon exceeds f by, and what lies beyond the last node."""
    top, leak = loss.supremum()[0], loss.leak()[0]
    t = nodes(loss, top)
    x = np.exp(t)
    y = floats([value(side.f, float(a)) for a in x])
    found = loss.forward(t)
    chord = np.diff(y) / np.diff(x)
    error = ERROR * (np.abs(y) + x * np.abs(np.append(chord, chord[-1])) * 2**-6)
    blur = (error[1:] + error[:-1]) / np.diff(x)
    check_convex(chord, blur, x)
    rise = np.maximum(np.diff(chord), 0.0)
    unsure = blur[1:] + blur[:-1]
    low = math.fsum(np.maximum(rise - unsure, 0.0) * found.lower[1:-1])
    high = math.fsum((rise + unsure) * found.upper[1:-1])
    low -= math.fsum(sags(x, chord, blur) * masses(x, found))
    last, end = float(chord[-1] + blur[-1]), float(found.upper[-1])
    if math.isfinite(side.slope):
        high += max(side.slope - last, 0.0) * end + (2 * blur[-1]) * end
        low += max(side.slope - last, 0.0) * leak * (1 - 16 * ULP) if loss.sharp_ends else 0.0
    elif leak > 0:
        high = math.inf
    elif t[-1] < top:
        high += beyond(loss, side, x, y, last)
    slope = float(chord[0])
    return Piece(low, high, (slope - float(blur[0]), slope + float(blur[0])))


def nodes(loss: PrivacyLoss, top: float) -> Floats:
    """ε from 0 to the largest loss, or to where the profile is faint: e^ε must stay a number whose square is one."""
    end = min(top, 1.0) or 1.0
    faint = FAINT if loss.method in QUICK else 1e-15
    while end > 1e-12 and float(loss.forward(floats([end / 2])).upper[0]) <= faint + loss.leak()[0]:
        end /= 2
    while end < min(top, 300.0) and float(loss.forward(floats([end])).upper[0]) > faint + loss.leak()[0]:
        end = min(1.3 * end, top, 300.0)
    return floats(np.linspace(0.0, end, (CELLS if loss.method in QUICK else FEW_CELLS) + 1))


def value(f: Convex, x: float) -> float:
    """f(x), which must be a finite number."""
    try:
        found = float(f(x))
    except (TypeError, ValueError, ArithmeticError) as problem:
        raise InvalidParameter(
            f"f cannot be computed at x = {x:g}: {problem}\n  do:     give a function of every x > 0"
        ) from problem
    if not math.isfinite(found):
        raise InvalidParameter(
            f"f is not finite.\n  found:  f({x:g}) = {found}\n  do:     give a function of every x > 0"
        )
    return found


def value_at_zero(f: Convex) -> float:
    """f(0) if f can say it, else infinity. A convex function is at 0 no lower than its limit."""
    try:
        found = float(f(0.0))
    except (TypeError, ValueError, ArithmeticError):
        return math.inf
    return found if math.isfinite(found) else math.inf


def limit(name: str, given: SupportsFloat) -> float:
    """A stated limit, perhaps infinite."""
    return checks.number(name, given, -1e300, math.inf, allowed="the limit, or math.inf")


def check_convex(chord: Floats, blur: Floats, x: Floats) -> None:
    """Refuse what is seen not to be convex; what is not seen is the caller's word."""
    falls = np.flatnonzero(np.diff(chord) < -(blur[1:] + blur[:-1]) - 1e-12 * np.abs(chord[1:]))
    if len(falls):
        raise InvalidParameter(
            f"f must be convex.\n  found:  its slope falls near x = {x[falls[0] + 1]:.4g} (or 1/x)\n"
            "  do:     give a convex function with f(1) = 0"
        )


def sags(x: Floats, chord: Floats, blur: Floats) -> Floats:
    """How far a convex f can lie below each chord: not below the continued chords of the cells next door.

    With a the chord's slope and b ≤ a ≤ c those of its neighbours: (a − b)(c − a)/(c − b) of the cell's width.
    The first cell has no neighbour on its left, the last none on its right: b, or c, may be anything there.
    """
    width, c = np.diff(x), np.append(chord[1:] + blur[1:], math.inf) + blur
    b = np.concatenate([[-math.inf], chord[:-1] - blur[:-1]]) - blur
    left, right = np.maximum(chord - b, 0.0), np.maximum(c - chord, 0.0)
    return floats(width / (1 / np.maximum(left, 1e-300) + 1 / np.maximum(right, 1e-300)))


def masses(x: Floats, found: Enclosure) -> Floats:
    """Q[P/Q in each cell] from above: the fall of the slope of the profile, from the chords on both sides of the cell.

    Also at most Q[P/Q > its lower end] ≤ 1/that end, by Markov's inequality.
    """
    fall = np.maximum(found.upper[:-1] - found.lower[1:], 0.0) / np.diff(x)  # Q beyond a node is at most that before it
    least = np.maximum(found.lower[:-1] - found.upper[1:], 0.0) / np.diff(x)  # and at least that after it
    before = np.concatenate([[1.0], fall[:-1]])
    after = np.append(least[1:], 0.0)
    return floats(np.clip(before - after, 0.0, np.minimum(1 / x[:-1], 1.0)) * (1 + 8 * ULP))


def beyond(loss: PrivacyLoss, side: Half, x: Floats, y: Floats, last: float) -> float:
    """The excess of f over its last chord, continued: E_Q[g(X); X > x_m] with g = f₊ + |the chord|, where f₊ ≤ C·x^a.

    Then x^a ≤ x^{a+c}·x_m^{−c}, and E_Q[X^{a+c}] = E_P[e^{(a+c−1)L}] is known from above. C is read off a ladder of
    values far beyond the nodes, and what is beyond the ladder is the caller's word.
    """
    a, start = side.growth, math.log(x[-1])
    rungs = start + np.linspace(0.0, max(min(100.0, 600 / a) - start, 1.0), 257)
    heights = [max(value(side.f, math.exp(t)), 0.0) for t in rungs.tolist()]
    share = np.log(np.maximum(heights, 1e-300)) - a * rungs
    if share[-1] > share[-64] + 0.01:
        raise InvalidParameter(
            f"f grows faster than stated.\n  found:  f(x)/x^{a:g}, or x·f(1/x)/x^{a:g}, rises where x is large\n"
            "  do:     give growth=, a power that f does not outgrow"
        )
    ceiling = float(
        np.max(share[1:] + a * np.diff(rungs))
    )  # f rises: up to the next rung it is at most what it is there
    line = math.log(abs(float(y[-1])) / x[-1] + abs(last) + 1e-300)
    return sum(
        exp(log_c + min(loss.log_moment(power + gain - 1).upper - gain * start for gain in GAINS)) * (1 + 1e-9)
        for log_c, power in ((ceiling, a), (line, 1.0))
    )
