"""RAPPOR: Bloom bits, a permanent answer that is kept, and fresh noise on it in every report."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.coins import PureLoss
from sfumato.loss.kinds.finite import FinitePairLoss
from sfumato.loss.numeric import Floats, floats
from sfumato.noise import Bernoulli
from sfumato.noise.balls import above, ball, precision, rational
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.rounding import round_up
from sfumato.sensitivity import Relation, ReplaceOne

PREC = 256  # bits of ε: logarithms of odds near 1 keep their digits
ROUNDING = 2.0**-49  # of two largest losses: each lacks at most four roundings of 2⁻⁵³
Bits = NDArray[np.bool_]


@dataclass(frozen=True)
class Rappor:
    """`bits` Bloom bits and `hashes` = h hashes of a text; then two rounds of noise, all with rational coins.

    Permanent: each bit is 1 with f/2, 0 with f/2, else itself; drawn once for a value and kept. Instantaneous: a report
    sets a bit with `high` where the permanent bit is 1, with `low` where it is 0. ε of one report is not what T reports
    of the same value cost: they reveal the permanent answer in the limit.

    Theorem: RAPPOR's permanent response is 2h·ln((1 − f/2)/(f/2))-LDP [Erlingsson, Pihur & Korolova 2014, Thm 1]
    Theorem: T reports of one value depend on a changed bit through its count alone [docs/theorems/local.md, Theorem 6]

    >>> [round(Rappor().epsilon(T), 3) for T in (1, 2, 16)], round(Rappor().limit, 3)
    ([1.074, 2.017, 4.386], 4.394)
    """

    bits: int = 128
    hashes: int = 2
    f: Fraction = Fraction(1, 2)
    low: Fraction = Fraction(1, 2)
    high: Fraction = Fraction(3, 4)
    source: Source = field(default=SYSTEM, repr=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", checks.whole("bits", self.bits, 2, 1 << 16))
        object.__setattr__(self, "hashes", checks.whole("hashes", self.hashes, 1, self.bits))
        for name in ("f", "low", "high"):
            object.__setattr__(self, name, rational(name, getattr(self, name), 0, 1))
        if not (0 < self.f < 1 and 0 <= self.low < self.high <= 1):
            raise InvalidParameter(
                f"RAPPOR needs 0 < f < 1 and low < high.\n  found:  f = {self.f}, {self.low} and {self.high}\n"
                "  do:     e.g. f = ½, low = ½, high = ¾"
            )

    # ---- the client -------------------------------------------------------------------------------------------------

    def bloom(self, text: str) -> Bits:
        """The Bloom bits of a text: `hashes` different places."""
        places: list[int] = []
        counter = 0
        while len(places) < self.hashes:
            place = int.from_bytes(sha256(f"{counter} {text}".encode()).digest()[:8]) % self.bits
            places += [place] if place not in places else []
            counter += 1
        found = np.zeros(self.bits, np.bool_)
        found[places] = True
        return found

    def permanent(self, text: str) -> Bits:
        """The permanent answer to a value. Keep it, as securely as the value, and draw it once."""
        noise, ones = (
            Bernoulli(self.f, source=self.source).draw(self.bits),
            Bernoulli(Fraction(1, 2), source=self.source),
        )
        return np.where(noise, ones.draw(self.bits), self.bloom(text))

    def report(self, permanent: Bits) -> Bits:
        """One report, with fresh noise on a permanent answer."""
        one, zero = (Bernoulli(chance, source=self.source).draw(self.bits) for chance in (self.high, self.low))
        return np.where(permanent, one, zero)

    # ---- what it costs ----------------------------------------------------------------------------------------------

    def epsilon(self, reports: int = 1) -> float:
        """ε of so many reports of one value, rounded up.

        h·(ln[(a·q^T + b·p^T)/(b·q^T + a·p^T)] + ln[(a(1−p)^T + b(1−q)^T)/(b(1−p)^T + a(1−q)^T)]), a = 1 − f/2, b = f/2.
        """
        T = checks.whole("reports", reports, 1, 10**6)
        with precision(PREC):
            a, b = ball(1 - self.f / 2), ball(self.f / 2)
            up, down = ball(self.low / self.high) ** T, ball((1 - self.high) / (1 - self.low)) ** T
            ones, zeros = (a + b * up) / (b + a * up), (a + b * down) / (b + a * down)
            return round_up(above(self.hashes * (ones * zeros).log()))

    @property
    def limit(self) -> float:
        """ε of any number of reports of one value, rounded up; each new value costs as much again."""
        with precision(PREC):
            return round_up(above(2 * self.hashes * ball((2 - self.f) / self.f).log()))

    def loss(self, reports: int = 1, relation: Relation = ReplaceOne) -> PrivacyLoss:
        """The loss of so many reports: h bits that are set, h that are not, each a count of T + 1 outcomes.

        Probabilities are rounded to doubles, for which the margins of a finite pair allow, except in its largest loss:
        a pure loss makes up for what that may lack.
        """
        T = checks.whole("reports", reports, 1, 2000)
        a, b = 1 - self.f / 2, self.f / 2
        ones, zeros = binomial_law(T, self.high), binomial_law(T, self.low)
        P = tuple(float(a * x + b * y) for x, y in zip(ones, zeros, strict=True))
        Q = tuple(float(b * x + a * y) for x, y in zip(ones, zeros, strict=True))
        pair = FinitePairLoss(P, Q, relation=relation)
        spare = PureLoss(self.hashes * ROUNDING, relation=relation)
        return self.hashes * pair + self.hashes * FinitePairLoss(Q, P, relation=relation) + spare

    # ---- the server -------------------------------------------------------------------------------------------------

    def estimate_bits(self, reports: ArrayLike) -> Floats:
        """The share of people with each Bloom bit set, without bias: (mean − p*)/(q* − p*)."""
        found = np.asarray(reports)
        if found.ndim != 2 or found.shape[1] != self.bits or found.dtype != np.bool_ or not len(found):
            raise InvalidParameter(
                f"give rows of {self.bits} bools, one for each report.\n  found:  shape {found.shape}, {found.dtype}\n"
                "  do:     stack what `report` returned"
            )
        one, zero = self.f / 2 * (self.low + self.high), 1 - self.f
        p, q = one + zero * self.low, one + zero * self.high
        return floats((found.mean(axis=0) - float(p)) / float(q - p))

    def estimate(self, reports: ArrayLike, candidates: list[str]) -> Floats:
        """Least-squares shares of candidate texts. A heuristic: texts collide, and no interval is valid for it."""
        design = np.stack([self.bloom(text) for text in candidates], axis=1).astype(np.float64)
        return floats(np.linalg.lstsq(design, self.estimate_bits(reports), rcond=None)[0])


def binomial_law(n: int, p: Fraction) -> list[Fraction]:
    """P(Bin(n, p) = c), c = 0, …, n, exactly."""
    return [math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
