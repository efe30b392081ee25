"""The trusted curator: plan, price, charge, run, release."""

from sfumato.curator.curator import Curator

__all__ = ["Curator"]
