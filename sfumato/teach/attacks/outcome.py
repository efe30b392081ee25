"""What an attack reached through each interface, beside what the claimed privacy loss allows."""

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from scipy.special import bdtr

from sfumato.audit.certify import interval
from sfumato.audit.guesses import p_value
from sfumato.curator.answer import table
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.numeric import Floats, floats

WIDTH = 80
RARE = 0.05  # probability with which an interval misses the truth: half of it at each end
FOOT = """
reached: {measure}, as a share of so many guesses; its 95 % interval (Clopper & Pearson). The most that anybody reaches
under the claim: on average (mean), and in so many guesses (here), but for 2.5 %.
"""
MISS = 5e-7  # probability with which `certified` may be above the truth; as much is left for the bound


@dataclass(frozen=True)
class Reached:
    """The share of right guesses through one interface, with its interval, and the most that its claim allows: on
    average (`bound`), and in so many guesses (`most`).

    Guesses are independent tries, each through an interface of its own; or, if `at_once` is the claimed loss, they are
    all made from one transcript, about people whose secrets are independent coins.
    """

    interface: str
    share: float  # of 1
    tries: int
    claim: str = "nothing"
    bound: float = 1.0
    at_once: PrivacyLoss | None = None

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Where the chance of a right guess is, with confidence 95 %, if guesses are independent of each other. Half a
        right guess counts against us at either end.

        Theorem: exact binomial limits [Clopper & Pearson 1934]
        """
        right = self.share * self.tries
        down, up = math.floor(right + 1e-9), math.ceil(right - 1e-9)
        return interval(down, self.tries, RARE)[0], interval(up, self.tries, RARE)[1]

    @cached_property
    def most(self) -> float:
        """The largest share that anybody reaches in so many guesses, but for a probability of 2.5 %.

        Theorem: independent tries of chance at most p are right no more often than coins [Hoeffding 1956, Thm 5]
        Theorem: guesses from one transcript are right no more often than its trade-off function allows
            [Mahloujifar, Melis & Chaudhuri 2025, Thm 9; sfumato/audit/guesses.py]
        """
        if self.bound >= 1:
            return 1.0
        if self.at_once is None:
            enough = bdtr(np.arange(self.tries + 1), self.tries, self.bound) >= 1 - RARE / 2
            return float(np.argmax(enough)) / self.tries
        low, high = 0, self.tries  # p_value falls with the number of right guesses
        while low < high:
            middle = (low + high) // 2
            rare = p_value(middle + 1, self.tries, self.tries, self.at_once) <= RARE / 2
            low, high = (low, middle) if rare else (middle + 1, high)
        return low / self.tries

    @cached_property
    def certified(self) -> float:
        """The chance of success is at least this, but for a probability of one in two million.

        Theorem: n·KL(mean, p) ≥ log(1/β) has probability ≤ β for tries in [0, 1] of mean p [Hoeffding 1963, Thm 1]
        """
        low, high = 0.0, self.share if self.at_once is None else 0.0  # of one transcript nothing is certified so
        while high - low > 1e-9:
            p = (low + high) / 2
            low, high = (p, high) if self.tries * relative_entropy(self.share, p) > -math.log(MISS) else (low, p)
        return low

    @property
    def refuted(self) -> bool:
        """Is the claim certainly wrong?"""
        if self.at_once is not None:
            return p_value(round(self.share * self.tries), self.tries, self.tries, self.at_once) <= 2 * MISS
        return self.certified > self.bound

    @property
    def spread(self) -> float:
        """Two standard deviations, at most."""
        return 2 * math.sqrt(max(self.share * (1 - self.share), 0.25 / self.tries) / self.tries)


def relative_entropy(a: float, b: float) -> float:
    """KL of two coins."""
    if b in (0.0, 1.0):
        return math.inf if a != b else 0.0
    return sum(x * math.log(x / y) for x, y in ((a, b), (1 - a, 1 - b)) if x > 0)


@dataclass(frozen=True)
class Line:
    """One line of a chart: what was reached, or what is allowed."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    role: str  # "open", "private", "bound" or "price": how it is drawn
    spread: tuple[float, ...] = ()  # two standard deviations


def measured(label: str, x: Sequence[float], found: Sequence[Reached], role: str) -> Line:
    """What was reached, as a line."""
    return Line(label, tuple(x), tuple(one.share for one in found), role, tuple(one.spread for one in found))


@dataclass(frozen=True)
class Chart:
    """What an attack looks like as a picture: lines over numbers, or over `ticks` that have names."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    scales: tuple[str, str] = ("log", "linear")
    low: float = 0.4  # where the vertical axis begins
    ticks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Demonstration:
    """An attack, told to the person who wonders whether it works."""

    name: str
    title: str
    story: str
    measure: str  # what the shares are shares of
    blind: float  # what guessing reaches
    rows: tuple[Reached, ...]
    lesson: str

    def __str__(self) -> str:
        head = [self.title, "─" * len(self.title), *paragraphs(self.story), ""]
        columns = ["asked of", "of", "reached", "interval", "claims (ε, δ)", "mean ≤", "here ≤"]
        rows = [
            [row.interface, f"{row.tries:,}", f"{row.share:.3f}", "–".join(f"{end:.2f}" for end in row.interval),
             row.claim, f"{row.bound:.3f}", f"{row.most:.3f}" + (" ✗" if row.refuted else "")]
            for row in self.rows
        ]  # fmt: skip
        body = table(columns, rows, [False, True, True, False, False, True, False])
        foot = [FOOT.format(measure=self.measure)]
        if any(row.at_once is not None for row in self.rows):
            foot.append("All guesses are made from the same answers, so the interval is only a guide; the bounds hold.")
        if any(row.refuted for row in self.rows):
            foot.append("✗ more than the claim allows: it is refuted (wrongly with probability < 1e-6)")
        foot = [line for one in foot for line in paragraphs(one)]
        return "\n".join([*head, body, *foot, f"Blind guessing reaches {self.blind:g}.", "", *paragraphs(self.lesson)])

    def to_json(self) -> str:
        """All of it, ready to be stored."""
        more = ("interval", "most", "certified", "refuted")
        rows = [{**plain(row), **{key: getattr(row, key) for key in more}} for row in self.rows]
        data = {**vars(self), "rows": rows}
        return json.dumps(data, ensure_ascii=False, allow_nan=False)


def plain(row: Reached) -> dict[str, object]:
    return {key: getattr(row, key) for key in ("interface", "share", "tries", "claim", "bound")}


def paragraphs(text: str) -> list[str]:
    """Wrapped as one; lines that begin with a blank stay as they are."""
    found: list[str] = []
    for indented, block in groupby(text.strip("\n").split("\n"), lambda line: line.startswith(" ")):
        lines = list(block)
        found += lines if indented else textwrap.wrap(" ".join(lines), WIDTH)
    return found


def best_guess(loss: PrivacyLoss) -> float:
    """How often the best attacker is right about one person, with even odds beforehand.

    Theorem: with even odds beforehand the best guess is right with chance ½ + ½·TV [Lehmann & Romano 2005, Thm 13.1.1]
    """
    return min(1.0, (1 + loss.delta(0.0).upper) / 2)


def most_found(loss: PrivacyLoss, alarms: Floats) -> Floats:
    """How many of those who took part any attacker finds at most, at these rates of false alarms."""
    return floats(1 - loss.trade_off(alarms).lower)
