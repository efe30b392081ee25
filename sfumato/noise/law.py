"""What a law must be to be drawn exactly: known by balls, up to a constant factor."""

from abc import ABC, abstractmethod

from sfumato.noise.table import Table, Words


class Law(ABC):
    """A probability law on the integers that can cut words."""

    @abstractmethod
    def table(self, words: Words) -> Table:
        """The table of this law for words of this kind (cached: a scale pays for it once)."""
