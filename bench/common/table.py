"""What was measured, what is made of it, and the table that shows it."""

import math
from dataclasses import asdict, dataclass
from statistics import median


@dataclass(frozen=True)
class Times:
    """Milliseconds of one side: the least and the median of all repetitions."""

    least: float
    median: float
    repetitions: int

    @classmethod
    def of(cls, spent: list[float], per: float) -> "Times":
        return cls(min(spent) / per, median(spent) / per, len(spent))


@dataclass(frozen=True)
class Result:
    """One row, measured. Answers are lists of values that are bad when large; ours have two sides."""

    item: str
    work: str
    peer: str | None
    ratio_bar: float | None = None
    gap_bar: float | None = None
    ms_bar: float | None = None
    never_above_peer: bool = False
    peer_times: Times | None = None
    our_times: Times | None = None
    peer_upper: tuple[float, ...] = ()
    our_lower: tuple[float, ...] = ()
    our_upper: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()  # what kept a side from answering
    crashed: bool = False  # we raised an error

    @property
    def ratio(self) -> float | None:
        """How many times as long the peer takes."""
        return self.peer_times.least / self.our_times.least if self.peer_times and self.our_times else None

    @property
    def gap(self) -> float | None:
        """Our widest relative gap."""
        return widest(self.our_lower, self.our_upper)

    @property
    def excess(self) -> float | None:
        """How far the peer is above our lower side where it is farthest; below zero, it is below the truth there."""
        both = [above(low, high) for low, high in zip(self.our_lower, self.peer_upper, strict=False)]
        return min(both) if both and min(both) < 0 else max(both, default=None)

    @property
    def missed(self) -> list[str]:
        """The bars that were not met, and what kept them from being tried."""
        found = list(self.notes)
        if self.our_times is None:
            return found or ["no answer"]
        if self.ratio_bar is not None and self.ratio is not None and self.ratio < self.ratio_bar:
            found.append("too slow")
        if self.ms_bar is not None and self.our_times.least > self.ms_bar:
            found.append(f"over {self.ms_bar:g} ms")
        if self.gap_bar is not None and (self.gap is None or self.gap > self.gap_bar):
            found.append("too wide")
        if self.never_above_peer and any(a > b for a, b in zip(self.our_upper, self.peer_upper, strict=False)):
            found.append("above the peer")
        return found

    @property
    def verdict(self) -> str:
        """The bars that were missed, and whether the peer promises too much."""
        below = self.excess is not None and self.excess < 0
        return (", ".join(self.missed) or "ok") + ("; the peer is below the truth" if below else "")

    def plain(self) -> dict[str, object]:
        """For JSON; curves are told by what is made of them."""
        made = {"ratio": self.ratio, "gap": self.gap, "excess": self.excess, "missed": self.missed}
        kept = {k: v for k, v in asdict(self).items() if not (isinstance(v, tuple) and len(v) > 10)}
        return {key: told(value) for key, value in (kept | made).items()}


def told(value: object) -> object:
    """JSON has no infinity: it is written as a word."""
    if isinstance(value, tuple | list):
        return [told(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def above(low: float, high: float) -> float:
    """(high − low) / |low|; infinite where that has no meaning."""
    if low == high:
        return 0.0
    return (high - low) / abs(low) if low and math.isfinite(low) else math.inf


def widest(low: tuple[float, ...], high: tuple[float, ...]) -> float | None:
    return max((above(a, b) for a, b in zip(low, high, strict=True)), default=None)


HEAD = ("", "work", "peer", "peer ms", "median", "our ms", "median", "ratio", "bar", "our gap", "bar", "excess", "")


def cells(result: Result) -> tuple[str, ...]:
    peer, ours = result.peer_times, result.our_times
    return (
        result.item,
        result.work,
        result.peer or "–",
        number(peer and peer.least),
        number(peer and peer.median),
        number(ours and ours.least),
        number(ours and ours.median),
        number(result.ratio, "×"),
        number(result.ratio_bar, "×") if result.ms_bar is None else f"{result.ms_bar:g} ms",
        small(result.gap),
        small(result.gap_bar),
        small(result.excess, "+"),
        result.verdict,
    )


def number(value: float | None, unit: str = "") -> str:
    """Three digits, without exponents."""
    if value is None:
        return "–"
    return (f"{value:,.0f}" if value >= 100 else f"{value:.3g}") + unit


def small(value: float | None, sign: str = "") -> str:
    return "–" if value is None else "∞" if math.isinf(value) else "0" if value == 0 else f"{value:{sign}.1e}"


def render(results: list[Result]) -> str:
    """The table; numbers to the right. Columns that nobody uses are left out."""
    found = list(map(cells, results))
    used = [i for i in range(len(HEAD)) if not HEAD[i] or any(row[i] != "–" for row in found)]
    rows = [tuple(row[i] for i in used) for row in (HEAD, *found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = {place for place, i in enumerate(used) if i in (0, 1, 2, len(HEAD) - 1)}
    lines = [
        "  ".join(c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]
    met = sum(not result.missed for result in results)
    return "\n".join(line.rstrip() for line in lines) + f"\n\n{met} of {len(results)} rows meet their bars"
