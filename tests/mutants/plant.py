"""How a bug is planted and looked for.

Each mutant is a function that exchanges parts of sfumato, with a docstring that proves that this breaks a promise; its
audit, which must find it, stands before it. Files of this folder are found by walking it.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from unittest import mock

import tests.mutants

SURE = 1 - 1e-5  # of a black-box audit: forty right ones raise an alarm with 4e-4 together


@dataclass(frozen=True)
class Mutant:
    """A bug, by its number in the list of known failures."""

    number: int
    name: str
    tier: str
    proof: str
    plant: Callable[[Callable[..., None]], None]
    audit: Callable[[], object]
    slow: bool

    @contextmanager
    def planted(self) -> Iterator[None]:
        """With the bug inside."""
        with ExitStack() as stack:
            self.plant(lambda where, name, new: stack.enter_context(mock.patch.object(where, name, new)))
            yield


def mutant(number: int, tier: str, audit: Callable[[], object], slow: bool = False):
    """Marks a function as a mutant; `slow` ones are for `make mutants` only."""

    def mark(plant: Callable[[Callable[..., None]], None]) -> Mutant:
        return Mutant(number, plant.__doc__.strip().splitlines()[0], tier, plant.__doc__, plant, audit, slow)

    return mark


def every() -> list[Mutant]:
    """All mutants, by number."""
    names = [module.name for module in pkgutil.iter_modules(tests.mutants.__path__, "tests.mutants.")]
    modules = [importlib.import_module(name) for name in names if not name.endswith(("__main__", "plant"))]
    found = [thing for module in modules for thing in vars(module).values() if isinstance(thing, Mutant)]
    return sorted({id(one): one for one in found}.values(), key=lambda one: one.number)
