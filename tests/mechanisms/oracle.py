"""An independent oracle: laws of outcomes as balls, and what two of them cost, whatever the package says."""

from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction

from flint import arb

from sfumato.noise.balls import ball, precision

PREC = 300
EPSILONS = [0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0]
Law = Mapping[Hashable, arb]


def exact(function: Callable) -> Callable:
    """Run with PREC bits of working precision."""

    def run(*args, **kwargs):
        with precision(PREC):
            return function(*args, **kwargs)

    return run


def e(x: Fraction | float) -> arb:
    """e^x."""
    return ball(Fraction(x)).exp()


def normalised(weights: Mapping[Hashable, arb]) -> dict[Hashable, arb]:
    total = sum(weights.values(), arb(0))
    return {outcome: weight / total for outcome, weight in weights.items()}


@exact
def hockey_stick(p: Law, q: Law, eps: float) -> float:
    """Σ (p − e^ε q)₊ from below."""
    zero, total = arb(0), arb(0)
    for outcome in {*p, *q}:
        difference = p.get(outcome, zero) - e(eps) * q.get(outcome, zero)
        if difference > 0:
            total += difference
    return float(total.lower())


def most_delta(p: Law, q: Law, eps: float) -> float:
    """The larger of both directions."""
    return max(hockey_stick(p, q, eps), hockey_stick(q, p, eps))


def assert_within(loss, pairs: list[tuple[Law, Law]], epsilons=EPSILONS, tight: float | None = None) -> None:
    """No pair costs more than `loss` at any ε; with `tight`, some pair comes this near (a share) somewhere."""
    share = 0.0
    for eps in epsilons:
        allowed = loss.delta(eps).upper
        worst = max(most_delta(p, q, eps) for p, q in pairs)
        assert worst <= allowed * (1 + 1e-12) + 1e-15, (eps, worst, allowed)
        share = max(share, worst / allowed if allowed > 0 else 0.0)
    assert tight is None or share >= tight, share
