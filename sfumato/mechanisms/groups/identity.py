"""The count as it is: the same error, and the same guarantee, for every group."""

from dataclasses import dataclass

from flint import arb

from sfumato.loss.numeric import Floats
from sfumato.mechanisms.groups.transform import Estimator, Transform
from sfumato.noise.balls import Ball


@dataclass(frozen=True)
class Identity(Transform):
    """g(x) = x: the Gaussian mechanism, v = rows²/2σ² for everybody."""

    estimators = (Estimator.UNBIASED, Estimator.CLOSEST, Estimator.MEDIAN)

    def ball(self, count: int) -> Ball:
        return arb(count)

    def back(self, y: Floats) -> Floats:
        return y

    def forth(self, count: float) -> float:
        return count
