"""Alias of `sfumato.mechanisms.groups`, which had this name before version 0.2."""

from sfumato.mechanisms.groups import *  # noqa: F403
from sfumato.mechanisms.groups import __all__ as __all__
