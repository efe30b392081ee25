"""What every way of sampling can do."""

from abc import ABC, abstractmethod

from sfumato.errors import InvalidParameter, MixedRelations
from sfumato.loss.base import PrivacyLoss
from sfumato.sensitivity import Relation


class Sampling(ABC):
    """A way of drawing a batch; `amplify` turns the loss of what is done to it into the loss for everybody."""

    @abstractmethod
    def amplify(self, loss: PrivacyLoss) -> PrivacyLoss:
        """The loss of running the mechanism on a sampled batch."""


def about(loss: PrivacyLoss, relation: Relation, sampling: str) -> None:
    """Refuse a loss that speaks of other neighbours than this sampling's theorem."""
    if not isinstance(loss, PrivacyLoss):
        raise InvalidParameter(
            f"{sampling}.amplify needs a loss.\n  found:  {type(loss).__name__}\n"
            "  do:     give e.g. sf.loss.GaussianLoss(mu=1)"
        )
    if loss.relation is not relation:
        raise MixedRelations(
            f"{sampling} amplifies losses about {relation.value}.\n  found:  a loss about {loss.relation.value}\n"
            f"  do:     build the loss with relation=sf.{relation.name}, or convert it with sf.loss.replace_one"
        )
