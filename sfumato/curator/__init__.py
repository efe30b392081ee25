"""The trusted curator: plan, price, charge, run, plan."""

from sfumato.curator.curator import Curator

__all__ = ["Curator"]
