"""The output laws that mechanisms state, computed from their definitions and independently of the samplers.

Probabilities are sums and differences of doubles, taken in the tail where nothing cancels: relative errors stay below
10⁻¹¹ down to probabilities of 10⁻³⁰⁰.
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
REACH = 40.0  # scales: Laplace noise exceeds this with probability 4e-18
MOST = 1 << 18  # outcomes
MOST_PLACE = 2.0**52


@dataclass(frozen=True)
class StatedLaw:
    """The outcomes `first`, `first` + 1, … in units of `step`, with these probabilities.

    Outcomes beyond the ends have probability below 10⁻¹⁵ together, or are counted in the last one.
    """

    first: int
    chances: Floats
    step: float = 1.0

    def places(self, outputs: object) -> NDArray[np.int64]:
        """The index of each output among the outcomes; −1 for an output that is not among them."""
        index = np.asarray(outputs, np.float64) / self.step - self.first
        nearest = np.rint(index)
        inside = (nearest == index) & (nearest >= 0) & (nearest < len(self.chances))
        return np.where(inside, nearest, -1).astype(np.int64)


@singledispatch
def stated_law(mechanism: object, value: object) -> StatedLaw | None:
    """The law of the mechanism's output on this value, by its definition; None if it is not written down here."""
    return None


def symmetric_law(law: Floats, centre: float, step: float) -> StatedLaw:
    """The law with these probabilities at 0, ±1, ±2, … steps from a centre on the lattice."""
    place = round(centre / step)
    return StatedLaw(place - len(law) + 1, np.concatenate([law[:0:-1], law]), step)


def lattice_steps(scale: float, step: float, scales: float = REACH) -> NDArray[np.float64]:
    """0, 1, 2, … steps, up to so many scales."""
    return np.arange(math.ceil(scales * scale / step) + 2, dtype=np.float64)


def on_lattice(value: object, step: float, scale: float) -> float | None:
    """The value if it is one number on the lattice, and the lattice is not too fine; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or REACH * scale / step > MOST:
        return None
    place = value / step
    return float(value) if float(place).is_integer() and abs(place) < MOST_PLACE else None


@stated_law.register
def _(mechanism: Laplace, value: object) -> StatedLaw | None:
    step = float(mechanism.step)
    if (centre := on_lattice(value, step, mechanism.scale)) is None:
        return None
    k, rate = lattice_steps(mechanism.scale, step), step / mechanism.scale
    cells = np.exp(-k * rate) * math.sinh(rate / 2)  # ½(e^{−(k−½)r} − e^{−(k+½)r})
    cells[0] = -math.expm1(-rate / 2)
    return symmetric_law(cells, centre, step)


@stated_law.register
def _(mechanism: Gaussian, value: object) -> StatedLaw | None:
    step = float(mechanism.step)
    if (centre := on_lattice(value, step, mechanism.sigma)) is None:
        return None
    k, unit = lattice_steps(mechanism.sigma, step, 36.0), step / mechanism.sigma
    beyond = special.ndtr(-(k + 0.5) * unit)
    return symmetric_law(np.concatenate([[1 - 2 * beyond[0]], beyond[:-1] - beyond[1:]]), centre, step)


@stated_law.register
def _(mechanism: DiscreteLaplace, value: object) -> StatedLaw | None:
    step = float(mechanism.step)
    if (centre := on_lattice(value, step, mechanism.scale)) is None:
        return None
    rate = step / mechanism.scale
    return symmetric_law(np.exp(-lattice_steps(mechanism.scale, step) * rate) * math.tanh(rate / 2), centre, step)


@stated_law.register
def _(mechanism: DiscreteGaussian, value: object) -> StatedLaw | None:
    step = float(mechanism.step)
    if (centre := on_lattice(value, step, mechanism.sigma)) is None:
        return None
    weights = np.exp(-((lattice_steps(mechanism.sigma, step, 36.0) * step / mechanism.sigma) ** 2) / 2)
    return symmetric_law(weights / (weights[0] + 2 * math.fsum(weights[1:])), centre, step)


@stated_law.register
def _(mechanism: TruncatedLaplace, value: object) -> StatedLaw | None:
    step = float(mechanism.step)
    if (centre := on_lattice(value, step, mechanism.bound)) is None:
        return None
    weights = np.exp(-np.arange(round(mechanism.bound / step) + 1) * step / mechanism.scale)
    return symmetric_law(weights / (weights[0] + 2 * math.fsum(weights[1:])), centre, step)


@stated_law.register
def _(mechanism: BoundedLaplace, value: object) -> StatedLaw | None:
    step = float(mechanism.step)
    if (centre := on_lattice(value, step, mechanism.high - mechanism.low)) is None:
        return None
    places = np.arange(round(mechanism.low / step), round(mechanism.high / step) + 1)
    weights = np.exp(-np.abs(places * step - centre) / mechanism.scale)
    return StatedLaw(int(places[0]), weights / math.fsum(weights), step)


@stated_law.register
def _(mechanism: Staircase, value: object) -> StatedLaw | None:
    """The density has steps of height e^{−jε} from (j − 1 + γ)Δ to (j + γ)Δ; its tail is in closed form."""
    step = float(mechanism.step)
    if (centre := on_lattice(value, step, mechanism.sensitivity / mechanism.eps)) is None:
        return None
    eps, size, gamma = mechanism.eps, mechanism.sensitivity, float(mechanism.gamma or 0.0)
    k = lattice_steps(size / eps, step)
    period = gamma + (1 - gamma) * math.exp(-eps)  # mass of one period, in units of its first height

    def tail(x: Floats) -> Floats:
        """2·P(N > x): the share of one side beyond x."""
        j = np.floor(x / size)
        rest = x / size - j
        inside = np.minimum(rest, gamma) + np.maximum(rest - gamma, 0.0) * math.exp(-eps)
        return np.asarray(np.exp(-j * eps) * (1 - inside / period * -math.expm1(-eps)), np.float64)

    beyond = tail((k + 0.5) * step)
    return symmetric_law(np.concatenate([[1 - beyond[0]], (beyond[:-1] - beyond[1:]) / 2]), centre, step)


@stated_law.register
def _(mechanism: RandomizedResponse, value: object) -> StatedLaw | None:
    if not isinstance(value, int) or mechanism.k > MOST:
        return None
    lie = 1 / (math.exp(mechanism.eps) + mechanism.k - 1)
    chances = np.full(mechanism.k, lie)
    chances[int(value)] = lie * math.exp(mechanism.eps)
    return StatedLaw(0, chances)


@stated_law.register
def _(mechanism: Exponential, value: object) -> StatedLaw | None:
    scores = np.asarray(value, np.float64)
    size = mechanism.sensitivity.linf
    weights = np.exp(mechanism.eps * (scores - scores.max()) / (2 * size))
    return StatedLaw(0, weights / math.fsum(weights))
