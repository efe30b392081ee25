"""Private tuning: fit a random candidate a random number of times, keep the best by a private score, pay for the best.

The number of fits is random and secret: with a fixed number, the best of 20 fits can cost as much as 20 fits. With a
random one it costs about one and a half, since nobody can tell a lucky best run from one of many.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, Self, SupportsFloat

from sfumato.errors import InvalidParameter
from sfumato.learn.base import FitPreview
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.shares import OWNER
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.run_counts import NegativeBinomialRuns, RunLaw
from sfumato.loss.kinds.selected import SelectedLoss
from sfumato.loss.views.calibrate import calibrate
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.choice.best_of_runs import BestOfRuns
from sfumato.mechanisms.examples import Example, Inputs, Neighbours
from sfumato.sensitivity import AddRemove, Relation


class Candidate(Protocol):
    """An estimator that knows what a fit and a score cost: those of `sfumato.learn`, or one of your own."""

    ledger: Ledger | None

    @property
    def loss(self) -> PrivacyLoss:
        """Of one fit."""

    @property
    def score_loss(self) -> PrivacyLoss:
        """Of one score."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fit to private rows."""

    def score(self, X: Any, y: Any) -> float:
        """How good the fit is, with noise."""

    def preview(self, n: int, d: int) -> FitPreview:
        """What a fit costs, and how exact it is likely to be; only `Tuned.preview` asks for it."""


@dataclass(frozen=True)
class FitAndScore(Mechanism[tuple[Any, ...], tuple[Any, float]]):
    """One run of tuning: a fit and its score, both private; the price is their sum.

    Theorem: adaptive composition is dominated by the product of the parts' dominating pairs
        [Zhu, Dong & Wang 2022, Thm 10]
    """

    estimator: Any

    def __post_init__(self) -> None:
        for name in ("fit", "score", "loss", "score_loss"):
            if not hasattr(self.estimator, name):
                raise InvalidParameter(
                    f"a candidate needs fit, score, loss and score_loss.\n  found:  a {type(self.estimator).__name__} "
                    f"without {name}\n  do:     give an estimator of sfumato.learn with score_epsilon="
                )
        if getattr(self.estimator, "ledger", None) is not None:
            raise InvalidParameter(
                "a candidate must not charge a ledger: tuning is charged once, for the best run.\n"
                "  found:  a candidate with a ledger\n  do:     give the ledger to Tuned instead"
            )

    def release(self, value: tuple[Any, ...]) -> tuple[Any, float]:
        X, y, *units = value  # and whose rows they are, unless a row is a unit
        owners = {"units": units[0]} if units else {}
        fitted = copy.copy(self.estimator)
        fitted.fit(X, y, **owners)
        return fitted, float(fitted.score(X, y, **owners))

    def loss(self) -> PrivacyLoss:
        found: PrivacyLoss = self.estimator.loss + self.estimator.score_loss
        return found

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        inputs = Inputs("rows and targets", (([], []),), ())
        return (Example(cls(NoisyCount(Laplace(2.0))), (Neighbours(([0], [0]), ([], [])),), inputs),)


@dataclass
class NoisyCount:
    """An estimator that counts rows, for the example: its output is the count, and its score another one."""

    noise: Laplace
    count: int = 0

    @property
    def loss(self) -> PrivacyLoss:
        return self.noise.loss(1)

    @property
    def score_loss(self) -> PrivacyLoss:
        return self.noise.loss(1)

    def fit(self, X: Any, y: Any = None) -> Self:
        self.count = self.score(X, y)
        return self

    def score(self, X: Any, y: Any) -> int:
        found = self.noise.release(len(X))
        assert isinstance(found, int)
        return found


def second(output: tuple[Any, float]) -> float:
    """The score of a run."""
    return output[1]


@dataclass(eq=False)
class Tuned:
    """The best of several estimators by a private score, under the price of the best run.

    `runs` is the law of the number of fits; by default a logarithmic one with as many fits on average as there are
    candidates. `best_estimator_`, `best_index_` and `best_score_` are released; the number of fits is not, and the time
    that `fit` takes tells it: do not show that to whoever sees the result.

    Theorem: the best of a random number of runs costs little more than one run [Papernot & Steinke 2022;
        docs/theorems/selection.md, Theorem 1]
    """

    candidates: Sequence[Candidate]
    runs: RunLaw | None = None
    ledger: Ledger | None = field(default=None, kw_only=True)
    who: str = field(default=OWNER, kw_only=True)

    @cached_property
    def mechanism(self) -> BestOfRuns:
        """The same as a mechanism on (X, y)."""
        runs = tuple(FitAndScore(candidate) for candidate in self.candidates)
        return BestOfRuns(runs, second, self.runs or NegativeBinomialRuns.of_mean(max(len(runs), 2)))

    @property
    def loss(self) -> PrivacyLoss:
        """Of the whole tuning, known before any data."""
        return self.mechanism.loss()

    def fit(self, X: Any, y: Any = None, *, units: Any = None) -> Self:
        """Charge, then fit; the best run is kept. Tuning again costs again."""
        if self.ledger is not None:
            self.ledger.charge(self.loss, question=f"tune {len(self.candidates)} candidates", who=self.who)
        found = self.mechanism.release((X, y) if units is None else (X, y, units))
        if found is None:
            raise InvalidParameter(
                "no candidate was fitted: the number of runs came out as 0, as PoissonRuns allows.\n"
                "  found:  no run\n  do:     tune again, which costs again, or use NegativeBinomialRuns"
            )
        self.best_estimator_, self.best_score_ = found.output
        self.best_index_ = found.candidate
        return self

    def preview(self, n: int, d: int) -> FitPreview:
        """The price of the whole tuning, and the least error that a candidate expects of itself. Free."""
        best = min((one.preview(n, d) for one in self.candidates), key=lambda one: one.error)
        return replace(best, estimator=f"best of {len(self.candidates)} candidates", loss=self.loss)

    def predict(self, X: Any) -> Any:
        """The predictions of the best estimator."""
        return self.best().predict(X)

    def predict_proba(self, X: Any) -> Any:
        """The probabilities of classes, by the best estimator."""
        return self.best().predict_proba(X)

    def best(self) -> Any:
        if not hasattr(self, "best_estimator_"):
            raise InvalidParameter(
                "nothing is fitted yet.\n  found:  no best estimator\n  do:     call fit(X, y) first"
            )
        return self.best_estimator_


def tune(candidates: Sequence[Candidate], X: Any, y: Any = None, **settings: Any) -> Tuned:
    """`Tuned(candidates, …)`, fitted."""
    return Tuned(candidates, **settings).fit(X, y)


def run_budget(
    epsilon: SupportsFloat, delta: SupportsFloat, runs: RunLaw, relation: Relation = AddRemove
) -> GaussianLoss:
    """The largest Gaussian loss of one run, fit and score together, such that the best run is (ε, δ)-DP.

    For 20 runs on average and (1, 10⁻⁶) it has ε = 0.66 at that δ. Takes some seconds.
    """
    mu = calibrate(
        lambda x: SelectedLoss(GaussianLoss(x, relation=relation), runs, relation=relation),
        epsilon=float(epsilon),
        delta=float(delta),
    )
    return GaussianLoss(float(mu), relation=relation)
