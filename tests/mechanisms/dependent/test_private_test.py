"""The thresholds of private tests, against independently computed numbers."""

import json
import math
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.mechanisms.dependent import (
    Gate,
)

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "dependent.json").read_text())


@pytest.mark.parametrize("row", GOLDEN["ptr_integers"]["thresholds"], ids=str)
def test_laplace_thresholds(row):
    for name, noise in (("discrete_laplace", sf.DiscreteLaplace), ("rounded_laplace", sf.Laplace)):
        gate = Gate(noise(1 / row["e1"]), row["delta"])
        threshold, chance = row[name]
        assert gate.threshold == threshold == math.ceil(row["continuous_T"])
        assert gate.failure == pytest.approx(chance, rel=1e-12)


@pytest.mark.parametrize("row", GOLDEN["ptr_integers"]["gaussian"], ids=str)
def test_gaussian_thresholds(row):
    gate = Gate(sf.Gaussian(1 / row["mu1"]), row["delta"])
    assert gate.threshold == row["tau_p0"][0]
    assert gate.failure == pytest.approx(row["tau_p0"][1], rel=1e-12)
    assert gate.sure(0.5) == row["pass_half_at"]


def test_the_threshold_of_the_lecture_wastes_half_of_delta():
    for row in GOLDEN["ptr_continuous"]["thresholds"]:
        assert row["T_tight"] == pytest.approx(math.log(1 / (2 * row["delta"])) / row["eps"])
        assert math.exp(-row["eps"] * row["T_seed"]) / 2 == pytest.approx(row["pass0_seed"])
        assert row["pass0_seed"] == pytest.approx(row["delta"] / 2)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Gate(sf.Staircase(1.0), 1e-6),
        lambda: Gate(sf.Gaussian(1.0, 0.5), 1e-6),
        lambda: Gate(sf.Gaussian(1e9), 1e-6),
        lambda: Gate(sf.Gaussian(1.0), 0.0),
    ],
)
def test_nonsense_is_refused_in_words(wrong):
    with pytest.raises(SfumatoError, match="do:"):
        wrong()
