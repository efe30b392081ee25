"""Every error sfumato raises, in one tree.

SfumatoError
├── InvalidParameter      a number or object outside its allowed range        (also a ValueError)
├── MixedRelations        two losses about different neighbours were combined (also a TypeError)
├── UnknownDescription    a text that describes no loss of this version       (also a ValueError)
└── OutOfReach            no parameter meets the target asked for             (also a ValueError)

A message says what was asked, what was found and what to do. It never holds a value from private data.
"""


class SfumatoError(Exception):
    """The root: catch this to catch everything sfumato raises on purpose."""


class InvalidParameter(SfumatoError, ValueError):
    """A parameter is of the wrong type or out of its range."""


class MixedRelations(SfumatoError, TypeError):
    """Two losses that speak of different neighbouring data sets were combined."""


class UnknownDescription(SfumatoError, ValueError):
    """A JSON text does not describe a loss that this version knows."""


class OutOfReach(SfumatoError, ValueError):
    """A target that no allowed parameter can meet."""
