"""Exhibits: everything that sfumato ships with a privacy claim, each with two neighbours that test the claim.

This is what `sfumato audit` audits. Mechanisms and sampling schemes join by stating `examples` in their class, SQL
questions by a line in QUESTIONS. A test fails for any class of the package with `release` and `loss` and no exhibit.

    for exhibit in all_exhibits():
        exhibit.name, exhibit.claim, exhibit.theorems   # public; a PrivacyLoss; what it rests on
        exhibit.audit(samples=4096)                 # black box: an Audit, against the whole claimed profile
        exhibit.replay()                            # grey box: a Replay, or None if it is one primitive
        exhibit.white_box()                         # a WhiteBox, or None if its law is not written down
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.audit.blackbox import audit
from sfumato.audit.blackbox_result import Audit
from sfumato.audit.corpus import NeighbouringDatabases, neighbours
from sfumato.audit.question_replay import SqlQuestion
from sfumato.audit.replay import NothingToReplay, Replay, replay
from sfumato.audit.scaled_replay import FoundBounds
from sfumato.audit.whitebox import NoStatedLaw, WhiteBox, white_box
from sfumato.learn.exposure import ExposureReport, NoisyCoefficients
from sfumato.learn.tuning import FitAndScore
from sfumato.local.duchi import DuchiMean
from sfumato.local.frequency import FrequencyOracle
from sfumato.local.hadamard import HadamardResponse
from sfumato.local.hybrid import HybridMean
from sfumato.local.piecewise import PiecewiseMean
from sfumato.local.projective import ProjectiveResponse
from sfumato.local.response import Response
from sfumato.local.subset import SubsetSelection
from sfumato.local.unary import UnaryEncoding
from sfumato.loss.base import PrivacyLoss
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.base import shipped_mechanisms
from sfumato.mechanisms.groups.relative_error import Contract
from sfumato.noise import Sampler
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.sampling.base import SampledRows, Sampling, SamplingExample, shipped_samplings
from sfumato.sensitivity import Sensitivity
from sfumato.sql.policy import Policy


@dataclass(frozen=True)
class LocalReport:
    """A randomizer as a mechanism: a value in, a report out, with the loss of one report.

    Theorem: the report of a pure frequency oracle has three loss values [docs/theorems/local.md, Theorem 1]
    """

    randomizer: Any
    source: Source = field(default=SYSTEM, repr=False, compare=False)

    def release(self, value: object) -> object:
        values = np.asarray(value)
        found = replace(self.randomizer, source=self.source).randomize(np.atleast_1d(values))
        return found if values.ndim else found[0]

    def loss(self) -> PrivacyLoss:
        loss: PrivacyLoss = self.randomizer.loss()
        return loss


LOCAL_FREQUENCIES: tuple[FrequencyOracle, ...] = (
    Response.two_coins(),
    Response.of(5, 1.0),
    SubsetSelection.of(8, 1.0),
    ProjectiveResponse.of(13, 1.0),
    UnaryEncoding.of(6, 1.0),
    HadamardResponse.of(7, 1.0),
)
LOCAL_NUMBERS = (DuchiMean.of(1.0), PiecewiseMean.of(1.0), HybridMean.of(1.0))
# each randomizer, and two values of a person
LOCAL_REPORTS = (*((one, 0, 1) for one in LOCAL_FREQUENCIES), *((one, -1.0, 1.0) for one in LOCAL_NUMBERS))


PACKAGE = Path(__file__).parents[1]
ONE_BY_ONE, AT_ONCE = 4096, 65536  # runs on each side that take about a second
SEVERAL = 16  # a question in several steps has so many times fewer runs
MANY = 1 << 20  # draws, enough to detect an error of 1 %
PARTS = ("dependent", "groups")  # rooms of mechanisms that the report names

# A small clinic, and pairs of it with and without its busiest patient.
POLICY = Policy.read("""
version = 1
[budget]
epsilon = 8.0
delta = 1e-6
[tables.visits]
unit = "patient_id"
groups = 2
rows = 3
[tables.visits.columns]
ward = {type = "text", keys = ["north", "south", "west"]}
diagnosis = {type = "text"}
stay = {low = 0, high = 60, step = 0.125}
cost = {low = -100, high = 1000}
urgent = {type = "boolean"}
day = {type = "date"}
[tables.wards]
public = true
[tables.wards.columns]
ward = {type = "text"}
floor = {type = "number", keys = [1, 2]}
""")

QUESTIONS = (
    "SELECT COUNT(*) FROM visits",
    "SELECT ward, COUNT(DISTINCT patient_id) FROM visits GROUP BY ward",
    "SELECT ward, SUM(stay), AVG(cost) FROM visits GROUP BY ward",
    "SELECT STDDEV(stay) FROM visits WHERE urgent",
    "SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis",
    "SELECT COUNT(DISTINCT diagnosis) FROM visits",
    "SELECT floor, SUM(stay) FROM visits JOIN wards USING (ward) GROUP BY floor",
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > 3 ORDER BY 2 DESC LIMIT 2",
    "SELECT MEDIAN(stay) FROM visits",
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward WITH RELATIVE ERROR 20 %",
)
SCALED_POLICY = replace(POLICY, tables={**POLICY.tables, "visits": POLICY.tables["visits"].scale()})
SCALED_QUESTIONS = (
    "SELECT COUNT(*), COUNT(DISTINCT patient_id) FROM visits",
    "SELECT ward, SUM(stay), COUNT(*) FROM visits GROUP BY ward",
    "SELECT diagnosis, AVG(stay) FROM visits GROUP BY diagnosis",
)
WORST = next(pair for pair in neighbours(POLICY) if pair.name == "visits: many rows in many groups")


@dataclass(frozen=True)
class RowByRow:
    """A mechanism that answers each number of an array independently, with `many` for many answers at once."""

    mechanism: Any

    def release(self, value: object) -> object:
        return self.mechanism.release(value)

    def many(self, value: object, count: int) -> object:
        one = np.asarray(value)
        return self.mechanism.release(np.broadcast_to(one, (count, *one.shape)).copy())


@dataclass(frozen=True)
class Exhibit:
    """A shipped mechanism to audit: two worst-case neighbouring inputs, and the quantity that its price depends on.

    `make` builds it with a source of bits. `rows`: it takes an array of inputs and answers each independently.
    """

    part: str  # of the package: mechanisms, dependent, sampling, curator, …
    make: Callable[[Source], Any]
    d0: object
    d1: object
    loss_arguments: tuple[object, ...] = ()  # of `loss`: a sensitivity, or nothing
    rows: bool = False

    @cached_property
    def mechanism(self) -> Any:
        """The mechanism with the system's source of bits."""
        return self.make(SYSTEM)

    @property
    def name(self) -> str:
        """The mechanism and its parameters, which are public."""
        return repr(self.mechanism)

    @property
    def pair(self) -> str:
        """The neighbours in a few words."""
        both = " against ".join(repr(d) for d in (self.d0, self.d1))
        return both if len(both) <= 100 else f"{both[:99]}…"

    @property
    def claim(self) -> PrivacyLoss:
        """The claimed loss of one release."""
        loss: PrivacyLoss = self.mechanism.loss(*self.loss_arguments)
        return loss

    @property
    def theorems(self) -> tuple[str, ...]:
        """The theorem lines of its class and of the classes of its fields."""
        kinds = [*type(self.mechanism).__mro__[:2], *(type(value) for value in vars(self.mechanism).values())]
        ours = [kind for kind in kinds if kind.__module__.startswith("sfumato.")]
        return tuple(dict.fromkeys(line for kind in ours for line in theorem_lines(kind)))

    def subject(self, source: Source = SYSTEM) -> Any:
        """The object that the auditor runs."""
        made = self.mechanism if source is SYSTEM else self.make(source)
        return RowByRow(made) if self.rows else made

    def replay(self) -> Replay | None:
        """Replay against its own claim; None if it calls no primitive."""
        if isinstance(self.mechanism, SqlQuestion | FoundBounds):
            return self.mechanism.replay(NeighbouringDatabases(self.pair, self.d0, self.d1))  # type: ignore[arg-type]  # databases
        try:
            return replay(self.mechanism, self.d0, self.d1, self.claim)
        except NothingToReplay:
            return None

    def white_box(
        self, samples: int | None = None, confidence: float = 0.999999, source: Source = SYSTEM
    ) -> WhiteBox | None:
        """White box: stated law, draws and claim against each other; None if no law is stated."""
        made = self.mechanism if source is SYSTEM else self.make(source)
        count = samples or (MANY if self.rows else ONE_BY_ONE)
        try:
            return white_box(made, self.d0, self.d1, self.claim, count, confidence)
        except NoStatedLaw:
            return None

    def audit(self, samples: int | None = None, confidence: float = 0.9999, source: Source = SYSTEM) -> Audit:
        """Black box: its outputs against its own claim."""
        count = samples or (AT_ONCE if self.rows else ONE_BY_ONE)
        if isinstance(self.mechanism, FoundBounds) or (
            isinstance(self.mechanism, SqlQuestion) and self.mechanism.offer.incomplete
        ):
            count = max(64, count // SEVERAL)  # each run buys histograms and fits them
        return audit(self.subject(source), self.d0, self.d1, samples=count, confidence=confidence, loss=self.claim)


def theorem_lines(kind: type) -> list[str]:
    """The `Theorem: …` lines of a class's own docstring, with indented continuation lines."""
    lines: list[str] = []
    for line in inspect.getdoc(kind).splitlines() if kind.__doc__ else ():  # type: ignore[union-attr]
        if line.startswith("Theorem: "):
            lines.append(line.removeprefix("Theorem: "))
        elif lines and line.startswith("  ") and line.strip():
            lines[-1] += f" {line.strip()}"
    return lines


def mechanism_exhibits() -> Iterator[Exhibit]:
    """Each example of each mechanism, on its first pair of neighbours: the one where its price is tightest."""
    for kind in shipped_mechanisms():
        room = kind.__module__.split(".")[2]
        for example in kind.examples():
            pair = example.neighbours[0]
            yield Exhibit(
                room if room in PARTS else "mechanisms",
                example.make,
                pair.first,
                pair.second,
                pair.loss_arguments,
                example.rows,
            )
    noise = DiscreteLaplace(1.0)
    yield Exhibit("mechanisms", noise.with_source, 2**63 - 2, 2**63 - 1, (1,), rows=True)  # where answers saturate


@dataclass(frozen=True)
class NoisySampledSum:
    """The sum of a sampled batch with discrete Laplace noise: the loss of the noise, amplified.

    The noise is drawn from its law, not released: a replay would see it move by more than sampling lets anybody see.
    """

    sampling: Sampling
    scale: float
    sensitivity: Sensitivity
    source: Source = field(default=SYSTEM, repr=False, compare=False)

    @cached_property
    def sampler(self) -> Sampler:
        return Sampler(DiscreteLaplace(self.scale).law(), source=self.source)

    def release(self, data: SampledRows) -> int:
        batch = next(self.sampling.batches(*data.arguments, source=self.source))
        total: int = sum(data.values[int(row)] for row in batch)
        return total + self.sampler.one()

    def loss(self) -> PrivacyLoss:
        return self.sampling.amplify(DiscreteLaplace(self.scale).loss(self.sensitivity))


def sampling_exhibits() -> Iterator[Exhibit]:
    """Each sampling scheme, with noise on the sum of a batch, on the neighbours that its class states."""
    for kind in shipped_samplings():
        for example in kind.examples():

            def make(source: Source, example: SamplingExample = example) -> NoisySampledSum:
                return NoisySampledSum(example.sampling, 1.0, example.sensitivity, source)

            yield Exhibit("sampling", make, example.first, example.second)


def question_exhibits() -> Iterator[Exhibit]:
    """SQL questions about the clinic, with and without its busiest patient."""
    for sql in QUESTIONS:
        question = SqlQuestion(sql, POLICY)
        yield Exhibit("curator", lambda source, question=question: question, WORST.whole, WORST.without)  # type: ignore[misc]
    for sql in SCALED_QUESTIONS:
        question = SqlQuestion(sql, SCALED_POLICY)
        yield Exhibit("curator", lambda source, question=question: question, WORST.whole, WORST.without)  # type: ignore[misc]
    bounds = FoundBounds("visits.stay", SCALED_POLICY)
    yield Exhibit("curator", lambda source: bounds, WORST.whole, WORST.without)


def local_exhibits() -> Iterator[Exhibit]:
    """The report of one person by each local randomizer, on the two values that are easiest to distinguish."""
    for randomizer, first, second in LOCAL_REPORTS:

        def make(source: Source, randomizer: object = randomizer) -> LocalReport:
            return LocalReport(randomizer, source)

        yield Exhibit("local", make, first, second, rows=True)


def learning_exhibits() -> Iterator[Exhibit]:
    """Each example of each mechanism of `learn`, on its first pair of neighbours."""
    for kind in (NoisyCoefficients, ExposureReport, FitAndScore):
        for example in kind.examples():
            pair = example.neighbours[0]
            yield Exhibit("learn", example.make, pair.first, pair.second, pair.loss_arguments)


@lru_cache(maxsize=1)
def all_exhibits() -> tuple[Exhibit, ...]:
    """All exhibits, part by part."""
    return (*question_exhibits(), *mechanism_exhibits(), *sampling_exhibits(), *local_exhibits(), *learning_exhibits())


def claiming_classes() -> set[type]:
    """Every concrete class of the package that has both `release` and `loss` of its own."""
    return {
        kind
        for kind in _classes()
        if all(inspect.isfunction(getattr(kind, face, None)) for face in ("release", "loss"))
        and not inspect.isabstract(kind)
        and not issubclass(kind, Contract)  # it releases by a mechanism, whose exhibits are shown
    }


def _classes() -> Iterator[type]:
    for module in pkgutil.walk_packages([str(PACKAGE)], "sfumato."):
        if module.name.split(".")[1] in ("audit", "cli", "server", "teach", "__main__", "plots"):
            continue  # surfaces, and the auditor itself
        for thing in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(thing) and thing.__module__.startswith("sfumato."):
                yield thing


def without_exhibit() -> set[type]:
    """Classes with a privacy claim and without an exhibit."""
    return claiming_classes() - {type(exhibit.mechanism) for exhibit in all_exhibits()}
