"""The base class of laws that are drawn exactly: known by balls, up to a constant factor."""

from abc import ABC, abstractmethod

from sfumato.noise.table import Table, Words


class Law(ABC):
    """A probability law on the integers that has tables to draw from."""

    @abstractmethod
    def table(self, words: Words) -> Table:
        """The table of this law for words of this kind (cached: a scale pays for it once)."""
