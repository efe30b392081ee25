"""Every mechanism, on the neighbours that its class states in `examples`."""

from collections.abc import Iterator

from sfumato.audit.collection import Exhibit
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.base import shipped_mechanisms

PARTS = ("dependent", "groups")  # rooms of mechanisms that the report names


def stated_exhibits() -> Iterator[Exhibit]:
    """Each example of each class, on its first pair of neighbours: the one where its price is tightest."""
    for kind in shipped_mechanisms():
        room = kind.__module__.split(".")[2]
        for example in kind.examples():
            pair = example.neighbours[0]
            yield Exhibit(
                room if room in PARTS else "mechanisms",
                example.make,
                pair.first,
                pair.second,
                pair.loss_arguments,
                example.rows,
            )


AT_THE_END = Exhibit(  # where answers saturate
    "mechanisms", DiscreteLaplace(1.0).with_source, 2**63 - 2, 2**63 - 1, (1,), rows=True
)
EXHIBITS = (*stated_exhibits(), AT_THE_END)
