"""Lazy comparison: is a uniform number below a real θ? Exact sampling asks nothing else about real numbers."""

from collections.abc import Callable

from sfumato.noise.balls import Ball, precision
from sfumato.noise.entropy import Source

MORE = 32  # bits of precision beyond those compared
Theta = Callable[[int], Ball]  # precision ↦ an enclosure of θ


def happens(theta: Theta, source: Source, u: int = 0, known: int = 0, step: int = 64) -> bool:
    """True with probability exactly θ, given that `u` holds the first `known` bits of a uniform number.

    With n bits U known, u lies in [U, U+1]/2ⁿ: yes if U + 1 ≤ 2ⁿθ, no if U ≥ 2ⁿθ, else `step` more bits. The bits
    compared before are continued, never drawn again. Stops almost surely, for every θ in [0, 1], also 0, 1, dyadic.
    Theorem: A lazy comparison answers yes with probability θ, and stops [docs/theorems/noise.md, Theorem 2]
    """
    while True:
        prec = known + step + MORE
        with precision(prec):
            scaled = theta(prec) * 2**known
            if u + 1 <= scaled:
                yes, no = True, False
            else:
                yes, no = False, u >= scaled
            if scaled < 0 or scaled > 2**known:
                raise AssertionError("a probability outside [0, 1]: the weights of this table are wrong, do not use it")
        if yes or no:
            return yes
        u, known = u << step | source.bits(step), known + step


def uniform_below(bound: int, source: Source) -> int:
    """A uniform integer in [0, bound), bound ≥ 1: as many bits as needed, drawn again while they are too large."""
    if bound < 1:
        raise AssertionError("no integer lies in [0, 0): the weights of this choice are wrong")  # else it would not end
    bits = (bound - 1).bit_length()
    while True:
        if (u := source.bits(bits)) < bound:
            return u
