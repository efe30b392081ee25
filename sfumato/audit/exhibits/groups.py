"""Mechanisms with group-size-dependent guarantees, on neighbours where the guarantee is tightest."""

from sfumato.audit.collection import Exhibit
from sfumato.mechanisms.groups import Asinh, Log, ProductOfGaussians, ProportionalGaussian, SquareRoot, Transformed

EXHIBITS = (
    Exhibit("groups", lambda source: Transformed(Asinh(2.0), 0.4, source=source), 0, 1, rows=True),
    Exhibit("groups", lambda source: Transformed(Log(), 0.8, source=source), 0, 1, rows=True),
    Exhibit("groups", lambda source: Transformed(SquareRoot(), 0.9, source=source), 0, 1, rows=True),
    Exhibit("groups", lambda source: ProductOfGaussians(0.5, 0.3, source=source), 4, 3),
    Exhibit("groups", lambda source: ProportionalGaussian(0.5, source=source), 4, 3),
)
