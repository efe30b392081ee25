"""The best of a random number of private runs: tuning of parameters and choice among models, at its true price."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, SupportsFloat

from sfumato.errors import InvalidParameter
from sfumato.loss.kinds.run_counts import NegativeBinomialRuns, PoissonRuns, RunLaw
from sfumato.loss.kinds.selected import SelectedLoss
from sfumato.loss.kinds.wrappers import either
from sfumato.mechanisms.base import Mechanism, check_mechanism
from sfumato.mechanisms.examples import Example, Inputs, Neighbours
from sfumato.noise.run_counts import negative_binomial_runs, poisson_runs
from sfumato.noise.uniform import uniform_below


@dataclass(frozen=True)
class BestRun:
    """The release of the best run: which candidate it was, its output, and its score."""

    candidate: int
    output: Any
    score: float


@dataclass(frozen=True)
class BestOfRuns(Mechanism[Any, BestRun | None]):
    """Run a random candidate a random number of times, and release the best run by `score`.

    Each run picks one of `candidates` (mechanisms on data) at random. `score` is a function of the run's output and of
    nothing else, so that it costs nothing; an output that includes a noisy score is scored by that. How many runs there
    were, and the other runs, must stay secret; so must the time that it took, which tells their number. Of equal scores
    the first run wins; NaN counts as the worst score. With `PoissonRuns` there may be no run: None.

    Theorem: the best of a random number of runs costs little more than one run [Liu & Talwar 2019; Papernot & Steinke
        2022; docs/theorems/selection.md, Theorem 1]

    >>> import sfumato as sf
    >>> noise = [sf.Laplace(scale).on(len, 1) for scale in (2, 4)]
    >>> best = BestOfRuns(noise, score=lambda count: -abs(count - 3), runs=sf.loss.NegativeBinomialRuns.of_mean(10))
    >>> best.release([7, 7, 7]).candidate in (0, 1), round(float(best.loss().epsilon(0)), 2)
    (True, 0.97)
    """

    candidates: tuple[Mechanism[Any, Any], ...]
    score: Callable[[Any], SupportsFloat] = field(repr=False)
    runs: RunLaw
    use = "to tune parameters, or to choose among mechanisms by what they release"

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", tuple(self.candidates))
        for candidate in self.candidates:
            if check_mechanism("every candidate", candidate).needs_sensitivity():
                raise InvalidParameter(
                    "a candidate is a mechanism on data.\n"
                    f"  found:  {type(candidate).__name__}, whose price depends on what it is applied to\n"
                    "  do:     give noise.on(query, sensitivity)"
                )
        if not self.candidates:
            raise InvalidParameter("there is nothing to choose from.\n  found:  no candidates\n  do:     give some")
        if not callable(self.score):
            raise InvalidParameter(
                f"score must be a function of an output.\n  found:  a {type(self.score).__name__}\n"
                "  do:     give one, such as float"
            )
        if not isinstance(self.runs, NegativeBinomialRuns | PoissonRuns):
            raise InvalidParameter(
                f"runs must be the law of the number of runs.\n  found:  a {type(self.runs).__name__}\n"
                "  do:     give such as sf.loss.NegativeBinomialRuns.of_mean(20)"
            )
        self.loss()  # refuses mixed relations before data are there

    def release(self, value: Any) -> BestRun | None:
        best: BestRun | None = None
        for _ in range(self.draw_runs()):
            candidate = uniform_below(len(self.candidates), self.source)
            self.candidates[candidate].ready(1)
            output = self.candidates[candidate].release(value)
            score = read_score(self.score(output))
            if best is None or score > best.score:
                best = BestRun(candidate, output, score)
        return best

    def draw_runs(self) -> int:
        """K. It must not be shown to anybody who sees the release."""
        if isinstance(self.runs, PoissonRuns):
            return poisson_runs(Fraction(self.runs.rate), self.source)
        assert isinstance(self.runs, NegativeBinomialRuns)
        return negative_binomial_runs(Fraction(self.runs.stop), Fraction(self.runs.shape), self.source)

    def loss(self) -> SelectedLoss:
        """Of the best run: a run's loss is at most the worst candidate's, as the choice does not look at data."""
        worst = either(*(candidate.loss() for candidate in self.candidates))
        return SelectedLoss(worst, self.runs, relation=worst.relation)

    def chance(self, share: float | None = None) -> float:
        """The probability that one of the best `share` of candidates is run; by default: that a given one is."""
        return 1.0 - self.runs.miss_chance(1 / len(self.candidates) if share is None else share)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        from sfumato.mechanisms.additive.bounded_statistics import Count
        from sfumato.mechanisms.additive.laplace import Laplace

        inputs = Inputs("data of a query", ([], [1.5], {}), ())
        counts = (Count(Laplace(2.0)), Count(Laplace(3.0)))
        few = cls(counts, highest, NegativeBinomialRuns.of_mean(3.0, 1.0))
        many = cls(counts[:1], highest, PoissonRuns(4.0))
        return tuple(Example(made, (Neighbours([7], []),), inputs) for made in (few, many))


def highest(output: int) -> float:
    """The score of a count is the count, for the examples."""
    return float(output)


def read_score(value: SupportsFloat) -> float:
    """A number; NaN is the worst."""
    score = float(value)
    return -math.inf if math.isnan(score) else score
