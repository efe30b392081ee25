"""The comparison of accountants: the optimal answer first, no theorem below it, and a reason for every gap."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.loss.bound import Bound
from sfumato.loss.kinds.coins import ApproxLoss, PureLoss, RandomizedResponseLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.subsampled import PoissonSampledLoss
from sfumato.loss.views.profile import top_of
from sfumato.loss.views.renyi_accountant import renyi_accountant
from sfumato.teach.classical import compare as comparing
from sfumato.teach.classical.approximations import Estimate, central_limit, fourier, parts
from sfumato.teach.classical.compare import Comparison, Row, compare

LOSSES = [
    1000 * GaussianLoss(0.02),
    1000 * RandomizedResponseLoss(0.1),
    500 * ApproxLoss(0.05, 1e-10),
    GaussianLoss(1),
    3 * PureLoss(0.5) + 2 * PureLoss(0.1),
    (500 * PoissonSampledLoss(PureLoss(1.0), 0.1)).remove,
]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_comparison_starts_with_the_truth_and_no_theorem_is_below_it(loss):
    found = compare(loss, 1e-6)
    assert [row.name for row in found.rows] == ["optimal (sfumato)", *comparing.ACCOUNTANTS]
    truth = found.rows[0].epsilon
    for row in found.rows[1:]:
        if isinstance(row.epsilon, Bound):
            assert row.epsilon.upper >= truth.lower
            assert "below the truth" not in row.note
        elif isinstance(row.epsilon, Estimate):
            assert (row.epsilon.value < truth.lower) == ("below the truth" in row.note)
        else:
            assert row.note
    assert all(len(line) <= 80 for line in str(found).splitlines())
    assert found._repr_html_().count("<tr>") == len(found.rows) + 1


def test_a_comparison_says_why_a_theorem_does_not_apply():
    text = str(compare(3 * PureLoss(0.5) + GaussianLoss(0.1), 1e-6))
    assert "needs equal parts: there are 2" in text
    assert "the parts leak more than δ" in str(compare(10 * ApproxLoss(0.1, 1e-6), 1e-6))


def test_what_is_below_the_truth_is_called_so(monkeypatch):
    monkeypatch.setitem(
        comparing.ACCOUNTANTS, "central limit", lambda loss, delta: Estimate(1.0, 0, 9, "wishful", "hm")
    )
    row = next(row for row in compare(GaussianLoss(1), 1e-6).rows if row.name == "central limit")
    assert row.note.startswith("below the truth by 3.9; hm")


def test_one_direction_alone_is_not_enough_for_advanced_composition():
    """P ≤ e^ε Q says nothing of Q ≤ e^ε P: the theorems are given the larger of both losses."""
    loss = (500 * PoissonSampledLoss(PureLoss(1.0), 0.2)).add
    row = next(row for row in compare(loss, 1e-6).rows if row.name == "advanced")
    top = max(max(part.supremum()) for _, part in parts(loss))
    assert row.note == f"from 500 × ({top:.4g}, 0)"
    assert top > top_of(loss) / 500


@pytest.mark.parametrize(
    ("epsilon", "text"),
    [
        (None, "–"),
        (Bound(0.0, 2.0, "m"), "≤ 2"),
        (Bound(2.0, 2.0, "m"), "= 2"),
        (Bound(1.0, 2.0, "m"), "1 … 2"),
        (Bound(math.inf, math.inf, "m"), "= inf"),
        (Estimate(2.0, 1.0, 3.0, "m"), "≈ 2"),
    ],
)
def test_each_kind_of_answer_has_its_sign(epsilon, text):
    assert str(Row("name", epsilon, "note")) == text


def test_notes_wrap_within_eighty_columns():
    lines = str(Comparison(1e-6, (Row("a", None, "word " * 40),))).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) > 4


@settings(max_examples=6)
@given(delta=st.sampled_from([0.0, -1.0, 2.0, math.nan]))
def test_a_delta_out_of_range_is_refused(delta):
    for ask in (compare, central_limit, fourier, renyi_accountant):
        with pytest.raises(InvalidParameter):
            ask(GaussianLoss(1), delta)
