"""Poisson sampling: each person is in the batch with the same probability, independently."""

from dataclasses import dataclass

from sfumato import checks
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.sums import nothing
from sfumato.loss.kinds.subsampled import PoissonSampledLoss
from sfumato.sampling.base import Sampling, about
from sfumato.sensitivity import AddRemove


@dataclass(frozen=True)
class Poisson(Sampling):
    """Each person is in the batch with probability `rate`; about add/remove neighbours."""

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.probability("rate", self.rate))

    def amplify(self, loss: PrivacyLoss) -> PrivacyLoss:
        """The pair ((1−q)Q + qP, Q) and its reverse; rate 1 changes nothing, rate 0 reveals nothing.

        Theorem: Poisson sampling of dominating pairs [Zhu, Dong & Wang 2022, Thm 11]
        """
        about(loss, AddRemove, "Poisson")
        if self.rate in (0.0, 1.0):
            return loss if self.rate else nothing(loss.relation)
        return PoissonSampledLoss(loss, self.rate, relation=loss.relation)
