"""A whole number and its local sensitivity, both computed elsewhere, such as by a database."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato import checks
from sfumato.mechanisms.dependent.statistic import Statistic
from sfumato.sensitivity import AddRemove, Relation

MOST = 1 << 60


@dataclass(frozen=True)
class Counted(Statistic[tuple[int, int]]):
    """f and LS(x), given as a pair; LS itself moves by at most `moves` between neighbours, as it does for `Triangles`.

    Theorem: LS_k ≤ LS + k·moves [immediate: k steps move it by no more]

    >>> Counted().curve((12, 3), 2)
    (3, 4, 5)
    """

    moves: int = 1

    def __post_init__(self) -> None:
        checks.whole("moves", self.moves, 1, MOST)

    @property
    def relation(self) -> Relation:
        return AddRemove

    @property
    def everywhere(self) -> int:
        return MOST

    @property
    def grain(self) -> Fraction:
        return Fraction(1)

    @property
    def drift(self) -> int:
        return self.moves

    def value(self, data: tuple[int, int]) -> int:
        return data[0]

    def curve(self, data: tuple[int, int], most: int) -> tuple[int, ...]:
        return tuple(min(data[1] + k * self.moves, MOST) for k in range(most + 1))
