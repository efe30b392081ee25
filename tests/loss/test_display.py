"""The card of a loss in a notebook: readable, safe, and never an exception."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.loss import (
    ApproxLoss,
    GaussianLoss,
    LaplaceLoss,
    PoissonSampledLoss,
    RandomizedResponseLoss,
    ZcdpLoss,
    display,
    nothing,
)
from sfumato.loss.bound import Bound
from sfumato.loss.kinds.finite import FinitePairLoss
from sfumato.sensitivity import Relation

ORDINARY = [
    GaussianLoss(1),
    LaplaceLoss(0.5),
    RandomizedResponseLoss(1, k=4),
    ApproxLoss(1, 1e-3),
    PoissonSampledLoss(GaussianLoss(1), 0.1),
]
ODD = [
    nothing(),
    GaussianLoss(0),
    GaussianLoss(1e-90),
    GaussianLoss(1e90),
    LaplaceLoss(1e-90),
    LaplaceLoss(1e90),
    ApproxLoss(0, 0),
    ApproxLoss(0, 1),
    ApproxLoss(1e90, 0.5),
    ZcdpLoss(0),
    ZcdpLoss(1e-9),
    PoissonSampledLoss(GaussianLoss(1), 1e-9),
]
many = pytest.mark.parametrize("loss", [*ORDINARY, *ODD], ids=display.name)


@many
def test_every_loss_has_a_card_that_is_well_formed(loss):
    card = ElementTree.fromstring(loss._repr_html_())
    lines = [line.attrib["points"] for line in card.findall(".//{http://www.w3.org/2000/svg}polyline")]
    assert len(lines) >= 3
    assert all(re.fullmatch(r"[\d., ]+", points) for points in lines)  # no nan, no inf


@many
def test_a_card_runs_nothing_and_loads_nothing(loss):
    assert not re.search(r"<script|\son\w+=|url\(|href|src=", loss._repr_html_())


def test_text_is_escaped(monkeypatch):
    monkeypatch.setattr(display, "name", lambda loss: "<script>alert(1)</script>")
    assert "<script" not in display.html(GaussianLoss(1))


def labels(loss):
    return [direction.label for direction in display.directions(loss, np.array([0.0, 1.0]))]


def test_both_directions_are_drawn_where_they_differ():
    sampled = PoissonSampledLoss(GaussianLoss(1), 0.1)
    replaced = FinitePairLoss((0.5, 0.3, 0.2), (0.1, 0.3, 0.6), relation=Relation.ReplaceOne)
    assert labels(GaussianLoss(1)) == [""]
    assert labels(sampled) == ["remove", "add"]
    assert labels(replaced) == ["one way", "other way"]
    assert labels(sampled.add) == [""]
    assert ">remove<" in display.html(sampled)
    assert ">add<" in display.html(sampled)


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (GaussianLoss(1), "Gaussian(μ=1)"),
        (1000 * RandomizedResponseLoss(0.1), "1,000 × RandomizedResponse(ε=0.1, k=2)"),
        (GaussianLoss(0.5) + 2 * LaplaceLoss(1), "2 × Laplace(ε=1) + Gaussian(μ=0.5)"),
        (PoissonSampledLoss(GaussianLoss(1.25), 0.01), "PoissonSampled(Gaussian(μ=1.25), rate=0.01)"),
        (GaussianLoss(1, relation=Relation.ReplaceOne), "Gaussian(μ=1, replace-one)"),
        (nothing(), "nothing"),
    ],
)
def test_a_loss_has_a_name_in_words(loss, text):
    assert display.name(loss) == text


def test_long_tables_are_counted_not_printed():
    table = {"loss": "TabulatedLoss", "nodes": [0.1] * 300, "upper": [0.2] * 300, "relation": "replace-one"}
    assert display.words(table) == "Tabulated(300 values, replace-one)"
    assert display.words({"loss": "FinitePairLoss", "p": [0.5, 0.5]}) == "FinitePair(p=[0.5, 0.5])"


@given(st.floats(1e-300, 1e300))
def test_rounding_goes_up_and_not_far(value):
    shown = float(display.rounded_up(value))
    assert value * (1 - 1e-9) <= shown <= value * (1 + 1.001e-3)


def test_short_numbers_stay_short():
    assert display.rounded_up(1 + 4e-16) == "1"
    assert display.rounded_up(1.00001) == "1.001"
    assert display.rounded_up(0.0) == "0"
    assert display.rounded_up(float("inf")) == "∞"


@pytest.mark.parametrize(("advantage", "times"), [(0.0, "50"), (0.3829, "69.2"), (1e-9, "50.1"), (1.0, "100")])
def test_the_odds_are_those_of_the_best_guess(advantage, times):
    assert f"at most {times} times in 100" in display.guesses(Bound(0.0, advantage, "test"))


@pytest.mark.parametrize("loss", [*ORDINARY, PoissonSampledLoss(GaussianLoss(1), 0.1).add], ids=display.name)
def test_the_drawn_trade_off_is_the_certified_one_to_a_pixel(loss):
    alpha = np.array([0.01, 0.1, 0.3, 0.6, 0.95, 1.0])
    drawn = display.trade_off_curve(loss, alpha)
    for a, beta in zip(alpha, drawn, strict=True):
        truth = loss.trade_off(a)
        assert truth.lower - 1e-3 <= beta <= truth.upper


@given(st.floats(1e-12, 1e12))
def test_axes_have_three_to_six_marks(end):
    marks = display.marks(end)
    assert 3 <= len(marks) <= 6
    assert marks[0] == 0
    assert marks[-1] <= end * (1 + 1e-12)
