"""ε from Rényi divergences: the moments accountant, with the order that is best for the loss."""

import math
from collections.abc import Callable, Sequence
from functools import cache

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import ULP


def above_zero(name: str, value: float) -> float:
    """A number in (0, 1]."""
    return checks.number(name, value, math.ulp(0.0), 1.0, allowed="a number greater than 0 and at most 1")


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
