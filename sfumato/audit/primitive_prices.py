"""The privacy loss of one primitive on two given inputs: how far its input moved, and the loss of that move."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.sums import nothing
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.mechanisms.additive.base import Additive
from sfumato.mechanisms.additive.joint_laplace import JointLaplace
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.choice.base import Choice
from sfumato.mechanisms.choice.quantile import ByRank
from sfumato.mechanisms.dependent.private_test import Gate
from sfumato.mechanisms.groups.transformed import Transformed, integer_counts
from sfumato.mechanisms.private_inputs import read_numbers
from sfumato.mechanisms.randomized_response import RandomizedResponse
from sfumato.sensitivity import Relation, Sensitivity

SLACK = 1e-9  # relative: distances are reduced by this, so that rounding raises no false alarm
Primitive = Mechanism[Any, Any] | ByRank | Gate


class NoPrice(Exception):
    """No loss is known for this move of an input."""


def price_move(primitive: Primitive, method: str, before: Any, after: Any) -> tuple[str, PrivacyLoss]:
    """How far an input moved, in words, and the loss of that move."""
    if isinstance(primitive, Additive):
        return price_numbers(primitive, method, before, after)
    if isinstance(primitive, Transformed):
        return price_counts(primitive, before, after)
    if isinstance(primitive, JointLaplace):
        moves, width = [int(d) for d in differences(before, after)], len(primitive.sizes)
        return price_rows(primitive, [moves[start : start + width] for start in range(0, len(moves), width)])
    if is_same(before, after):
        return "did not move", nothing()
    if isinstance(primitive, Gate):
        if abs(before - after) > 1:
            raise NoPrice(f"a distance moved by {abs(before - after)}; the private test covers 1")
        return "a distance moved by 1", nothing()  # the claim includes the price of the test
    if isinstance(primitive, RandomizedResponse):
        changed = int(np.count_nonzero(np.asarray(before) != np.asarray(after)))
        return f"{changed} answers changed", changed * primitive.loss(Relation.AddRemove)
    if isinstance(primitive, Choice):
        far = max(map(abs, differences(before, after)))
        if far > Fraction(primitive.sensitivity.linf) * Fraction(1 + SLACK):
            raise NoPrice(f"a score moved by {float(far):.6g}; the sensitivity is {primitive.sensitivity.linf:g}")
        return f"scores moved by up to {float(far):.6g}", primitive.loss()
    return "moved", primitive.loss()  # it has one loss for all neighbours, which is trusted here


def price_numbers(noise: Additive, method: str, before: Any, after: Any) -> tuple[str, PrivacyLoss]:
    """Additive noise: the loss at the norms of the difference."""
    unit = Fraction(noise.lattice.step) if method == "noisy" else Fraction(1)
    moves = [abs(d) * unit if d is not math.inf else d for d in differences(before, after)]
    if not any(moves):
        return "did not move", nothing()
    if math.inf in moves:
        raise NoPrice("an input is infinite on one data set only")
    l1 = float(sum(moves)) * (1 - SLACK)
    l2 = math.sqrt(sum(d * d for d in moves)) * (1 - SLACK)
    moved = Sensitivity(l0=sum(d > 0 for d in moves), linf=min(float(max(moves)) * (1 - SLACK), l2, l1), l1=l1, l2=l2)
    return f"moved by {float(max(moves)):.6g} in {moved.l0:g} of {len(moves)} numbers", noise.loss(moved)


def price_rows(noise: JointLaplace, moves: Sequence[Sequence[int]]) -> tuple[str, PrivacyLoss]:
    """Joint noise on rows of numbers: the sum of the losses of the rows that moved."""
    rows = [row for row in moves if any(row)]
    if not rows:
        return "did not move", nothing()
    each = [noise.loss_of_move(row) for row in rows]
    farthest = max(Fraction(abs(d), s) for row in rows for d, s in zip(row, noise.sizes, strict=True))
    return f"{len(rows)} rows moved by up to {float(farthest):.6g} of their sizes", sum(each[1:], each[0])


def price_counts(noise: Transformed, before: Any, after: Any) -> tuple[str, PrivacyLoss]:
    """Noise on a transform of counts: the loss at the distance in steps of the transform's table."""
    first, second = (
        noise.table.steps(np.asarray(integer_counts(value)).reshape(-1)).tolist() for value in (before, after)
    )
    if len(first) != len(second):
        raise NoPrice(f"{len(first)} counts on d0 and {len(second)} on d1")
    moves = [abs(a - b) for a, b in zip(first, second, strict=True) if a != b]
    mu = math.sqrt(float(sum(d * d for d in moves) / noise.table.spread**2)) * (1 - SLACK)
    return f"moved by up to {max(moves, default=0)} steps in {len(moves)} of {len(first)} counts", GaussianLoss(mu)


def differences(before: Any, after: Any) -> list[Any]:
    """The differences entry by entry, exactly; ∞ where one entry is infinite and the other is not."""
    first, second = (np.asarray(read_numbers(value)) for value in (before, after))
    if first.shape != second.shape:
        raise NoPrice(f"{first.size} numbers on d0 and {second.size} on d1")
    return [
        exact_difference(a, b) for a, b in zip(first.reshape(-1).tolist(), second.reshape(-1).tolist(), strict=True)
    ]


def exact_difference(a: float, b: float) -> Any:
    """The exact difference; NaN counts as 0, as in the mechanisms."""
    a, b = (0 if x != x else x for x in (a, b))
    if math.isinf(a) or math.isinf(b):
        return Fraction(0) if a == b else math.inf
    return Fraction(a) - Fraction(b)


def is_same(before: Any, after: Any) -> bool:
    try:
        return bool(np.all(np.asarray(before, object) == np.asarray(after, object)))
    except Exception:  # inputs that cannot be compared count as different
        return False
