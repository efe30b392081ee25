"""A composition that grows: add a loss, read ε, a million times, at the same cost each time.

The contour of the sum so far is kept: a further loss multiplies it by its own values on the same line, and the root
moves a little. Once the sum has outgrown its line, a new one is laid through the new saddle point; the terms are then
looked at again, but that happens only each time the sum has grown by some share.

This is for sequences of losses that are fixed in advance, or at least not chosen in the light of the answers. It is
not a filter: stopping or choosing by what ε has become needs a budget, not a reading.
"""

import math
from typing import SupportsFloat

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import TOLERANCE, PrivacyLoss, same_relation
from sfumato.loss.bound import Bound, worst
from sfumato.loss.compose.choose_engine import bare, group_transforms, moderate
from sfumato.loss.compose.contour import Composition, Contour, Line, Totals, bracket
from sfumato.loss.compose.facts import facts
from sfumato.loss.compose.sums import total
from sfumato.loss.compose.transforms.base import Refused
from sfumato.loss.numeric import ULP
from sfumato.loss.views.profile import checked_tolerance
from sfumato.sensitivity import Relation

SEEN = 200_000  # numbers remembered of losses that came before
ROOM = 2.0  # a line's window is so much wider than its sum needs: the sum may grow


class Running:
    """The ε at a fixed δ of a sum that grows: `running.add(loss).epsilon()`, again and again."""

    def __init__(
        self, delta: SupportsFloat, *, tolerance: float = TOLERANCE, relation: Relation = Relation.AddRemove
    ) -> None:
        self.delta, self.tolerance = checks.probability("delta", delta), checked_tolerance(tolerance)
        self.relation = relation
        self.counts: dict[PrivacyLoss, int] = {}
        self.directions = [Direction(self.delta, self.tolerance)] + (
            [] if relation.one_way else [Direction(self.delta, self.tolerance)]
        )
        self.symmetric = True

    def add(self, loss: PrivacyLoss, times: int = 1) -> "Running":
        """One more loss, or several equal ones."""
        if not isinstance(loss, PrivacyLoss):
            raise InvalidParameter(f"only losses can be added, found {type(loss).__name__}")
        times = checks.whole("times", times, 0)
        same_relation((loss,) if loss.relation is self.relation else (loss, total(relation=self.relation)))
        for count, term in getattr(loss, "terms", ((1, loss),)):
            self.counts[term] = self.counts.get(term, 0) + times * count
            if times * count == 0 or facts(term).reveals_nothing:
                continue
            self.directions[0].add(bare(term), times * count)
            if not self.relation.one_way:
                back = bare(term.reverse)
                self.symmetric = self.symmetric and back == bare(term)
                self.directions[1].add(back, times * count)
        return self

    @property
    def loss(self) -> PrivacyLoss:
        """The sum so far."""
        return total(*((count, loss) for loss, count in self.counts.items()), relation=self.relation)

    def epsilon(self) -> Bound:
        """The least ε with δ(ε) ≤ delta, of the sum so far."""
        found = [direction.least() for direction in (self.directions[:1] if self.symmetric else self.directions)]
        known = [bound for bound in found if bound is not None]
        if len(known) < len(found):
            return self.loss.epsilon(self.delta, tolerance=self.tolerance)
        return known[0] if len(known) == 1 else worst(*known)


class Direction:
    """One direction of a growing sum."""

    def __init__(self, delta: float, tolerance: float) -> None:
        self.delta, self.tolerance = delta, tolerance
        self.terms: dict[PrivacyLoss, int] = {}
        self.additions = 0
        self.sharp = True  # are all leaks the truth, not only bounds from above?
        self.top = 0.0
        self.silence = 0.0  # log of the probability that nothing has leaked
        self.eps = 0.0  # where the root was
        self.answer: Bound | None = None  # of the sum as it is: a second look starts elsewhere and ends an ulp away
        self.line: Line | None = None
        self.totals: Totals | None = None
        self.seen: dict[tuple[PrivacyLoss, int], Totals] = {}

    def add(self, loss: PrivacyLoss, count: int) -> None:
        self.terms[loss] = self.terms.get(loss, 0) + count
        self.answer = None
        self.additions += 1
        self.sharp = self.sharp and loss.sharp_ends
        self.top = (self.top + count * loss.supremum()[0] * (1 + 4 * ULP)) * (1 + ULP)
        leak = loss.leak()[0]
        self.silence = (self.silence + (count * math.log1p(-leak) if leak < 1 else -math.inf)) * (1 + 4 * ULP)
        if leak >= 1:  # nothing finite is left to transform
            self.line = None
        if self.line is None or self.totals is None:
            return
        one = self.seen.get((loss, count))
        if one is None:
            part = loss.transform()
            if part is None or not moderate([part.times(count)], least=-1.0):
                self.line = None
                return
            try:
                one = Totals.of(part.times(count), self.line)
            except Refused:  # not on this line: the next answer lays a new one, or asks another engine
                self.line = None
                return
            if self.line.nodes * len(self.seen) < SEEN:
                self.seen[loss, count] = one
        self.totals = Totals.together([self.totals, one])

    def least(self) -> Bound | None:
        """The least ε, the same at every look; None if no contour is sharp enough."""
        if self.answer is None:
            self.answer = self.locate()
        return self.answer

    def locate(self) -> Bound | None:
        """The least ε, from the line at hand or else from a new one."""
        if not self.terms:
            return Bound(0.0, 0.0, "closed form")
        leak = -math.expm1(self.silence) * (1 + 16 * ULP)
        surely = leak * (1 - (64 + 8 * self.additions) * ULP) if self.sharp else 0.0
        finite = self.delta - leak
        if finite < max(1e-3 * self.delta, 1e-290):
            return None
        try:
            if self.line is not None and self.totals is not None:
                found = self.read(Contour(self.line, self.totals, surely, leak), finite)
                if math.isfinite(found.upper) and found.gap <= self.tolerance * found.upper:
                    return found
            contour = self.new_contour(surely, leak, finite)
            if contour is None:
                return None
            found = self.read(contour, finite)
        except Refused:
            return None
        sharp = math.isfinite(found.upper) and found.gap <= max(self.tolerance, 1e-6) * found.upper
        return found if sharp else None

    def new_contour(self, surely: float, leak: float, finite: float) -> Contour | None:
        """A new line, through the saddle point of the sum as it is now."""
        self.line = None
        parts = group_transforms((count, loss) for loss, count in self.terms.items())
        if parts is None or not moderate(parts):
            return None
        composition = Composition(parts, surely, leak)
        eps, _ = composition.approximate_epsilon(math.log(finite))
        contour = composition.contour(eps, min(max(0.05 * self.tolerance * eps, 1e-13), 1e-3), ROOM)
        self.line, self.totals, self.seen, self.eps = contour.line, contour.totals, {}, eps
        return contour

    def read(self, contour: Contour, finite: float) -> Bound:
        t, slope = contour.root(finite, self.eps)
        self.eps = max(t, 0.0)
        return bracket(contour, self.delta, self.eps, slope * finite, self.top, 0.2 * self.tolerance * self.eps)
