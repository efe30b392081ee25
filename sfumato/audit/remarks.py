"""What a reader should know beside the verdict: runs that say little, or a claim that runs cannot touch."""

from collections.abc import Iterator, Sequence

import numpy as np

from sfumato.audit.outputs import Labels, Numbers, Raised, Sides


def remarks(
    sides: Sides, found: tuple[list[Numbers], list[Labels]], epsilon: float, delta: float, ceiling: float
) -> tuple[str, ...]:
    """Everything that is worth a sentence."""
    return (*of_runs(sides, *found), *of_claim(epsilon, delta, ceiling))


def of_runs(sides: Sides, found: list[Numbers], labels: list[Labels]) -> Iterator[str]:
    """Not random? Exceptions?"""
    if all(constant(column.values[side]) for column in found for side in (0, 1)) and all(
        len(set(column.values[side])) == 1 for column in labels for side in (0, 1)
    ):
        alike = all(np.array_equal(c.values[0, :1], c.values[1, :1], equal_nan=True) for c in found)
        alike = alike and all(column.values[0][0] == column.values[1][0] for column in labels)
        if alike:
            yield "All runs on both data sets gave the same output: perhaps the mechanism does not look at its data."
        else:
            yield "All runs on one data set gave the same output: it is not random, so no ε protects anyone."
    raised = [sum(isinstance(output, Raised) for output in side) for side in sides]
    if any(raised):
        kinds = sorted({output.kind for side in sides for output in side if isinstance(output, Raised)})
        yield (
            f"{raised[0]:,} runs on d0 and {raised[1]:,} on d1 ended in an exception ({', '.join(kinds[:3])}), "
            "which is an output, too: whoever asks can see it."
        )


def constant(values: Sequence[float] | np.ndarray) -> bool:
    """One and the same double, NaN included."""
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    return bool(np.all(bits == bits[0]))


def of_claim(epsilon: float, delta: float, ceiling: float) -> Iterator[str]:
    """Claims that anything refutes, and claims that nothing can."""
    if epsilon == 0 and delta == 0:
        yield "ε = 0 claims that outputs do not depend on the data at all: any difference refutes it."
    if delta < 1 and epsilon >= ceiling:
        yield (
            f"So many runs cannot certify more than ε = {ceiling:.2g}, whatever is wrong: a claim this large is for "
            "replay and for the white box."
        )
