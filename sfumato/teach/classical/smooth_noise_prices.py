"""Published privacy bounds for noise at a smooth sensitivity, to compare with the exact loss (`SmoothLoss`).

s is the shift and t the dilation: the noise is (S/s)·Z for a t-smooth bound S.
"""

import math

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import ULP


def cauchy(power: float, shift: float, dilation: float) -> Bound:
    """ε of generalised Cauchy noise 1/(1 + |z|^γ): s, t ≤ ε/(2(γ + 1)).

    Theorem: (ε/(2(γ+1)), ε/(2(γ+1)))-admissible [Nissim, Raskhodnikova & Smith 2007, Lemma 2.7]
    """
    s, t = checked_pair(shift, dilation)
    return at_most(2 * (checks.positive("power", power) + 1) * max(s, t), "Nissim, Raskhodnikova & Smith 2007")


def laplace(epsilon: float, delta: float) -> tuple[float, float]:
    """(s, t) of Laplace noise: ε/2 and ε/(2 ln(2/δ)).

    Theorem: (ε/2, ε/(2 ln(2/δ)))-admissible [Nissim, Raskhodnikova & Smith 2007, Lemma 2.9]
    """
    eps, small = checked_target(epsilon, delta)
    return eps / 2, eps / (2 * math.log(2 / small))


def gaussian(epsilon: float, delta: float) -> tuple[float, float]:
    """(s, t) of Gaussian noise: ε/(5√(2 ln(2/δ))) and ε/(4 ln(2/δ)).

    Theorem: (ε/(5√(2 ln(2/δ))), ε/(4 ln(2/δ)))-admissible [Nissim, Raskhodnikova & Smith 2007, Lemma 2.10]
    """
    eps, small = checked_target(epsilon, delta)
    return eps / (5 * math.sqrt(2 * math.log(2 / small))), eps / (4 * math.log(2 / small))


def student(degrees: float, shift: float, dilation: float) -> Bound:
    """ε of Student noise: (d + 1)t + s(d + 1)/(2√d).

    Theorem: pure differential privacy of Student noise [Bun & Steinke 2019, Thm 31]
    """
    (s, t), d = checked_pair(shift, dilation), checks.positive("degrees", degrees)
    return at_most((d + 1) * t + s * (d + 1) / (2 * math.sqrt(d)), "Bun & Steinke 2019")


def laplace_log_normal(sigma: float, shift: float, dilation: float) -> Bound:
    """ρ = ½(t/σ + e^{3σ²/2}s)².

    Theorem: ½ε²-CDP for ε = t/σ + e^{3σ²/2}s [Bun & Steinke 2019, Prop. 3]
    """
    (s, t), g = checked_pair(shift, dilation), checks.positive("sigma", sigma)
    return at_most((t / g + math.exp(1.5 * g * g) * s) ** 2 / 2, "Bun & Steinke 2019")


def laplace_log_normal_dilated(sigma: float, dilation: float, order: float) -> Bound:
    """D_a(Z‖e^t·Z) ≤ at²/2σ².

    Theorem: dilation of a log-normal factor is a shift of a normal law [Bun & Steinke 2019, Lemma 19]
    """
    (_, t), g = checked_pair(0.0, dilation), checks.positive("sigma", sigma)
    return at_most(checks.positive("order", order) * t * t / (2 * g * g), "Bun & Steinke 2019")


def laplace_log_normal_shifted(sigma: float, shift: float, order: float) -> Bound:
    """D_a(Z‖Z + s) ≤ min(½e^{3σ²}s²a, e^{3σ²/2}s).

    Theorem: the score of Laplace log-normal noise is at most e^{3σ²/2} [Bun & Steinke 2019, Lemma 20]
    """
    (s, _), g = checked_pair(shift, 0.0), checks.positive("sigma", sigma)
    steep = math.exp(1.5 * g * g) * s
    return at_most(min(steep * steep * checks.positive("order", order) / 2, steep), "Bun & Steinke 2019")


def uniform_log_normal(sigma: float, shift: float, dilation: float) -> Bound:
    """ρ = ½(t/σ + e^{3σ²/2}√(2/πσ²)·s)², for σ ≥ √2 only.

    Theorem: concentrated differential privacy of uniform log-normal noise [Bun & Steinke 2019, Sec. 3.2]
    """
    (s, t), g = checked_pair(shift, dilation), checks.positive("sigma", sigma)
    if g < math.sqrt(2) * (1 - ULP):
        raise InvalidParameter(
            f"the formula for uniform log-normal noise holds for sigma ≥ √2 only.\n  found:  sigma = {g:g}\n"
            "  do:     use SmoothLoss(UniformLogNormalNoise(sigma), …), which needs no formula"
        )
    return at_most((t / g + math.exp(1.5 * g * g) * math.sqrt(2 / math.pi) / g * s) ** 2 / 2, "Bun & Steinke 2019")


def arsinh_normal(sigma: float, shift: float, dilation: float) -> Bound:
    """ρ = ½(√(t(t/σ² + 1/σ + 2)) + s(2/(3σ) + σ/2))².

    Theorem: concentrated differential privacy of arsinh-normal noise [Bun & Steinke 2019, Sec. 3.2]
    """
    (s, t), g = checked_pair(shift, dilation), checks.positive("sigma", sigma)
    eps = math.sqrt(t * (t / g**2 + 1 / g + 2)) + s * (2 / (3 * g) + g / 2)
    return at_most(eps * eps / 2, "Bun & Steinke 2019")


def checked_pair(shift: float, dilation: float) -> tuple[float, float]:
    """Shift and dilation, both non-negative."""
    return checks.non_negative("shift", shift), checks.non_negative("dilation", dilation)


def checked_target(epsilon: float, delta: float) -> tuple[float, float]:
    """ε and δ, if the formulas hold for them."""
    allowed = "a number from 1e-300 to 0.5"
    return checks.positive("epsilon", epsilon), checks.number("delta", delta, 1e-300, 0.5, allowed=allowed)


def at_most(value: float, source: str) -> Bound:
    """An upper bound; the formulas give no lower one."""
    return Bound(0.0, value * (1 + 32 * ULP), source)
