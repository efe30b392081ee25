"""Parts of losses that are no losses themselves, such as the noise whose loss it is, as plain data."""

import dataclasses
from typing import ClassVar


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
