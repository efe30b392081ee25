"""The contour engine: which contour serves an ε, and which engine answers where none does."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from sfumato.loss.base import TOLERANCE, Engine
from sfumato.loss.bound import Bound
from sfumato.loss.compose.contour import METHOD, Composition, Contour, bracket
from sfumato.loss.compose.transforms.base import Refused
from sfumato.loss.numeric import ULP, Enclosure, Floats

MOST_WORK = 20_000_000  # nodes × points of a profile
FARTHEST = 1e12  # the largest ε with a contour: beyond, the profile only falls
SHORT = 20_000  # nodes of contours that are remembered: longer ones take memory
KEPT, KEPT_NODES = 32, 160_000  # contours remembered for neighbouring questions: a whole profile needs a dozen or two


@dataclass(frozen=True, eq=False)
class ContourEngine:
    """Answers from contours; where one would be too long or too blurred, from the engine given for that case."""

    composition: Composition
    top: float  # the largest finite loss of the sum
    otherwise: Engine
    half_moment: Callable[[], float]  # log E e^{−S/2} from above
    latest: list[tuple["Contour", float]] = field(default_factory=list)  # for answers to come, each with its sharpness

    method = METHOD

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        """δ at every ε: a contour serves its neighbourhood, two spreads either way."""
        order = np.argsort(eps, kind="stable")
        order = order[eps[order] < self.top]
        rising = np.minimum(eps[order], FARTHEST)
        low, high = np.full_like(eps, self.composition.surely), np.full_like(eps, self.composition.leak)
        begin = 0
        while begin < len(rising):
            found, end = self.stretch(rising, begin, tolerance)
            low[order[begin:end]], high[order[begin:end]] = found.lower, found.upper
            begin = end
        return Enclosure(np.where(eps > FARTHEST, self.composition.surely, low), high)

    def stretch(self, rising: Floats, begin: int, tolerance: float) -> tuple[Enclosure, int]:
        """The profile at rising[begin:end], and end."""
        sharp = max(tolerance / 10, 1e-13)
        try:
            contour = self.serving(float(rising[begin]), float(rising[-1]), sharp)
            last = contour.line.saddle.eps + 2 * contour.line.saddle.spread
            end = max(begin + 1, int(np.searchsorted(rising, last, side="right")))
            if len(contour.terms) * (end - begin) > MOST_WORK:
                raise Refused("too many points on too long a contour")
            found = contour.delta(rising[begin:end])
        except Refused:
            return self.elsewhere(rising, begin, tolerance)
        blurred = found.upper - found.lower > max(tolerance, 1e-6) * found.upper
        if not blurred.any():
            return found, end
        sharper = int(np.argmax(blurred))
        if sharper > 0:  # what is known sharply is kept, the rest gets a contour of its own
            return Enclosure(found.lower[:sharper], found.upper[:sharper]), begin + sharper
        return self.alone(rising[begin : begin + 1], tolerance), begin + 1

    def serving(self, first: float, last: float, sharp: float) -> Contour:
        """A contour good from `first` on, two spreads around its saddle point: one of the latest, or a new one."""
        for contour, sharpness in self.latest:
            saddle = contour.line.saddle
            if sharpness <= sharp and abs(first - saddle.eps) <= 2 * saddle.spread:
                return contour
        spread = self.composition.towards(first, sharp).spread if first < last else 0.0
        # two spreads off, δ is e^−2 of what it is at the saddle, and the next window is nearer
        contour = self.composition.contour(min(first + 2 * spread, last), max(sharp / 20, 1e-13), 1.7, sharp)
        self.remember(contour, sharp)
        return contour

    def remember(self, contour: Contour, sharp: float) -> None:
        """Keep a short contour that is sharp two spreads around its saddle point (or not, if `sharp` is infinite)."""
        if len(contour.terms) <= SHORT:
            self.latest.insert(0, (contour, sharp))
            while len(self.latest) > KEPT or sum(len(kept.terms) for kept, _ in self.latest) > KEPT_NODES:
                self.latest.pop()

    def elsewhere(self, rising: Floats, begin: int, tolerance: float) -> tuple[Enclosure, int]:
        """Without a contour: where δ is nearly 1 from E min(1, e^{t−S}) ≤ E e^{(t−S)/2}, else from the other engine."""
        rest = rising[begin:]
        missing = np.exp(np.minimum(rest / 2 + self.log_half, 0.0))
        near = int(np.searchsorted(missing, tolerance / 2, side="right"))
        if near:
            return Enclosure(1 - missing[:near] - ULP, np.ones(near)), begin + near
        return self.otherwise.forward(rest, tolerance), len(rising)

    @cached_property
    def log_half(self) -> float:
        """log E e^{−S/2} from above; a leak counts as an infinite loss."""
        moment = self.half_moment()
        return moment + 1e-9 + 1e-12 * abs(moment)

    def alone(self, eps: Floats, tolerance: float) -> Enclosure:
        """δ at one difficult ε: from its own contour, and from the other engine if that is blurred too."""
        try:
            found = self.composition.contour(float(eps[0]), max(tolerance / 10, 1e-13)).delta(eps)
        except Refused:
            return self.elsewhere(eps, 0, tolerance)[0]
        if np.all(found.upper - found.lower <= max(tolerance, 1e-6) * found.upper):
            return found
        other, _ = self.elsewhere(eps, 0, tolerance)
        return Enclosure(np.maximum(found.lower, other.lower), np.minimum(found.upper, other.upper))

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Callable[[Floats], Enclosure]:
        """The profile from the one contour that is sharp around the ε where it is `delta`."""
        try:
            finite = max(delta - self.composition.leak, 1e-3 * delta, 1e-300)
            where = self.composition.approximate_epsilon(math.log(finite))[0] if eps is None else eps
            for contour, _ in self.latest:
                low, high = contour.delta(np.array([where]))
                if high[0] - low[0] <= tolerance * high[0]:
                    return contour.delta
            contour = self.composition.contour(where, max(tolerance / 10, 1e-13))
            self.remember(contour, math.inf)
            return contour.delta
        except Refused:
            return self.otherwise.near(delta, tolerance, eps)

    def least(self, goal: float, tolerance: float) -> Bound | None:
        """The least ε with δ(ε) ≤ goal, or None if contours are not sharp enough.

        Contours are laid ever closer to the answer, until it is sharp enough or no sharper.
        """
        finite, best, share = goal - self.composition.leak, Bound(0.0, self.top, self.method), 0.2
        if finite < 1e-3 * goal:
            return None
        try:
            eps, theta = self.composition.approximate_epsilon(math.log(finite))
            for _ in range(6):
                sharp = min(share * tolerance * theta * eps, 1e-3)
                line = self.composition.contour(eps, max(sharp, 1e-13))
                theta, (t, slope) = line.theta, line.root(finite, eps)
                found = bracket(line, goal, max(t, 0.0), slope * finite, self.top)
                best = Bound(max(best.lower, found.lower), min(best.upper, found.upper), self.method)
                if math.isfinite(best.upper) and best.gap <= tolerance * best.upper:
                    return best
                if abs(t - eps) <= line.line.saddle.spread:  # not the place: δ is smaller than the saddle point says
                    if sharp <= 1e-13:
                        break
                    wide = found.gap / (tolerance * found.upper) if math.isfinite(found.upper) else math.inf
                    share *= min(max(0.3 / wide, 1e-4), 0.3)
                eps = max(t, 0.0)
        except Refused:
            return None
        return best if math.isfinite(best.upper) and best.gap <= 1e-6 * best.upper else None
