"""Planning a run: the least noise, the most steps or the largest batches for (ε, δ), and a table of choices."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from sfumato import checks
from sfumato.errors import InvalidParameter, OutOfReach
from sfumato.learn.torch.charge import Funds, run_loss, share_needed, target
from sfumato.learn.torch.noise import Independent, Move
from sfumato.learn.torch.sizes import fixed_size, most_failure
from sfumato.ledger.ledger import Ledger
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.views.calibrate import calibrate as find
from sfumato.rounding import quotient_down, quotient_up
from sfumato.sampling.balls_in_bins import BallsInBins
from sfumato.sampling.base import Sampling
from sfumato.sampling.fixed_cycles import FixedCycles
from sfumato.sampling.poisson import Poisson
from sfumato.sampling.without_replacement import WithoutReplacement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRIES = 12  # prices of a ledger that are computed to find the noise that it pays for
ROOM = 5e-3  # of the sensitivity, for float errors: they are known once the model is, and are mostly less


def planned_loss(sampler: Sampling, noise: float, steps: int, delta: float) -> PrivacyLoss:
    """The loss of a run with independent noise, before the model is known: with room for float errors and overflow."""
    failure = 0.0 if fixed_size(sampler) else most_failure(delta)
    return run_loss(Independent(noise), sampler, Move(1 + ROOM), steps, failure)


def calibrated_noise(
    sampler: Sampling, move: Move, steps: int, budget: Funds, failure: float = 0.0, who: str | None = None
) -> Independent:
    """Independent noise, the least that meets (ε, δ), or that what is left in a ledger pays for."""
    epsilon, delta = target(budget)

    def loss(sigma: float) -> PrivacyLoss:
        return run_loss(Independent(sigma), sampler, move, steps, failure)

    sigma = find(loss, epsilon=epsilon, delta=delta, tolerance=1e-3).upper
    if isinstance(budget, Ledger):
        sigma = affordable(lambda sigma: share_needed(budget, loss(sigma), who), sigma)
    return Independent(sigma)


def affordable(share: Callable[[float], float], sigma: float) -> float:
    """Noise that takes 99 % of what is left, or all. A share falls about as the square of the noise grows.

    A ledger that is used up pays for none: then the noise is returned as it was, and the charge is refused.
    """
    first, fits = sigma, math.inf
    for _ in range(TRIES):
        needed = share(sigma)
        fits = min(fits, sigma) if needed <= 1 else fits
        if 0.99 < needed <= 1:
            break
        sigma *= min(8.0, max(0.125, 1.001 * math.sqrt(needed)))
    return fits if fits < math.inf else first


def calibrate(
    *, epsilon: float, delta: float, sampler: Sampling | None = None, noise: float | None = None,
    steps: int | None = None, deviation: float | None = None,
) -> Bound:  # fmt: skip
    """The one of noise, steps and rate (of Poisson batches) that is left out, so that the run is (ε, δ)-DP.

    With `deviation`, the standard deviation of the noise on a sum of gradients, it is the clip norm: deviation/noise.
    Noise is rounded up, steps, rates and clip norms down.
    """
    if deviation is not None:
        if noise is not None:
            raise InvalidParameter(
                "the deviation and its multiple of the clip norm fix that norm already.\n  found:  both\n"
                "  do:     give one of noise and deviation"
            )
        least = calibrate(epsilon=epsilon, delta=delta, sampler=sampler, steps=steps)
        high = quotient_up(checks.positive("deviation", deviation), least.lower) if least.lower > 0 else math.inf
        return Bound(quotient_down(deviation, least.upper), high, least.method, safe="lower")
    missing = [name for name, value in (("noise", noise), ("steps", steps), ("sampler", sampler)) if value is None]
    if len(missing) != 1:
        raise InvalidParameter(
            "leave out one of noise, steps and sampler, and that one is found.\n"
            f"  found:  {', '.join(missing) or 'none of them'} left out\n  do:     give the other two"
        )
    if sampler is None:
        return find(
            lambda q: planned_loss(Poisson(q), noise or 0.0, steps or 0, delta), epsilon=epsilon, delta=delta, high=1.0
        )
    if noise is None:
        return find(lambda s: planned_loss(sampler, s, steps or 0, delta), epsilon=epsilon, delta=delta, tolerance=1e-4)
    return find(lambda k: planned_loss(sampler, noise, int(k), delta), epsilon=epsilon, delta=delta, integer=True)


@dataclass(frozen=True)
class Choice:
    """One way to train: its batches, steps, noise, ε, and how large the noise is beside a clipped mean gradient."""

    sampler: Sampling
    batch: int
    steps: int
    noise: float | None  # None if no noise meets the target
    epsilon: float
    noise_to_signal: float


@dataclass(frozen=True)
class Plan:
    """Ways to train on n people for so many epochs at (ε, δ), as a table (`print`) and as a picture (`figure`)."""

    choices: tuple[Choice, ...]
    epsilon: float
    delta: float

    def __str__(self) -> str:
        lines = ["  batch     steps      noise    ε        noise/signal   sampler"]
        for c in self.choices:
            sigma = "–" if c.noise is None else f"{c.noise:.3f}"
            lines.append(
                f"{c.batch:7,} {c.steps:9,} {sigma:>10} {c.epsilon:8.4g} {c.noise_to_signal:12.3g}     {c.sampler!r}"
            )
        note = "noise/signal: noise of one step, in one direction, over a mean gradient as long as the clip norm"
        return "\n".join([f"(ε, δ) = ({self.epsilon:g}, {self.delta:g})", *lines, note])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def figure(self) -> "Figure":
        """Noise over signal for each batch size, one line for each kind of sampler."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 4))
        axes = figure.subplots()
        for kind in dict.fromkeys(type(c.sampler).__name__ for c in self.choices):
            mine = [c for c in self.choices if type(c.sampler).__name__ == kind and c.noise is not None]
            axes.loglog([c.batch for c in mine], [c.noise_to_signal for c in mine], "o-", label=kind)
        axes.set_xlabel("batch size")
        axes.set_ylabel("noise over signal, one step")
        axes.set_title(f"ε = {self.epsilon:g}, δ = {self.delta:g}")
        axes.legend()
        return figure


def plan(
    n: int, epochs: int, *, epsilon: float, delta: float, batches: Sequence[int] = (64, 256, 1024),
    samplers: Sequence[str] = ("Poisson", "WithoutReplacement", "FixedCycles"),
) -> Plan:  # fmt: skip
    """What each batch size and sampler needs: the least noise for (ε, δ), and its size beside the signal.

    "BallsInBins" may be asked for, too; its price takes a minute.
    """
    people, rounds = checks.whole("n", n, 1), checks.whole("epochs", epochs, 1)
    found = []
    for name in samplers:
        for size in batches:
            batch = min(people, checks.whole("batch size", size, 1))
            steps = rounds * -(-people // batch)
            found.append(choose(make_sampler(name, people, batch), batch, steps, epsilon, delta))
    return Plan(tuple(found), epsilon, delta)


def choose(sampler: Sampling, batch: int, steps: int, epsilon: float, delta: float) -> Choice:
    try:
        sigma = calibrate(epsilon=epsilon, delta=delta, sampler=sampler, steps=steps).upper
    except OutOfReach:
        return Choice(sampler, batch, steps, None, float("inf"), float("inf"))
    spent = planned_loss(sampler, sigma, steps, delta).epsilon(delta).upper
    return Choice(sampler, batch, steps, sigma, spent, sigma / batch)


def make_sampler(name: str, people: int, batch: int) -> Sampling:
    """A sampler by its name, for batches of this size."""
    kinds: dict[str, Callable[[], Sampling]] = {
        "Poisson": lambda: Poisson(batch / people),
        "WithoutReplacement": lambda: WithoutReplacement(people, batch),
        "FixedCycles": lambda: FixedCycles(people, batch),
        "BallsInBins": lambda: BallsInBins(-(-people // batch)),
    }
    if name not in kinds:
        raise InvalidParameter(f"no such sampler.\n  found:  {name!r}\n  do:     give one of {', '.join(kinds)}")
    return kinds[name]()
