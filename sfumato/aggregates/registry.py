"""All aggregates that questions may use: every final class of this package, found without a list."""

import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module

import sfumato.aggregates
from sfumato.sql.aggregate import Aggregate, Registry
from sfumato.sql.parse.from_where import MAIN
from sfumato.sql.parse.text import parse
from sfumato.sql.policy import Policy
from sfumato.sql.question import Question
from sfumato.sql.question_bounds import AS_STATED, QuestionBounds


def concrete_classes(abstract: type[Aggregate]) -> Iterator[type[Aggregate]]:
    """The subclasses of this class that can be instantiated."""
    for one in abstract.__subclasses__():
        if not inspect.isabstract(one):
            yield one
        yield from concrete_classes(one)


def load_all() -> Registry:
    """Import every module of the package, so that what questions may use never depends on what was imported before."""
    for module in pkgutil.iter_modules(sfumato.aggregates.__path__):
        if module.name not in ("registry", "builder"):  # the builder gets its methods from here
            import_module(f"sfumato.aggregates.{module.name}")
    found = {one for one in concrete_classes(Aggregate) if one.__module__.startswith("sfumato.aggregates.")}  # type: ignore[type-abstract]
    return Registry(tuple(sorted(found, key=lambda one: (one.listed, one.__name__))))


AGGREGATES = load_all()


def parse_question(
    text: str, policy: Policy, schema: str = MAIN, bounds: QuestionBounds = AS_STATED
) -> Question:  # fmt: skip
    """The question that a text asks under this policy, with all aggregates that there are, and under tighter bounds if
    it states some."""
    question = parse(text, policy, AGGREGATES, schema)
    if bounds != AS_STATED:
        question = parse(text, bounds.policy_of(policy, question.plan), AGGREGATES, schema)
    outer = question.outer
    if outer is not None:
        outer = replace(outer, questions=tuple(replace(one, text=text) for one in outer.questions))
    return replace(question, outer=outer, text=text)
