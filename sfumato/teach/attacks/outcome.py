"""The success rates of an attack on each interface, with the largest rates that the claimed loss allows."""

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from scipy.special import bdtr

from sfumato.audit.canaries import p_value_of_loss
from sfumato.audit.certify import clopper_pearson
from sfumato.curator.answer import format_table
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.numeric import Floats, floats

WIDTH = 80
RARE = 0.05  # the probability that an interval misses the truth, half of it at each end
FOOT = """
reached: {measure}, as a share of the guesses, with its 95 % interval (Clopper & Pearson). The most that any attacker
can reach under the claim: on average (mean ≤), and in so many guesses with probability 97.5 % (here ≤).
"""
MISS = 5e-7  # the probability that `certified` is above the truth; as much is left for the bound


@dataclass(frozen=True)
class AttackResult:
    """The share of right guesses through one interface, and the most that its claim allows.

    `bound` is the most on average, `most` the most in so many guesses. Guesses are independent tries, each through a
    new instance of the interface. If `at_once` is the claimed loss, all guesses are made from one transcript, about
    people whose secrets are independent coins.
    """

    interface: str
    share: float  # of 1
    tries: int
    claim: str = "nothing"
    bound: float = 1.0
    at_once: PrivacyLoss | None = None

    @cached_property
    def interval(self) -> tuple[float, float]:
        """A 95 % confidence interval of the chance of a right guess, if guesses are independent.

        Half a right guess (a tie) is rounded outwards at either end.

        Theorem: exact binomial limits [Clopper & Pearson 1934]
        """
        right = self.share * self.tries
        down, up = math.floor(right + 1e-9), math.ceil(right - 1e-9)
        return clopper_pearson(down, self.tries, RARE)[0], clopper_pearson(up, self.tries, RARE)[1]

    @cached_property
    def most(self) -> float:
        """The largest share that any attacker reaches in so many guesses, except with probability 2.5 %.

        Theorem: independent tries of chance at most p are right no more often than coins [Hoeffding 1956, Thm 5]
        Theorem: guesses from one transcript are right no more often than its trade-off function allows
            [Mahloujifar, Melis & Chaudhuri 2025, Thm 9; sfumato/audit/canaries.py]
        """
        if self.bound >= 1:
            return 1.0
        if self.at_once is None:
            enough = bdtr(np.arange(self.tries + 1), self.tries, self.bound) >= 1 - RARE / 2
            return float(np.argmax(enough)) / self.tries
        low, high = 0, self.tries  # p_value_of_loss falls with the number of right guesses
        while low < high:
            middle = (low + high) // 2
            rare = p_value_of_loss(middle + 1, self.tries, self.tries, self.at_once) <= RARE / 2
            low, high = (low, middle) if rare else (middle + 1, high)
        return low / self.tries

    @cached_property
    def certified(self) -> float:
        """A lower bound on the chance of success, except with probability one in two million.

        Theorem: n·KL(mean, p) ≥ log(1/β) has probability ≤ β for tries in [0, 1] of mean p [Hoeffding 1963, Thm 1]
        """
        low, high = 0.0, self.share if self.at_once is None else 0.0  # of one transcript nothing is certified so
        while high - low > 1e-9:
            p = (low + high) / 2
            low, high = (p, high) if self.tries * relative_entropy(self.share, p) > -math.log(MISS) else (low, p)
        return low

    @property
    def refuted(self) -> bool:
        """Is the claim refuted?"""
        if self.at_once is not None:
            return p_value_of_loss(round(self.share * self.tries), self.tries, self.tries, self.at_once) <= 2 * MISS
        return self.certified > self.bound

    @property
    def spread(self) -> float:
        """Two standard deviations, at most."""
        return 2 * math.sqrt(max(self.share * (1 - self.share), 0.25 / self.tries) / self.tries)


def relative_entropy(a: float, b: float) -> float:
    """The Kullback–Leibler divergence of two coins."""
    if b in (0.0, 1.0):
        return math.inf if a != b else 0.0
    return sum(x * math.log(x / y) for x, y in ((a, b), (1 - a, 1 - b)) if x > 0)


@dataclass(frozen=True)
class Line:
    """One line of a chart: success rates, or a bound."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    role: str  # "open", "private", "bound" or "price": how it is drawn
    spread: tuple[float, ...] = ()  # two standard deviations


def measured_line(label: str, x: Sequence[float], found: Sequence[AttackResult], role: str) -> Line:
    """Measured success rates as a line."""
    return Line(
        label, tuple(x), tuple(result.share for result in found), role, tuple(result.spread for result in found)
    )


@dataclass(frozen=True)
class Chart:
    """The data of a figure of an attack: lines over numbers, or over named `ticks`."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    scales: tuple[str, str] = ("log", "linear")
    low: float = 0.4  # where the vertical axis begins
    ticks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Demonstration:
    """An attack with its explanation and its success rates."""

    name: str
    title: str
    story: str
    measure: str  # the quantity that the shares measure
    blind: float  # the share that blind guessing reaches
    rows: tuple[AttackResult, ...]
    lesson: str

    def __str__(self) -> str:
        head = [self.title, "─" * len(self.title), *paragraphs(self.story), ""]
        columns = ["asked of", "of", "reached", "interval", "claims (ε, δ)", "mean ≤", "here ≤"]
        rows = [
            [row.interface, f"{row.tries:,}", f"{row.share:.3f}", "–".join(f"{end:.2f}" for end in row.interval),
             row.claim, f"{row.bound:.3f}", f"{row.most:.3f}" + (" ✗" if row.refuted else "")]
            for row in self.rows
        ]  # fmt: skip
        body = format_table(columns, rows, [False, True, True, False, False, True, False])
        foot = [FOOT.format(measure=self.measure)]
        if any(row.at_once is not None for row in self.rows):
            foot.append("All guesses use the same answers, so the interval is only a guide; the bounds hold.")
        if any(row.refuted for row in self.rows):
            foot.append("✗ more than the claim allows: the claim is refuted (false alarm probability < 1e-6)")
        foot = [line for one in foot for line in paragraphs(one)]
        return "\n".join([*head, body, *foot, f"Blind guessing reaches {self.blind:g}.", "", *paragraphs(self.lesson)])

    def to_json(self) -> str:
        """The demonstration as JSON."""
        more = ("interval", "most", "certified", "refuted")
        rows = [{**result_fields(row), **{key: getattr(row, key) for key in more}} for row in self.rows]
        data = {**vars(self), "rows": rows}
        return json.dumps(data, ensure_ascii=False, allow_nan=False)


def result_fields(row: AttackResult) -> dict[str, object]:
    return {key: getattr(row, key) for key in ("interface", "share", "tries", "claim", "bound")}


def paragraphs(text: str) -> list[str]:
    """The text wrapped to the width; lines that begin with a blank are kept."""
    wrapped: list[str] = []
    for indented, block in groupby(text.strip("\n").split("\n"), lambda line: line.startswith(" ")):
        lines = list(block)
        wrapped += lines if indented else textwrap.wrap(" ".join(lines), WIDTH)
    return wrapped


def best_guess(loss: PrivacyLoss) -> float:
    """The accuracy of the best attacker about one person, with even prior odds.

    Theorem: with even odds beforehand the best guess is right with chance ½ + ½·TV [Lehmann & Romano 2005, Thm 13.1.1]
    """
    return min(1.0, (1 + loss.delta(0.0).upper) / 2)


def most_found(loss: PrivacyLoss, alarms: Floats) -> Floats:
    """The largest share of members that any attacker finds at these rates of false alarms."""
    return floats(1 - loss.trade_off(alarms).lower)
