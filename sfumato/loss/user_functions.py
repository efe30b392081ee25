"""Functions that users write, asked for many values at once."""

import math
from collections.abc import Callable
from typing import SupportsFloat

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.loss.numeric import Floats, floats

Function = Callable[[float], SupportsFloat] | Callable[[Floats], Floats]

BELIEF = 1e-12  # relative error of what a user's function returns


def called(name: str, function: Function, points: Floats) -> Floats:
    """A user's function at many points, at once if it can do that."""
    with np.errstate(all="ignore"):
        try:
            found = floats(function(points)) if len(points) > 1 else floats(math.nan)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            found = floats(math.nan)
        if found.shape == points.shape:
            return found
        try:
            return floats([floats(function(float(point))).item() for point in points])  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError) as problem:
            raise InvalidParameter(f"{name} must turn a number into a number.\n  found:  {problem}") from problem
