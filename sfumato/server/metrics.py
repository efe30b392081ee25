"""Counters that anybody may see: how many calls there were, by door, act and outcome. Nothing depends on data.

No times are counted, since an engine's time depends on data; and a question that failed after its charge counts as
answered, since the failure may.
"""

import threading
from collections import Counter
from dataclasses import dataclass, field

from sfumato.errors import (
    AccessRefused,
    BudgetExceeded,
    EngineUnavailable,
    InvalidParameter,
    KeyReused,
    LedgerUnavailable,
    PolicyError,
    QueryRefused,
)

# What these say follows from texts, policies and ledgers. Whether another error occurs may depend on data.
PUBLIC = (AccessRefused, BudgetExceeded, EngineUnavailable, InvalidParameter, KeyReused, LedgerUnavailable,
          PolicyError, QueryRefused)  # fmt: skip


@dataclass(eq=False)
class Metrics:
    """Calls by door, act and outcome."""

    calls: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count(self, door: str, act: str, problem: BaseException | None) -> None:
        with self._lock:
            self.calls[door, act, "refused" if isinstance(problem, PUBLIC) else "done"] += 1

    def text(self) -> str:
        """In the text format of Prometheus."""
        with self._lock:
            listed = sorted(self.calls.items())
        lines = ["# HELP sfumato_calls_total Calls by door, act and outcome.", "# TYPE sfumato_calls_total counter"]
        lines += [
            f'sfumato_calls_total{{door="{door}",act="{act}",outcome="{outcome}"}} {n}'
            for (door, act, outcome), n in listed
        ]
        return "\n".join([*lines, ""])
