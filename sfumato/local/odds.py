"""Odds of the truth in whole numbers: what a client needs instead of e^ε, and what the server counts with."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.noise.balls import Exp, above, ball, floor, precision
from sfumato.rounding import round_up

BITS = 20  # of the weight of a lie, where nothing speaks against it
MOST = 2**53  # a total weight up to here is exact in every language's numbers
MOST_EPS = 34.0
PREC = 160


@dataclass(frozen=True)
class Odds:
    """Weights truth : lie of an outcome under one value and under another, truth ≥ lie ≥ 1: ε = ln(truth/lie).

    A client draws with these integers and needs no float. Probabilities are exact fractions of them, and the loss is
    about ln(truth/lie), rounded up; `Odds.of(eps)` rounds truth/lie down, so that it never exceeds e^eps.

    >>> Odds(3, 1).epsilon, Odds.of(1.0)
    (1.0986122886681098, Odds(truth=2850325, lie=1048576))
    """

    truth: int
    lie: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", checks.whole("truth", self.truth, 1, MOST))
        object.__setattr__(self, "lie", checks.whole("lie", self.lie, 1, MOST))
        if self.truth < self.lie:
            raise InvalidParameter(
                f"a report must be at least as likely under the truth.\n  found:  {self.truth} : {self.lie}\n"
                "  do:     give truth ≥ lie"
            )

    @staticmethod
    def of(eps: float, units: int = 2) -> "Odds":
        """The largest odds ≤ e^eps over a power of two, where `units` weights must add up to less than 2⁵³.

        The odds lose less than 2⁻²⁰ of e^eps − 1, or of e^eps where that is larger, unless units are many.
        """
        found = checks.number("eps", eps, 0.0, MOST_EPS, allowed=f"a number from 0 to {MOST_EPS:g}")
        if 0 < found < 1e-9:
            raise InvalidParameter(
                f"eps is so small that a report would tell nothing.\n  found:  eps = {found!r}\n"
                "  do:     give 0, or a number from 1e-9"
            )
        with precision(PREC):
            growth = Exp(Fraction(found)).ball(PREC)
            room = MOST.bit_length() - 1 - (floor(growth) + 1).bit_length() - (units - 1).bit_length()
            wanted = BITS + (max(0, -(floor(growth * 2**40 - 2**40).bit_length() - 40)) if 0 < found < 1 else 0)
            bits = min(wanted, room)
            if bits < 0:
                raise InvalidParameter(
                    f"eps is too large for so many outcomes: weights would exceed 2⁵³.\n  found:  eps = {found:g}, "
                    f"{units:,} outcomes\n  do:     ask with a smaller ε, or without randomising"
                )
            return Odds(floor(growth * 2**bits), 1 << bits)

    @cached_property
    def ratio(self) -> Fraction:
        """e^ε."""
        return Fraction(self.truth, self.lie)

    @cached_property
    def epsilon(self) -> float:
        """ln(truth/lie), rounded up."""
        if self.truth == self.lie:
            return 0.0
        with precision(PREC):
            return round_up(above(ball(self.ratio).log()))
