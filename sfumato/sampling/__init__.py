"""How a batch is drawn from the data, and what that does to a loss."""

from sfumato.sampling.base import Sampling
from sfumato.sampling.poisson import Poisson
from sfumato.sampling.without_replacement import WithoutReplacement

__all__ = ["Poisson", "Sampling", "WithoutReplacement"]
