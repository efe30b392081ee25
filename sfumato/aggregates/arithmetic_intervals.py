"""Intervals of arithmetic over released values: differences, products, ratios, shares of a total, percentages.

What is linear in noisy parts gets the exact spread of its noise, however often a part is in it. A ratio of two such
numbers gets Fieller's interval, with all noise that they share. All else is worked out by interval arithmetic, from
intervals that hold together with 95 %.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Protocol

from scipy.special import ndtri

from sfumato.aggregates.intervals import Terms, noise_error, spread
from sfumato.aggregates.linear import Estimate
from sfumato.aggregates.noisy_sums import CONFIDENCE
from sfumato.aggregates.price import Noise
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.joint_laplace import OneOf

Interval = tuple[float, float]
EVERYTHING = (-math.inf, math.inf)
MOST_TERMS = 24  # whose sum is worked out exactly, unless they are Gaussian
STEPS = 100  # of a bisection


@dataclass(frozen=True)
class NoisyPart:
    """One noisy number of a release, whose noise is independent of that of other rows and other releases."""

    release: int
    row: int
    place: int
    value: float = field(compare=False)
    noise: Noise = field(compare=False)


@dataclass(frozen=True)
class Form:
    """constant + Σ cᵢ·partᵢ."""

    coefficients: dict[NoisyPart, Fraction]
    constant: Fraction = Fraction(0)

    def plus(self, other: "Form", times: Fraction = Fraction(1)) -> "Form":
        found = dict(self.coefficients)
        for part, c in other.coefficients.items():
            found[part] = found.get(part, Fraction(0)) + times * c
        return Form({p: c for p, c in found.items() if c}, self.constant + times * other.constant)

    def times(self, factor: Fraction) -> "Form":
        return Form({}).plus(self, factor)

    @cached_property
    def value(self) -> float:
        return float(self.constant) + math.fsum(float(c) * part.value for part, c in self.coefficients.items())

    def radius(self, confidence: float) -> float:
        """|noise| is at most this with the confidence.

        Theorem: rounded Gaussian noise is within ½ of a normal variable, and sums of these are normal; of other noise
            the sum is worked out where it is short, or each row by itself, with the union bound [immediate]
        """
        terms = [(c, part) for part, c in self.coefficients.items()]
        if len(terms) > 1 and all(isinstance(part.noise, Gaussian) for _, part in terms):
            z = float(ndtri((1 + confidence) / 2)) * (1 + 1e-12)
            deviation = math.sqrt(math.fsum((float(c) * part.noise.sigma) ** 2 for c, part in terms))  # type: ignore[union-attr]
            return z * deviation + math.fsum(abs(float(c)) / 2 for c, _ in terms)
        rows: dict[object, list[tuple[Fraction, Noise]]] = {}
        joint = any(isinstance(part.noise, OneOf) for _, part in terms)
        for c, part in terms:
            row = (part.release, part.row) if joint or len(terms) > MOST_TERMS else None
            rows.setdefault(row, []).append((c, part.noise))
        each = 1 - (1 - confidence) / max(1, len(rows))
        return math.fsum(spread(coarse(found), each).radius for found in rows.values())


def coarse(terms: Sequence[tuple[Fraction, Noise]]) -> Terms:
    """Factors rounded away from 0 to 40 bits: the law of a sum is computed on a common lattice, which must exist."""
    if len(terms) == 1:
        return tuple(terms)
    largest = max(abs(c) for c, _ in terms)
    unit = Fraction(2) ** (math.floor(math.log2(largest)) - 16) if largest else Fraction(1)
    return tuple((unit * (math.ceil(abs(c) / unit)) if (c / unit).denominator > 1 else abs(c), n) for c, n in terms)


# ---- trees ----------------------------------------------------------------------------------------------------------


class Cells(Protocol):
    """The estimates of a release: of each row and each aggregate."""

    @property
    def left_out_bounds(self) -> int:
        """How many bounds on what was left out its intervals rest on: each fails with a probability of its own, which
        does not shrink with the confidence that is asked for."""
        ...

    def form(self, row: int, place: int) -> Form | None:
        """It as a combination of noisy parts; None if it is none."""
        ...

    def estimate(self, row: int, place: int, confidence: float) -> Estimate:
        """(value, low, high); ends are None if no interval is known with that confidence."""
        ...


@dataclass(frozen=True)
class Known:
    """A number without noise, or NULL."""

    value: float | None


@dataclass(frozen=True)
class Cell:
    """An aggregate in a row of a release."""

    cells: Cells
    row: int
    place: int


@dataclass(frozen=True)
class Apply:
    """A function of other values."""

    name: str
    arguments: tuple["Tree", ...]


Tree = Known | Cell | Apply


def as_form(tree: Tree) -> Form | None:
    """A tree as a combination of noisy parts, if it is linear in them."""
    match tree:
        case Known(value):
            return Form({}, Fraction(value)) if value is not None and math.isfinite(value) else None
        case Cell(cells, row, place):
            return cells.form(row, place)
        case Apply("+" | "sum", arguments):
            return combine_forms(arguments, [1] * len(arguments))
        case Apply("mean", arguments):
            return combine_forms(arguments, [Fraction(1, len(arguments))] * len(arguments)) if arguments else None
        case Apply("-", (one, other)):
            return combine_forms((one, other), [1, -1])
        case Apply("neg" | "-", (one,)):
            return combine_forms((one,), [-1])
        case Apply("*", (one, other)):
            forms = as_form(one), as_form(other)
            for constant, rest in (forms, forms[::-1]):
                if constant is not None and rest is not None and not constant.coefficients:
                    return rest.times(constant.constant)
        case Apply("/", (one, other)):
            above, below = as_form(one), as_form(other)
            if above is not None and below is not None and not below.coefficients and below.constant:
                return above.times(1 / below.constant)
        case Apply("number", (first,)):
            return as_form(first)
    return None


def combine_forms(arguments: Sequence[Tree], factors: Sequence[Fraction | int]) -> Form | None:
    found = Form({})
    for one, factor in zip(arguments, factors, strict=True):
        form = as_form(one)
        if form is None:
            return None
        found = found.plus(form, Fraction(factor))
    return found


def as_ratio(tree: Tree) -> tuple[Form, Form] | None:
    """(A, B) of a tree that equals A/B for combinations A, B of noisy parts."""
    form = as_form(tree)
    if form is not None:
        return form, Form({}, Fraction(1))
    match tree:
        case Apply("/", (one, other)):
            above, below = as_ratio(one), as_form(other)
            if above is not None and below is not None:
                if not below.coefficients and below.constant:
                    return above[0].times(1 / below.constant), above[1]
                if not above[1].coefficients:
                    return above[0], below.times(above[1].constant)
        case Apply("*", (one, other)):
            for constant, rest in ((one, other), (other, one)):
                factor, ratio = as_form(constant), as_ratio(rest)
                if factor is not None and not factor.coefficients and ratio is not None:
                    return ratio[0].times(factor.constant), ratio[1]
        case Apply("+" | "-" as sign, (one, other)):
            for first, constant, place in ((one, other, 1), (other, one, 0)):
                ratio, added = as_ratio(first), as_form(constant)
                if ratio is not None and added is not None and not added.coefficients:
                    up = Fraction(-1 if sign == "-" and place == 0 else 1)
                    more = added.constant * (-1 if sign == "-" and place == 1 else 1)
                    return ratio[0].times(up).plus(ratio[1], more), ratio[1]
        case Apply("neg" | "-", (one,)):
            ratio = as_ratio(one)
            return None if ratio is None else (ratio[0].times(Fraction(-1)), ratio[1])
        case Apply("number", (first,)):
            return as_ratio(first)
    return None


# ---- ratios ---------------------------------------------------------------------------------------------------------


def ratio_interval(above: Form, below: Form, confidence: float) -> Interval:
    """Every t with |A − t·B| ≤ R(t), where R(t) holds the noise of A − t·B with this confidence; or all numbers.

    Theorem: at the true t the noise of A − t·B is within R(t) with the confidence, so this set holds it so often
        [Fieller 1954]
    Proof. R is convex, so g(t) = |B|·|t − A/B| − R(t) is concave on each side of A/B, and at most 0 there. If |B| is
    more than the slope of R far out, g grows to infinity on both sides, so it crosses 0 once on each, and the set is an
    interval. Otherwise all numbers are returned. ∎
    """
    reach, a, b = joint_reach(above, below, confidence), above.value, below.value
    if abs(b) <= reach.slope * (1 + 1e-9):
        return EVERYTHING
    middle = a / b
    return middle - crossing(reach, b, middle, -1.0), middle + crossing(reach, b, middle, 1.0)


@dataclass(frozen=True)
class JointReach:
    """R(t) = z·√(Va − 2t·Vab + t²·Vb) + Σᵢ |aᵢ − t·bᵢ|·rᵢ."""

    variances: tuple[float, float, float]  # z² times Va, Vab, Vb
    ends: tuple[tuple[float, float], ...]  # aᵢ·rᵢ, bᵢ·rᵢ

    def at(self, t: float) -> float:
        va, vab, vb = self.variances
        inner = max(0.0, va - 2 * t * vab + t * t * vb)
        return math.sqrt(inner) * (1 + 1e-12) + math.fsum(abs(a - t * b) for a, b in self.ends)

    @cached_property
    def slope(self) -> float:
        return math.sqrt(self.variances[2]) * (1 + 1e-12) + math.fsum(abs(b) for _, b in self.ends)


def joint_reach(above: Form, below: Form, confidence: float) -> JointReach:
    """Gaussian noise by its covariance and its rounding; other noise by a box that holds all of it at once."""
    parts = dict.fromkeys([*above.coefficients, *below.coefficients])
    pairs = [(float(above.coefficients.get(p, 0)), float(below.coefficients.get(p, 0)), p) for p in parts]
    if all(isinstance(part.noise, Gaussian) for part in parts):
        z = float(ndtri((1 + confidence) / 2)) * (1 + 1e-12)
        sized = [(z * a * p.noise.sigma, z * b * p.noise.sigma) for a, b, p in pairs]  # type: ignore[union-attr]
        sums = (
            math.fsum(a * a for a, _ in sized),
            math.fsum(a * b for a, b in sized),
            math.fsum(b * b for _, b in sized),
        )
        return JointReach(sums, tuple((a / 2, b / 2) for a, b, _ in pairs))
    each = 1 - (1 - confidence) / max(1, len(parts))
    radii = [noise_error(part.noise, each) for _, _, part in pairs]
    return JointReach((0.0, 0.0, 0.0), tuple((a * r, b * r) for (a, b, _), r in zip(pairs, radii, strict=True)))


def crossing(reach: JointReach, b: float, middle: float, side: float) -> float:
    """The distance from A/B, on one side, beyond which |B|·distance exceeds R; rounded up."""

    def outside(distance: float) -> bool:
        return abs(b) * distance > reach.at(middle + side * distance)

    high = reach.at(middle) / abs(b) + 1e-300
    while not outside(high):
        high *= 2
        if not math.isfinite(high):
            return math.inf
    low = 0.0
    for _ in range(STEPS):
        half = (low + high) / 2
        if high - low <= 1e-12 * high:
            break
        low, high = (low, half) if outside(half) else (half, high)
    return high * (1 + 1e-12)


# ---- all else: interval arithmetic ----------------------------------------------------------------------------------


def interval(tree: Tree, confidence: float = CONFIDENCE) -> Interval | None:
    """The interval of a tree; None if no interval is known, because a part of it has none or a function is not one of
    those below. An end that nothing bounds is infinite.

    Theorem: with probability `confidence` all of the k different leaves, each taken at 1 − (1 − confidence)/k, lie in
        their intervals, and then so does every function of them in its range over these [union bound]
    """
    found = dict.fromkeys(leaves(tree))
    if None in found or not found:
        return None
    if len(found) > 1 and sum(cells.left_out_bounds for cells in dict.fromkeys(releases_of(tree))) > 1:
        return None
    each = 1 - (1 - confidence) / len(found)
    try:
        return evaluate(tree, {leaf: leaf_interval(leaf, each) for leaf in found if leaf is not None})
    except (ValueError, OverflowError, KeyError):
        return None


def leaves(tree: Tree) -> Iterable[Tree | None]:
    """The largest parts of a tree that are read as a whole; None where a function is not known."""
    if isinstance(tree, Known):
        return
    if as_ratio(tree) is not None or isinstance(tree, Cell):
        yield tree
    elif isinstance(tree, Apply) and tree.name in FUNCTIONS:
        for one in tree.arguments:
            yield from leaves(one)
    else:
        yield None


def releases_of(tree: Tree) -> Iterable[Cells]:
    """The releases that a tree reads."""
    if isinstance(tree, Cell):
        yield tree.cells
    elif isinstance(tree, Apply):
        for one in tree.arguments:
            yield from releases_of(one)


def leaf_interval(leaf: Tree, confidence: float) -> Interval:
    ratio = as_ratio(leaf)
    if ratio is not None:
        above, below = ratio
        if below.coefficients:
            return ratio_interval(above, below, confidence)
        form = above.times(1 / below.constant)
        radius = form.radius(confidence)
        return form.value - radius, form.value + radius
    assert isinstance(leaf, Cell)
    _, low, high = leaf.cells.estimate(leaf.row, leaf.place, confidence)
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        raise ValueError("no interval")
    return float(low), float(high)


def evaluate(tree: Tree, known: dict[Tree, Interval]) -> Interval:
    if tree in known:
        return known[tree]
    match tree:
        case Known(None):
            raise ValueError("NULL")
        case Known(float() | int() as value):
            return float(value), float(value)
        case Apply(name, arguments):
            found = FUNCTIONS[name](*(evaluate(one, known) for one in arguments))
            return EVERYTHING if any(math.isnan(end) for end in found) else found
    raise KeyError(tree)


def products(one: Interval, other: Interval) -> Interval:
    ends = [0.0 if 0.0 in (a, b) else a * b for a in one for b in other]
    return min(ends), max(ends)


def quotient(one: Interval, other: Interval) -> Interval:
    return EVERYTHING if other[0] <= 0 <= other[1] else products(one, (1 / other[1], 1 / other[0]))


def rising(function: Callable[[float], float], least: float = -math.inf) -> Callable[..., Interval]:
    """A function that never falls, of numbers from `least` on; no number below `least` has a value."""

    def ends(of: Interval) -> Interval:
        low, high = (function(max(end, least)) if math.isfinite(end) else end for end in of)
        return low, high

    return ends


def round_interval(of: Interval, digits: Interval = (0.0, 0.0)) -> Interval:
    """To so many digits; a step wider, since halves may be rounded either way."""
    step = 10.0 ** -int(digits[0])
    if not all(map(math.isfinite, of)):
        return EVERYTHING
    return step * math.floor(of[0] / step), step * math.ceil(of[1] / step)


def absolute(of: Interval) -> Interval:
    low = 0.0 if of[0] <= 0 <= of[1] else min(map(abs, of))
    return low, max(map(abs, of))


def power(of: Interval, exponent: Interval) -> Interval:
    times = int(exponent[0])
    if exponent != (times, times) or not 0 <= times <= 8:
        return EVERYTHING
    ends = [end**times for end in of]
    return (0.0 if times % 2 == 0 and times and of[0] <= 0 <= of[1] else min(ends)), max(ends)


def logarithm(base: Callable[[float], float]) -> Callable[..., Interval]:
    return lambda of: (base(of[0]) if of[0] > 0 else -math.inf, base(of[1]) if of[1] > 0 else math.inf)


def add_intervals(*of: Interval) -> Interval:
    return sum(low for low, _ in of), sum(high for _, high in of)


def subtract_intervals(one: Interval, other: Interval | None = None) -> Interval:
    return (-one[1], -one[0]) if other is None else (one[0] - other[1], one[1] - other[0])


def largest(*of: Interval) -> Interval:
    return max(low for low, _ in of), max(high for _, high in of)


def smallest(*of: Interval) -> Interval:
    return min(low for low, _ in of), min(high for _, high in of)


def mean(*of: Interval) -> Interval:
    return tuple(end / len(of) for end in add_intervals(*of))  # type: ignore[return-value]


FUNCTIONS: dict[str, Callable[..., Interval]] = {
    "+": add_intervals, "-": subtract_intervals, "neg": subtract_intervals, "*": products, "/": quotient,
    "abs": absolute, "^": power,
    "sqrt": rising(math.sqrt, 0.0), "exp": rising(math.exp), "ln": logarithm(math.log),
    "log10": logarithm(math.log10), "log2": logarithm(math.log2), "round": round_interval,
    "floor": rising(math.floor), "ceil": rising(math.ceil), "trunc": rising(math.trunc),
    "greatest": largest, "least": smallest, "max": largest, "min": smallest, "sum": add_intervals, "mean": mean,
    "sign": rising(lambda x: math.copysign(1.0, x) if x else 0.0), "number": lambda of: of,
}  # fmt: skip
