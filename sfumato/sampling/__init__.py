"""Sampling schemes: how a batch is drawn from the data, and what that does to a loss.

A scheme that this list does not name is found by its class: all modules are imported then.
"""

from typing import TYPE_CHECKING

from sfumato.sampling.balls_in_bins import BallsInBins
from sfumato.sampling.base import Sampling
from sfumato.sampling.fixed_cycles import FixedCycles
from sfumato.sampling.poisson import Poisson
from sfumato.sampling.poisson_units import PoissonUnits
from sfumato.sampling.shuffled_epochs import ShuffledEpochs
from sfumato.sampling.without_replacement import WithoutReplacement

__all__ = [
    "BallsInBins", "FixedCycles", "Poisson", "PoissonUnits", "Sampling", "ShuffledEpochs", "WithoutReplacement",
]  # fmt: skip

if not TYPE_CHECKING:  # type checkers read the list above, so that a misspelt name stays an error

    def __getattr__(name):
        from sfumato.sampling.base import shipped_samplings

        found = {kind.__name__: kind for kind in shipped_samplings()} if name[:1].isupper() else {}  # no module is so
        if name not in found:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return found[name]
