"""Stable values and their distances to instability: independently computed numbers, and laws by enumeration."""

import itertools
import json
import math
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.mechanisms.dependent import (
    Gate,
    GaussianStableValue,
    Stable,
    StableValue,
    mode,
    top_set,
)
from sfumato.mechanisms.keys.partition_selection import Keeping
from tests.mechanisms.dependent import brute
from tests.noise.sources import Recorded

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "dependent.json").read_text())


@pytest.mark.parametrize("row", GOLDEN["stable"]["values"], ids=lambda row: f"{row['eps']}, {row['delta']}")
def test_stable_values_come_out_as_often_as_can_be(row):
    keeping = Keeping(row["eps"], row["delta"])
    for d, chance in enumerate(row["first20"]):
        assert float(keeping.probability(d + 1)) == pytest.approx(chance, rel=1e-9)
    made = StableValue(row["eps"], row["delta"])
    for level, (ours, laplace) in row["need"].items():
        if level == "1.0":
            assert keeping.probability(ours + 1) == 1 and keeping.probability(ours) < 1
            continue
        assert made.error(float(level)) == ours
        gate = Gate(sf.Laplace(1 / row["eps"]), row["delta"])
        assert laplace <= gate.sure(float(level)) + 1 and ours <= gate.sure(float(level))


def test_the_best_of_many_candidates():
    """Exponential selection, permute-and-flip and stable release at the gaps and sizes of the golden file."""
    for row in GOLDEN["argmax"]["values"]:
        keeping, p = Keeping(row["eps"], 1e-9), math.exp(-row["eps"] * row["gap"] / 2)
        assert float(keeping.probability(row["gap"])) == pytest.approx(row["stable_opt_delta1e9"], rel=1e-6)
        assert 1 / (1 + (row["k"] - 1) * p) == pytest.approx(row["EM_general"], rel=1e-9)
        flipped = -math.expm1(row["k"] * math.log1p(-p)) / (row["k"] * p)
        assert flipped == pytest.approx(row["PF_general"], rel=1e-9) and row["PF_general"] >= row["EM_general"]


def test_on_a_gaussian_ledger_noise_needs_less_distance():
    made = GaussianStableValue(1.0, 1e-6)
    assert made.error(0.5) == 6 < StableValue(1.0, 1e-6).error(0.5) == 13
    assert made.loss().gdp(slack=1e-6).upper <= 1.0 + 1e-6
    assert made.loss().delta(50.0).upper == pytest.approx(made.gate.failure, rel=1e-9)


LABELS = ("a", "b", "c")


@pytest.mark.parametrize("read", [mode, lambda votes: top_set(votes, 2)], ids=["mode", "top set"])
def test_distances_to_instability_are_safe_and_exact_where_a_label_that_wins_ties_exists(read):
    """Every multiset of three labels and of one that stands before them; those of the first kind are compared."""
    universe, people = ("A", *LABELS), 8
    value = {world: read(world) for world in brute.multisets(universe, people)}
    near = brute.one_more_or_less(universe, people)
    for x in brute.multisets(LABELS, 4):
        seen, edge, distance = {x}, {x}, 0
        while all(value[y].value == value[x].value for y in edge) and distance < people - len(x):
            edge = {z for y in edge for z in near(y)} - seen
            seen |= edge
            distance += 1
        if any(value[y].value != value[x].value for y in edge):
            assert value[x].distance == distance - 1
    for x in value:
        for y in near(x):
            assert abs(value[x].distance - value[y].distance) <= 1
            if value[x].value != value[y].value:
                assert value[x].distance == value[y].distance == 0


def test_replacing_one_person_halves_the_distance():
    values = {world: mode(world).replaced for world in itertools.combinations_with_replacement(LABELS, 7)}
    for x in values:
        for y in brute.one_replaced(LABELS)(x):
            assert abs(values[x].distance - values[y].distance) <= 1
            if values[x].value != values[y].value:
                assert values[x].distance == values[y].distance == 0
    assert mode(["a"] * 10 + ["b"]).replaced.distance == 4


def test_nobody_sees_what_is_not_stable():
    made = StableValue(1.0, 1e-6, source=Recorded("stable"))
    assert {made.release(Stable("secret", 0)) for _ in range(200)} == {None}  # 200·δ
    assert {made.release(Stable("plain", 40)) for _ in range(50)} == {"plain"}
    assert "secret" not in repr(Stable("secret", 0))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: StableValue(1.0, 1e-6, "add"),
        lambda: StableValue(1.0, 1e-6).release("value"),
        lambda: StableValue(1.0, 1e-6).release(Stable("value", 1.5)),
        lambda: top_set({"a": 3}, 0),
    ],
)
def test_nonsense_is_refused_in_words(wrong):
    with pytest.raises(SfumatoError, match="do:"):
        wrong()
