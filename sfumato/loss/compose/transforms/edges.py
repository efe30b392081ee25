"""Losses that end in atoms at ±ε: randomized response and its kin, and Laplace noise.

M(z) = A·e^{zε} + B·e^{−zε} + C. For coins A, B, C are the three masses. For Laplace noise the density ¼e^{(t−ε)/2}
between the atoms integrates to ¼(e^{zε} − e^{−(z+1)ε})/s with s = z + ½, so A = ½ + ¼/s and B = e^{−ε}(½ − ¼/s).
In general A = up + slope/s and B = down − slope·e^{−ε}/s: one shape for both, and many terms at once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.loss.compose.transforms.base import Complexes, Discs, Tilted, Transform
from sfumato.loss.numeric import ULP, Floats


@dataclass(frozen=True, eq=False)
class EdgedTransform(Transform):
    """Terms with losses in [−ε, ε]; entry i of every array belongs to term i."""

    eps: Floats
    up: Floats
    down: Floats
    middle: Floats
    slope: Floats
    counts: Floats

    @classmethod
    def of(cls, eps: float, up: float, down: float, middle: float, slope: float = 0.0) -> "EdgedTransform":
        return EdgedTransform(*(np.array([value], dtype=np.float64) for value in (eps, up, down, middle, slope, 1.0)))

    @classmethod
    def together(cls, parts: Sequence[Transform]) -> Sequence[Transform]:
        mine = [part for part in parts if isinstance(part, EdgedTransform)]
        columns = zip(*((p.eps, p.up, p.down, p.middle, p.slope, p.counts) for p in mine), strict=True)
        return [EdgedTransform(*(np.concatenate(column) for column in columns))]

    def times(self, count: int) -> "EdgedTransform":
        return EdgedTransform(self.eps, self.up, self.down, self.middle, self.slope, self.counts * count)

    def log_moments(self, theta: Floats) -> Floats:
        return self.logs(np.asarray(theta)[:, None]) @ self.counts

    def logs(self, theta: Floats) -> Floats:
        """log M of each term, summed with the largest exponential taken out: all parts are positive for θ ≥ 0."""
        share = self.slope / (theta + 0.5)
        fall = np.exp(-theta * self.eps)
        back = (self.down - share * np.exp(-self.eps)) * fall * fall
        result: Floats = theta * self.eps + np.log(self.up + share + back + self.middle * fall)
        return result

    def tilt(self, theta: float) -> Tilted:
        return TiltedEdges(self, theta)


class TiltedEdges(Tilted):
    """φ = a·E + b/E + c with E = e^{iωε}: one complex product per frequency and term."""

    def __init__(self, terms: EdgedTransform, theta: float) -> None:
        logs = terms.logs(np.array([theta]))
        self.terms, self.theta = terms, theta
        self.slips = ULP * (48 + 4 * theta * terms.eps + 4 * np.abs(logs))
        self.log_moment = math.fsum(terms.counts * logs)
        self.slip = float(terms.counts @ self.slips)
        self.centre = self.drift = 0.0
        rise, fall = np.exp(theta * terms.eps - logs), np.exp(-theta * terms.eps - logs)
        self.a, self.a_slope = terms.up * rise, terms.slope * rise
        self.b, self.b_slope = terms.down * fall, terms.slope * np.exp(-terms.eps) * fall
        self.c = terms.middle * np.exp(-logs)

    def discs(self, omega: Floats) -> Discs:
        """Equally spaced frequencies: e^{i(m+r)Dε} = e^{imDε}·e^{irDε}, so exponentials are needed for few of them.

        Each φ is off by the error of its weights, of two rounded phases, and a few roundings: η ≤ slip + u(40 + 4ωε).
        """
        terms, n = self.terms, len(omega)
        step, block = float(omega[1]) if n > 1 else 0.0, math.isqrt(n) + 1
        inner = np.exp(1j * np.outer(terms.eps, step * np.arange(block)))
        once, sloped = bool(np.all(terms.counts == 1)), bool(np.any(terms.slope))
        a_plus_b, a_minus_b, c = (self.a + self.b)[:, None], (self.a - self.b)[:, None], self.c[:, None]
        log = np.empty(n, dtype=np.complex128)
        for begin in range(0, n, block):
            w = omega[begin : begin + block]
            turn = inner[:, : len(w)] * np.exp(1j * (step * begin) * terms.eps)[:, None]
            phi = np.empty_like(turn)  # aE + b/E, with E = e^{iωε} and real a and b
            phi.real, phi.imag = a_plus_b * turn.real + c, a_minus_b * turn.imag
            if sloped:
                inverse = 1 / (self.theta + 0.5 + 1j * w)
                phi += inverse * (self.a_slope[:, None] * turn - self.b_slope[:, None] * turn.conj())
            phi = multiply_rows(phi) if once else phi
            # zero becomes very negative
            logs = np.log(np.maximum(np.abs(phi), 1e-300)) + 1j * np.angle(phi)
            log[begin : begin + block] = logs if once else terms.counts @ logs
        total = float(terms.counts @ (self.slips + 40 * ULP)) + omega * float(terms.counts @ (4 * ULP * terms.eps))
        rounding = ULP * (
            16 * len(terms.eps) + 32 + (0 if once else 4 * (4 + len(terms.eps)) * float(terms.counts.sum()))
        )
        size = np.exp(np.minimum(log.real, 0.0))
        swell = np.exp(np.minimum(total, 300.0))
        return Discs(log, total * swell + rounding * size * swell)

    def log_ceiling(self, omega: Floats) -> Floats:
        """By the triangle inequality: |a| + |b| + c, where 1/|s| ≤ 1/ω falls."""
        if not np.any(self.terms.slope):
            return 0 * omega
        far = np.minimum(1 / (self.theta + 0.5), 1 / omega)[:, None]
        most = (self.a + self.b + self.c) + far * (self.a_slope + self.b_slope)
        result: Floats = np.minimum(np.log(most) + self.slips + 1e-13, 0.0) @ self.terms.counts
        return result


def multiply_rows(phi: Complexes) -> Complexes:
    """The product of all rows, by halves."""
    while len(phi) > 1:
        half = len(phi) // 2
        rest = phi[2 * half :]
        phi = phi[:half] * phi[half : 2 * half]
        if len(rest):
            phi[0] *= rest[0]
    result: Complexes = phi[0]
    return result
