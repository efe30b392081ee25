"""Why bother: attacks on interfaces that look harmless, and on a curator, each beside what the claimed loss allows.

One file for each attack. `demonstrate(epsilon, seed)` runs it and tells what it reached; `chart(epsilon, seed)` is for
a picture. The data are made up from the seed; noise never is, so that rows which tell of it differ from run to run.
"""

from sfumato.teach.attacks import averaging, differencing, linkage, membership, reconstruction, refusals
from sfumato.teach.attacks.outcome import Chart, Demonstration, Line, Reached

__all__ = [
    "Chart", "Demonstration", "Line", "Reached", "averaging", "differencing", "linkage", "membership", "reconstruction",
    "refusals",
]  # fmt: skip
