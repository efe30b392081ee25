"""The progress of a run on standard error: steps, ε, time left. Never a training loss."""

import sys
import time
from typing import TextIO


class Progress:
    """One line that is rewritten on a terminal, and a line for each tenth elsewhere."""

    def __init__(self, steps: int, wanted: bool, stream: TextIO | None = None) -> None:
        self.steps, self.wanted, self.stream = steps, wanted, stream or sys.stderr
        self.started = self.shown = time.monotonic()
        self.open = False

    def update(self, number: int, epsilon: float) -> None:
        """Show a step, at most twice a second, and only if the run takes two seconds or more."""
        now = time.monotonic()
        if not self.wanted or now - self.started < 2 or now - self.shown < 0.5:
            return
        if not self.stream.isatty() and number % max(1, self.steps // 10):
            return
        self.shown = now
        left = (now - self.started) / number * (self.steps - number)
        start, end = ("\r", "") if self.stream.isatty() else ("", "\n")
        print(
            f"{start}step {number:,} of {self.steps:,} · ε = {epsilon:.3g} charged for all · {left:.0f} s left ",
            end=end, file=self.stream, flush=True,
        )  # fmt: skip
        self.open = end == ""

    def interrupt(self, number: int) -> None:
        """Say that a run was stopped, and that its charge stays."""
        self.close()
        print(f"stopped after step {number:,} of {self.steps:,}; the charge for all stays", file=self.stream)

    def close(self) -> None:
        if self.open:
            print(file=self.stream, flush=True)
            self.open = False
