"""Replay: record the calls of a mechanism's primitives on d0, and repeat the run on d1 with the same outputs.

Every call of a primitive (noise, a choice, a randomised response) on d0 is recorded with its input and its output. Then
the run is repeated on d1, and each primitive returns the recorded output. Nothing is drawn, so the test is
deterministic:

- the same primitives must be called, in the same order, on inputs of the same shape: else the control flow depends on
  the data;
- the final output must be the same: else data reach the output without passing through a primitive;
- the inputs may differ, and each primitive has a loss for a move by that distance: the sum must not exceed the claim.

Theorem: given the transcript so far, each primitive's loss is that of its two inputs, and losses add up
  [Zhu, Dong & Wang 2022, Thm 10]; record and replay as a test [Lokna et al. 2023; Annamalai et al. 2026]

Replay finds wrong sensitivities, missing clipping, and keys or errors that depend on the data, in a few runs on each
data set. It trusts the primitives themselves; these are audited by the black box and the white box. If a mechanism
continues only after a private test (propose-test-release), a replayed run may pass a test that must fail on d1. That
case is covered by δ, and nothing after it is reported.
"""

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from sfumato.audit.outputs import Raised, require_different_data, text_of, to_plain
from sfumato.audit.primitive_prices import NoPrice, Primitive, price_move
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.sums import nothing
from sfumato.loss.views.profile import top_of
from sfumato.mechanisms.additive.base import Additive
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.choice.best_of_runs import BestOfRuns
from sfumato.mechanisms.choice.quantile import ByRank, PureQuantile, Quantile
from sfumato.mechanisms.dependent.private_test import Gate
from sfumato.mechanisms.groups.transformed import Transformed

PLACES = (0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # ε at which losses are compared
MOST = 100_000  # recorded calls of one run
RUNS = 3  # more than one: outputs may agree by chance, as 0 · anything does


@dataclass(frozen=True)
class RecordedCall:
    """One call of a primitive: its method, its input and its output (both private, so not in the repr)."""

    primitive: Primitive
    method: str
    value: Any = field(repr=False)
    answer: Any = field(repr=False)

    def __str__(self) -> str:
        return repr(self.primitive)


@dataclass(frozen=True)
class Step:
    """One primitive on both data sets: how far its input moved, and the loss of that move."""

    primitive: str
    moved: str
    price: PrivacyLoss


@dataclass(frozen=True)
class Replay:
    """The result of a replay. `problems` is empty if this run on this pair agrees with the claim."""

    steps: tuple[Step, ...]
    problems: tuple[str, ...]
    claim: PrivacyLoss

    @property
    def violated(self) -> bool:
        """Is the claim refuted?"""
        return bool(self.problems)

    @property
    def verdict(self) -> str:
        """The result in one line."""
        if self.problems:
            return f"VIOLATED: {self.problems[0]}"
        return f"no violation found: {len(self.steps)} primitives were replayed, within the claim"

    def __str__(self) -> str:
        lines = [self.verdict, *(f"  and: {problem}" for problem in self.problems[1:])]
        lines += [f"  {step.primitive}: {step.moved}" for step in self.steps[:20]]
        return "\n".join(lines)

    def to_json(self) -> str:
        """The result as JSON."""
        data = {
            "violated": self.violated,
            "problems": list(self.problems),
            "steps": [{"primitive": step.primitive, "moved": step.moved} for step in self.steps],
        }
        return json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def replay(mechanism: object, d0: object, d1: object, loss: PrivacyLoss) -> Replay:
    """Record on d0, replay on d1, and compare with the claimed loss, in a few runs.

    The mechanism is a function of the data that calls sfumato's mechanisms, or such a mechanism itself.

    >>> import sfumato as sf
    >>> noise = sf.Laplace(1.0)
    >>> wrong = lambda data: noise.release(sum(data))              # claims that nobody adds more than 1
    >>> print(sf.audit.replay(wrong, [1, 0, 1], [1, 0, 1, 5], loss=noise.loss(1)).verdict)
    VIOLATED: the loss of the moved inputs exceeds the claim: δ = 0.865 instead of 0 at ε = 1
    """
    run = runner(mechanism)
    if not isinstance(loss, PrivacyLoss):
        raise InvalidParameter(
            f"loss must be a privacy loss.\n  found:  a {type(loss).__name__}\n"
            "  do:     give what mechanism.loss(…) returns"
        )
    if isinstance(mechanism, BestOfRuns):
        raise NothingToReplay(
            "a replay charges for every run, and only the best run is released: it would refute any price below.\n"
            f"  found:  {type(mechanism).__name__}\n  do:     replay its candidates, and audit it as a black box"
        )
    require_different_data(d0, d1)
    result = Replay((), (), loss)
    for _ in range(RUNS):
        result = replay_once(run, d0, d1, loss)
        if result.violated:
            break
    return result


def replay_once(run: Callable[[object], object], d0: object, d1: object, loss: PrivacyLoss) -> Replay:
    """One run on each data set."""
    tape: list[RecordedCall] = []
    with hook_primitives(recorder(tape)):
        first = outcome(run, d0)
    if not tape:
        raise NothingToReplay(
            "no primitive was called, so there is nothing to replay.\n"
            "  found:  a run without any of sfumato's mechanisms\n"
            "  do:     use the black box: sf.audit.audit(mechanism, d0, d1, …)"
        )
    player = Player(tuple(tape))
    with hook_primitives(player.play):
        second = outcome(run, d1)
    steps, problems = price_calls(tape, player.values)
    if player.excused:
        return Replay(tuple(steps), (), loss)
    problems += player.problems
    if player.at < len(tape) and not problems:
        problems.append(f"the run on d1 ended after {player.at} primitives, that on d0 after {len(tape)}")
    if not problems and text_of(to_plain(first)) != text_of(to_plain(second)):
        problems.append("data reach the output without passing through a primitive: with the same noise it differs")
    if not problems:
        problems += undercharge([step.price for step in steps], loss)
    return Replay(tuple(steps), tuple(problems), loss)


def price_calls(tape: Sequence[RecordedCall], values: Sequence[Any]) -> tuple[list[Step], list[str]]:
    """How far the inputs moved, call by call, up to the first move that has no known loss."""
    steps: list[Step] = []
    for number, (call, after) in enumerate(zip(tape, values, strict=False), 1):
        try:
            steps.append(Step(str(call), *price_move(call.primitive, call.method, call.value, after)))
        except NoPrice as problem:
            return steps, [f"call {number}, {call}: {problem}"]
    return steps, []


def runner(mechanism: object) -> Callable[[object], object]:
    """The mechanism as a function of the data. `release` is looked up at each run, so that hooks apply."""
    if callable(mechanism) and not isinstance(mechanism, Mechanism):
        return mechanism
    if not callable(getattr(mechanism, "release", None)):
        raise InvalidParameter(
            "the mechanism must be a function from data to an output.\n"
            f"  found:  a {type(mechanism).__name__}\n  do:     give a function, or an object with `release`"
        )
    return lambda data: mechanism.release(data)  # type: ignore[attr-defined]  # checked above


def outcome(run: Callable[[object], object], data: object) -> object:
    """The output of a run; an exception counts as an output."""
    try:
        return run(data)
    except Diverged:
        return None
    except Exception as error:
        return Raised(type(error).__name__)


def undercharge(prices: Sequence[PrivacyLoss], claim: PrivacyLoss) -> list[str]:
    """A problem if the loss of all moves together exceeds the claim."""
    moved = [price for price in prices if price != nothing()]
    if not moved:
        return []
    total = sum(moved[1:], moved[0])
    places = np.unique([*PLACES, min(top_of(claim), 700.0)])
    spent, allowed = total.delta(places, tolerance=1e-3).lower, claim.delta(places, tolerance=1e-3).upper
    over = spent - allowed
    if float(np.max(over)) <= 1e-12:
        return []
    at = int(np.argmax(over))
    words = f"δ = {spent[at]:.3g} instead of {allowed[at]:.3g} at ε = {places[at]:.3g}"
    return [f"the loss of the moved inputs exceeds the claim: {words}"]


# ---- the tape --------------------------------------------------------------------------------------------------------

Hook = Callable[[Primitive, str, Any, Callable[[], Any]], Any]


class NothingToReplay(InvalidParameter):
    """The run called no primitive of sfumato: the mechanism draws its own noise."""


class Diverged(Exception):
    """The run on d1 called other primitives than the run on d0."""


def recorder(tape: list[RecordedCall]) -> Hook:
    """A hook that runs each primitive and records its input and output."""

    def record(primitive: Primitive, method: str, value: Any, run: Callable[[], Any]) -> Any:
        answer = run()
        if len(tape) < MOST:
            tape.append(RecordedCall(primitive, method, value, answer))
        return answer

    return record


@dataclass
class Player:
    """Returns the recorded outputs, and keeps the inputs of the second run."""

    tape: tuple[RecordedCall, ...]
    values: list[Any] = field(default_factory=list)
    excused: bool = False  # a private test passed that must fail on one of the data sets: δ covers the rest
    problems: list[str] = field(default_factory=list)

    @property
    def at(self) -> int:
        return len(self.values)

    def play(self, primitive: Primitive, method: str, value: Any, run: Callable[[], Any]) -> Any:
        if self.at >= len(self.tape):
            self.diverge(f"the run on d1 goes on after the last primitive of d0: {primitive!r}")
        before = self.tape[self.at]
        if str(before) != repr(primitive) or before.method != method:
            self.diverge(f"call {self.at + 1} is {before} on d0 and {primitive!r} on d1: the noise depends on the data")
        self.values.append(value)
        if isinstance(primitive, Gate) and before.answer and min(before.value, value) <= 0:
            self.excused = True
            raise Diverged
        return before.answer

    def diverge(self, problem: str) -> None:
        self.problems.append(problem)
        raise Diverged


@contextmanager
def hook_primitives(hook: Hook) -> Iterator[None]:
    """Inside this block every call of a primitive goes through the hook. Not thread-safe: classes are patched."""
    kinds: set[type] = {base for kind in Mechanism.known.values() for base in kind.__mro__ if base is not Mechanism}
    kinds |= {ByRank, Quantile, PureQuantile}
    places = [(kind, "release") for kind in kinds] + [(Additive, "answer"), (Additive, "noisy"), (Gate, "opens")]
    places += [(Transformed, "noisy")]
    originals = {(kind, method): vars(kind)[method] for kind, method in places if method in vars(kind)}
    inside = [False]

    def wrap(original: Callable[..., Any], method: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(self: Primitive, value: Any) -> Any:
            if inside[0] or is_composed(self):
                return original(self, value)

            def run() -> Any:
                inside[0] = True
                try:
                    return original(self, value)
                finally:
                    inside[0] = False

            return hook(self, method, value, run)

        return call

    try:
        for (kind, method), original in originals.items():
            setattr(kind, method, wrap(original, method))
        yield
    finally:
        for (kind, method), original in originals.items():
            setattr(kind, method, original)


def is_composed(mechanism: Primitive) -> bool:
    """Is it made of other mechanisms? Then those are the primitives."""
    if isinstance(mechanism, ByRank | Gate):
        return False
    values = (getattr(mechanism, one.name) for one in fields(mechanism))
    return any(
        isinstance(part, Mechanism) for value in values for part in (value if isinstance(value, tuple) else (value,))
    )
