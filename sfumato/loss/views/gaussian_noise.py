"""How much noise the Gaussian mechanism needs: two textbook formulas, and the least that will do.

All scales are per unit of L2 sensitivity: noise N(0, σ²) on a query of sensitivity s needs s times as much.
"""

import math
from dataclasses import dataclass
from html import escape

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.bound import Bound
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.numeric import ULP
from sfumato.loss.views.calibrate import calibrate


def classical_1(epsilon: float, delta: float) -> Bound:
    """The textbook scale σ = √(2 ln(1.25/δ))/ε, for ε < 1 only.

    Beyond ε = 1 the formula is no longer true: at (20, 0.01) its σ = 0.1554 has δ(20) = 0.483.

    Theorem: for 0 < ε < 1 the Gaussian mechanism with σ = √(2 ln(1.25/δ))/ε is (ε, δ)-DP [Dwork & Roth 2014, Thm A.1]
    """
    eps, goal = checks.positive("epsilon", epsilon), strictly_between("delta", delta, 1.0)
    if eps >= 1:
        raise InvalidParameter(
            "the classical formula √(2 ln(1.25/δ))/ε holds for epsilon < 1 only.\n"
            f"  found:  epsilon = {eps:g}, where it may give too little noise\n"
            "  do:     use analytic(epsilon, delta): the least noise, for every epsilon"
        )
    return sufficient(math.sqrt(2 * (math.log(1.25) - math.log(goal))) / eps, "Dwork & Roth 2014")


def classical_2(epsilon: float, delta: float) -> Bound:
    """A closed form for every ε > 0 and δ < ½: σ = (c + √(c² + ε))/(ε√2) with c² = ln(2/(√(16δ + 1) − 1)).

    Proof. This σ solves εσ − 1/(2σ) = c√2, so δ(ε) ≤ Φ(1/(2σ) − εσ) = Φ(−c√2) = ½erfc(c). For c ≥ 0,
    erfc(c) ≤ ½e^{−c²} + ½e^{−2c²} (Chiani, Dardari & Simon 2003), so δ(ε) ≤ ¼(y + y²) with y = e^{−c²}, and the c above
    is the one with ¼(y + y²) = δ.

    Theorem: the Gaussian mechanism with this σ is (ε, δ)-DP for all ε > 0 [Zhao et al. 2019, Mechanism 2]
    """
    eps, square = checks.positive("epsilon", epsilon), exponent(delta)
    return sufficient(scale(eps, square), "Zhao et al. 2019")


def slides_2(epsilon: float, delta: float) -> Bound:
    """The formula with c² = 2·ln(2/(√(16δ + 1) − 1)), as some lecture slides have it: true, but too much noise.

    A larger c is a larger σ, and δ(ε) falls with σ. For small ε it is √2 times the noise that the formula needs.

    Theorem: δ(ε) of the Gaussian mechanism falls as σ grows [Balle & Wang 2018, Lemma 7]
    """
    eps, square = checks.positive("epsilon", epsilon), exponent(delta)
    return sufficient(scale(eps, 2 * square), "Zhao et al. 2019 with 2c²")


def analytic(epsilon: float, delta: float) -> Bound:
    """The least σ with Φ(1/(2σ) − εσ) − e^ε·Φ(−1/(2σ) − εσ) ≤ δ, for every ε ≥ 0 and 0 < δ < 1.

    Theorem: the Gaussian mechanism is (ε, δ)-DP if and only if this holds [Balle & Wang 2018, Thm 8]
    """
    eps, goal = checks.non_negative("epsilon", epsilon), strictly_between("delta", delta, 1.0)
    found = calibrate(lambda sigma: GaussianLoss(1 / sigma), epsilon=eps, delta=goal, tolerance=1e-12)
    # 1/σ was rounded before it was priced
    return Bound(found.lower * (1 - 2 * ULP), found.upper * (1 + 2 * ULP), "analytic Gaussian mechanism")


def exponent(delta: float) -> float:
    """c² = ln(2/(√(16δ + 1) − 1)) = ln((√(16δ + 1) + 1)/(8δ)), rounded up: the second form keeps digits for small δ."""
    goal = strictly_between("delta", delta, 0.5)
    return math.log((math.sqrt(16 * goal + 1) + 1) / 8) - math.log(goal) + 16 * ULP * (1 - math.log(goal))


def scale(eps: float, square: float) -> float:
    """(c + √(c² + ε))/(ε√2)."""
    return (math.sqrt(square) + math.sqrt(square + eps)) / (eps * math.sqrt(2))


def strictly_between(name: str, value: float, high: float) -> float:
    """A number in (0, high)."""
    return checks.number(
        name, value, math.ulp(0.0), math.nextafter(high, 0), allowed=f"a number greater than 0 and less than {high:g}"
    )


def sufficient(sigma: float, method: str) -> Bound:
    """A scale that is enough, rounded up; how little would do it does not say."""
    return Bound(0.0, sigma * (1 + 32 * ULP), method)


@dataclass(frozen=True)
class Row:
    """One formula: the scale it gives, that scale in units of the least, and the δ(ε) it truly has."""

    name: str
    sigma: Bound | None
    ratio: float
    delta: Bound | None
    note: str


@dataclass(frozen=True)
class NoiseTable:
    """The scales that the formulas give for one target, side by side."""

    epsilon: float
    delta: float
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        head = f"Gaussian noise for ε = {self.epsilon:g}, δ = {self.delta:g}, per unit of L2 sensitivity"
        return "\n".join([head, *(f"{a:<14}{b:>12}{c:>10}{d:>12}  {e}".rstrip() for a, b, c, d, e in self.cells())])

    def _repr_html_(self) -> str:
        first, *rest = self.cells()
        top = "".join(f"<th>{escape(cell)}</th>" for cell in first)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rest)
        return f"<table><tr>{top}</tr>{body}</table>"

    def cells(self) -> list[tuple[str, str, str, str, str]]:
        """The table as text, its heading first."""
        table = [("formula", "σ", "× least", f"δ({self.epsilon:g})", "")]
        for row in self.rows:
            numbers = ("–", "–", "–") if row.sigma is None else (str(row.sigma), f"{row.ratio:.3f}", f"{row.delta:.3g}")
            table.append((row.name, *numbers, row.note))
        return table


def noise_table(epsilon: float, delta: float) -> NoiseTable:
    """The noise of each formula, its ratio to the least noise, and the δ that it truly gives.

    Theorem: exact profile of the Gaussian mechanism [Balle & Wang 2018, Thm 8]
    """
    eps, goal = checks.positive("epsilon", epsilon), strictly_between("delta", delta, 1.0)
    least = analytic(eps, goal)
    rows = [Row("analytic", least, 1.0, GaussianLoss(1 / least.upper).delta(eps), "the least")]
    for name, formula in (("classical 1", classical_1), ("classical 2", classical_2), ("slides 2", slides_2)):
        try:
            found = formula(eps, goal)
        except InvalidParameter:
            rows.append(Row(name, None, math.nan, None, "needs ε < 1" if formula is classical_1 else "needs δ < 0.5"))
        else:
            truth = GaussianLoss(1 / found.upper).delta(eps)
            rows.append(Row(name, found, found.upper / least.upper, truth, found.method))
    return NoiseTable(eps, goal, tuple(rows))
