"""Frequency oracles: reports that support sets of values, counted by the server.

If every report supports the sender's own value with probability p and any other value with probability q, then
f̂_v = (C_v/n − q)/(p − q) is unbiased for the share f_v of people who hold v, where C_v reports support v.
"""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter
from sfumato.local.odds import Odds
from sfumato.local.randomizer import CHUNK, Randomizer, Reports, read_values
from sfumato.loss.numeric import Floats

Counts = NDArray[np.int64]
MOST_VALUES = 10**9
MOST_COUNTED = 10**7


@dataclass(frozen=True)
class FrequencyOracle(Randomizer):
    """k values, integer odds, and what p, q and the supported sets are.

    Theorem: (C_v/n − q)/(p − q) is unbiased, with the same total variance for every population
        [Wang, Blocki, Li & Jha 2017; docs/theorems/local.md, Theorem 2]
    """

    k: int
    odds: Odds

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """P[the report supports the sender's value]."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """P[the report supports another given value]."""

    @property
    @abstractmethod
    def hit(self) -> int:
        """How many values one report can support at most: what one hostile report moves at once."""

    @property
    def description(self) -> dict[str, object]:
        return {"scheme": self.scheme, "k": self.k, "truth": self.odds.truth, "lie": self.odds.lie}

    # ---- the client -------------------------------------------------------------------------------------------------

    def randomize(self, values: ArrayLike) -> Reports | int:
        """The report of a value, or of each value of an array: fresh draws for each."""
        found = read_values(values, self.k)
        if not found.ndim:
            return self.answer(int(found), self.below)
        flat = found.reshape(-1)
        parts = [self.answers(flat[at : at + CHUNK]) for at in range(0, flat.size, CHUNK)] or [self.answers(flat)]
        whole: Reports = np.concatenate(parts)
        return whole.reshape(*found.shape, *whole.shape[1:])

    @abstractmethod
    def answers(self, values: NDArray[np.int64]) -> Reports:
        """Reports of many values of the domain."""

    # ---- the server -------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def report_bound(self) -> int:
        """Reports are integers in [0, report_bound)."""

    def is_report(self, report: object) -> bool:
        """Could a client have sent this? Every such report is a legal one, whoever sent it."""
        return type(report) is int and 0 <= report < self.report_bound

    def read_reports(self, reports: ArrayLike) -> Reports:
        """Reports as `randomize` returns them, refused if a client cannot have sent one."""
        found = np.asarray(reports)
        if found.ndim != 1 or found.dtype.kind not in "iub":
            raise not_reports(self, f"an array of {found.ndim} dimensions and type {found.dtype}")
        if found.size and (found.min() < 0 or found.max() >= self.report_bound):
            raise not_reports(self, "a number outside")
        return found

    @abstractmethod
    def support(self, reports: Reports) -> Counts:
        """C_v: how many of these (legal) reports support each value."""

    # ---- variance ---------------------------------------------------------------------------------------------------

    def variance(self, share: ArrayLike = 0.0) -> Floats:
        """n·Var f̂_v among n fixed people of whom this share holds v: [f·p(1−p) + (1−f)·q(1−q)]/(p−q)²."""
        p, q = float(self.p), float(self.q)
        f = np.asarray(share, np.float64)
        return np.asarray((f * p * (1 - p) + (1 - f) * q * (1 - q)) / float(self.gap) ** 2)

    @property
    def gap(self) -> Fraction:
        """p − q; refused if reports carry no information."""
        require_information(self.odds)
        return self.p - self.q

    @property
    def total_variance(self) -> float:
        """n·Σ_v Var f̂_v = [p(1−p) + (k−1)q(1−q)]/(p−q)²: the same for every population."""
        p, q = self.p, self.q
        return float((p * (1 - p) + (self.k - 1) * q * (1 - q)) / self.gap**2)

    @property
    def worst_variance(self) -> float:
        """n·Var f̂_v of one value, for the worst population."""
        return float(max(self.p * (1 - self.p), self.q * (1 - self.q)) / self.gap**2)

    @property
    def joint(self) -> tuple[Fraction, Fraction] | None:
        """P[u and v supported | x = u] and P[u and v supported | x is a third value]; None if they depend on which."""
        return None

    def covariance(self, shares: ArrayLike) -> Floats:
        """n·Cov(f̂_u, f̂_v) among fixed people with these shares: a k × k matrix.

        [(f_u + f_v)(J₁ − pq) + (1 − f_u − f_v)(J₂ − q²)]/(p − q)² off the diagonal.
        """
        f = np.asarray(shares, np.float64)
        if f.shape != (self.k,):
            raise InvalidParameter(f"give the {self.k} shares of all values.\n  found:  {f.shape} numbers")
        found = self.off_diagonal(f)
        np.fill_diagonal(found, self.variance(f))
        return found

    def off_diagonal(self, f: Floats) -> Floats:
        """n·Cov of different values; the diagonal is not used."""
        joint = self.joint
        if joint is None:
            raise InvalidParameter(
                f"{type(self).__name__} has no closed form for covariances of different values.\n"
                "  do:     use the variances"
            )
        p, q, gap = self.p, self.q, self.gap
        own, other = float((joint[0] - p * q) / gap**2), float((joint[1] - q * q) / gap**2)
        both = f[:, None] + f[None, :]
        return np.asarray(both * own + (1 - both) * other)

    # ---- hostile reports --------------------------------------------------------------------------------------------

    @property
    def gain(self) -> float:
        """By how much one hostile report can move n·f̂_v at most: max(1 − q, q)/(p − q)."""
        return float(max(1 - self.q, self.q) / self.gap)


def require_information(odds: Odds) -> None:
    """Refuses odds with which reports do not depend on the value."""
    if odds.truth == odds.lie:
        raise InvalidParameter(
            "reports with ε = 0 tell nothing, so nothing can be estimated from them.\n"
            "  found:  equal odds for all values\n  do:     ask with ε > 0"
        )


def not_reports(oracle: FrequencyOracle, found: str) -> InvalidParameter:
    """The refusal of numbers that no client sends."""
    return InvalidParameter(
        f"reports of {type(oracle).__name__} are whole numbers from 0 to {oracle.report_bound - 1:,}.\n"
        f"  found:  {found}\n  do:     give what `randomize` returned, and count what is malformed apart"
    )


def count_integers(reports: Reports, bound: int) -> Counts:
    """How often each integer below the bound occurs."""
    return np.bincount(reports.astype(np.int64, copy=False), minlength=bound).astype(np.int64, copy=False)


def check_counted(k: int) -> None:
    """Refuses a domain of which not all values can be counted one by one."""
    if k > MOST_COUNTED:
        raise InvalidParameter(
            f"so many values cannot be counted one by one.\n  found:  k = {k:,}\n"
            f"  do:     at most {MOST_COUNTED:,}; for strings use sf.local.HeavyHitters"
        )
