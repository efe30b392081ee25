"""The progress of a run on standard error: steps, ε, time left; no training loss but a noisy one that was bought."""

import sys
import time
from collections.abc import Callable
from typing import TextIO


class Progress:
    """One line that is rewritten on a terminal, and a line for each tenth elsewhere."""

    def __init__(self, steps: int, wanted: bool, stream: TextIO | None = None) -> None:
        self.steps, self.wanted, self.stream = steps, wanted, stream or sys.stderr
        self.started = self.shown = time.monotonic()
        self.open, self.smooth = False, 0.0
        self.metered, self.so_far = 0, 0.0

    def update(
        self, number: int, epsilon: float, meter: Callable[[], float] | None = None, loss: float | None = None
    ) -> None:
        """Show a step, at most twice a second, and only if the run takes two seconds or more.

        `meter` computes ε of the steps so far; it is called for every twentieth of the run at most. Losses are shown as
        a running mean.
        """
        if loss is not None:
            self.smooth = loss if number == 1 else 0.95 * self.smooth + 0.05 * loss
        now = time.monotonic()
        if not self.wanted or now - self.started < 2 or now - self.shown < 0.5:
            return
        if not self.stream.isatty() and number % max(1, self.steps // 10):
            return
        self.shown = now
        left = (now - self.started) / number * (self.steps - number)
        start, end = ("\r", "") if self.stream.isatty() else ("", "\n")
        words = [f"step {number:,} of {self.steps:,}", f"ε = {self.spent(number, meter)}{epsilon:.3g} charged for all"]
        words += [f"noisy loss {self.smooth:.3g}"] if loss is not None else []
        print(" · ".join([start + words[0], *words[1:], f"{left:.0f} s left "]), end=end, file=self.stream, flush=True)
        self.open = end == ""

    def spent(self, number: int, meter: Callable[[], float] | None) -> str:
        """ε so far, as it was when last computed."""
        if meter is None:
            return ""
        if not self.metered or number - self.metered >= self.steps / 20:
            self.metered, self.so_far = number, meter()
        return f"{self.so_far:.3g} so far, "

    def interrupt(self, number: int) -> None:
        """Say that a run was stopped, and that its charge stays."""
        self.close()
        print(f"stopped after step {number:,} of {self.steps:,}; the charge for all stays", file=self.stream)

    def close(self) -> None:
        if self.open:
            print(file=self.stream, flush=True)
            self.open = False
