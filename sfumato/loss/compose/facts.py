"""Facts of a loss that composition needs, each looked up once: the same losses occur in many sums.

Facts are remembered with the loss itself and for equal losses. Those of a sum follow from those of its terms.
"""

from abc import abstractmethod
from functools import lru_cache
from typing import NamedTuple

from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.transforms.base import Transform
from sfumato.loss.views.renyi_curve import RenyiCurve


class Facts(NamedTuple):
    """The results of the methods of `PrivacyLoss` with the same names."""

    supremum: tuple[float, float]
    leak: tuple[float, float]
    sharp_ends: bool
    atoms: tuple[float, float] | None
    renyi_curve: RenyiCurve | None
    transform: Transform | None
    reverse: PrivacyLoss
    attained: PrivacyLoss
    reveals_nothing: bool  # is the loss always zero?


class Composite(PrivacyLoss):
    """A loss made of several independent ones: (how often, loss) pairs."""

    terms: tuple[tuple[int, PrivacyLoss], ...]

    @abstractmethod
    def gather_facts(self) -> Facts:
        """The facts about the whole, from those about the terms."""


def facts(loss: PrivacyLoss) -> Facts:
    """The facts about one loss. Where `reverse` or `attained` is the loss, it is this very object.

    Facts that equal losses share name the first of them; sums would take that for another loss, and compose both.
    """
    found: Facts | None = loss.__dict__.get("_facts")
    if found is None:
        found = loss.gather_facts() if isinstance(loss, Composite) else gather_facts(loss)
        reverse, attained = (loss if one == loss else one for one in (found.reverse, found.attained))
        found = found._replace(reverse=reverse, attained=attained)
        object.__setattr__(loss, "_facts", found)
    return found


@lru_cache(maxsize=256)
def gather_facts(loss: PrivacyLoss) -> Facts:
    """The facts, from the loss."""
    supremum, leak = loss.supremum(), loss.leak()
    return Facts(
        supremum=supremum,
        leak=leak,
        sharp_ends=loss.sharp_ends,
        atoms=loss.atoms(),
        renyi_curve=loss.renyi_curve(),
        transform=loss.transform(),
        reverse=loss.reverse,
        attained=loss.attained,
        reveals_nothing=supremum == leak == (0.0, 0.0),
    )
