"""Poisson sampling over whole units: all rows of a unit are in the batch, or none of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.sampling.base import Batch, SampledRows, Sampling, SamplingExample
from sfumato.sampling.poisson import Poisson
from sfumato.sensitivity import Sensitivity

if TYPE_CHECKING:
    from sfumato.noise.entropy import Source


@dataclass(frozen=True)
class PoissonUnits(Sampling):
    """Each unit (a person, a household, …) is in the batch with probability `rate`, with all of its rows.

    Neighbours differ in one unit and all of its rows, as everywhere in a policy. The loss given to `amplify` is that of
    a mechanism on the batch for such neighbours: so it must bound what a unit adds with all of its rows. Sampling rows
    instead, each by itself, amplifies nothing for a unit with many rows: one of them is nearly always there.

    Proof. With the unit, the batch is B ∪ R with probability q and B otherwise, B the sampled rows of all others and R
    all rows of the unit; without it, B. B has the same law on both sides and is independent of the unit's coin. So for
    each B the outputs are (1−q)Q_B + qP_B against Q_B, where (P_B, Q_B) is dominated by the pair of the loss, and a
    mixture over B that both sides share is dominated, too: joint convexity.

    Theorem: Poisson sampling of dominating pairs, with units as elements
        [Zhu, Dong & Wang 2022, Thm 11, and the proof above]
    """

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.probability("rate", self.rate))

    def batches(self, units: ArrayLike, *, source: "Source | None" = None) -> Iterator[Batch]:
        """Numbers of rows, given the unit of each row; `source` is for tests only.

        Which units there are is looked up once: a batch then takes one coin per unit and a look at each row.
        """
        row_units = np.asarray(units)
        if row_units.ndim != 1 or (
            row_units.size and row_units.dtype.kind not in "biuUS"
        ):  # an empty list is of floats
            raise InvalidParameter(
                "units must be a row of integers or texts, one for each row of the data.\n"
                f"  found:  {row_units.dtype} of shape {row_units.shape}\n"
                "  do:     number the units and give the numbers"
            )
        names, unit_of_row = np.unique(row_units, return_inverse=True)
        for chosen in Poisson(self.rate).batches(names.size, source=source):
            taken = np.zeros(names.size, np.bool_)
            taken[chosen] = True
            yield np.flatnonzero(taken[unit_of_row])

    def stream(self, people: int, source: "Source | None" = None) -> Iterator[Batch]:
        """Numbers of units instead of rows, for data that are given by unit."""
        return Poisson(self.rate).batches(people, source=source)

    def amplify(self, loss: PrivacyLoss) -> PrivacyLoss:
        """The pair ((1−q)Q + qP, Q) and its reverse, for a loss about adding or removing one unit."""
        return Poisson(self.rate).amplify(loss)

    @property
    def share(self) -> float:
        return self.rate

    @classmethod
    def examples(cls) -> tuple[SamplingExample, ...]:
        two = Sensitivity.of(2)  # a unit's two rows, each counted once
        return (
            SamplingExample(cls(0.5), SampledRows(([7, 7],), (1, 1)), SampledRows(([],), ()), two),
            SamplingExample(
                cls(0.25),
                SampledRows((["ada", "bob", "ada"],), (1, 0, 1)),
                SampledRows((["bob"],), (0,)),
                two,
            ),
        )
