"""Alias of `sfumato.teach.figures`, which had this name before version 0.2."""

from sfumato.teach.figures import *  # noqa: F403
from sfumato.teach.figures import __all__ as __all__
