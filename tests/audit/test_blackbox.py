"""The black box refutes wrong mechanisms and accepts correct ones.

Wrong mechanisms draw from seeded generators and correct ones from recorded bits, so each run is the same. For other
seeds, a correct mechanism would be reported with probability at most 0.001 in each audit.
"""

import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit import Audit, Timed, audit, audit_until
from sfumato.audit.blackbox import Claim, choose_event
from sfumato.audit.features import Split, all_features
from sfumato.audit.outputs import Raised, output_columns
from sfumato.noise import Bernoulli, Categorical, DiscreteLaplace, Exp, GaussianDensity, Rounding, Sampler
from tests.audit import wrong
from tests.audit.wrong import Wrong
from tests.noise.sources import Recorded


def generator(seed=0):
    return np.random.default_rng(seed)


class Right:
    """A mechanism given by its draws alone."""

    def __init__(self, many):
        self.many = many


class Tensor:
    """As torch and others have it."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)


class Table:
    """As pandas and pyarrow have it."""

    def __init__(self, columns):
        self.columns = columns

    def to_dict(self):
        return self.columns


# ---- what is wrong is found ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "d0", "d1", "at_least"),
    [
        (wrong.naive_laplace(1), 0.0, 1.0, 3),
        (wrong.half_the_noise(1), 0.0, 1.0, 1.85),
        (wrong.tilted_response(1), 0, 1, 1.15),
        (wrong.sparse_vector_3(1, 1), [0] * 5 + [1], [1] * 5 + [0], 1),
        (wrong.sparse_vector_4(1, 10), [0] * 10 + [1] * 10, [1] * 10 + [0] * 10, 3),
        (wrong.sparse_vector_5(1), [0, 1], [1, 0], 6),
        (wrong.sparse_vector_6(1), [0] * 40, [1] * 20 + [-1] * 20, 2.5),
    ],
    ids=["naive Laplace", "half the noise", "tilted response", "SVT 3", "SVT 4", "SVT 5", "SVT 6"],
)
def test_wrong_mechanisms_are_refuted(draw, d0, d1, at_least):
    found = audit(Wrong(draw, generator()), d0, d1, epsilon=1.0)
    assert found.violated
    assert found.epsilon.lower > at_least


def test_the_naive_gaussian_is_refuted_by_its_bits():
    delta = 1e-3
    sigma = sf.calibrate(lambda s: sf.loss.GaussianLoss(1 / s), epsilon=1.0, delta=delta)
    found = audit(Wrong(wrong.naive_gaussian(float(sigma)), generator()), 0.0, 1.0, epsilon=1.0, delta=delta)
    assert found.violated
    assert found.epsilon.lower > 3
    assert "bit" in found.event


def test_a_data_set_on_which_it_raises_is_told_apart():
    rng = generator()

    def careless(data):
        return 1 / int(data == 0 or rng.random() > 0.02)

    found = audit(careless, 0, 1, samples=20_000)
    assert found.epsilon.lower > 2
    assert found.event == "the output is an exception: ZeroDivisionError"
    assert found.likelier == "d1"


def test_a_data_set_on_which_it_returns_nan_is_told_apart():
    rng = generator()

    def careless(data):
        return math.nan if data == 1 and rng.random() < 0.05 else rng.laplace()

    found = audit(careless, 0, 1, samples=20_000)
    assert found.epsilon.lower > 2
    assert "NaN" in found.event or "not a number" in found.event or "bit" in found.event


def test_a_vector_that_leaks_by_its_length_is_told_apart():
    rng = generator()
    found = audit(lambda data: np.zeros(rng.poisson(2 + 4 * data)), 0, 1, samples=10_000)
    assert found.epsilon.lower > 2


@pytest.mark.parametrize(
    "outputs",
    [
        (None, 0),
        (True, False),
        (True, 1),
        (1, 1.0),
        (0.0, -0.0),
        ("a", "b"),
        (b"a", b"b"),
        ((1, 2), (2, 1)),
        ([1.0], [1.0, 2.0]),
        ([], None),
        ({"x": 1, "y": "p"}, {"x": 1, "y": "q"}),
        ({"x": 1}, {"z": 1}),
        ({"x": [1, 2, {"deep": 3.5}]}, {"x": [1, 2, {"deep": 3.25}]}),
        ({1, 2}, {1, 3}),
        (10**400, -(10**400)),
        ([10**5000], [-(10**5000)]),
        (1j, -1j),
        (Fraction(1, 3), Fraction(2, 3)),
        (np.int64(3), np.float32(2)),
        (np.array([1, 2]), np.array([[1], [2]])),
        (np.array("a"), np.array("b")),
        (math.inf, -math.inf),
        (np.longdouble(1), np.longdouble(2)),
        (np.array((1, 2.5), "i,f")[()], np.array((1, 3.5), "i,f")[()]),
        (Decimal("0.1"), Decimal("NaN")),
        (Audit, audit),
        (Tensor([1.0, 2.0]), Tensor([1.0, 3.0])),
        (Table({"a": [1, 2]}), Table({"a": [1]})),
        (Raised("a"), Raised("b")),
    ],
    ids=lambda outputs: f"{type(outputs[0]).__name__} {type(outputs[1]).__name__}",
)
def test_outputs_of_every_kind_are_told_apart(outputs):
    """A mechanism that mixes two outputs with odds 9 : 1 on one data set and 1 : 9 on the other: ε = ln 9."""
    rng = generator()
    found = audit(lambda data: outputs[int(rng.random() < (0.1, 0.9)[data])], 0, 1, samples=5000)
    assert 1.8 < found.epsilon.lower <= math.log(9)


def test_wide_arrays_are_searched_for_the_column_that_tells():
    rng = generator()

    def many(data, n):
        x = np.round(rng.laplace(size=(n, 3, 50)) * 16)
        x[:, 1, 33] += 40 * data
        return x

    found = audit(Right(many), 0, 1, samples=4000)
    assert found.epsilon.lower > 1
    assert "[1, 33]" in found.event


# ---- what is right is left alone -------------------------------------------------------------------------------------


def laplace(name, scale):
    noise = Sampler(DiscreteLaplace(scale), source=Recorded(name))
    return Right(lambda value, n: value + noise.draw(n))


def response(name, eps):
    """Lies with probability 1/(1 + e^ε) exactly."""
    lie = Sampler(Categorical([Fraction(1), Exp(Fraction(eps))]), source=Recorded(name))
    return Right(lambda bit, n: np.where(lie.draw(n) == 0, 1 - bit, bit))


def gaussian(name, sigma):
    noise = Rounding(GaussianDensity(sigma), source=Recorded(name))
    return Right(lambda value, n: noise.about(np.full(n, value)))


RIGHT = {
    "discrete Laplace, ε = 1": (laplace, 1, {"epsilon": 1.0}),
    "discrete Laplace, ε = 1/10": (laplace, 10, {"epsilon": 0.1}),
    "randomized response": (response, 1, {"epsilon": 1.0}),
    "rounded Gaussian": (gaussian, 2, {"loss": sf.loss.GaussianLoss(0.5)}),
    "rounded Gaussian, remove only": (gaussian, 2, {"loss": sf.loss.GaussianLoss(0.5).remove}),
    "discrete Laplace and its loss": (laplace, 2, {"loss": sf.loss.DiscreteLaplaceLoss(2)}),
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("run", range(2))
def test_right_mechanisms_are_never_reported_above_their_loss(name, run):
    make, parameter, claim = RIGHT[name]
    found = audit(make(f"audit of {name} {run}", parameter), 0, 1, **claim)
    assert not found.violated
    assert found.epsilon.lower <= found.claimed


def test_the_bound_comes_close_to_the_truth():
    found = audit(laplace("audit, close", 1), 0, 1)
    assert 0.94 < found.epsilon.lower < 1


def test_outputs_of_any_size_are_no_trouble():
    rng = generator()
    mechanism = Right(lambda data, n: rng.choice([1.7e308, -1.7e308, 5e-324, math.inf, math.nan, -0.0], size=(n, 30)))
    assert audit(mechanism, 0, 1, samples=2000).epsilon.lower < 1


def test_outputs_that_do_not_depend_on_data_certify_nothing():
    assert audit(lambda data: 5, 0, 1, samples=200).epsilon.lower == 0
    assert audit(lambda data: "always", 0, 1, samples=200).epsilon.lower == 0
    coin = Bernoulli(0.5, source=Recorded("audit, coin"))
    assert audit(lambda data: bool(coin.draw(1)[0]), 0, 1, samples=500).epsilon.lower == 0


@pytest.mark.slow
def test_a_bound_is_too_high_no_more_often_than_promised():
    """If each of 75 audits misses the truth with probability ≤ 0.2, more than 31 do so with probability < 1e-5."""
    eps, misses, rng = 1.0, 0, generator(5)
    for _ in range(75):
        mechanism = Right(lambda bit, n: np.where(rng.random(n) < 1 / (1 + math.exp(eps)), 1 - bit, bit))
        misses += audit(mechanism, 0, 1, samples=250, confidence=0.8).epsilon.lower > eps
    assert 1 <= misses <= 31


@pytest.mark.parametrize(
    "ordinary",
    [
        lambda rng, data, n: list(rng.laplace(size=n) + data),
        lambda rng, data, n: rng.integers(0, 3, size=n) * data,
        lambda rng, data, n: list(rng.laplace(size=(n, 30)) + data),
        lambda rng, data, n: [{"a": x, "b": "xyz"[int(x > data)]} for x in rng.laplace(size=n)],
    ],
    ids=["numbers", "integers", "arrays", "tables"],
)
def test_runs_that_are_held_back_have_no_part_in_the_choice(ordinary):
    """Validity rests on this: whatever happens after the first `known` runs, the same event is chosen."""
    n, learn, known = 3000, 600, 1200
    garbage = [
        None,
        "text",
        1e308,
        -7,
        math.nan,
        10**30,
        {"z": [1]},
        np.zeros(3),
        np.zeros((2, 2)),
        [5.0] * 70,
        Raised("X"),
    ]
    chosen = []
    for tail in (False, True):
        rng = generator(3)
        sides = [list(ordinary(rng, data, n)) for data in (0, 1)]
        if tail:
            sides = [[*side[:known], *(garbage[i % len(garbage)] for i in range(n - known))] for side in sides]
        features = all_features(*output_columns((sides[0], sides[1]), known), Split(learn, known))
        choice = choose_event(features, [Claim(1.0, 0.0)], learn, known)
        chosen.append((choice.feature.describe(choice.keep), choice.value, choice.likelier, choice.alternative))
    assert chosen[0] == chosen[1]


def test_a_loss_that_is_too_small_is_refuted_along_its_profile():
    mechanism = gaussian("audit, loss", Fraction(3, 2))
    assert audit(mechanism, 0, 1, loss=sf.loss.GaussianLoss(0.5)).violated
    assert not audit(mechanism, 0, 1, loss=sf.loss.GaussianLoss(0.7)).violated


def test_a_loss_that_promises_nothing_is_not_refuted():
    for loss in (sf.loss.ApproxLoss(0.0, 1.0), sf.loss.GaussianLoss(80.0)):
        found = audit(lambda data: data, 0, 1, samples=200, loss=loss)
        assert not found.violated
        assert str(found)


@pytest.mark.parametrize(
    "loss",
    [sf.loss.nothing(), sf.loss.PureLoss(0.1), sf.loss.ZcdpLoss(0.01), 10 * sf.loss.LaplaceLoss(0.1)],
    ids=str,
)
def test_any_loss_can_be_the_claim(loss):
    assert audit(lambda data: data, 0, 1, samples=200, loss=loss).violated


def test_one_direction_of_a_loss_says_nothing_about_the_other():
    """The person's presence is sometimes certain, their absence never: (0, 0.3)-DP one way."""
    rng = generator()
    mechanism = Right(lambda data, n: (rng.random(n) < 0.3 * data).astype(int))
    one_way = sf.loss.ApproxLoss(0.0, 0.2).remove
    assert audit(mechanism, 1, 0, loss=one_way).violated
    assert audit(mechanism, 0, 1, loss=sf.loss.ApproxLoss(0.0, 0.2)).violated
    assert audit(mechanism, 1, 0, loss=one_way).likelier == "d0"


# ---- how it is asked, and how it answers -----------------------------------------------------------------------------


def test_a_mechanism_without_many_is_called_once_for_each_run():
    calls = []
    audit(calls.append, "first", "second", samples=100)
    assert calls == ["first", "second"] * 100


def test_an_object_is_audited_by_what_it_releases():
    mechanism = sf.Gaussian(2, source=Recorded("release"))
    found = audit(mechanism, 0, 20, samples=200, loss=mechanism.loss(20))
    assert not found.violated
    assert audit(mechanism, 0, 20, samples=200).violated


def test_many_may_return_a_tensor_or_a_list_of_anything():
    assert audit(Right(lambda data, n: Tensor([[data, 1.0]] * n)), 0, 1, samples=200).violated
    assert audit(Right(lambda data, n: [{"x": data}] * n), 0, 1, samples=200).violated
    assert audit(Right(lambda data, n: np.array(["a", "b"])[[data] * n]), 0, 1, samples=200).violated


def test_many_is_used_where_it_works_and_calls_where_it_raises():
    class Both:
        def __call__(self, data):
            if data:
                raise KeyError(data)
            return 1

        def many(self, data, n):
            return [self(data) for _ in range(n)]

    found = audit(Both(), 0, 1, samples=1000)
    assert sorted(found.seen) == [0, 550]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mechanism": 5}, "cannot be called"),
        ({"mechanism": lambda data: 1 / 0}, "raised ZeroDivisionError on every run"),
        ({"mechanism": Right(lambda data, n: [0] * (n - 1))}, "must return n outputs"),
        ({"mechanism": Right(lambda data, n: 7)}, "must return n outputs"),
        ({"d1": 0}, "the same data"),
        ({"d0": [1, math.nan], "d1": [1, math.nan]}, "the same data"),
        ({"d0": np.zeros(3), "d1": np.zeros(3)}, "the same data"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": 1.5}, "delta"),
        ({"samples": 10}, "samples"),
        ({"samples": 1e9}, "samples"),
        ({"samples": "many"}, "samples"),
        ({"confidence": 1}, "confidence"),
        ({"confidence": 0.2}, "confidence"),
        ({"loss": 1.0}, "privacy loss"),
        ({"loss": sf.loss.PureLoss(1.0), "epsilon": 2.0}, "both"),
    ],
)
def test_bad_input_is_refused_in_words(change, words):
    with pytest.raises(sf.errors.InvalidParameter, match=words) as caught:
        audit(**{"mechanism": lambda data: 0, "d0": 0, "d1": 1, "samples": 100, **change})
    assert "do:" in str(caught.value)


def test_an_interrupt_is_not_an_output():
    def stop(data):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(stop, 0, 1, samples=100)


def test_the_answer_is_a_lower_bound_with_words_for_people_and_json_for_machines():
    found = audit(lambda data: data, "<a>", "<b>", samples=1000)
    assert isinstance(found, Audit)
    assert float(found.epsilon) == found.epsilon.lower > 4
    assert found.epsilon.upper == math.inf
    assert (found.samples, found.held_out, sorted(found.seen)) == (1000, 550, [0, 550])
    assert str(found).startswith("VIOLATED: the claim ε = 1 is refuted")
    assert max(map(len, str(found).splitlines())) <= 80
    assert "&lt;" in found._repr_html_()
    assert "<a>" not in found._repr_html_()
    data = json.loads(found.to_json())
    assert data["violated"] is True
    assert data["epsilon"] == found.epsilon.lower
    quiet = audit(lambda data: 0, 0, 1, epsilon=2.0, delta=1e-5, samples=100)
    assert str(quiet).startswith("no violation of ε = 2, δ = 1e-05 found")
    assert quiet.to_json()


def test_what_is_odd_about_runs_or_claims_is_said():
    fixed = audit(lambda data: data, 0, 1, epsilon=0.0, samples=200)
    assert fixed.violated
    assert "not random" in str(fixed).replace("\n            ", "")
    assert "any difference refutes it" in " ".join(fixed.remarks)
    blind = audit(lambda data: 5, 0, 1, samples=200)
    assert not blind.violated
    assert "does not look at its data" in " ".join(blind.remarks)
    rng = generator()
    careless = audit(lambda data: 1 / int(rng.random() > 0.5), 0, 1, samples=200)
    assert "ended in an exception (ZeroDivisionError)" in " ".join(careless.remarks)
    beyond = audit(lambda data: rng.laplace(), 0, 1, epsilon=20.0, samples=200)
    assert "cannot certify more than ε = 2.8" in " ".join(beyond.remarks)
    assert audit(lambda data: rng.integers(2), 0, 1, samples=200).remarks == ()


def test_inputs_that_are_nearly_the_same_are_not_the_same():
    for d0, d1 in ((0.0, -0.0), (1, 1.0), (np.zeros(2), np.zeros(3)), ([0], (0,)), (1, True)):
        assert audit(lambda data: 0, d0, d1, samples=100).epsilon.lower == 0


# ---- no more runs than it takes --------------------------------------------------------------------------------------


def test_runs_are_doubled_until_a_claim_is_refuted():
    found = audit_until(Wrong(wrong.half_the_noise(1), generator()), 0, 1, samples=65536)
    assert found.violated
    assert found.samples < 65536
    calls = []
    audit_until(lambda data: calls.append(data), 0, 1, samples=3000)
    assert calls == [0, 1] * 3000


def test_doubled_runs_of_a_right_mechanism_never_refute_it_and_may_be_of_any_kind():
    """With other seeds: an alarm with probability at most 0.001."""
    found = audit_until(laplace("doubled", 1), 0, 1, samples=20_000)
    assert not found.violated
    assert found.epsilon.lower > 0.75
    assert found.samples == 20_000
    rng = generator()
    texts = audit_until(lambda data: "ab"[int(rng.random() < (0.1, 0.9)[data])], 0, 1, samples=5000)
    assert texts.violated


@pytest.mark.slow
def test_a_stage_is_certified_by_fresh_runs_at_its_own_level():
    """If each of 25 audits misses the truth with probability ≤ 0.2, more than 17 do so with probability < 1e-6."""
    eps, misses, rng = 1.0, 0, generator(6)
    for _ in range(25):
        mechanism = Right(lambda bit, n: np.where(rng.random(n) < 1 / (1 + math.exp(eps)), 1 - bit, bit))
        misses += audit_until(mechanism, 0, 1, samples=1024, confidence=0.8).epsilon.lower > eps
    assert misses <= 17


def test_time_is_an_output():
    ticks = iter(range(10**9))

    def slow_for_some(data):
        for _ in range(3 * data):
            next(ticks)
        return "the same"

    found = audit(Timed(slow_for_some, clock=lambda: float(next(ticks))), 0, 1, samples=200)
    assert found.violated
    assert "seconds" in found.event
    broken = Timed(lambda data: 1 / 0, clock=lambda: 0.0)(0)
    assert broken == {"output": Raised("ZeroDivisionError"), "seconds": 0.0}


def test_the_same_runs_give_the_same_answer():
    first, second = (audit(Wrong(wrong.half_the_noise(1), generator()), 0, 1, samples=5000) for _ in range(2))
    assert first == second


def test_progress_is_shown_on_a_terminal_only(monkeypatch, capsys):
    monkeypatch.setattr("sfumato.audit.outputs.PATIENCE", 0.0)
    audit(lambda data: 0, 0, 1, samples=100)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    audit(lambda data: 0, 0, 1, samples=100)
    assert "auditing" in capsys.readouterr().err
