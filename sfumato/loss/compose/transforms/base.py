"""Transforms of losses for the contour engine: M(z) = E_P[e^{zL}; L < ∞] on a line z = θ + iω, with certificates.

φ(ω) = M(θ + iω)/M(θ) is the characteristic function of the law tilted by e^{θL}. A transform tells log M roughly (to
steer by), then, at a chosen θ, log M(θ) with its error, discs that hold φ at given frequencies, and a bound of |φ|
beyond any frequency: characteristic functions recur, so a value that is small here says nothing about later ones.

A transform stands for several terms at once, each with its count: vectorising over terms is its own affair.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato.loss.bound import Bound
from sfumato.loss.numeric import ULP, Floats

Complexes = npt.NDArray[np.complex128]


class Refused(Exception):
    """This line cannot be certified at a reasonable cost: let another engine answer."""


class Discs(NamedTuple):
    """∏φ^k at each frequency as e^{log}, phases measured from the centre, and how far the truth can be from it."""

    log: Complexes
    radius: Floats


class Tilted(ABC):
    """The terms of one transform, tilted by θ."""

    log_moment: float  # Σ k log M(θ)
    slip: float  # its error at most
    centre: float  # phases of the discs are relative to e^{iω·centre}
    drift: float  # Σ k|c| ≥ |centre|: what rounding of the centre is relative to

    @abstractmethod
    def discs(self, omega: Floats) -> Discs:
        """∏φ^k at the frequencies n·D, n = 0, 1, …"""

    @abstractmethod
    def log_ceiling(self, omega: Floats) -> Floats:
        """log of a non-increasing function that bounds ∏|φ|^k on [ω, ∞)."""


class Transform(ABC):
    """Some terms of a sum, each with its count."""

    @classmethod
    def together(cls, parts: "Sequence[Transform]") -> "Sequence[Transform]":
        """Transforms of one class as fewer, where that is faster."""
        return parts

    @abstractmethod
    def times(self, count: int) -> "Transform":
        """These terms, repeated `count` times."""

    @property
    def reverse(self) -> "Transform | None":
        """The terms read backwards: themselves, if they are symmetric."""
        return self

    @abstractmethod
    def log_moments(self, theta: Floats) -> Floats:
        """About Σ k log M at several θ > 0: to steer by, it proves nothing."""

    @abstractmethod
    def tilt(self, theta: float) -> Tilted:
        """The certified view at one θ ≥ 0."""


def round_to_30_bits(x: float) -> float:
    """x with 30 binary digits: whole multiples of it are exact."""
    mantissa, exponent = math.frexp(x)
    return math.ldexp(math.floor(mantissa * 2**30), exponent - 30)


def spectral_moment(transform: "Transform | None", s: float) -> Bound | None:
    """log M(s) from the certified view at one tilt, if it is sharp there."""
    try:
        view = transform.tilt(s) if transform is not None else None
    except Refused:
        return None
    if view is None or not view.slip <= 1e-9 * abs(view.log_moment):
        return None
    return Bound(view.log_moment - view.slip, view.log_moment + view.slip, "quadrature")


def powers(base: Complexes, error: Floats, count: float) -> Discs:
    """∏ over one term: φ = 1 + base known to ±error, to the power `count`.

    |φ̂^k − φ^k| ≤ k·error·(|φ̂| + error)^{k−1}, and log φ̂ = ½log1p(2Re + |·|²) + i·arg keeps its digits near 1.
    """
    real, imag = base.real, base.imag
    size = np.abs(1 + base)
    with np.errstate(divide="ignore"):
        far = np.log(np.maximum(size, 1e-300))
    near = 0.5 * np.log1p(np.maximum(2 * real + real * real + imag * imag, -0.9))
    log = np.where(size < 0.5, far, near) + 1j * np.arctan2(imag, 1 + real)
    error = error + 4 * ULP * (size < 0.5)
    most = np.log(np.maximum(size + error, 1e-300))
    radius = count * error * np.exp(np.clip((count - 1) * most, -700.0, 700.0))
    log = count * log
    return Discs(log, radius + np.exp(np.minimum(log.real, 0.0)) * (ULP * (40 * np.abs(log) + 32)))


def product(parts: Sequence[Discs]) -> Discs:
    """Several factors as one: |∏Φ̂ − ∏Φ| ≤ Σ radius·∏ of the others, each at most |Φ̂| + radius."""
    if len(parts) == 1:
        return parts[0]
    sizes = [np.exp(np.minimum(part.log.real, 700.0)) for part in parts]
    tops = [size + part.radius for size, part in zip(sizes, parts, strict=True)]
    radius = np.zeros_like(tops[0])
    for i, part in enumerate(parts):
        others = np.ones_like(radius)
        for j, top in enumerate(tops):
            if j != i:
                others = others * top
        radius = radius + part.radius * others
    log = np.sum([part.log for part in parts], axis=0)
    rounding = np.exp(np.minimum(log.real, 0.0)) * (4 * ULP * np.sum([np.abs(part.log) for part in parts], axis=0))
    return Discs(log, radius + rounding)
