"""Independent truth: profiles written down from their definitions, in arithmetic with as many digits as it takes.

Nothing here calls the package. A direction (P, Q) is a `Finite` list of outcomes or a curve u ↦ H_{e^u}(P‖Q) on all
of ℝ; the composition of a finite pair with a curve is H_α = Σᵢ Pᵢ·H_{αQᵢ/Pᵢ}, and that of two finite pairs lists
all products.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache, reduce
from itertools import pairwise, product

import mpmath as mp

Curve = Callable[[mp.mpf], mp.mpf]
Finite = list[tuple[mp.mpf, mp.mpf]]  # probabilities of each outcome under P and Q
DIGITS = 50
BITS = 420  # of the fixed-point numbers in which products are enumerated: 1e-126


def settled(value: Callable[[], mp.mpf], start: int = DIGITS + 10) -> mp.mpf:
    """A value that no longer moves when the digits are doubled: cancellation then does not matter."""
    digits, before = start, None
    while True:
        with mp.workdps(digits):
            here = value()
        if before is not None and (here == before or abs(here - before) <= abs(here) * mp.mpf(10) ** -30):
            return here
        if digits > 20_000:
            raise AssertionError("the truth itself does not settle")
        before, digits = here, 2 * digits


# ---- one mechanism, one direction -----------------------------------------------------------------------------------


def upper_tail(x: mp.mpf) -> mp.mpf:
    """P[N(0, 1) > x]."""
    return mp.erfc(x / mp.sqrt(2)) / 2


def gaussian(mu: float) -> Curve:
    """P = N(μ, 1), Q = N(0, 1): p > e^u q right of u/μ + μ/2."""

    def curve(u: mp.mpf) -> mp.mpf:
        m = mp.mpf(mu)
        x = u / m + m / 2
        return upper_tail(x - m) - mp.exp(u) * upper_tail(x)

    return curve


def laplace(eps: float) -> Curve:
    """Densities ½εe^{−ε|x−1|} and ½εe^{−ε|x|}: the log ratio is ε(2x − 1) between 0 and 1."""

    def curve(u: mp.mpf) -> mp.mpf:
        e = mp.mpf(eps)
        if u >= e:
            return mp.mpf(0)
        if u < -e:
            return 1 - mp.exp(u)
        x = (u / e + 1) / 2
        return (1 - mp.exp(-e * (1 - x)) / 2) - mp.exp(u) * mp.exp(-e * x) / 2

    return curve


def discrete_gaussian(sigma: float, sensitivity: int) -> Curve:
    """Σ over the integers with p > e^u q, term by term."""

    def curve(u: mp.mpf) -> mp.mpf:
        s, d = mp.mpf(sigma), sensitivity
        first = int(mp.floor(u * s * s / d + mp.mpf(d) / 2)) + 1
        reach = math.ceil(sigma * math.sqrt(2 * 2.31 * mp.mp.dps)) + 2
        last = max(first, d) + reach
        first = max(first, d - reach - abs(first) // 10**6)  # further left nothing has mass
        total = mp.mpf(0)
        for x in range(first, last + 1):
            total += mp.exp(-((x - d) ** 2) / (2 * s * s)) - mp.exp(u - mp.mpf(x) ** 2 / (2 * s * s))
        return total / theta(sigma, mp.mp.dps)

    return curve


@cache
def theta(sigma: float, digits: int) -> mp.mpf:
    """Σ_x e^{−x²/2σ²}."""
    s = mp.mpf(sigma)
    reach = math.ceil(sigma * math.sqrt(2 * 2.31 * digits)) + 2
    return 1 + 2 * mp.fsum(mp.exp(-(mp.mpf(x) ** 2) / (2 * s * s)) for x in range(1, reach))


def bounded_range(eps: float) -> Curve:
    """The worst two-point pair with losses s and s − ε, for each u ≥ 0 anew: found by search over s."""

    def curve(u: mp.mpf) -> mp.mpf:
        e = mp.mpf(eps)
        if u < 0:
            return 1 - mp.exp(u) + mp.exp(u) * curve(-u)
        if u >= e:
            return mp.mpf(0)

        def power(s: mp.mpf) -> mp.mpf:
            q = (1 - mp.exp(s - e)) / (mp.exp(s) - mp.exp(s - e))
            return q * mp.exp(s) - mp.exp(u) * q

        return highest(power, u, e)

    return curve


def highest(f: Curve, low: mp.mpf, high: mp.mpf) -> mp.mpf:
    """Maximum of a concave function, by golden section to half the digits: its top is flat, so the value has them
    all.
    """
    ratio = (mp.sqrt(5) - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = f(a), f(b)
    for _ in range(95):
        if at_a < at_b:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = f(b)
        else:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = f(a)
    return max(at_a, at_b)


def sampled_gaussian(rate: float, mu: float) -> tuple[Curve, Curve]:
    """(1−q)N(0,1) + qN(μ,1) against N(0,1), in both directions: one threshold each."""
    q, m = mp.mpf(rate), mp.mpf(mu)

    def remove(u: mp.mpf) -> mp.mpf:
        odds = mp.exp(u) - 1 + q
        if odds <= 0:
            return 1 - mp.exp(u)
        x = (mp.log(odds / q) + m * m / 2) / m
        return (1 - q) * upper_tail(x) + q * upper_tail(x - m) - mp.exp(u) * upper_tail(x)

    def add(u: mp.mpf) -> mp.mpf:
        odds = mp.exp(-u) - 1 + q
        if odds <= 0:
            return mp.mpf(0)
        x = (mp.log(odds / q) + m * m / 2) / m
        return upper_tail(-x) - mp.exp(u) * ((1 - q) * upper_tail(-x) + q * upper_tail(m - x))

    return remove, add


def mirrored(curve: Curve) -> Curve:
    """H_{e^u}(Q‖P) from H(P‖Q)."""
    return lambda u: 1 - mp.exp(u) + mp.exp(u) * curve(-u)


# ---- pairs with a list of outcomes ----------------------------------------------------------------------------------


def coin(eps: float, leak: float = 0.0) -> Finite:
    """Randomized response with ε; with probability `leak` the output names its data set."""
    e, d = mp.mpf(eps), mp.mpf(leak)
    yes = mp.exp(e) / (1 + mp.exp(e))
    keep = 1 - d
    return [(d, mp.mpf(0)), (keep * yes, keep * (1 - yes)), (keep * (1 - yes), keep * yes), (mp.mpf(0), d)]


def responses(eps: float, k: int) -> Finite:
    """k answers: the true one with e^ε/(e^ε + k − 1), every other with 1/(e^ε + k − 1)."""
    total = mp.exp(mp.mpf(eps)) + k - 1
    truth = [mp.exp(mp.mpf(eps)) / total, *[1 / total] * (k - 1)]
    return list(zip(truth, [truth[1], truth[0], *truth[2:]], strict=True))


def discrete_laplace(scale: float, sensitivity: int) -> Finite:
    """Every integer from 0 to d, and the two half-lines beyond, on which the ratio is constant."""
    r, d = mp.exp(-1 / mp.mpf(scale)), sensitivity

    def mass(x: int) -> mp.mpf:
        return (1 - r) / (1 + r) * r ** abs(x)

    left = mp.fsum([mass(0) / (1 - r)])  # Σ_{x ≤ 0} r^{|x|}
    inner = [(mass(x - d), mass(x)) for x in range(1, d)]
    return [(left * r**d, left), *inner, (left, left * r**d)] if d else [(mp.mpf(1), mp.mpf(1))]


def staircase(eps: float, gamma: float) -> Finite:
    """The density is constant on cells; it and its shift by 1 are compared cell by cell on (0, 1), and beyond by
    symmetry.

    For x ≥ 1 the density is e^{−ε} times its value one step to the left, and the same for x ≤ 0 mirrored.
    """
    g, b = mp.mpf(gamma), mp.exp(-mp.mpf(eps))
    if eps == 0:
        return [(mp.mpf(1), mp.mpf(1))]
    high = (1 - b) / (2 * (g + b * (1 - g)))
    edges = sorted({mp.mpf(0), g, 1 - g, mp.mpf(1)})

    def height(x: mp.mpf) -> mp.mpf:
        return high if x < g else high * b

    cells = []
    for left, right in pairwise(edges):
        middle, width = (left + right) / 2, right - left
        cells.append((width * height(1 - middle), width * height(middle)))
    half = mp.mpf(1) / 2
    return [(half, half * b), *cells, (half * b, half)]


def sampled(pair: Finite, rate: float) -> Finite:
    """((1−q)Q + qP, Q)."""
    q = mp.mpf(rate)
    return [((1 - q) * b + q * a, b) for a, b in pair]


def reverse(pair: Finite) -> Finite:
    """(Q, P)."""
    return [(b, a) for a, b in pair]


# ---- composition ----------------------------------------------------------------------------------------------------


def fixed(x: mp.mpf) -> int:
    return int(mp.nint(mp.ldexp(x, BITS)))


def all_products(pairs: Sequence[Finite]) -> list[tuple[int, int]]:
    """Every combined outcome, as fixed-point numbers."""
    with mp.workprec(BITS + 64):
        parts = [[(fixed(a), fixed(b)) for a, b in pair] for pair in pairs]
    one = 1 << BITS
    return [
        reduce(lambda x, y: (x[0] * y[0] >> BITS, x[1] * y[1] >> BITS), combination, (one, one))
        for combination in product(*parts)
    ]


def enumerated(pairs: Sequence[Finite], eps: Sequence[float]) -> list[mp.mpf]:
    """Σ (P − e^ε Q)₊ over all combined outcomes, for each ε."""
    outcomes, found = all_products(pairs), []
    for e in eps:
        with mp.workprec(BITS + 64):
            alpha = fixed(mp.exp(mp.mpf(e)))
            total = sum(gain for p, q in outcomes if (gain := (p << BITS) - alpha * q) > 0)
            dust = (alpha << 30) * len(outcomes)  # what the rounding of the fixed-point numbers can add up to
            found.append(min(mp.ldexp(mp.mpf(total), -2 * BITS), mp.mpf(1)) if total > dust else mp.mpf(0))
    return found


def with_curve(pairs: Sequence[Finite], curve: Curve, eps: float) -> mp.mpf:
    """Σᵢ Pᵢ·H(ε − log Pᵢ/Qᵢ) over all combined outcomes of the finite pairs."""
    total = mp.mpf(0)
    for combination in product(*pairs):
        p = mp.fprod(a for a, _ in combination)
        q = mp.fprod(b for _, b in combination)
        if p > 0:
            total += p if q == 0 else p * curve(mp.mpf(eps) - mp.log(p / q))
    return total


def equal_coins(eps: float, k: int, t: float, leak: float = 0.0) -> mp.mpf:
    """k-fold randomized response at t: the binomial sum from its first positive term until terms no longer matter."""
    e, yes = mp.mpf(eps), 1 / (1 + mp.exp(-mp.mpf(eps)))
    first = max(0, int(mp.floor((mp.mpf(t) / e + k) / 2)) + 1)
    total = mp.mpf(0)
    if first <= k:
        mass = mp.exp(mp.loggamma(k + 1) - mp.loggamma(first + 1) - mp.loggamma(k - first + 1))
        mass *= mp.exp(first * mp.log(yes) + (k - first) * mp.log(1 - yes))
        odds = mp.exp(e)
        for i in range(first, k + 1):
            gain = mass * -mp.expm1(mp.mpf(t) - (2 * i - k) * e)
            total += gain
            mass *= odds * (k - i) / (i + 1)
            if i > k * yes and mass < total * mp.mpf(10) ** (-mp.mp.dps):
                break
    survive = (1 - mp.mpf(leak)) ** k
    return min(1 - survive + survive * total, mp.mpf(1))  # rounding


def equal_laplaces(eps: float, k: int, t: float) -> mp.mpf:
    """k-fold Laplace at t, exactly.

    Times e^{−L/2} the law of one loss is ½e^{−ε/2}·[atoms at ±ε + ½·uniform density on (−ε, ε)]. A uniform density
    is a difference of two integrals, so k-fold it is (½e^{−ε/2})^k Σ_j C(k,j)2^{−j}(z+1/z)^{k−j}(z−1/z)^j applied
    to the j-fold antiderivatives G_j of e^{s/2} − e^{t−s/2}, s > t, where z shifts by ε.
    """
    e, t = mp.mpf(eps), mp.mpf(t)
    points = [n for n in range(k + 1) if (2 * n - k) * e > t]
    total = mp.mpf(0)
    for j in range(k + 1):
        inner = mp.mpf(0)
        for n in points:
            weight = sum(
                (-1) ** m * math.comb(j, m) * math.comb(k - j, n - j + m)
                for m in range(j + 1)
                if 0 <= n - j + m <= k - j
            )
            if weight:
                inner += weight * antiderivative((2 * n - k) * e - t, j)
        total += math.comb(k, j) * mp.mpf(2) ** -j * inner
    return (mp.exp(-e / 2) / 2) ** k * mp.exp(t / 2) * total


def antiderivative(x: mp.mpf, j: int) -> mp.mpf:
    """j-fold integral from 0 of 2 sinh(x/2): 2Σ_{n odd} 2^{−n} x^{n+j}/(n+j)!."""
    total, n = mp.mpf(0), 1
    term = x ** (1 + j) / mp.factorial(1 + j)
    while True:
        total += term
        n += 2
        term *= x * x / 4 / ((n + j) * (n + j - 1))
        if abs(term) < abs(total) * mp.mpf(10) ** (-mp.mp.dps):
            return total


def gaussian_and_laplace(mu: float, eps: float, t: float) -> mp.mpf:
    """∫ over the Laplace loss (atoms ½ at ε and ½e^{−ε} at −ε, density ¼e^{(l−ε)/2} between) of the Gaussian's
    profile.
    """
    e, curve, t = mp.mpf(eps), gaussian(mu), mp.mpf(t)
    middle = mp.quad(lambda x: mp.exp((x - e) / 2) / 4 * curve(t - x), [-e, 0, e])
    return curve(t - e) / 2 + mp.exp(-e) / 2 * curve(t + e) + middle


def sampled_gaussians(rate: float, mu: float, t: mp.mpf, fold: int) -> tuple[mp.mpf, mp.mpf]:
    """(remove, add) of a few equal sampled Gaussians: integrals over the noise of all but one.

    Where the losses so far leave less than the least possible loss to the last one, its profile is 1 − e^u; the
    quadrature is told where that begins.
    """
    q, m = mp.mpf(rate), mp.mpf(mu)
    remove, add = sampled_gaussian(rate, mu)
    reach = mp.sqrt(2 * mp.mp.dps * mp.log(10))

    def loss(x: mp.mpf) -> mp.mpf:
        return mp.log1p(q * mp.expm1(m * x - m * m / 2))

    def density(x: mp.mpf, mean: mp.mpf) -> mp.mpf:
        return mp.npdf(x, mean, 1)

    def joint(x: mp.mpf) -> mp.mpf:
        return (1 - q) * density(x, mp.mpf(0)) + q * density(x, m)

    def where(target: mp.mpf) -> list[mp.mpf]:
        """The x with this loss, if it is in reach."""
        odds = (mp.exp(target) - 1 + q) / q
        x = (mp.log(odds) + m * m / 2) / m if odds > 0 else mp.inf
        return [x] if -reach < x < m + reach else []

    def removed(u: mp.mpf, depth: int) -> mp.mpf:
        if depth == 1:
            return remove(u)
        cuts = sorted([-reach, mp.mpf(0), m, m + reach, *where(u - (depth - 1) * mp.log(1 - q))])
        return mp.quad(lambda x: joint(x) * removed(u - loss(x), depth - 1), cuts)

    def added(u: mp.mpf, depth: int) -> mp.mpf:
        if depth == 1:
            return add(u)
        cuts = sorted([-reach, mp.mpf(0), reach, *[x for x in where(-u - (depth - 1) * mp.log(1 - q)) if x < reach]])
        return mp.quad(lambda x: density(x, mp.mpf(0)) * added(u + loss(x), depth - 1), cuts)

    return removed(mp.mpf(t), fold), added(mp.mpf(t), fold)


def distinct_coins(coins: Sequence[tuple[float, float]], t: float) -> mp.mpf:
    """Leaky coins (ε, leak), all different: Σ (P − e^t Q)₊ over all faces, and what leaks."""
    faces, kept = [(mp.mpf(1), mp.mpf(1))], mp.mpf(1)
    for eps, leak in coins:
        yes = 1 / (1 + mp.exp(-mp.mpf(eps)))
        faces = [pair for p, q in faces for pair in ((p * yes, q * (1 - yes)), (p * (1 - yes), q * yes))]
        kept *= 1 - mp.mpf(leak)
    alpha = mp.exp(mp.mpf(t))
    return 1 - kept + kept * mp.fsum(gain for p, q in faces if (gain := p - alpha * q) > 0)


# ---- sampled Gaussians, many times ----------------------------------------------------------------------------------


def sampled_moment(
    rate: float, mu: float, sign: int, z: mp.mpc, reach: float, step: float, people: int = 1
) -> list[tuple]:
    """(weight, loss) at the points of a trapezoid sum for E e^{zL}, L = ±log G: G = 1 − q + qe^{μx−μ²/2} under Q.

    For more people G is the mean of e^{jμx − j²μ²/2} over a binomial j.
    """
    q, m, h = mp.mpf(rate), mp.mpf(mu), mp.mpf(step)
    power = z + 1 if sign > 0 else -z
    right = reach + (float(z) + 1) * mu * people if sign > 0 else reach
    chances = [mp.binomial(people, j) * q**j * (1 - q) ** (people - j) for j in range(1, people + 1)]
    found = []
    for n in range(-math.ceil(reach / step), math.ceil(right / step) + 1):
        x = n * h
        g = mp.log1p(mp.fsum(w * mp.expm1(j * m * (x - j * m / 2)) for j, w in enumerate(chances, 1)))
        found.append((h / mp.sqrt(2 * mp.pi) * mp.exp(power * g - x * x / 2), sign * g))
    return found


class SampledFold:
    """`count` equal sampled Gaussians: the inversion integral (1/2π)∫M(z)^k e^{−zt}/(z(z+1))dω as a plain sum.

    sign = +1 is H(P‖Q), −1 is H(Q‖P). The step in x is a small part of the width of the strip in which log G is
    analytic; the window is `wide` times as wide as the tilted law, and the sum ends where |φ|^k is below 10^−digits.
    Two windows must agree (see `settled_fold`): nothing here is proved, all of it is overdone.
    """

    def __init__(self, rate: float, mu: float, sign: int, count: int, theta: float, wide: float, digits: int) -> None:
        self.theta, self.count, self.digits = mp.mpf(theta), count, digits
        need = 2.31 * (digits + 4) + math.log(count)
        hidden = 0.0 if sign > 0 else -theta * math.log1p(-rate)
        reach = math.sqrt(2 * (need + hidden)) + 1
        strip = min(math.sqrt(2 * need), 0.75 * math.pi / mu)
        if sign < 0:
            strip = min(strip, math.sqrt(2 * need / (1 + theta * mu * mu / 4)))
        grow = strip**2 / 2 - (theta * math.log(math.cos(mu * strip / 2)) if sign < 0 else 0)

        def points(omega: float) -> list[tuple]:
            step = 2 * math.pi * strip / (need + grow + omega * mu * strip)
            return sampled_moment(rate, mu, sign, self.theta, reach, step)

        first = points(0.0)
        one = mp.fsum(w for w, _ in first)
        self.log_moment = count * mp.log(one)
        self.mean = mp.fsum(w * x for w, x in first) / one
        self.spread = mp.sqrt(count * mp.fsum(w * (x - self.mean) ** 2 for w, x in first) / one)
        self.step = 2 * mp.pi / (wide * self.spread)
        self.values = self.nodes(points, float(20 * self.spread**-1), one)

    def nodes(self, points: Callable[[float], list[tuple]], omega: float, one: mp.mpf) -> list[mp.mpc]:
        """φ^k·e^{−iωk·mean} at the nodes, with more points in x if the frequencies turn out to go further."""
        table = points(omega)
        turns = [mp.expj(self.step * (x - self.mean)) for _, x in table]
        now, found = [w / one for w, _ in table], []
        total = mp.fsum(now)
        while True:
            found.append((mp.fsum(now) / total) ** self.count)
            if abs(found[-1]) < mp.mpf(10) ** -self.digits:
                return found
            if len(found) * self.step > omega:
                return self.nodes(points, 3 * omega, one)
            now = [c * turn for c, turn in zip(now, turns, strict=True)]

    def delta(self, t: float) -> mp.mpf:
        t, total = mp.mpf(t), mp.mpf(0)
        for n, value in enumerate(self.values):
            z = mp.mpc(self.theta, n * self.step)
            turn = mp.expj(n * self.step * (self.count * self.mean - t))
            total += (value * turn / (z * (z + 1))).real * (1 if n else mp.mpf(1) / 2)
        return mp.exp(self.log_moment - self.theta * t) * total * self.step / mp.pi


def settled_fold(rate: float, mu: float, sign: int, count: int, t: float, digits: int = 25) -> mp.mpf:
    """The same value on two contours with two windows, good to about `digits` digits; wider ones if they differ.

    Where nothing is sampled, each step of the reversed pair loses at most −log(1 − rate): beyond their sum δ is 0.
    """
    if sign < 0 and t >= -count * mp.log1p(-mp.mpf(rate)):
        return mp.mpf(0)
    theta = sampled_saddle(rate, mu, sign, count, t)
    with mp.workdps(digits + 25 + len(str(count))):
        for windows in ((30.0, 45.0), (60.0, 85.0), (120.0, 160.0)):
            found = [
                SampledFold(rate, mu, sign, count, theta * share, wide, digits + 10).delta(t)
                for share, wide in zip((1.0, 1.03), windows, strict=True)
            ]
            if abs(found[0] - found[1]) <= found[1] * mp.mpf(10) ** -digits:
                return found[1]
        raise AssertionError("the truth itself does not settle")


def sampled_saddle(rate: float, mu: float, sign: int, count: int, t: float) -> float:
    """About the θ with the least k·log M(θ) − θt − log θ(θ+1), by plain bisection of logarithms."""

    def height(theta: float) -> float:
        power = theta + 1 if sign > 0 else -theta
        hidden = 0.0 if sign > 0 else -theta * math.log1p(-rate)
        reach = math.sqrt(2 * (40 + hidden))
        low, high = -reach, reach + (power * mu if sign > 0 else 0.0)
        n = 4000
        h = (high - low) / n
        logs = []
        for i in range(n + 1):
            x = low + i * h
            e = mu * x - mu * mu / 2
            g = math.log1p(rate * math.expm1(e)) if e < 30 else math.log(rate) + e
            logs.append(power * g - x * x / 2)
        top = max(logs)
        moment = top + math.log(math.fsum(math.exp(x - top) for x in logs) * h / math.sqrt(2 * math.pi))
        return count * moment - theta * t - math.log(theta * (theta + 1))

    low, high = math.log(1e-4), math.log(2e3)
    for _ in range(18):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if height(math.exp(a)) < height(math.exp(b)) else (a, high)
    return math.exp((low + high) / 2)
