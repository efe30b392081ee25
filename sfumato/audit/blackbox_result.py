"""The result of a black-box audit, as text, HTML and JSON."""

import json
import math
import textwrap
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from html import escape

from sfumato.loss.bound import Bound

WIDTH = 80


@dataclass(frozen=True)
class Audit:
    """A certified lower bound on ε at δ, and the event that certifies it.

    With probability at least `confidence` the true ε at `delta` is at least `epsilon`. If that is more than `claimed`,
    the claim is refuted. If not, no violation was found, which does not prove privacy.
    """

    epsilon: Bound
    delta: float
    claimed: float
    confidence: float
    samples: int
    event: str
    likelier: str  # the data set on which the event is more frequent: "d0" or "d1"
    seen: tuple[int, int]  # how often it occurred on d0 and on d1 ...
    held_out: int  # ... in so many runs on each, none of which was used to choose it
    remarks: tuple[str, ...] = ()  # what the reader should know about the runs or the claim

    @property
    def violated(self) -> bool:
        """Is the claim refuted?"""
        return self.epsilon.lower > self.claimed

    @property
    def margin(self) -> float:
        """The certified ε minus the claimed one."""
        return self.epsilon.lower - self.claimed

    @property
    def verdict(self) -> str:
        """The result in one line."""
        claim = f"ε = {self.claimed:.6g}" + (f", δ = {self.delta:.3g}" if self.delta else "")
        return f"VIOLATED: the claim {claim} is refuted" if self.violated else f"no violation of {claim} found"

    def rows(self) -> dict[str, str]:
        """The result as labels and texts."""
        at = f" at δ = {self.delta:.3g}" if self.delta else ""
        return {
            "certified": f"ε ≥ {format_down(self.epsilon.lower)}{at}, with confidence {self.confidence:.10g}",
            "event": self.event,
            "seen": f"{self.seen[0]:,} times on d0, {self.seen[1]:,} times on d1, in {self.held_out:,} runs on each",
            "samples": f"{self.samples:,} runs on each data set; those not held out chose the event",
            **({"note": " ".join(self.remarks)} if self.remarks else {}),
        }

    def __str__(self) -> str:
        lines = [self.verdict]
        for label, words in self.rows().items():
            lines += textwrap.wrap(words, WIDTH, initial_indent=f"  {label:<11}", subsequent_indent=" " * 13)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cell = "padding:1px 14px 1px 0;text-align:left;border:0;background:none"
        rows = "".join(
            f'<tr style="background:none"><td style="{cell}">{label}</td><td style="{cell}">{escape(words)}</td></tr>'
            for label, words in self.rows().items()
        )
        return (
            f'<div style="font-family:sans-serif;font-size:13px;max-width:640px"><b>{escape(self.verdict)}</b>'
            f'<table style="border-collapse:collapse;margin:4px 0;color:inherit">{rows}</table></div>'
        )

    def to_json(self) -> str:
        """The result as JSON."""
        data = {
            "epsilon": self.epsilon.lower,
            "delta": self.delta,
            "claimed": self.claimed,
            "violated": self.violated,
            "confidence": self.confidence,
            "samples": self.samples,
            "event": self.event,
            "likelier": self.likelier,
            "seen": list(self.seen),
            "held_out": self.held_out,
            "remarks": list(self.remarks),
        }
        return json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def format_down(value: float) -> str:
    """Four decimals, rounded down: a certified lower bound is never shown larger than it is."""
    if not math.isfinite(value):
        return f"{value}"
    return f"{Decimal(value).quantize(Decimal('0.0001'), ROUND_FLOOR):f}".rstrip("0").rstrip(".")
