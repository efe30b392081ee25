"""Amounts of privacy in whole units, for budgets and charges. No float is ever added up.

Four counters, each a signed 64-bit integer:
gauss: μ² in 10⁻¹⁵ · pure: ε in 10⁻¹⁵ · rho: ρ (zCDP) in 10⁻¹⁵ · leak: δ in 10⁻¹⁹
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import InvalidParameter

UNITS = {"gauss": 10**15, "pure": 10**15, "rho": 10**15, "leak": 10**19}
MEANINGS = {"gauss": "μ²", "pure": "ε", "rho": "ρ (zCDP)", "leak": "δ"}
MOST = 2**63 - 1


@dataclass(frozen=True)
class Amount:
    """A number of units for each counter."""

    gauss: int = 0
    pure: int = 0
    rho: int = 0
    leak: int = 0

    def __post_init__(self) -> None:
        for name, value in zip(UNITS, self, strict=True):
            if type(value) is not int or not 0 <= value <= MOST:
                found = f"{value / UNITS[name]:.4g}" if type(value) is int else f"a {type(value).__name__}"
                raise InvalidParameter(
                    f"{MEANINGS[name]} is out of range.\n  found:  {found}\n"
                    f"  do:     stay between 0 and {MOST / UNITS[name]:.4g}"
                )

    def __iter__(self) -> Iterator[int]:
        return iter((self.gauss, self.pure, self.rho, self.leak))

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(*(a + b for a, b in zip(self, other, strict=True)))

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(*(a - b for a, b in zip(self, other, strict=True)))

    def within(self, other: "Amount") -> bool:
        """Is every counter at most that of `other`?"""
        return all(a <= b for a, b in zip(self, other, strict=True))

    def real(self, name: str) -> Fraction:
        """The number that one counter stands for."""
        return Fraction(getattr(self, name), UNITS[name])


def cost(**numbers: Fraction | float) -> Amount:
    """An amount to be charged: rounded up, so that any positive cost is at least one unit."""
    return Amount(**{name: -(-Fraction(x) * UNITS[name] // 1) for name, x in numbers.items()})


def limit(**numbers: Fraction | float) -> Amount:
    """An amount that may be spent: rounded down."""
    return Amount(**{name: Fraction(x) * UNITS[name] // 1 for name, x in numbers.items()})


def share_left(limit: Amount, spent: Amount) -> float:
    """The share that is left of the scarcest counter."""
    return min((1 - used / whole for used, whole in zip(spent, limit, strict=True) if whole), default=0.0)
