"""Sampling schemes, each with noise on the sum of a batch, on the neighbours that its class states in `examples`."""

from dataclasses import dataclass, field
from functools import cached_property

from sfumato.audit.collection import Exhibit
from sfumato.loss.base import PrivacyLoss
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.noise import Sampler
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.sampling.base import SampledRows, Sampling, shipped_samplings
from sfumato.sensitivity import Sensitivity


@dataclass(frozen=True)
class SampledSum:
    """The sum of a sampled batch with discrete Laplace noise: the loss of the noise, amplified.

    The noise is drawn from its law, not released: a replay would see it move by more than sampling lets anybody see.
    """

    sampling: Sampling
    scale: float
    sensitivity: Sensitivity
    source: Source = field(default=SYSTEM, repr=False, compare=False)

    @cached_property
    def sampler(self) -> Sampler:
        return Sampler(DiscreteLaplace(self.scale).law(), source=self.source)

    def release(self, data: SampledRows) -> int:
        batch = next(self.sampling.batches(*data.arguments, source=self.source))
        total: int = sum(data.values[int(row)] for row in batch)
        return total + self.sampler.one()

    def loss(self) -> PrivacyLoss:
        return self.sampling.amplify(DiscreteLaplace(self.scale).loss(self.sensitivity))


EXHIBITS = tuple(
    Exhibit(
        "sampling",
        lambda source, example=example: SampledSum(example.sampling, 1.0, example.sensitivity, source),  # type: ignore[misc]
        example.first,
        example.second,
    )
    for kind in shipped_samplings()
    for example in kind.examples()
)
