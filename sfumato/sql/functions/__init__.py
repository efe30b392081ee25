"""The functions that questions may use: total, of one row, never raising in an engine.

A new function is one entry in the `FUNCTIONS` of a file in this package: the kinds of its arguments, the domain of its
result, its spelling, its SQL on each engine, its cost, and its value for released values. Files are found by
themselves; the parser, the dialects, `make bench-cost`, `make fuzz` and the tests of documents read the entries.
"""

from importlib import import_module
from pkgutil import iter_modules

from sfumato.sql.functions.function import Function

FUNCTIONS: dict[str, Function] = {}
for _module in iter_modules(__path__, f"{__name__}."):
    FUNCTIONS |= getattr(import_module(_module.name), "FUNCTIONS", {})
