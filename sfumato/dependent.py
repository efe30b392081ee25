"""Alias of `sfumato.mechanisms.dependent`, which had this name before version 0.2."""

from sfumato.mechanisms.dependent import *  # noqa: F403
from sfumato.mechanisms.dependent import __all__ as __all__
