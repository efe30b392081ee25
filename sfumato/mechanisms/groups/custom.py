"""A concave function of one's own."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from flint import arb

from sfumato.errors import InvalidParameter
from sfumato.loss.numeric import Floats, floats
from sfumato.mechanisms.groups.transform import Transform
from sfumato.noise.balls import Ball

MOST = 10**15  # sizes beyond are taken for this


@dataclass(frozen=True)
class Given(Transform):
    """Any function of counts that rises, ever more slowly, and its inverse if it has a name.

    Doubles are good enough: the table is made of whole numbers, and its privacy is read from these. A function that is
    not concave is refused when the table is made. Without an inverse, one is looked up between 0 and 10¹⁵.
    """

    function: Callable[[float], float] = field(repr=False)
    inverse: Callable[[float], float] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not callable(self.function) or not (self.inverse is None or callable(self.inverse)):
            raise InvalidParameter(
                f"function must be a function of a count.\n  found:  a {type(self.function).__name__}\n"
                "  do:     give such as lambda x: math.log1p(x / 50)"
            )

    def ball(self, count: int) -> Ball:
        return arb(self.forth(float(count)))

    def forth(self, count: float) -> float:
        found = self.function(count)
        if isinstance(found, complex) or not math.isfinite(float(found)):
            raise InvalidParameter(
                f"function must give a number for every count from 0 to 1e15.\n  found:  {found!r} at {count:g}"
            )
        return float(found)

    def back(self, y: Floats) -> Floats:
        if self.inverse is not None:
            return floats([self.inverse(float(one)) for one in y.reshape(-1)]).reshape(y.shape)
        x = np.concatenate([np.arange(256.0), np.geomspace(256, MOST, 8192)])
        return floats(np.interp(y, [self.forth(float(one)) for one in x], x))
