"""A comparison of accountants for one loss, the optimal answer first."""

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from sfumato.errors import InvalidParameter, OutOfReach
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import ULP
from sfumato.loss.views.profile import most_leak
from sfumato.loss.views.renyi_accountant import above_zero, renyi_accountant
from sfumato.teach.classical.approximations import Estimate, central_limit, fourier, parts
from sfumato.teach.classical.composition_theorems import advanced, advanced_slides, ceiling, optimal

Accountant = Callable[[PrivacyLoss, float], Bound | Estimate]  # ε at δ


@dataclass(frozen=True)
class Row:
    """One accountant's answer, or None with the reason in the note."""

    name: str
    epsilon: Bound | Estimate | None
    note: str

    def __str__(self) -> str:
        if self.epsilon is None:
            return "–"
        if isinstance(self.epsilon, Estimate):
            return str(self.epsilon)
        if self.epsilon.lower > 0 and self.epsilon.relative_gap > 1e-3:
            return f"{self.epsilon.lower:.4g} … {self.epsilon.upper:.4g}"
        return f"{'≤' if self.epsilon.lower < self.epsilon.upper * 0.999 else '='} {self.epsilon.upper:.6g}"


@dataclass(frozen=True)
class Comparison:
    """ε at one δ by every accountant, the optimal answer first."""

    delta: float
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        lines = [f"{'accountant':<24}ε at δ = {self.delta:g}"]
        for row in self.rows:
            note = textwrap.wrap(row.note, 36) or [""]
            lines.append(f"{row.name:<24}{row!s:<20}{note[0]}".rstrip())
            lines.extend(" " * 44 + more for more in note[1:])
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = f"<tr><th>accountant</th><th>ε at δ = {self.delta:g}</th><th></th></tr>"
        cells = ((escape(cell) for cell in (row.name, str(row), row.note)) for row in self.rows)
        return f"<table>{head}{''.join('<tr><td>' + '</td><td>'.join(row) + '</td></tr>' for row in cells)}</table>"


def compare(loss: PrivacyLoss, delta: float) -> Comparison:
    """Every accountant's ε(δ) for one loss. One that does not apply says why; one that is too low is marked."""
    goal = above_zero("delta", delta)
    truth = loss.epsilon(goal)
    rows = [Row("optimal (sfumato)", truth, truth.method)]
    for name, accountant in ACCOUNTANTS.items():
        try:
            answer = accountant(loss, goal)
        except (InvalidParameter, OutOfReach) as problem:
            rows.append(Row(name, None, str(problem).splitlines()[0]))
            continue
        claim, note = (answer.value, answer.note) if isinstance(answer, Estimate) else (answer.upper, answer.method)
        short = f"below the truth by {truth.lower - claim:.2g}; " if claim < truth.lower else ""
        rows.append(Row(name, answer, short + note))
    return Comparison(goal, tuple(rows))


def basic_accountant(loss: PrivacyLoss, delta: float) -> Bound:
    """Basic composition: each part gets its own leak and an equal share of the rest of δ."""
    terms = parts(loss)
    spare = (delta - sum(k * most_leak(part) for k, part in terms)) / max(sum(k for k, _ in terms), 1)
    if spare < 0:
        raise OutOfReach("the parts leak more than δ")
    each = [(k, part.epsilon(most_leak(part) + spare * (1 - 4 * ULP)).upper) for k, part in terms]
    return ceiling(math.fsum(k * eps for k, eps in each), "δ shared equally")


def equal_parts_accountant(theorem: Callable[[float, float, int, float, float], Bound]) -> Accountant:
    """An accountant from a theorem on k equal (ε, δ)-DP parts: theorem(ε, δ, k, slack δ' that is left, total δ).

    A part whose loss has a supremum is (supremum, leak)-DP. Other parts share half of the δ that is left. These
    theorems need both directions: a pair with only P ≤ e^ε·Q can have a mean loss of ε.
    """

    def accountant(loss: PrivacyLoss, delta: float) -> Bound:
        if len(parts(loss)) != 1:
            raise OutOfReach(f"needs equal parts: there are {len(parts(loss))} kinds")
        ((k, part),) = parts(loss)
        leak, eps = max(part.leak()), max(part.supremum())
        if k * leak >= delta:
            raise OutOfReach("the parts leak more than δ")
        if math.isinf(eps):
            if part.relation.one_way and part.reverse.relation is not part.relation:
                raise OutOfReach("needs both directions of the loss")
            leak += (delta - k * leak) / (2 * k)
            eps = part.epsilon(leak).upper
        found = theorem(eps, leak, k, (delta - k * leak) * (1 - 4 * ULP), delta)
        return Bound(0.0, found.upper, f"from {k:,} × ({eps:.4g}, {leak:.3g})")

    return accountant


ACCOUNTANTS: dict[str, Accountant] = {
    "basic": basic_accountant,
    "advanced": equal_parts_accountant(lambda eps, each, k, slack, _: advanced(eps, each, k, slack).epsilon),
    "advanced, zCDP mean": equal_parts_accountant(
        lambda eps, each, k, slack, _: advanced_slides(eps, each, k, slack).epsilon
    ),
    "optimal for (ε, δ)": equal_parts_accountant(lambda eps, each, k, _, total: optimal(eps, each, k, total)),
    "Rényi": renyi_accountant,
    "central limit": central_limit,
    "plain Fourier": fourier,
}
