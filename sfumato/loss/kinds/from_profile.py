"""Losses given by their profile, as a function of ε."""

from typing import SupportsFloat

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.kinds.tabulated import TabulatedLoss
from sfumato.loss.numeric import Enclosure, Floats
from sfumato.loss.user_functions import BELIEF, Function, called
from sfumato.loss.views.convex_bounds import CAP, chord, unfolded
from sfumato.loss.views.divergences import Curve
from sfumato.loss.views.tabulate import first_nodes, reach, sampled, table
from sfumato.sensitivity import Relation


def from_profile(
    delta: Function,
    *,
    backward: Function | None = None,
    top: SupportsFloat | None = None,
    relation: Relation = Relation.AddRemove,
) -> TabulatedLoss:
    """The loss with the profile δ(ε), ε ≥ 0, and `backward` for the other direction if that is different.

    `top`: the ε from which on δ no longer falls, if there is one. Values are believed to a relative 1e-12; what is not
    a profile (in [0, 1], not rising, convex in e^ε) is refused.

    Theorem: a pair is a profile: any convex non-increasing H ≥ (1 − α)₊ with H_0 = 1 has one [Zhu et al. 2022, Lemma 9]
    """
    last = CAP
    if top is not None:
        last = checks.number("top", top, 1e-12, CAP, allowed=f"the ε from which on δ stays what it is, at most {CAP:g}")
    ahead = believed("delta", delta, last)
    back = None if backward is None else believed("backward", backward, last)
    end = last if top is not None else max(reach(curve) for curve in (ahead, back) if curve)
    nodes, first, second = sampled(ahead, back, first_nodes(ahead, back, end))
    check_profile(nodes, first.upper, second.upper)
    return table(nodes, first, second, relation)


def believed(name: str, function: Function, last: float) -> Curve:
    """A function of ε with values in [0, 1], as an enclosure; it is not asked beyond `last`."""

    def curve(eps: Floats) -> Enclosure:
        value = called(name, function, np.minimum(eps, last)) + 0.0  # no −0
        wrong = ~((value >= 0) & (value <= 1 + BELIEF))
        if wrong.any():
            i = int(np.argmax(wrong))
            raise InvalidParameter(
                f"{name} must lie in [0, 1].\n  found:  {name}({eps[i]:.6g}) = {value[i]!r}\n"
                "  do:     return δ(ε) for ε ≥ 0, without cancellation where it is small, or give `top`"
            )
        return Enclosure(value * (1 - BELIEF), np.minimum(value * (1 + BELIEF), 1.0))

    return curve


def check_profile(nodes: Floats, ahead: Floats, back: Floats) -> None:
    """Not rising and convex in e^ε, on both sides of 0 and across it, up to 1e-9."""
    for values in (ahead, back):
        rises = np.diff(values) > 1e-9 * values[:-1]
        if rises.any():
            i = int(np.argmax(rises))
            raise InvalidParameter(
                f"a profile does not rise.\n  found:  δ({nodes[i]:.6g}) = {values[i]:.6g} < δ({nodes[i + 1]:.6g}) = "
                f"{values[i + 1]:.6g}\n  do:     check the formula; δ(ε) is the δ for which (ε, δ)-DP holds"
            )
    t, d = unfolded((nodes, ahead), (nodes, back))
    roof = chord(t[1:-1], t[:-2], d[:-2], t[2:], d[2:])
    bent = (d[1:-1] - roof) > 1e-9 * roof
    if bent.any() or abs(ahead[0] - back[0]) > 1e-9:
        i = int(np.argmax((d[1:-1] - roof) / np.maximum(roof, 1e-300))) + 1
        raise InvalidParameter(
            f"no pair of distributions has this profile: it must be convex in e^ε, and alike at 0 in both directions.\n"
            f"  found:  {d[i]:.6g} at ε = {abs(t[i]):.6g}, above the chord of its neighbours; {ahead[0]:.6g} and "
            f"{back[0]:.6g} at 0\n  do:     give δ(ε) = ∫(p − e^ε q)₊, and `backward` = ∫(q − e^ε p)₊ if that differs"
        )
