"""Balls in bins: in each epoch every person goes to one batch, chosen uniformly and independently of all others."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from sfumato import checks
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.subsampled import PoissonSampledLoss
from sfumato.loss.kinds.tabulated import TabulatedLoss, table
from sfumato.loss.numeric import Enclosure, Floats, floats
from sfumato.progress import may_take_long, with_progress
from sfumato.sampling.base import Batch, SampledRows, Sampling, SamplingExample, check_relation
from sfumato.sensitivity import AddRemove

if TYPE_CHECKING:
    from sfumato.noise.entropy import Source

Upper = Callable[[Floats], Floats]

RARE = (0.1, 0.02)  # expected participations c of the Poisson sampling that bounds an epoch: small is sharp, and slow
GOALS = (3e-2, 1e-4, 1e-7, 1e-11)  # δ around which the bound is sharp
NODES = 400
FAR = 80.0
ENDED = 1e-18


@dataclass(frozen=True)
class BallsInBins(Sampling):
    """`bins` batches in each epoch, every person in exactly one of them; about add/remove neighbours.

    `amplify` takes the loss of one batch and returns that of a whole epoch, from above. Let (P, Q) dominate a batch,
    r_j = dP/dQ of batch j and U = (1/t)·Σ_j r_j, the ratio of the epoch with the person to the one without. Poisson
    sampling at rate η has Π_j(1 − η + ηr_j); w = η/(1 − η), c = tη.

    Proof. Expand: Π_j(1 − η + ηr_j) ≥ (1 − η)^t·(1 + wtU), as r_j ≥ 0. So with α' = (1 − η)^t·(1 + wtα)
        E_Q(U − α)₊ ≤ E_Q(Π − α')₊ / (wt(1 − η)^t):       the epoch's H_α is at most that of t Poisson batches at α'.
    For the other direction let L = Σ_j log(1 − η + ηr_j) ≤ c(U − 1), so 1 − αU ≤ (α/c)·(−L − s), s = c(1 − 1/α), and
        E_Q(1 − αU)₊ ≤ (α/c)·∫_s^∞ Q(−L > x) dx = (α/c)·(B(s) + ∫_s^∞ B) ≤ (α/c)·(1 + m − s)·B(s),
    with B(x) = H_{e^x} of the Poisson pair from without to with, 0 beyond m = −t·log(1 − η). Both bounds become
    equalities as η → 0. The pair dominates adaptive batches, since given the others' bins each batch is a randomised
    function of a draw of P or Q (Blackwell), and the others' bins do not depend on the person.

    Theorem: one batch of t at random costs at most what rare Poisson sampling does, rescaled [proof above; cf. Chua et
        al. 2024 and Feldman & Shenfeld 2025 for random allocation]
    """

    bins: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", checks.whole("bins", self.bins, 1))

    @property
    def span(self) -> int:
        """The number of batches in an epoch."""
        return self.bins

    @property
    def share(self) -> float:
        return 1 / self.bins

    def batches(self, people: int, *, source: "Source | None" = None) -> Iterator[Batch]:
        """Row numbers below `people`, in `bins` batches for each epoch; `source` is for tests only."""
        from sfumato.noise.entropy import SYSTEM  # here, as pricing needs no noise
        from sfumato.noise.uniform import Uniform

        size = checks.whole("people", people, 0)
        choice = Uniform(self.bins, source or SYSTEM)
        while True:
            bins = choice.draw(size)
            for number in range(self.bins):
                yield np.flatnonzero(bins == number)

    def amplify(self, loss: PrivacyLoss) -> PrivacyLoss:
        """The loss of a whole epoch, never below the truth."""
        check_relation(loss, AddRemove, "BallsInBins")
        return loss if self.bins == 1 else epoch_loss(loss, self.bins)

    @classmethod
    def examples(cls) -> tuple[SamplingExample, ...]:
        return (SamplingExample(cls(2), SampledRows((1,), (1,)), SampledRows((0,), ())),)


@lru_cache(64)
@with_progress("pricing an epoch")
def epoch_loss(loss: PrivacyLoss, bins: int) -> TabulatedLoss:
    """The two bounds as a table, each the least over a few rates; and at most the loss of one batch itself."""
    may_take_long()
    curves = [rare_sampling(loss, bins, c) for c in RARE]

    def upper(eps: Floats) -> tuple[Floats, Floats]:
        ahead, back = loss.forward(eps).upper, loss.backward(eps).upper
        for forward, backward in curves:
            ahead, back = np.minimum(ahead, forward(eps)), np.minimum(back, backward(eps))
        return ahead, back

    coarse = np.linspace(0.0, FAR, 321)
    alive = np.maximum(*upper(coarse)) > ENDED
    end = coarse[min(len(coarse) - 1, int(np.flatnonzero(alive)[-1]) + 1)] if alive.any() else coarse[1]
    nodes = np.unique(np.concatenate([np.linspace(0.0, end, NODES), np.geomspace(1e-4 * end, end, NODES)]))
    ahead, back = (Enclosure(0 * side, side) for side in upper(nodes))
    return table(nodes, ahead, back, loss.relation)


def rare_sampling(loss: PrivacyLoss, bins: int, c: float) -> tuple[Upper, Upper]:
    """Upper bounds on both directions of an epoch, from Poisson sampling at rate c/bins."""
    rate = c / bins
    poisson = bins * PoissonSampledLoss(loss, rate, relation=loss.relation)
    quiet = bins * np.log1p(-rate)  # log (1 − η)^t
    odds = rate / (1 - rate) * bins  # wt
    share = odds * np.exp(quiet)
    ahead = [poisson.near(share * goal, 1e-3) for goal in GOALS]
    back = [poisson.reverse.near(c * goal, 1e-3) for goal in GOALS]

    def forward(eps: Floats) -> Floats:
        moved = quiet + np.log1p(odds * np.exp(eps))
        at = np.maximum(moved - 1e-14 * (1 + np.abs(moved)), 0.0)
        found = np.min([curve(at).upper for curve in ahead], axis=0)
        found = found + np.maximum(-np.expm1(np.minimum(moved, 0.0)), 0.0)  # where α' < 1: H falls by at most 1 − α'
        return floats(np.minimum(found / share * (1 + 1e-12), 1.0))

    def backward(eps: Floats) -> Floats:
        moved = -c * np.expm1(-eps)
        found = np.min([curve(np.maximum(moved - 1e-14, 0.0)).upper for curve in back], axis=0)
        return floats(np.minimum(np.exp(np.minimum(eps, 700.0)) / c * (1 - quiet - moved) * found * (1 + 1e-12), 1.0))

    return forward, backward
