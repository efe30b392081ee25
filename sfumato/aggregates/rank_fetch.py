"""Values around a rank where each row is a person: in a few short statements, half as long again as a median takes.

The order of values is that of their steps. So an engine that selects values by rank faster than it counts them all is
asked how many there are and which lie beyond the ranks that count, and then for what is between. It sees numbers
that are private, as it always does; nobody else does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from sfumato.sql.emit.request import Row, Run
from sfumato.sql.emit.values import RankWindow, Selection

FEW = 20_000  # values: as many are counted in no time
SPARE = 3  # ranks, for engines that round them up or down
WIDE = 0.001  # of all values to either side: mostly more than what counts, and as quick


@dataclass(frozen=True)
class RankFetch:
    """The rows of `direct` for one window of a whole table. At the ends a step may be listed with some of those that
    have it: they lie where scores are capped, or count as if they did."""

    window: RankWindow
    direct: str
    texts: Selection

    def __call__(self, run: Run) -> list[Row]:
        part = float(self.window.part)
        ends = max(part - WIDE, 0.0), min(part + WIDE, 1.0)
        n, low, high = run(self.texts.selected(ends))[0]
        first, last = self.ranks(as_int(n))
        if as_int(n) < FEW:
            return run(self.direct)
        if first < ends[0] * as_int(n) + SPARE * (ends[0] > 0) or last > ends[1] * as_int(n) - SPARE * (ends[1] < 1):
            _, low, high = run(self.texts.selected((first / as_int(n), last / as_int(n))))[0]
        rows = run(self.texts.between(as_number(low), as_number(high)))
        return self.rank_table(as_int(n), rows) or run(self.direct)

    def ranks(self, n: int) -> tuple[int, int]:
        """Ranks at and beyond which scores are capped, or the first and the last."""
        a, b = self.window.part.numerator, self.window.part.denominator
        first, last = (
            (a * n + self.window.shift - self.window.cap) // b - SPARE,
            -(-(a * n + self.window.shift + self.window.cap) // b) + SPARE,
        )
        return min(max(first, 0), n), max(min(last, n), 0)

    def rank_table(self, n: int, rows: Sequence[Row]) -> list[Row]:
        """keys, how many values there are, and in order: steps, how many have each, how many have it or less; none if
        what was found does not reach far enough."""
        first, last = self.ranks(n)
        upto = as_int(rows[0][0]) if rows else 0
        steps, counts = [as_int(row[1]) for row in rows], [as_int(row[2]) for row in rows]
        before = upto - sum(counts)
        if before > first + SPARE or upto < last - SPARE:
            return []
        return [(n, steps, counts, list(accumulate(counts, initial=before))[1:])]


def as_int(value: object) -> int:
    assert isinstance(value, int)
    return value


def as_number(value: object) -> float | int:
    assert isinstance(value, float | int)
    return value
