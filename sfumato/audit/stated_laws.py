"""The laws that mechanisms state, from their definitions: not a line of the samplers is used here.

Sums and differences of doubles, on the side where nothing cancels: relative errors stay below 10⁻¹¹ down to chances of
10⁻³⁰⁰.
"""

import math
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sfumato.mechanisms import (
    BoundedLaplace,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    RandomizedResponse,
    Staircase,
    TruncatedLaplace,
)

Floats = NDArray[np.float64]
REACH = 40.0  # scales: Laplace noise is beyond with 4e-18
MOST = 1 << 18  # outcomes
MOST_PLACE = 2.0**52


@dataclass(frozen=True)
class Stated:
    """Outcomes `first`, `first` + 1, … (in steps, or places) with these chances; `step` is one of them as it is shown.

    What is beyond the last outcome has less than 10⁻¹⁵ together, or belongs to it.
    """

    first: int
    chances: Floats
    step: float = 1.0

    def places(self, outputs: object) -> NDArray[np.int64]:
        """The place of each output among the outcomes; −1 for one that should never be."""
        found = np.asarray(outputs, np.float64) / self.step - self.first
        whole = np.rint(found)
        inside = (whole == found) & (whole >= 0) & (whole < len(self.chances))
        return np.where(inside, whole, -1).astype(np.int64)


@singledispatch
def stated(mechanism: object, value: object) -> Stated | None:
    """What the mechanism says that it draws on this value; None: not told here."""
    return None


def about(law: Floats, centre: float, step: float) -> Stated:
    """Symmetric chances of 0, 1, 2, … steps from a centre that is on the lattice."""
    place = round(centre / step)
    return Stated(place - len(law) + 1, np.concatenate([law[:0:-1], law]), step)


def reach(scale: float, step: float, scales: float = REACH) -> NDArray[np.float64]:
    """0, 1, 2, … steps, as far as matters."""
    return np.arange(math.ceil(scales * scale / step) + 2, dtype=np.float64)


def on_lattice(value: object, step: float, scale: float) -> float | None:
    """One number that is a multiple of a step that is not too fine, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or REACH * scale / step > MOST:
        return None
    place = value / step
    return float(value) if float(place).is_integer() and abs(place) < MOST_PLACE else None


@stated.register
def _(mechanism: Laplace, value: object) -> Stated | None:
    step = float(mechanism.step)
    if (centre := on_lattice(value, step, mechanism.scale)) is None:
        return None
    k, rate = reach(mechanism.scale, step), step / mechanism.scale
    cells = np.exp(-k * rate) * math.sinh(rate / 2)  # ½(e^{−(k−½)r} − e^{−(k+½)r})
    cells[0] = -math.expm1(-rate / 2)
    return about(cells, centre, step)


@stated.register
def _(mechanism: Gaussian, value: object) -> Stated | None:
    step = float(mechanism.step)
    if (centre := on_lattice(value, step, mechanism.sigma)) is None:
        return None
    k, unit = reach(mechanism.sigma, step, 36.0), step / mechanism.sigma
    beyond = special.ndtr(-(k + 0.5) * unit)
    return about(np.concatenate([[1 - 2 * beyond[0]], beyond[:-1] - beyond[1:]]), centre, step)


@stated.register
def _(mechanism: DiscreteLaplace, value: object) -> Stated | None:
    step = float(mechanism.step)
    if (centre := on_lattice(value, step, mechanism.scale)) is None:
        return None
    rate = step / mechanism.scale
    return about(np.exp(-reach(mechanism.scale, step) * rate) * math.tanh(rate / 2), centre, step)


@stated.register
def _(mechanism: DiscreteGaussian, value: object) -> Stated | None:
    step = float(mechanism.step)
    if (centre := on_lattice(value, step, mechanism.sigma)) is None:
        return None
    weights = np.exp(-((reach(mechanism.sigma, step, 36.0) * step / mechanism.sigma) ** 2) / 2)
    return about(weights / (weights[0] + 2 * math.fsum(weights[1:])), centre, step)


@stated.register
def _(mechanism: TruncatedLaplace, value: object) -> Stated | None:
    step = float(mechanism.step)
    if (centre := on_lattice(value, step, mechanism.bound)) is None:
        return None
    weights = np.exp(-np.arange(round(mechanism.bound / step) + 1) * step / mechanism.scale)
    return about(weights / (weights[0] + 2 * math.fsum(weights[1:])), centre, step)


@stated.register
def _(mechanism: BoundedLaplace, value: object) -> Stated | None:
    step = float(mechanism.step)
    if (centre := on_lattice(value, step, mechanism.high - mechanism.low)) is None:
        return None
    places = np.arange(round(mechanism.low / step), round(mechanism.high / step) + 1)
    weights = np.exp(-np.abs(places * step - centre) / mechanism.scale)
    return Stated(int(places[0]), weights / math.fsum(weights), step)


@stated.register
def _(mechanism: Staircase, value: object) -> Stated | None:
    """Stairs of height e^{−jε} from (j − 1 + γ)Δ to (j + γ)Δ: mass up to x in closed form."""
    step = float(mechanism.step)
    if (centre := on_lattice(value, step, mechanism.sensitivity / mechanism.eps)) is None:
        return None
    eps, size, gamma = mechanism.eps, mechanism.sensitivity, float(mechanism.gamma or 0.0)
    k = reach(size / eps, step)
    whole = gamma + (1 - gamma) * math.exp(-eps)  # of a period, in its first height

    def mass(x: Floats) -> Floats:
        """P(N > x)·2, as a share of one side."""
        j = np.floor(x / size)
        rest = x / size - j
        inside = np.minimum(rest, gamma) + np.maximum(rest - gamma, 0.0) * math.exp(-eps)
        return np.asarray(np.exp(-j * eps) * (1 - inside / whole * -math.expm1(-eps)), np.float64)

    beyond = mass((k + 0.5) * step)
    return about(np.concatenate([[1 - beyond[0]], (beyond[:-1] - beyond[1:]) / 2]), centre, step)


@stated.register
def _(mechanism: RandomizedResponse, value: object) -> Stated | None:
    if not isinstance(value, int) or mechanism.k > MOST:
        return None
    lie = 1 / (math.exp(mechanism.eps) + mechanism.k - 1)
    chances = np.full(mechanism.k, lie)
    chances[int(value)] = lie * math.exp(mechanism.eps)
    return Stated(0, chances)


@stated.register
def _(mechanism: Exponential, value: object) -> Stated | None:
    scores = np.asarray(value, np.float64)
    size = mechanism.sensitivity.linf
    weights = np.exp(mechanism.eps * (scores - scores.max()) / (2 * size))
    return Stated(0, weights / math.fsum(weights))
