"""The reusable hold-out: it keeps adaptive analysts honest, and costs what it says."""

import math

import numpy as np
import pytest

import sfumato as sf
from sfumato.learn.holdout import ReusableHoldout
from tests.noise.sources import Recorded


def first(rows):
    return rows if rows.ndim == 1 else rows[:, 0]


def made(name="holdout", **changed):
    settings = {"n": 1000, "eps": 2.0, "threshold": 0.2, "answers": 3, "sigma": 0.01}
    return ReusableHoldout(**(settings | changed), source=Recorded(name))


def test_it_says_the_training_mean_where_both_agree_and_its_own_where_not():
    session = made().begin(np.full(500, 0.25), np.full(1000, 0.25))
    for _ in range(20):
        found = session.ask(first)
        assert found.value == 0.25 and not found.over_fitted
    found = session.ask(lambda rows: np.full(len(rows), float(len(rows) == 500)))  # 1 on the training set, 0 here
    assert found.over_fitted and found.value < 0.06 and session.left == 2


def test_it_ends_when_it_has_disagreed_as_often_as_was_paid_for():
    session = made().begin(np.ones(10), np.zeros(1000))
    for _ in range(3):
        assert session.ask(first).over_fitted
    with pytest.raises(sf.errors.Exhausted):
        session.ask(first)


def test_odd_values_are_clipped_and_each_row_counts_by_itself():
    odd = np.array([math.nan, math.inf, -math.inf, 2.0, -1.0, 0.5, 1e300, -0.0])
    session = made(n=8, threshold=1.0, eps=50.0).begin(odd, odd)
    assert session.ask(first).value == pytest.approx((0 + 1 + 0 + 1 + 0 + 0.5 + 1 + 0) / 8)


def test_the_loss_is_the_sparse_vector_and_the_answers():
    loss = made().loss()
    expected = sf.loss.PureLoss(2.0, relation=sf.ReplaceOne) + 3 * sf.loss.GaussianLoss(0.1, relation=sf.ReplaceOne)
    assert float(loss.epsilon(1e-6)) == pytest.approx(float(expected.epsilon(1e-6)), rel=1e-6)
    assert loss.relation is sf.ReplaceOne


AUDITED = ReusableHoldout(20, 1.0, 0.05, 2, 0.05)


def conversation(rows):
    """An adaptive analyst: the second query depends on the first answer, and all answers are the output."""
    session = AUDITED.begin(np.zeros(4), rows)
    answers = []
    for _ in range(3):
        if not session.left:
            break
        high = bool(answers) and answers[-1].value > 0.02
        answers.append(session.ask(lambda r, high=high: 1 - r if high and len(r) == 20 else r))
    return (
        [round(a.value, 2) for a in answers] + [float(a.over_fitted) for a in answers] + [0.0] * (6 - 2 * len(answers))
    )


def test_no_audit_of_an_adaptive_conversation_refutes_the_loss():
    """Bits are the system's; a correct hold-out fails with probability at most 0.001."""
    here, there = np.zeros(20), np.append(np.ones(1), np.zeros(19))
    found = sf.audit.audit(conversation, here, there, loss=AUDITED.loss(), samples=3000)
    assert not found.violated, found
    assert sf.audit.audit(conversation, here, there, epsilon=0.0, samples=3000).violated  # it is no constant


def test_an_analyst_cannot_over_fit_to_it():
    """Features that are noise: those that agree with the label on both sets make a classifier of nothing.

    With a plain hold-out it looks better than a coin by 7 deviations; what the reusable one says is near the truth.
    """
    n, columns, rng = 2000, 1000, np.random.default_rng(3)
    train, rows = (rng.integers(0, 2, (n, columns + 1)).astype(np.int8) for _ in range(2))  # the last one is the label
    holdout = ReusableHoldout(n, 4.0, 0.08, 10, 0.01, source=Recorded("adaptive"))
    session = holdout.begin(train, rows)

    def agrees(j):
        return lambda table: table[:, j] == table[:, -1]

    def plain(query):
        return float(np.mean(query(rows)))

    def chosen(ask):
        shown = [(ask(agrees(j)), float(np.mean(agrees(j)(train)))) for j in range(columns)]
        kept = [j for j, (there, here) in enumerate(shown) if (there - 0.5) * (here - 0.5) > 0]
        best = sorted(kept, key=lambda j: -abs(shown[j][1] - 0.5))[:200]
        signs = np.sign([shown[j][1] - 0.5 for j in best])
        return lambda table: ((2 * table[:, best] - 1) @ signs > 0) == (table[:, -1] == 1)

    over_fitted = chosen(plain)
    assert plain(over_fitted) > 0.58  # a coin is 0.5 ± 0.011
    found = session.ask(chosen(lambda query: session.ask(query).value))
    assert found.over_fitted and abs(found.value - 0.5) < 0.05


@pytest.mark.parametrize(
    "wrong", [{"n": 0}, {"eps": 0.0}, {"threshold": 0.0}, {"answers": 0}, {"sigma": math.nan}, {"sigma": 0.0}]
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(sf.errors.InvalidParameter, match="do:"):
        made(**wrong)


def test_rows_and_values_of_another_shape_are_refused_before_anything_is_drawn():
    with pytest.raises(sf.errors.InvalidParameter, match="n rows"):
        made().begin(np.zeros(5), np.zeros(999))
    session = made().begin(np.zeros(5), np.zeros(1000))
    for query in (lambda rows: rows[:2], lambda rows: np.array(["a"] * len(rows)), lambda rows: rows[:, None]):
        with pytest.raises(sf.errors.InvalidParameter, match="one number"):
            session.ask(query)
    assert session.left == 3


def test_its_error_holds():
    holdout = made("error", n=4000)
    bound = holdout.error(0.9, queries=30)
    assert 0.2 < bound < 0.35
    for run in range(20):
        session = made(f"error {run}", n=4000).begin(np.zeros(10), np.full(4000, 0.15))
        assert all(abs(session.ask(first).value - 0.15) <= bound for _ in range(30))
