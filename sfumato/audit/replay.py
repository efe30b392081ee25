"""Replay: what does a mechanism tell its primitives on one data set, and on its neighbour if they answer the same?

A run is recorded on d0: every call of a primitive (noise, a choice, a randomised response), what it was given and what
it answered. Then the run is repeated on d1 with those answers frozen. Nothing is drawn, so nothing is left to chance:

- the same primitives must be called, in the same order, on inputs of the same shape: else the control flow tells;
- what comes out at the end must be the same: else something reached the output without passing a primitive;
- the inputs may differ, and each primitive has its price for moving by just as much: the sum may not exceed the claim.

Theorem: given the transcript so far, each primitive's loss is that of its two inputs, and losses add up
  [Zhu, Dong & Wang 2022, Thm 10]; record and replay as a test [Lokna et al. 2023; Annamalai et al. 2026]

It finds wrong sensitivities, missing clipping, keys and errors that slip through, in a few runs on each data set. It
trusts the primitives themselves: those are for the black and the white box. Where a mechanism looks at a noisy test
before it goes on (propose-test-release), a replayed run may pass a test that must fail on d1: that is what δ pays for,
and what follows is no finding.
"""

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from sfumato.audit.outputs import Raised, distinct_inputs, readable, text_of
from sfumato.audit.primitive_prices import Apart, Primitive, priced
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.sums import nothing
from sfumato.loss.views.profile import top_of
from sfumato.mechanisms.additive.base import Additive
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.choice.quantile import ByRank, PureQuantile, Quantile
from sfumato.mechanisms.dependent.private_test import Gate
from sfumato.mechanisms.groups.transformed import Transformed

PLACES = (0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # ε at which prices are compared
MOST = 100_000  # calls of one run
RUNS = 3  # an output may be the same by chance, as 0 · anything is


@dataclass(frozen=True)
class Call:
    """One call of a primitive: which, by which method, and what it was given and answered (private: not shown)."""

    primitive: Primitive
    method: str
    given: Any = field(repr=False)
    answer: Any = field(repr=False)

    def __str__(self) -> str:
        return repr(self.primitive)


@dataclass(frozen=True)
class Step:
    """One primitive on both data sets: how far its input moved, and what that costs."""

    primitive: str
    moved: str
    price: PrivacyLoss


@dataclass(frozen=True)
class Replay:
    """What was found. `problems` is empty if the replay agrees with the claim: for this pair, in this run."""

    steps: tuple[Step, ...]
    problems: tuple[str, ...]
    claim: PrivacyLoss

    @property
    def violated(self) -> bool:
        """Is the claim refuted?"""
        return bool(self.problems)

    @property
    def verdict(self) -> str:
        """The finding in a few words."""
        if self.problems:
            return f"VIOLATED: {self.problems[0]}"
        return f"no violation found: {len(self.steps)} primitives were replayed, within the claim"

    def __str__(self) -> str:
        lines = [self.verdict, *(f"  and: {problem}" for problem in self.problems[1:])]
        lines += [f"  {step.primitive}: {step.moved}" for step in self.steps[:20]]
        return "\n".join(lines)

    def to_json(self) -> str:
        """All of it, ready to be stored."""
        data = {
            "violated": self.violated,
            "problems": list(self.problems),
            "steps": [{"primitive": step.primitive, "moved": step.moved} for step in self.steps],
        }
        return json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def replay(mechanism: object, d0: object, d1: object, loss: PrivacyLoss) -> Replay:
    """Record on d0, replay on d1, and compare with the claimed loss. Takes a few runs.

    The mechanism is a function of the data that uses sfumato's mechanisms, or one of these itself.

    >>> import sfumato as sf
    >>> noise = sf.Laplace(1.0)
    >>> wrong = lambda data: noise.release(sum(data))              # says that nobody adds more than 1
    >>> print(sf.audit.replay(wrong, [1, 0, 1], [1, 0, 1, 5], loss=noise.loss(1)).verdict)
    VIOLATED: what moved costs more than was claimed: δ = 0.865 instead of 0 at ε = 1
    """
    run = runner(mechanism)
    if not isinstance(loss, PrivacyLoss):
        raise InvalidParameter(
            f"loss must be a privacy loss.\n  found:  a {type(loss).__name__}\n"
            "  do:     give what mechanism.loss(…) returns"
        )
    distinct_inputs(d0, d1)
    found = Replay((), (), loss)
    for _ in range(RUNS):
        found = once(run, d0, d1, loss)
        if found.violated:
            break
    return found


def once(run: Callable[[object], object], d0: object, d1: object, loss: PrivacyLoss) -> Replay:
    """One run on each."""
    tape: list[Call] = []
    with hooked(recorder(tape)):
        first = outcome(run, d0)
    if not tape:
        raise NothingToReplay(
            "no primitive was called, so there is nothing to replay.\n"
            "  found:  a run without any of sfumato's mechanisms\n"
            "  do:     audit it from outside: sf.audit.audit(mechanism, d0, d1, …)"
        )
    player = Player(tuple(tape))
    with hooked(player.play):
        second = outcome(run, d1)
    steps, problems = compared(tape, player.given)
    if player.excused:
        return Replay(tuple(steps), (), loss)
    problems += player.problems
    if player.at < len(tape) and not problems:
        problems.append(f"the run on d1 ended after {player.at} primitives, that on d0 after {len(tape)}")
    if not problems and text_of(readable(first)) != text_of(readable(second)):
        problems.append("the output depends on the data beside the primitives: with the same noise it differs")
    if not problems:
        problems += overcharged([step.price for step in steps], loss)
    return Replay(tuple(steps), tuple(problems), loss)


def compared(tape: Sequence[Call], given: Sequence[Any]) -> tuple[list[Step], list[str]]:
    """How far the inputs moved, call by call; until one has no price."""
    steps: list[Step] = []
    for number, (call, after) in enumerate(zip(tape, given, strict=False), 1):
        try:
            steps.append(Step(str(call), *priced(call.primitive, call.method, call.given, after)))
        except Apart as problem:
            return steps, [f"call {number}, {call}: {problem}"]
    return steps, []


def runner(mechanism: object) -> Callable[[object], object]:
    """The mechanism as a function of the data; its `release` is looked up when it runs, and so goes through hooks."""
    if callable(mechanism) and not isinstance(mechanism, Mechanism):
        return mechanism
    if not callable(getattr(mechanism, "release", None)):
        raise InvalidParameter(
            "the mechanism must be a function from data to an output.\n"
            f"  found:  a {type(mechanism).__name__}\n  do:     give a function, or an object with `release`"
        )
    return lambda data: mechanism.release(data)  # type: ignore[attr-defined]  # it has one, as seen above


def outcome(run: Callable[[object], object], data: object) -> object:
    """What comes out; an exception is an output."""
    try:
        return run(data)
    except Diverged:
        return None
    except Exception as error:
        return Raised(type(error).__name__)


def overcharged(prices: Sequence[PrivacyLoss], claim: PrivacyLoss) -> list[str]:
    """Does what moved cost more than was claimed?"""
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
    return [f"what moved costs more than was claimed: {words}"]


# ---- the tape --------------------------------------------------------------------------------------------------------

Hook = Callable[[Primitive, str, Any, Callable[[], Any]], Any]


class NothingToReplay(InvalidParameter):
    """A run that calls no primitive: it draws its noise by itself."""


class Diverged(Exception):
    """The second run left the path of the first."""


def recorder(tape: list[Call]) -> Hook:
    """Runs each primitive, and keeps what it was given and answered."""

    def record(primitive: Primitive, method: str, given: Any, run: Callable[[], Any]) -> Any:
        answer = run()
        if len(tape) < MOST:
            tape.append(Call(primitive, method, given, answer))
        return answer

    return record


@dataclass
class Player:
    """Gives the recorded answers again, and keeps what it was given instead."""

    tape: tuple[Call, ...]
    given: list[Any] = field(default_factory=list)
    excused: bool = False  # a test has passed that must fail on one of the data sets: δ pays for the rest
    problems: list[str] = field(default_factory=list)

    @property
    def at(self) -> int:
        return len(self.given)

    def play(self, primitive: Primitive, method: str, given: Any, run: Callable[[], Any]) -> Any:
        if self.at >= len(self.tape):
            self.diverged(f"the run on d1 goes on after the last primitive of d0: {primitive!r}")
        before = self.tape[self.at]
        if str(before) != repr(primitive) or before.method != method:
            self.diverged(
                f"call {self.at + 1} is {before} on d0 and {primitive!r} on d1: the noise depends on the data"
            )
        self.given.append(given)
        if isinstance(primitive, Gate) and before.answer and min(before.given, given) <= 0:
            self.excused = True
            raise Diverged
        return before.answer

    def diverged(self, problem: str) -> None:
        self.problems.append(problem)
        raise Diverged


@contextmanager
def hooked(hook: Hook) -> Iterator[None]:
    """Every call of a primitive of sfumato goes through the hook, inside this block (and in this thread's time)."""
    kinds: set[type] = {base for kind in Mechanism.known.values() for base in kind.__mro__ if base is not Mechanism}
    kinds |= {ByRank, Quantile, PureQuantile}
    places = [(kind, "release") for kind in kinds] + [(Additive, "answer"), (Additive, "noisy"), (Gate, "opens")]
    places += [(Transformed, "noisy")]
    originals = {(kind, method): vars(kind)[method] for kind, method in places if method in vars(kind)}
    inside = [False]

    def wrapped(original: Callable[..., Any], method: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(self: Primitive, given: Any) -> Any:
            if inside[0] or composed(self):
                return original(self, given)

            def run() -> Any:
                inside[0] = True
                try:
                    return original(self, given)
                finally:
                    inside[0] = False

            return hook(self, method, given, run)

        return call

    try:
        for (kind, method), original in originals.items():
            setattr(kind, method, wrapped(original, method))
        yield
    finally:
        for (kind, method), original in originals.items():
            setattr(kind, method, original)


def composed(mechanism: Primitive) -> bool:
    """Is it made of other mechanisms? Then those are the primitives."""
    if isinstance(mechanism, ByRank | Gate):
        return False
    values = (getattr(mechanism, one.name) for one in fields(mechanism))
    return any(
        isinstance(part, Mechanism) for value in values for part in (value if isinstance(value, tuple) else (value,))
    )
