"""Noise on several whole numbers that one person moves at once, for pure ε."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from sfumato import checks, noise
from sfumato.errors import InvalidParameter
from sfumato.loss.kinds.coins import PureLoss
from sfumato.mechanisms.additive.base import FEW
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import HUGE, NO_NUMBERS, Example, Inputs, Neighbours
from sfumato.mechanisms.private_inputs import read_numbers
from sfumato.noise import radius
from sfumato.noise.draw_table import BRIEF, USUAL, Integers
from sfumato.rounding import round_up
from sfumato.sensitivity import Relation


@dataclass(frozen=True)
class JointLaplace(Mechanism[ArrayLike, Integers]):
    """v + z for whole numbers v₁ … v_d, or for each row of an array of such: P(z) ∝ e^{−ε·N(z)}, z whole, for the norm
    N(z) = Σ wⱼ|zⱼ|/sⱼ + (1 − Σ wⱼ)·maxⱼ |zⱼ|/sⱼ, whose maximum is rounded up to levels. sⱼ are `sizes`, wⱼ `favours`.

    Without favours each number has d + 1 halves of the noise that it would have alone; with ε divided evenly, d times.

    Theorem: ε-DP if one person moves each vⱼ of one row by at most sⱼ, all of them at once
      [docs/theorems/joint.md, Theorem 1; a K-norm mechanism, Hardt & Talwar 2010]
    """

    eps: float
    sizes: tuple[int, ...]
    favours: tuple[float | Fraction, ...] = ()
    use = "for pure ε on several numbers at once"

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", checks.positive("eps", self.eps))
        for name in ("sizes", "favours"):
            if not isinstance(found := getattr(self, name), tuple | list):
                raise InvalidParameter(
                    f"{name} are several numbers.\n  found:  a {type(found).__name__}\n  do:     give a list, as [1, 2]"
                )
            object.__setattr__(self, name, tuple(found))
        _ = self.law

    @cached_property
    def law(self) -> noise.JointLaplace:
        return noise.JointLaplace(self.eps, self.sizes, self.favours)

    def release(self, value: ArrayLike) -> Integers:
        """int64, of the same shape; answers saturate at ±(2⁶³ − 1), so that no private value is refused."""
        found = read_numbers(value)
        if (found.size and found.dtype.kind == "f") or found.ndim < 1 or found.shape[-1] != len(self.sizes):
            raise InvalidParameter(
                f"values are whole numbers, {len(self.sizes)} to a row.\n"
                f"  found:  {found.dtype} of shape {found.shape}\n"
                "  do:     give integers: for other numbers, whole steps of a public size"
            )
        rows = found.astype(np.int64, copy=False).reshape(-1, len(self.sizes))
        return self.law.about(rows, BRIEF if len(rows) <= FEW else USUAL, self.source).reshape(found.shape)

    def loss(self, relation: Relation = Relation.AddRemove) -> PureLoss:
        """The loss of one row. The losses of rows that one person moves add up."""
        return PureLoss(self.eps, relation=relation)

    def loss_of_move(self, change: Sequence[int]) -> PureLoss:
        """The loss of a row that moves by `change`: ε if every number moves by its size, more if one moves farther."""
        return PureLoss(round_up(self.law.cost(change)))

    moved = loss_of_move  # the name before version 0.2

    @cached_property
    def each(self) -> tuple["OneOf", ...]:
        """The marginal noise of each number."""
        return tuple(OneOf(self, j) for j in range(len(self.sizes)))

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        rows = Inputs(
            "rows of integers",
            ([0, HUGE], [-HUGE, 0], [[1, 2], [3, 4]], np.array([-(2**63), 2**63 - 1]), np.zeros((0, 2), np.int32)),
            (*NO_NUMBERS, 3, [1], [1, 2, 3], [0.5, 1.0], []),
        )
        one = Fraction(1)
        return (
            Example(
                cls(1.0, (1, 3), (0.375, 0)),
                (Neighbours([0, 0], [1, 3]), Neighbours([5, -7], [4, -4])),
                rows,
                rows=True,
                step=one,
            ),
            Example(cls(1.0, (2, 2)), (Neighbours([5, 0], [3, 2]),), rows, rows=True, step=one),
        )


@dataclass(frozen=True)
class OneOf:
    """The marginal noise of one of several numbers."""

    joint: JointLaplace
    place: int

    def law(self) -> noise.Margin:
        return noise.Margin(self.joint.law, self.place)

    def error(self, confidence: float = 0.95) -> int:
        """With this probability the number is off by at most this: the least such number."""
        return radius(self.law(), confidence)
