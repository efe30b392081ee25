"""Losses given by two laws on a line: by their densities, or by their distribution functions."""

from collections.abc import Sequence
from functools import partial
from typing import SupportsFloat

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.loss.kinds.finite import running_sums
from sfumato.loss.kinds.monotone_pieces import Measure, Sums, from_measures
from sfumato.loss.kinds.tabulated import TabulatedLoss, column
from sfumato.loss.numeric import ULP, Floats, floats
from sfumato.loss.user_functions import BELIEF, Function, called
from sfumato.sensitivity import Relation

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(8)


def from_densities(
    p: Function,
    q: Function,
    low: SupportsFloat,
    high: SupportsFloat,
    *,
    turning_points: Sequence[SupportsFloat] = (),
    relation: Relation = Relation.AddRemove,
) -> TabulatedLoss:
    """The loss of two densities on [low, high]; log p/q is monotone between `turning_points`.

    Masses of cells come from Gauss quadrature, believed to 1e-12 and to what halving a cell changes. From above, each
    cell's mass moves to the losses at its two ends so that P and Q keep theirs; from below, a cell is merged into one
    outcome. Mass outside counts as leak from above.

    Theorem: moving mass to the two ends dominates: connect the dots [Doroshenko et al. 2022]
    """

    def ratio(x: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(density("p", p, x)) - np.log(density("q", q, x))

    return from_measures(ratio, quadrature("p", p), quadrature("q", q), breaks(low, high, turning_points), relation)


def from_cdfs(
    cdf_p: Function,
    cdf_q: Function,
    log_ratio: Function,
    low: SupportsFloat,
    high: SupportsFloat,
    *,
    turning_points: Sequence[SupportsFloat] = (),
    relation: Relation = Relation.AddRemove,
) -> TabulatedLoss:
    """The loss of two distribution functions on [low, high], with log p/q monotone between `turning_points`.

    As `from_densities`, but masses are differences, believed to 4 ulps of the larger value. Where high losses lie to
    the right, Q's are known to 1e-15 only and δ(ε) to about e^ε·1e-15: mirror the line if that matters.

    Theorem: moving mass to the two ends dominates: connect the dots [Doroshenko et al. 2022]
    """
    ratio, cuts = partial(called, "log_ratio", log_ratio), breaks(low, high, turning_points)
    return from_measures(ratio, differences("cdf_p", cdf_p), differences("cdf_q", cdf_q), cuts, relation)


def breaks(low: SupportsFloat, high: SupportsFloat, turning_points: Sequence[SupportsFloat]) -> Floats:
    """The ends of the pieces."""
    cuts = floats(column("low, turning_points and high", [low, *turning_points, high]))
    if np.any(np.diff(cuts) <= 0):
        raise InvalidParameter(
            f"low, turning_points and high must rise in this order.\n  found:  {cuts.tolist()}\n"
            "  do:     sort them; what lies beyond low and high is counted as leak"
        )
    return cuts


def density(name: str, function: Function, x: Floats) -> Floats:
    """A density at many points."""
    found = called(name, function, x)
    wrong = ~((found >= 0) & (found < np.inf))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InvalidParameter(
            f"{name} must be a density: ≥ 0 and finite.\n  found:  {name}({x[i]:.6g}) = {found[i]!r}\n"
            "  do:     move low, high or a turning point away from a pole"
        )
    return found


def quadrature(name: str, function: Function) -> Measure:
    """Masses from a density."""

    def gauss(x: Floats) -> Floats:
        half = np.diff(x)[:, None] / 2
        points = x[:-1, None] + half * (1 + POINTS)
        values = density(name, function, points.ravel()).reshape(points.shape)
        return floats((values * WEIGHTS * half).sum(axis=1))

    def sums(x: Floats) -> Sums:
        middle = (x[:-1] + x[1:]) / 2
        halves = gauss(np.insert(x, np.arange(1, len(x)), middle)).reshape(-1, 2).sum(axis=1)
        error = np.abs(halves - gauss(x)) + BELIEF * halves
        left, right = (halves, error), (halves[::-1], error[::-1])
        return Sums(*map(running_sums, left), *(running_sums(values)[::-1] for values in right))

    return sums


def differences(name: str, function: Function) -> Measure:
    """Masses from a distribution function."""

    def sums(x: Floats) -> Sums:
        found = called(name, function, x)
        if not np.all((found >= 0) & (found <= 1)) or np.any(np.diff(found) < -4 * ULP):
            raise InvalidParameter(
                f"{name} must be a distribution function: it rises from 0 to 1.\n"
                f"  found:  values from {found[0]!r} to {found[-1]!r}, least {found.min()!r}, largest {found.max()!r}"
            )
        left, right = np.maximum(found - found[0], 0.0), np.maximum(found[-1] - found, 0.0)
        return Sums(left, 4 * ULP * found, right, 4 * ULP * (0 * found + found[-1]))

    return sums
