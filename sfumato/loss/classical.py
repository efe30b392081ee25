"""The accountants of the lectures, each under its own name, to be compared with the optimal answer.

Bounds are `Bound`s, true under the conditions that their docstrings state. The central limit theorem and the plain
Fourier accountant give an `Estimate`: a number without a promise.
"""

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter, OutOfReach
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.gaussian import GaussianLoss
from sfumato.loss.numeric import ULP, Enclosure, Floats, erfcx, floats, gammaln, logsumexp, ndtr
from sfumato.loss.sums import Sum
from sfumato.loss.views import most_leak, top_of
from sfumato.loss.wrappers import OneWay

Accountant = Callable[[PrivacyLoss, float], "Bound | Estimate"]  # ε at δ
MOST_EQUAL = 10**6  # compositions that `optimal` sums one by one
POINTS = 2**17  # grid of the plain Fourier accountant
FLOOR = 1e-12  # δ below which the rounding of that Fourier transform drowns the answer


@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-differential privacy, both numbers rounded up."""

    epsilon: Bound
    delta: Bound


@dataclass(frozen=True)
class Estimate:
    """A number that promises nothing; low and high say how far off its author believes it to be, and `note` why."""

    value: float
    low: float
    high: float
    method: str
    note: str = ""

    def __str__(self) -> str:
        return f"≈ {self.value:.6g}"


def ceiling(value: float, method: str) -> Bound:
    """A number that the truth does not exceed, a few roundings up."""
    return Bound(0.0, value * (1 + 32 * ULP), method)


def above_zero(name: str, value: float) -> float:
    """A number in (0, 1]."""
    return checks.number(name, value, math.ulp(0.0), 1.0, allowed="a number greater than 0 and at most 1")


# ---- composition theorems for (ε, δ) --------------------------------------------------------------------------------


def basic(parts: Sequence[tuple[float, float]]) -> Guarantee:
    """Basic composition: (ε₁, δ₁), (ε₂, δ₂), … together are (Σεᵢ, Σδᵢ)-DP.

    Theorem: epsilons and deltas add up [Dwork & Roth 2014, Thm 3.16]
    """
    epsilons = [checks.non_negative("epsilon", eps) for eps, _ in parts]
    deltas = [checks.probability("delta", delta) for _, delta in parts]
    total = min(1.0, math.fsum(deltas) * (1 + 2 * ULP))
    return Guarantee(ceiling(math.fsum(epsilons), "basic composition"), Bound(0.0, total, "basic composition"))


def advanced(eps: float, delta: float, k: int, slack: float) -> Guarantee:
    """Advanced composition: k mechanisms that are (ε, δ)-DP are (ε√(2k ln(1/δ')) + kε(e^ε − 1), kδ + δ')-DP together.

    Theorem: advanced composition [Dwork, Rothblum & Vadhan 2010, Thm III.3; Dwork & Roth 2014, Thm 3.20]
    """
    eps, k = checks.non_negative("eps", eps), checks.whole("k", k, 0)
    growth = math.expm1(eps) if eps < 700 else math.inf
    return with_deviation(k * eps * growth if k else 0.0, eps, delta, k, slack, "advanced composition")


def advanced_slides(eps: float, delta: float, k: int, slack: float) -> Guarantee:
    """Advanced composition with the mean kε²/2: (ε√(2k ln(1/δ')) + kε²/2, kδ + δ')-DP, for all ε ≥ 0, k and δ'.

    Proof. ε-DP is ε²/2-zCDP, so k of them are ρ-zCDP with ρ = kε²/2, which is (ρ + 2√(ρ ln(1/δ')), δ')-DP: the formula.
    For δ > 0, (ε, δ)-DP is dominated by a response that gives itself away with probability δ and is ε-DP otherwise; one
    of k does so with probability at most kδ. It is below the classical form, as ε/2 < e^ε − 1. It grows like √k while
    k ≪ 1/ε² (slides that say k ≪ ε² have it upside down).

    Theorem: ε-DP is ε²/2-zCDP, and ρ-zCDP is (ρ + 2√(ρ ln(1/δ)), δ)-DP [Bun & Steinke 2016, Prop. 1.4 and 1.3]
    Theorem: leaky randomized response dominates every (ε, δ)-DP mechanism [Kairouz, Oh & Viswanath 2015, Thm 3.1]
    """
    eps, k = checks.non_negative("eps", eps), checks.whole("k", k, 0)
    return with_deviation(k * eps * eps / 2, eps, delta, k, slack, "advanced composition by zCDP")


def with_deviation(mean: float, eps: float, delta: float, k: int, slack: float, method: str) -> Guarantee:
    """(mean + ε√(2k ln(1/δ')), kδ + δ'), where δ' is the slack."""
    total = min(1.0, (k * checks.probability("delta", delta) + above_zero("slack", slack)) * (1 + 4 * ULP))
    return Guarantee(ceiling(eps * math.sqrt(-2 * k * math.log(slack)) + mean, method), Bound(0.0, total, method))


def optimal(eps: float, delta: float, k: int, target: float) -> Bound:
    """Least ε' such that every k mechanisms that are (ε, δ)-DP are together (ε', target)-DP.

    At ε' = (k − 2i)ε the total is 1 − (1 − δ)^k·(1 − δᵢ), δᵢ = Σ_{l<i} C(k,l)(e^{(k−l)ε} − e^{(k−2i+l)ε})/(1 + e^ε)^k.
    Between these points δ is linear in e^{ε'}, because the worst mechanism's loss has atoms there and nowhere else.

    Theorem: optimal homogeneous composition [Kairouz, Oh & Viswanath 2015, Thm 3.3]
    """
    eps, delta = checks.non_negative("eps", eps), checks.probability("delta", delta)
    k, target = checks.whole("k", k, 0, MOST_EQUAL), checks.probability("target", target)
    method = "Kairouz, Oh & Viswanath"
    if delta == 1 or target == 1 or k == 0:
        top = math.inf if delta == 1 and target < 1 and k else 0.0
        return Bound(top, top, method)
    kept = math.log1p(-target) - k * math.log1p(-delta)  # log of the share of the target that is left after k leaks
    slip = 4 * ULP * (abs(math.log1p(-target)) + k * abs(math.log1p(-delta)))
    low, high = -math.expm1(min(kept + slip, 0.0)), -math.expm1(min(kept - slip, 0.0))
    if delta == 0:
        low = high = target
    pair = repeated_response(eps, k)
    lower = pair.below(high) if kept - slip <= 0 else math.inf
    return Bound(lower, pair.above(low) if kept + slip <= 0 else math.inf, method)


@dataclass(frozen=True)
class RepeatedResponse:
    """k times randomized response: losses (k − 2l)ε with binomial weights P(l), in logarithms, for l ≤ k/2.

    `error` bounds what lgamma, products and sums lose in each logarithm.
    """

    eps: float
    k: int
    log_p: Floats
    error: float

    def log_delta(self, i: int) -> float:
        """log δᵢ, the profile at (k − 2i)ε: Σ_{l<i} P(l)·(1 − e^{−2(i−l)ε})."""
        if i == 0 or self.eps == 0:
            return -math.inf
        lies = np.arange(i, dtype=np.float64)
        return logsumexp(self.log_p[:i] + np.log(-np.expm1(-2 * (i - lies) * self.eps)))

    def first_above(self, goal: float) -> int:
        """Least i with log δᵢ > goal; k//2 + 1 if there is none. δᵢ grows with i."""
        low, high = 0, self.k // 2 + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.log_delta(middle) > goal else (middle, high)
        return high

    def within(self, i: int, goal: float, error: float) -> float:
        """ε' with δ(ε') = goal if it lies in [(k − 2i)ε, (k − 2i + 2)ε], else the nearer end: e^{ε'} = (A − goal)/B."""
        ends = max(self.k - 2 * i, 0) * self.eps, (self.k - 2 * i + 2) * self.eps
        lies = np.arange(i, dtype=np.float64)
        ahead = logsumexp(self.log_p[:i]) + error
        back = logsumexp(self.log_p[:i] - (self.k - 2 * lies) * self.eps) - error
        left = -math.expm1(min(math.log(goal) - ahead, 0.0)) if goal > 0 else 1.0  # share of A above the goal
        return min(max(ahead - back + math.log(left), ends[0]), ends[1]) if left > 0 else ends[0]

    def above(self, goal: float) -> float:
        """ε' from above: at the last node that is certain to meet the goal, or further down the cell next to it."""
        if goal <= 0 or self.eps == 0:
            return self.k * self.eps * (1 + ULP)
        i = self.first_above(math.log(goal) - self.error)
        return self.within(i, goal, self.error) * (1 + 4 * ULP) if self.k - 2 * i + 2 > 0 else 0.0

    def below(self, goal: float) -> float:
        """ε' from below: at the first node that is certain to miss the goal, or further up the cell next to it."""
        if goal <= 0 or self.eps == 0:
            return self.k * self.eps * (1 - ULP)
        i = self.first_above(math.log(goal) + self.error)
        return self.within(i, goal, -self.error) * (1 - 4 * ULP) if self.k - 2 * i + 2 > 0 else 0.0


def repeated_response(eps: float, k: int) -> RepeatedResponse:
    """P(l) = C(k,l)·e^{(k−l)ε}/(1 + e^ε)^k."""
    lies = np.arange(k // 2 + 1, dtype=np.float64)
    ways = gammaln(floats(k + 1.0)) - gammaln(lies + 1) - gammaln(k - lies + 1)
    error = ULP * (40 * float(gammaln(floats(k + 1.0))) + 8 * k * (eps + 1) + 64)
    return RepeatedResponse(eps, k, ways - lies * eps - k * math.log1p(math.exp(-eps)), error)


# ---- Rényi ----------------------------------------------------------------------------------------------------------


def renyi_accountant(loss: PrivacyLoss, delta: float, orders: Sequence[float] | None = None) -> Bound:
    """ε from Rényi divergences: the least over orders a > 1 of D_a + log((a−1)/a) − (log δ + log a)/(a−1).

    Every order gives a valid ε. Without `orders` the best is sought: by powers of two first, then by golden section and
    parabolas (Brent) around the best of them. D_a·(a−1) is convex in a, so that there is one valley.

    Theorem: D_a ≤ τ implies (τ + log((a−1)/a) − (log δ + log a)/(a−1), δ)-DP [Canonne, Kamath & Steinke 2020, Prop. 12]
    """
    goal = above_zero("delta", delta)
    pairs = (loss,) if loss.relation.one_way or loss.reverse == loss else (loss, loss.reverse)

    @cache
    def cost(log_s: float) -> float:
        s = math.exp(log_s)
        moment = max(pair.log_moment(s).upper for pair in pairs)
        spread = (moment - math.log(goal) - math.log1p(s)) / s
        slip = 16 * ULP * ((abs(moment) - math.log(goal) + math.log1p(s)) / s + math.log1p(1 / s))
        return spread - math.log1p(1 / s) + slip if math.isfinite(moment) else math.inf

    if orders is not None:
        if not orders or not all(1 < order < math.inf for order in orders):
            raise InvalidParameter(f"orders must be finite numbers > 1, e.g. [2, 4, 8].\n  found:  {list(orders)!r}")
        least, best = min((cost(x), x) for x in (math.log(order - 1) for order in orders))
    else:
        least, best = valley(cost)
    least = max(0.0, least)
    return Bound(0.0, least, f"order {1 + math.exp(best):.4g}" if math.isfinite(least) else "moments are infinite")


def valley(cost: Callable[[float], float]) -> tuple[float, float]:
    """Least value of a function with one valley, and where: downhill from log 8 by steps of log 2, then Brent."""
    from scipy.optimize import minimize_scalar

    step = math.log(2)
    here, value = 3 * step, cost(3 * step)
    for move in (-step, step):
        for _ in range(20):
            there = cost(here + move)
            if there > value or (there == value and math.isfinite(value)):
                break
            here, value = here + move, there
    if not math.isfinite(value):
        return value, here
    found = minimize_scalar(cost, bounds=(here - step, here + step), method="bounded", options={"xatol": 1e-3})
    return min((value, here), (float(found.fun), float(found.x)))


# ---- the central limit theorem --------------------------------------------------------------------------------------


def central_limit(loss: PrivacyLoss, delta: float) -> Estimate:
    """ε(δ) of the Gaussian that a composition tends to: μ = 2·Σkl/√Σvar, with its Berry–Esseen error.

    kl, var and κ₃ = E|L − kl|³ are moments of each part's loss under P; a pair whose directions differ has two kl, and
    their sum takes the place of 2·kl. The value is an estimate: above the truth for Laplace, below it for DP-SGD.

    low and high: by Berry–Esseen |P[L > t] − Φ((m − t)/s)| ≤ γ = 0.56·Σκ₃/s³, m = Σkl, s² = Σvar. As δ(ε) is
    ∫_ε^∞ e^{ε−t} P[L > t] dt and the weights integrate to 1, δ(ε) is within γ of the same integral for N(m, s²). Where
    γ ≥ δ, high is infinite. (Thm 3.4 has γ(1 + e^ε) in place of γ and needs symmetric parts.) That much is proved; not
    certified are the moments, which come from a quadrature with a relative error of about 1e-6.

    Theorem: composed trade-off functions tend to that of a Gaussian, error 0.56·κ₃/s³ [Dong, Roth & Su 2022, Thm 3.4]
    Theorem: Berry–Esseen with constant 0.56 for parts of different laws [Shevtsova 2010]
    """
    goal = above_zero("delta", delta)
    needs_profile(loss)
    if most_leak(loss) > 0:
        raise OutOfReach("needs finite moments: this loss is infinite with a small probability")
    forth, back = total_moments(loss), total_moments(loss.reverse)
    found = []
    for mean, variance, third in [forth] if loss.relation.one_way else [forth, back]:
        s, gamma = math.sqrt(max(variance, 0.0)), 0.56 * third / variance**1.5 if variance > 0 else 0.0
        mu = (forth[0] + back[0]) / s if s else 0.0
        value = GaussianLoss(mu).epsilon(goal).upper
        found.append((value, normal_epsilon(mean, s, goal + gamma), normal_epsilon(mean, s, goal - gamma), mu, gamma))
    value, _, _, mu, gamma = max(found)
    low, high = max(f[1] for f in found), max(f[2] for f in found)
    note = f"estimate: μ = {mu:.4g}, δ within {gamma:.2g}, so ε in [{low:.3g}, {high:.3g}]"
    return Estimate(value, low, high, "central limit theorem", note)


def needs_profile(loss: PrivacyLoss) -> None:
    """Refuse losses of which only a Rényi curve is known: a bound on the profile has no moments."""
    if any(part.renyi_curve() for _, part in parts(loss)):
        raise OutOfReach("needs the profile itself: of a part only a Rényi curve is known")


def total_moments(loss: PrivacyLoss) -> tuple[float, float, float]:
    """Σkl, Σvar and Σκ₃ over the parts."""
    each = [(k, moments(part)) for k, part in parts(loss)]
    mean, variance, third = (math.fsum(k * found[i] for k, found in each) for i in range(3))
    return mean, variance, third


def moments(loss: PrivacyLoss) -> tuple[float, float, float]:
    """E[L], Var[L] and E|L − E[L]|³ under P, by quadrature of the profiles.

    For a smooth g:  E_P[g(L)] = g(0) + ∫₀^∞ (g″ + g′)(t)·δ(t) dt + ∫₀^∞ (g″ + g′)(−t)·e^{−t}·δ'(t) dt.

    Theorem: f-divergences are mixtures of hockey-stick divergences [Sason & Verdú 2016, Thm 11]
    """
    (t, ahead), (u, back) = weighted(loss.forward, loss.supremum()[0]), weighted(loss.backward, loss.supremum()[1])
    back = back * np.exp(-u)
    mean = float(ahead.sum() + back.sum())
    square = float((ahead * (2 + 2 * t)).sum() + (back * (2 - 2 * u)).sum())
    x, y = t - mean, -u - mean
    cube = float((ahead * (6 + 3 * x) * np.abs(x)).sum() + (back * (6 + 3 * y) * np.abs(y)).sum())
    return mean, square - mean * mean, cube + mean**3


def centre(curve: Enclosure) -> Floats:
    """Half way between both sides."""
    return (curve.lower + curve.upper) / 2


def weighted(curve: Callable[[Floats], Enclosure], top: float) -> tuple[Floats, Floats]:
    """Nodes on [0, top] and δ there times quadrature weights; cells grow from 0, where most of a small loss lives."""
    end = min(top, 1.0)
    while end < top and end < 1e4 and float(curve(floats([end])).upper[0]) * end**3 > 1e-20:
        end = min(2 * end, top)
    while end > 1e-12 and float(curve(floats([end / 2])).upper[0]) <= 1e-25:
        end /= 2
    nodes, weights = np.polynomial.legendre.leggauss(4)
    edges = end * np.linspace(0.0, 1.0, 1025) ** 3
    width = np.diff(edges)[:, None]
    t = (edges[:-1, None] + width * (nodes + 1) / 2).ravel()
    return t, centre(curve(t)) * (width * weights / 2).ravel()


def normal_epsilon(mean: float, s: float, goal: float) -> float:
    """Least ε ≥ 0 with E[(1 − e^{ε−X})₊] ≤ goal for X ~ N(mean, s²).

    The expectation is Φ(a) − ½e^{−a²/2}·erfcx((s − a)/√2) with a = (mean − ε)/s.
    """
    if goal <= 0:
        return math.inf

    def excess(eps: float) -> float:
        a = floats((mean - eps) / s)
        return float(ndtr(a) - 0.5 * np.exp(-a * a / 2) * erfcx((s - a) / math.sqrt(2)))

    if s == 0 or excess(0.0) <= goal:
        return 0.0
    low, high = 0.0, mean + 40 * s
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) <= goal else (middle, high)
    return high


# ---- the plain Fourier accountant -----------------------------------------------------------------------------------


def fourier(loss: PrivacyLoss, delta: float) -> Estimate:
    """ε(δ) by a discrete Fourier transform of the privacy loss on a fixed window, as in the papers that introduced it.

    Each part's loss is put on a grid that keeps its profile at every grid point; characteristic functions multiply; the
    inverse transform is the law of the sum, and δ(ε) = Σ (1 − e^{ε−t})₊·p(t). Nothing is certified: mass outside the
    window wraps around, and the transform has an absolute rounding error of about 1e-16 per point, so that nothing is
    left of the answer for δ below about 1e-12.

    Theorem: characteristic functions of privacy losses multiply [Zhu, Dong & Wang 2022; Koskela, Jälkö & Honkela 2020]
    """
    goal = above_zero("delta", delta)
    needs_profile(loss)
    found = []
    for pair in (loss,) if loss.relation.one_way or loss.reverse == loss else (loss, loss.reverse):
        reach = min(top_of(pair), renyi_accountant(pair, max(goal * 1e-6, 1e-300)).upper)
        if reach > 700:  # e^t overflows, or the moments are infinite
            raise OutOfReach(f"needs a window of losses below 700, found {reach:.3g}")
        found.append(transformed(pair, goal, max(reach * 1.01, 1e-9)))
    note = f"meaningless: δ below {FLOOR:g} is rounding" if goal < FLOOR else "estimate: nothing is certified"
    return Estimate(max(found), 0.0, math.inf, "plain Fourier transform", note)


def transformed(loss: PrivacyLoss, goal: float, reach: float) -> float:
    """Least ε with δ(ε) ≤ goal on a grid over [−reach, reach]."""
    step = 2 * reach / POINTS
    t = step * np.concatenate([np.arange(POINTS // 2), np.arange(-(POINTS // 2), 0)])  # as the transform orders them
    total, certain = np.ones(POINTS // 2 + 1, dtype=np.complex128), 1.0
    for count, part in parts(loss):
        mass, leak = on_grid(part, reach, step)
        total *= np.fft.rfft(mass) ** count
        certain *= (1 - leak) ** count
    law = np.fft.irfft(total, POINTS)[: POINTS // 2]  # losses above 0
    above = np.cumsum(law[::-1])[::-1]
    discounted = np.cumsum((law * np.exp(-t[: POINTS // 2]))[::-1])[::-1]
    profile = 1 - certain + above - np.exp(t[: POINTS // 2]) * discounted
    missed = np.flatnonzero(profile > goal)
    if not len(missed) or missed[-1] == len(profile) - 1:
        return math.inf if len(missed) else 0.0
    i = int(missed[-1])
    return float(t[i] + step * (profile[i] - goal) / (profile[i] - profile[i + 1]))


def on_grid(loss: PrivacyLoss, reach: float, step: float) -> tuple[Floats, float]:
    """P's masses on the grid whose profile agrees with the loss at each grid point, and the mass beyond the grid.

    Q's mass at e^t is the change of slope of H there, and P's is e^t times that. Negative masses are rounding and are
    kept: they cancel in sums, while cutting them off would add up.
    """
    t = floats(step * np.arange(-(POINTS // 2), POINTS // 2 + 1))
    x, middle = np.exp(t), POINTS // 2
    ahead, back = centre(loss.forward(t[middle:])), centre(loss.backward(-t[:middle]))
    stick = np.concatenate([1 - x[:middle] + x[:middle] * back, ahead])
    slope = np.concatenate([[-1.0], np.diff(stick) / np.diff(x), [0.0]])
    mass = x * np.diff(slope)
    mass[-2] += mass[-1]  # the last point belongs to the next period
    return np.roll(mass[:-1], -middle), float(stick[-1])


# ---- side by side ---------------------------------------------------------------------------------------------------


def parts(loss: PrivacyLoss) -> tuple[tuple[int, PrivacyLoss], ...]:
    """The summands of a loss, with how often."""
    if isinstance(loss, OneWay):
        return tuple((count, OneWay(part, relation=loss.relation)) for count, part in parts(loss.inner))
    return loss.terms if isinstance(loss, Sum) else ((1, loss),)


@dataclass(frozen=True)
class Row:
    """One accountant's answer, or None and the reason."""

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
    """Every accountant's ε(δ) for one loss. What does not apply says why; what is untrue is "below the truth"."""
    goal = above_zero("delta", delta)
    truth = loss.epsilon(goal)
    rows = [Row("optimal (sfumato)", truth, truth.method)]
    for name, accountant in ACCOUNTANTS.items():
        try:
            found = accountant(loss, goal)
        except (InvalidParameter, OutOfReach) as problem:
            rows.append(Row(name, None, str(problem).splitlines()[0]))
            continue
        claim, note = (found.value, found.note) if isinstance(found, Estimate) else (found.upper, found.method)
        short = f"below the truth by {truth.lower - claim:.2g}! " if claim < truth.lower else ""
        rows.append(Row(name, found, short + note))
    return Comparison(goal, tuple(rows))


def basic_of(loss: PrivacyLoss, delta: float) -> Bound:
    """Basic composition where each part gets what it leaks and an equal share of the rest of δ."""
    terms = parts(loss)
    spare = (delta - sum(k * most_leak(part) for k, part in terms)) / max(sum(k for k, _ in terms), 1)
    if spare < 0:
        raise OutOfReach("the parts leak more than δ")
    each = [(k, part.epsilon(most_leak(part) + spare * (1 - 4 * ULP)).upper) for k, part in terms]
    return ceiling(math.fsum(k * eps for k, eps in each), "δ shared equally")


def of_equal_parts(theorem: Callable[[float, float, int, float, float], Bound]) -> Accountant:
    """An accountant of k equal (ε, δ) parts that is told ε, δ, k, the slack δ' that is left, and the total δ.

    Parts with a largest loss are (largest loss, leak)-DP. Others get half of δ for themselves. These theorems need both
    directions: a pair with P ≤ e^ε·Q alone can have a mean loss of ε.
    """

    def accountant(loss: PrivacyLoss, delta: float) -> Bound:
        if len(parts(loss)) != 1:
            raise OutOfReach(f"needs equal parts: these are of {len(parts(loss))} kinds")
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
    "basic": basic_of,
    "advanced": of_equal_parts(lambda eps, each, k, slack, _: advanced(eps, each, k, slack).epsilon),
    "advanced, zCDP mean": of_equal_parts(lambda eps, each, k, slack, _: advanced_slides(eps, each, k, slack).epsilon),
    "optimal for (ε, δ)": of_equal_parts(lambda eps, each, k, _, total: optimal(eps, each, k, total)),
    "Rényi": renyi_accountant,
    "central limit": central_limit,
    "plain Fourier": fourier,
}
