"""Losses and their parts as plain data: class name and parameters, in one canonical JSON text per expression.

A part is no loss itself, such as the noise whose loss it is.

A ledger stores these texts. Equal expressions (sums sorted, repeats merged) have equal texts. The layout is version 1;
a later version must still read it.
"""

import dataclasses
import inspect
import json
from functools import cache
from importlib import import_module
from typing import ClassVar, cast

from sfumato.errors import InvalidParameter, MixedRelations, UnknownDescription
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.sums import Sum, total
from sfumato.sensitivity import Relation

# Losses and parts that are defined outside `sfumato.loss`: name → module, imported when a description names them. So
# reading a ledger depends on the text alone, not on what was imported before. tests/loss/test_describe.py: complete.
ELSEWHERE = {
    "SmoothLoss": "sfumato.mechanisms.dependent.smooth_loss",
    "ArsinhNormalNoise": "sfumato.mechanisms.dependent.log_normal",
    "CauchyNoise": "sfumato.mechanisms.dependent.student_cauchy",
    "GaussianNoise": "sfumato.mechanisms.dependent.laplace_gaussian",
    "LaplaceLogNormalNoise": "sfumato.mechanisms.dependent.log_normal",
    "LaplaceNoise": "sfumato.mechanisms.dependent.laplace_gaussian",
    "StudentNoise": "sfumato.mechanisms.dependent.student_cauchy",
    "UniformLogNormalNoise": "sfumato.mechanisms.dependent.log_normal",
}


def load(name: object) -> str | None:
    """Import the module that defines the loss or part of this name; returns the name, if it is one."""
    if not isinstance(name, str):
        return None
    if name in ELSEWHERE:
        import_module(ELSEWHERE[name])
    return name


@dataclasses.dataclass(frozen=True)
class Part:
    """A frozen dataclass of numbers that a description may hold; found by the name of its class."""

    known: ClassVar[dict[str, type["Part"]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Part.known[cls.__name__] = cls

    @property
    def description(self) -> dict[str, object]:
        """Class name and parameters."""
        return {"part": type(self).__name__, **{f.name: getattr(self, f.name) for f in dataclasses.fields(self)}}


VERSION = 1
CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


@cache
def parameters(loss_class: type[PrivacyLoss]) -> dict[str, str]:
    """Parameter name → field name."""
    renamed = {field: name for name, field in getattr(loss_class, "aliases", {}).items()}
    return {renamed.get(f.name, f.name): f.name for f in dataclasses.fields(loss_class)}


def describe(loss: PrivacyLoss) -> dict[str, object]:
    """Plain data for one loss."""
    values = {name: plain_value(getattr(loss, field)) for name, field in parameters(type(loss)).items()}
    return {"loss": type(loss).__name__, **values}


def plain_value(value: object) -> object:
    """Numbers, texts, lists and descriptions only."""
    if isinstance(value, PrivacyLoss):
        return describe(value)
    if isinstance(value, Part):
        return value.description
    if isinstance(value, Relation):
        return value.value
    if isinstance(value, tuple | list):
        return [plain_value(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise AssertionError(f"a loss holds a {type(value).__name__}, which cannot be described")


def to_json(loss: PrivacyLoss) -> str:
    """The canonical text: sorted keys, shortest floats, no spaces."""
    return CANONICAL.encode({"sfumato": VERSION, **describe(loss)})


def from_json(text: str) -> PrivacyLoss:
    """The loss that a text of `to_json` describes."""
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, TypeError, RecursionError, UnicodeDecodeError) as problem:
        raise UnknownDescription(f"this is not JSON: {problem}") from problem
    if not isinstance(data, dict) or data.pop("sfumato", None) != VERSION:
        raise UnknownDescription(
            f'this JSON does not describe a loss.\n  found:  no "sfumato": {VERSION}\n'
            "  do:     use the text of loss.to_json()"
        )
    try:
        return from_description(data)
    except RecursionError as problem:
        raise UnknownDescription("this description is nested too deeply") from problem


def from_description(data: dict[str, object]) -> PrivacyLoss:
    """The loss that plain data describe; parameters are checked as if a user had typed them."""
    data = dict(data)
    name = load(data.pop("loss", None))
    found = PrivacyLoss.known.get(name) if name is not None else None
    if found is None or inspect.isabstract(found):
        known = ", ".join(sorted(k for k, c in PrivacyLoss.known.items() if not inspect.isabstract(c)))
        raise UnknownDescription(
            f"no loss is called {name!r}.\n  known:  {known}\n"
            "  do:     if the class is your own, import the module that defines it first"
        )
    allowed = parameters(found)
    if unknown := set(data) - set(allowed):
        raise UnknownDescription(f"{name} has no parameter {sorted(unknown)}.\n  known:  {sorted(allowed)}")
    try:
        values = {key: revive(key, value) for key, value in data.items()}
        if found is Sum:
            return total(
                *cast(list[tuple[int, PrivacyLoss]], values["terms"]), relation=cast(Relation, values["relation"])
            )
        return found(**values)  # type: ignore[arg-type]  # each class checks its own parameters
    except (TypeError, KeyError, ValueError, AttributeError, InvalidParameter, MixedRelations) as problem:
        raise UnknownDescription(f"{name} cannot be built from this description: {problem}") from problem


def revive(key: str, value: object) -> object:
    """Descriptions back into losses and their parts, lists into tuples."""
    if isinstance(value, dict):
        return part(value) if "part" in value else from_description(value)
    if isinstance(value, list):
        return tuple(revive(key, item) for item in value)
    if key == "relation":
        try:
            return Relation(value)
        except ValueError as problem:
            raise UnknownDescription(f"no relation is called {value!r}") from problem
    return value


def part(data: dict[str, object]) -> Part:
    """The part of a loss that plain data describe."""
    values = dict(data)
    name = load(values.pop("part"))
    found = Part.known.get(name) if name is not None else None
    if found is None or inspect.isabstract(found):
        raise UnknownDescription(f"no part of a loss is called {name!r}")
    return found(**values)
