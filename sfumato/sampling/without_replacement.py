"""Sampling without replacement: a batch of fixed size, all subsets equally likely."""

from dataclasses import dataclass

from sfumato import checks
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.sums import nothing
from sfumato.loss.kinds.subsampled import WithoutReplacementLoss
from sfumato.sampling.base import Sampling, about
from sfumato.sensitivity import ReplaceOne


@dataclass(frozen=True)
class WithoutReplacement(Sampling):
    """`m` of `n` people, all subsets alike; about replace-one neighbours."""

    n: int
    m: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.whole("n", self.n, 1))
        object.__setattr__(self, "m", checks.whole("m", self.m, 0, self.n))

    def amplify(self, loss: PrivacyLoss) -> PrivacyLoss:
        """Both directions diluted to q = m/n; m = n changes nothing, m = 0 reveals nothing.

        Theorem: sampling without replacement [Balle, Barthe & Gaboardi 2018, Thm 9; Zhu, Dong & Wang 2022, Thm 11]
        """
        about(loss, ReplaceOne, "WithoutReplacement")
        if self.m in (0, self.n):
            return loss if self.m else nothing(loss.relation)
        return WithoutReplacementLoss(loss, self.n, self.m, relation=loss.relation)
