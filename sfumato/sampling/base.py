"""The base class of sampling schemes: how a batch is drawn, and what that does to a loss, in one class, in one file."""

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter, MixedRelations
from sfumato.loss.base import PrivacyLoss
from sfumato.sensitivity import Relation, Sensitivity

if TYPE_CHECKING:
    from sfumato.noise.entropy import Source

Batch = NDArray[np.int64]


class Sampling(ABC):
    """A way of drawing a batch; `amplify` turns the loss of what is done to it into the loss for everybody."""

    known: ClassVar[dict[str, type["Sampling"]]] = {}  # every class that was imported and can be built
    relation: ClassVar[Relation] = Relation.AddRemove  # the neighbours that the theorem of `amplify` is about

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not inspect.isabstract(cls):
            Sampling.known[cls.__name__] = cls

    @classmethod
    def examples(cls) -> "tuple[SamplingExample, ...]":
        """Instances with neighbouring data: what the auditor and the common checks of the tests run."""
        return ()

    @abstractmethod
    def batches(self, *args: Any, **kwargs: Any) -> Iterator[Batch]:
        """One batch after the other, without end, as row numbers in ascending order; each is drawn afresh.

        A batch is private: only what a mechanism with the loss given to `amplify` makes of it may be published.
        """

    @abstractmethod
    def amplify(self, loss: PrivacyLoss) -> PrivacyLoss:
        """The loss of running the mechanism on a sampled batch, or on `span` batches that belong together."""

    @property
    def span(self) -> int:
        """How many batches after each other `amplify` prices together: those of an epoch, or 1."""
        return 1

    @property
    @abstractmethod
    def share(self) -> float:
        """The share of the people that one batch holds, on average."""

    @property
    def moves(self) -> int:
        """How many rows of a batch one person changes: a replaced one leaves, and another one comes."""
        return 2 if self.relation is Relation.ReplaceOne else 1

    def repeat(self, loss: PrivacyLoss, steps: int) -> PrivacyLoss:
        """The loss of a mechanism that runs on each of so many batches; an epoch that has begun counts as a whole."""
        return -(-steps // self.span) * self.amplify(loss)

    def stream(self, people: int, source: "Source | None" = None) -> Iterator[Batch]:
        """`batches` of a data set with so many people. A sampling with a public size of its own must fit it."""
        size = getattr(self, "n", None)
        if size is None:
            return self.batches(people, source=source)
        if size != people:
            raise InvalidParameter(
                f"this sampling is about data of a public size.\n  found:  another size than n = {size}\n"
                f"  do:     give {type(self).__name__} the number of rows"
            )
        return self.batches(source=source)


@dataclass(frozen=True)
class SampledRows:
    """Data of an example: the arguments of `batches`, and a whole number for each row."""

    arguments: tuple[object, ...]
    values: tuple[int, ...]


@dataclass(frozen=True)
class SamplingExample:
    """A sampling scheme, data of two neighbours, and how far they move the sum of a batch's values."""

    sampling: Sampling
    first: SampledRows
    second: SampledRows
    sensitivity: Sensitivity = field(default_factory=lambda: Sensitivity.of(1))

    def __str__(self) -> str:
        return repr(self.sampling)


def shipped_samplings() -> list[type[Sampling]]:
    """Every sampling scheme of the package, in the order of modules: all of them are imported first."""
    from sfumato import sampling

    for module in pkgutil.walk_packages(sampling.__path__, f"{sampling.__name__}."):
        importlib.import_module(module.name)
    ours = [kind for kind in Sampling.known.values() if kind.__module__.startswith(f"{sampling.__name__}.")]
    return sorted(ours, key=lambda kind: kind.__module__)


def check_relation(loss: PrivacyLoss, relation: Relation, sampling: str) -> None:
    """Refuse a loss about other neighbours than this sampling's theorem."""
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
