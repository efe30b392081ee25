"""Everything that sfumato ships and that promises something, with two neighbours that test it.

This is what `sfumato audit` audits. A mechanism joins by stating `examples` in its class; any other part by adding a
file to `sfumato/audit/exhibits/` with a tuple EXHIBITS: files are found by walking that folder, and a test fails for
any class of the package that has `release` and `loss` and no exhibit.

    for exhibit in collected():                     # file by file
        exhibit.name, exhibit.claim, exhibit.theorems   # public; a PrivacyLoss; what it rests on
        exhibit.audit(samples=4096)                 # black box: an Audit, against the whole claimed profile
        exhibit.replay()                            # grey box: a Replay, or None if it is one primitive
        exhibit.white_box()                         # a WhiteBox, or None if its law is not written down
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.audit import exhibits
from sfumato.audit.blackbox import audit
from sfumato.audit.corpus import Neighbours
from sfumato.audit.plans import SqlQuestion
from sfumato.audit.replay import NothingToReplay, Replay, replay
from sfumato.audit.result import Audit
from sfumato.audit.whitebox import NoStatedLaw, WhiteBox, white_box
from sfumato.loss.base import PrivacyLoss
from sfumato.noise.entropy import SYSTEM, Source

PACKAGE = Path(__file__).parents[1]
ONE_BY_ONE, AT_ONCE = 4096, 65536  # runs on each side that take about a second
MANY = 1 << 20  # draws, enough to detect an error of 1 %


@dataclass(frozen=True)
class Rows:
    """A mechanism that answers each number of an array independently, with `many` for many answers at once."""

    mechanism: Any

    def release(self, value: object) -> object:
        return self.mechanism.release(value)

    def many(self, value: object, count: int) -> object:
        one = np.asarray(value)
        return self.mechanism.release(np.broadcast_to(one, (count, *one.shape)).copy())


@dataclass(frozen=True)
class Exhibit:
    """One mechanism as it is shipped, two neighbouring inputs that are as bad as any, and what its price depends on.

    `make` builds it with a source of bits. `rows`: it takes an array of inputs and answers each by itself.
    """

    part: str  # of the package: mechanisms, dependent, sampling, curator, …
    make: Callable[[Source], Any]
    d0: object
    d1: object
    told: tuple[object, ...] = ()  # what `loss` is told about the two: a sensitivity, or nothing
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
        loss: PrivacyLoss = self.mechanism.loss(*self.told)
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
        return Rows(made) if self.rows else made

    def replay(self) -> Replay | None:
        """Replay against its own claim; None if it calls no primitive."""
        if isinstance(self.mechanism, SqlQuestion):
            return self.mechanism.replay(Neighbours(self.pair, self.d0, self.d1))  # type: ignore[arg-type]  # databases
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


def collected() -> tuple[Exhibit, ...]:
    """All exhibits, file by file."""
    names = sorted(module.name for module in pkgutil.iter_modules(exhibits.__path__, f"{exhibits.__name__}."))
    return tuple(one for name in names for one in importlib.import_module(name).EXHIBITS)


def promising() -> set[type]:
    """Every concrete class of the package that has both `release` and `loss`."""
    return {
        kind
        for kind in _classes()
        if all(inspect.isfunction(getattr(kind, face, None)) for face in ("release", "loss"))
        and not inspect.isabstract(kind)
    }


def _classes() -> Iterator[type]:
    for module in pkgutil.walk_packages([str(PACKAGE)], "sfumato."):
        if module.name.split(".")[1] in ("audit", "cli", "server", "teach", "__main__", "plots"):
            continue  # surfaces, and the auditor itself
        for thing in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(thing) and thing.__module__.startswith("sfumato."):
                yield thing


def missing() -> set[type]:
    """Classes with a privacy claim and without an exhibit."""
    return promising() - {type(exhibit.mechanism) for exhibit in collected()}
