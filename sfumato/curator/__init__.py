"""The trusted curator: plan, price, charge, release, keep, show."""

from sfumato.curator.curator import Curator

__all__ = ["Curator"]
