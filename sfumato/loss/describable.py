"""Parts of losses that are no losses themselves, such as the noise whose loss it is, as plain data."""

import dataclasses
from importlib import import_module
from typing import ClassVar

# Losses and parts that are defined outside `sfumato.loss`: name → module, imported when a description names them. So
# reading a ledger depends on the text alone, not on what was imported before. tests/loss/test_shipped.py: complete.
ELSEWHERE = {
    "SmoothLoss": "sfumato.mechanisms.dependent.smooth_loss",
    "ArsinhNormalNoise": "sfumato.mechanisms.dependent.log_normal",
    "CauchyNoise": "sfumato.mechanisms.dependent.student_cauchy",
    "GaussianNoise": "sfumato.mechanisms.dependent.laplace_gaussian",
    "LaplaceLogNormalNoise": "sfumato.mechanisms.dependent.log_normal",
    "LaplaceNoise": "sfumato.mechanisms.dependent.laplace_gaussian",
    "StudentNoise": "sfumato.mechanisms.dependent.student_cauchy",
    "UniformLogNormalNoise": "sfumato.mechanisms.dependent.log_normal",
}


def load(name: object) -> str | None:
    """Import the module that defines the loss or part of this name; returns the name, if it is one."""
    if not isinstance(name, str):
        return None
    if name in ELSEWHERE:
        import_module(ELSEWHERE[name])
    return name


@dataclasses.dataclass(frozen=True)
class Part:
    """A frozen dataclass of numbers that a description may hold; found by the name of its class."""

    known: ClassVar[dict[str, type["Part"]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Part.known[cls.__name__] = cls

    @property
    def description(self) -> dict[str, object]:
        """Class name and parameters."""
        return {"part": type(self).__name__, **{f.name: getattr(self, f.name) for f in dataclasses.fields(self)}}
