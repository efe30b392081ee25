"""The examples that every mechanism states beside itself; a class without one fails a test."""

from sfumato.mechanisms.base import shipped_mechanisms

EXAMPLES = [example for kind in shipped_mechanisms() for example in kind.examples()]


def concrete_classes() -> set[type]:
    """Every mechanism of the package that can be built."""
    return set(shipped_mechanisms())


def classes_with_examples() -> set[type]:
    """Classes of the examples."""
    return {type(example.mechanism) for example in EXAMPLES}
