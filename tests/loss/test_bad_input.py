"""Bad input: the right limit, or an error of ours that names the parameter and says what to do. Nothing else, ever.

Warnings are errors in this suite, so a numpy warning fails here too.
"""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter, MixedRelations, SfumatoError, UnknownDescription

L = sf.loss

NOT_NUMBERS = ["1", b"1", "", None, True, False, [1], (1.0,), {}, 1j, object(), np.array([1.0, 2.0]), np.bool_(True)]
NOT_NUMBERS += [np.complex128(1), Decimal("NaN"), Decimal("sNaN")]
NOT_RANGE = [-1, -1e-300, math.nan, math.inf, -math.inf, np.float64("nan"), Fraction(-1, 3), -(10**400)]
EXTREME = [0, -0.0, 5e-324, 1e-200, 1e-12, 30.0, 100.0, 800.0, 1e4, 1e308, 10**400, np.float32(0.5), Fraction(1, 3)]
COUNTS = [-1, 1.5, math.nan, math.inf, -math.inf, "2", None, True, [2], 1j, Fraction(3, 2), 10**400, -(10**400)]

replaced = L.GaussianLoss(1.0, relation=sf.ReplaceOne)

# constructor, good parameters, and which of them to spoil
CONSTRUCTORS = [
    (L.GaussianLoss, {"mu": 1.0}),
    (L.LaplaceLoss, {"eps": 1.0}),
    (L.DiscreteGaussianLoss, {"sigma": 1.0, "sensitivity": 1}),
    (L.DiscreteLaplaceLoss, {"scale": 1.0, "sensitivity": 1}),
    (L.BoundedRangeLoss, {"eps": 1.0}),
    (L.PureLoss, {"eps": 1.0}),
    (L.RandomizedResponseLoss, {"eps": 1.0, "k": 3}),
    (L.ApproxLoss, {"eps": 1.0, "delta": 1e-6}),
    (L.StaircaseLoss, {"eps": 1.0, "gamma": 0.3}),
    (L.ZcdpLoss, {"rho": 0.1, "xi": 0.1}),
    (L.PoissonSampledLoss, {"inner": L.GaussianLoss(1.0), "rate": 0.1}),
    (L.SampledGaussianGroupLoss, {"mu": 1.0, "rate": 0.1, "size": 3}),
    (L.WithoutReplacementLoss, {"inner": replaced, "n": 10, "m": 3}),
    (sf.Poisson, {"rate": 0.1}),
    (sf.WithoutReplacement, {"n": 10, "m": 3}),
]
SPOILED = [(build, good, name) for build, good in CONSTRUCTORS for name in good if name != "inner"]
INTEGERS = {"sensitivity", "k", "n", "m", "size"}
ids = [f"{build.__name__}.{name}" for build, _, name in SPOILED]


def outcome(action):
    """(result, error): what happened; any exception that is not ours is passed on as a complaint."""
    try:
        return action(), None
    except SfumatoError as error:
        return None, error


def complaint(error: Exception, name: str) -> str | None:
    """What an error of ours lacks: the parameter's name, and what to do."""
    text = str(error)
    if name not in text:
        return f"does not name {name}: {text!r}"
    return None if "do:" in text or "give" in text else f"does not say what to do: {text!r}"


def fine(found) -> bool:
    """A bound or an enclosure without NaN."""
    return bool(np.all(np.asarray(found.lower) <= np.asarray(found.upper)))


VIEWS = {
    "delta": lambda loss: loss.delta(0.5),
    "delta far out": lambda loss: loss.delta(1e4),
    "profile": lambda loss: loss.delta(np.array([0.0, 1e-9, 3.0, 800.0, math.inf])),
    "epsilon": lambda loss: loss.epsilon(1e-6),
    "epsilon of 0": lambda loss: loss.epsilon(0.0),
    "epsilon of 1": lambda loss: loss.epsilon(1.0),
    "trade-off": lambda loss: loss.trade_off(0.05),
    "trade-off at 0": lambda loss: loss.trade_off(0.0),
    "trade-off at 1": lambda loss: loss.trade_off(1.0),
    "Rényi": lambda loss: loss.renyi(2.0),
    "Rényi between": lambda loss: loss.renyi(0.5),
    "largest": lambda loss: loss.renyi(math.inf),
    "KL": lambda loss: loss.kl(),
    "χ²": lambda loss: loss.chi_squared(),
    "Hellinger": lambda loss: loss.hellinger(),
    "hockey stick": lambda loss: loss.hockey_stick(0.5),
    "price": lambda loss: loss.gdp(1e-6, tolerance=1e-3),
    "twice": lambda loss: (2 * loss).delta(0.5),
    "with a coin": lambda loss: (loss + L.PureLoss(0.1, relation=loss.relation)).delta(0.5, tolerance=1e-2),
}


def problems_of(build, good, name, values):
    """Every value that leads to something else than a usable loss or a helpful error. A sixth of all views is tried on
    each value, and they take turns."""
    found, turns = [], itertools.cycle(range(6))
    for value in values:
        try:
            loss, error = outcome(lambda value=value: build(**{**good, name: value}))
        except Exception as other:
            found.append(f"{name} = {value!r}: {type(other).__name__}: {other}")
            continue
        if error is not None:
            found += [f"{name} = {value!r}: {lack}"] if (lack := complaint(error, name)) else []
        elif isinstance(loss, L.PrivacyLoss):
            found += [f"{name} = {value!r}: {text}" for text in broken_views(loss, next(turns))]
    return found


def broken_views(loss, turn):
    for view, look in list(VIEWS.items())[turn::6]:
        try:
            answer, _ = outcome(lambda look=look: look(loss))
        except Exception as other:
            yield f"{view}: {type(other).__name__}: {other}"
        else:
            if answer is not None and not fine(answer):
                yield f"{view}: {answer}"


@pytest.mark.parametrize(("build", "good", "name"), SPOILED, ids=ids)
def test_what_is_no_number_is_refused(build, good, name):
    for value in NOT_NUMBERS:
        with pytest.raises(InvalidParameter) as caught:
            build(**{**good, name: value})
        assert not complaint(caught.value, name), value


@pytest.mark.parametrize(("build", "good", "name"), SPOILED, ids=ids)
def test_numbers_out_of_range_are_refused(build, good, name):
    for value in COUNTS[:5] + NOT_RANGE if name in INTEGERS else NOT_RANGE:
        with pytest.raises(InvalidParameter) as caught:
            build(**{**good, name: value})
        assert not complaint(caught.value, name), value


@pytest.mark.slow
@pytest.mark.parametrize(("build", "good", "name"), SPOILED, ids=ids)
def test_extreme_numbers_give_a_limit_or_a_refusal(build, good, name):
    values = [0, 1, 2, 12, 10**6, 10**15, 1e20, 10**400] if name in INTEGERS else EXTREME
    assert not problems_of(build, good, name, values)


# ---- views ----------------------------------------------------------------------------------------------------------

LOSSES = [
    L.GaussianLoss(1.0),
    L.LaplaceLoss(1.0),
    L.DiscreteGaussianLoss(1.0),
    L.DiscreteLaplaceLoss(1.0, 3),
    L.BoundedRangeLoss(1.0),
    L.ApproxLoss(1.0, 1e-6),
    L.FinitePairLoss((0.5, 0.5), (0.25, 0.75)),
    L.ZcdpLoss(0.1),
    L.RenyiLoss((2.0, 4.0), (0.1, 0.2)),
    L.PoissonSampledLoss(L.GaussianLoss(1.0), 0.1),
    L.WithoutReplacementLoss(replaced, 10, 3),
    L.TabulatedLoss((0.0, 1.0), (0.3, 0.0), (0.3, 0.0), (0.3, 0.0), (0.3, 0.0)),
    2 * L.LaplaceLoss(0.5) + L.GaussianLoss(0.3),
    3 * L.PureLoss(0.2),
    L.either(L.GaussianLoss(0.5), L.LaplaceLoss(0.5)),
    L.PoissonSampledLoss(L.GaussianLoss(1.0), 0.1).add,
    L.nothing(),
]

ARGUMENTS = {
    "epsilon": (lambda loss, x: loss.delta(x), [-1, -1e-9, math.nan, -math.inf, "0.5", None, True, 1j, {}]),
    "delta": (lambda loss, x: loss.epsilon(x), [-1e-9, 1.0000001, math.nan, math.inf, "0.5", None, True, 1j, [0.1]]),
    "alpha": (lambda loss, x: loss.trade_off(x), [-1e-9, 1.0000001, math.nan, "0.5", None, True, 1j, [0.1, 2], ["1"]]),
    "order": (lambda loss, x: loss.renyi(x), [0, -1, math.nan, -math.inf, "2", None, True, 1j, [2]]),
    "slack": (lambda loss, x: loss.gdp(x), [-1e-9, 1.0, math.nan, math.inf, "0.5", None, True, 1j, [0.1]]),
    "size": (lambda loss, x: loss.group(x), COUNTS[:10]),
    "the number of repetitions": (lambda loss, x: x * loss, [-1, 1.5, math.nan, math.inf, "2", None, True, 1j]),
    "tolerance": (lambda loss, x: loss.epsilon(1e-6, tolerance=x), [0, -1, 1, 1e-16, math.nan, "1e-3", None, True]),
}


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_views_refuse_bad_arguments(loss, name):
    look, values = ARGUMENTS[name]
    for value in values:
        with pytest.raises(InvalidParameter) as caught:
            look(loss, value)
        assert not complaint(caught.value, name), value


@pytest.mark.parametrize("loss", LOSSES[:1] + LOSSES[9:10] + LOSSES[12:13], ids=str)
def test_hockey_sticks_and_tolerances_of_other_views_refuse_bad_arguments(loss):
    for value in (-1e-9, math.nan, -math.inf, "1", None, True):
        with pytest.raises(InvalidParameter, match="alpha"):
            loss.hockey_stick(value)
    for look in (loss.delta, loss.trade_off, loss.gdp):
        for tolerance in (0, 1, math.nan, "1e-3", None):
            with pytest.raises(InvalidParameter, match="tolerance"):
                look(0.1, tolerance=tolerance)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_arrays_of_epsilons_are_looked_at_too(loss):
    for bad in ([-1.0, 1.0], [math.nan], ["a", "b"], [1j], [None, 1.0], [True, False]):
        with pytest.raises(InvalidParameter, match="epsilon"):
            loss.delta(np.array(bad))
    assert len(loss.delta(np.array([])).upper) == 0
    square = loss.delta(np.array([[0.0, 0.5], [1.0, math.inf]]))
    assert square.upper.shape == (2, 2)
    assert fine(square)
    assert float(square.upper[0, 1]) == pytest.approx(loss.delta(0.5).upper, rel=1e-3)
    assert loss.delta(np.array([0, 1])).upper.shape == (2,)  # whole numbers are numbers


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_edges_of_every_range_are_answered(loss):
    assert loss.epsilon(1.0).upper == 0
    assert loss.trade_off(1.0).upper <= 1e-9
    assert loss.trade_off(0.0).lower <= 1
    assert fine(loss.delta(math.inf))
    assert fine(loss.delta(1e300))
    assert fine(loss.epsilon(0.0))
    assert fine(loss.epsilon(5e-324))
    assert loss.hockey_stick(0.0).upper == pytest.approx(1.0)
    assert loss.hockey_stick(math.inf).upper == loss.delta(math.inf).upper
    for order in (1e-9, 1 - 1e-12, 1.0, 1 + 1e-12, 300.0, math.inf):
        assert fine(loss.renyi(order))
    assert loss.group(0).delta(0.0).upper <= 1e-12  # nobody is hurt, up to rounding
    assert loss.group(1).delta(0.3).upper == pytest.approx(loss.delta(0.3).upper, rel=1e-9, abs=1e-300)


# ---- things that do not belong together -----------------------------------------------------------------------------


def test_relations_are_never_mixed():
    one, other = L.GaussianLoss(1.0), replaced
    mixes = [
        lambda: one + other,
        lambda: sum([one, other]),
        lambda: L.either(one, other),
        lambda: one.remove + one,
        lambda: one.remove + one.add,
        lambda: sf.Poisson(0.1).amplify(other),
        lambda: sf.Poisson(0.1).amplify(one.remove),
        lambda: sf.WithoutReplacement(10, 3).amplify(one),
        lambda: other.remove,
        lambda: one.add.remove,
        lambda: L.replace_one(other),
    ]
    for mix in mixes:
        with pytest.raises(MixedRelations, match="do:"):
            mix()


@pytest.mark.parametrize(
    "build",
    [
        lambda: L.Either((L.GaussianLoss(1.0), replaced)),
        lambda: L.Either((replaced,)),
        lambda: L.Either(()),
        lambda: L.Either(("x",)),
        lambda: L.Sum(((1, L.GaussianLoss(1.0)), (1, replaced))),
        lambda: L.Sum(((-1, L.GaussianLoss(1.0)),)),
        lambda: L.Sum(((1.5, L.GaussianLoss(1.0)),)),
        lambda: L.Sum(((1, "x"),)),
        lambda: L.Sum(None),
        lambda: L.OneWay("x", relation=sf.Relation.Remove),
        lambda: L.Reversed("x"),
        lambda: L.Reversed(replaced),
        lambda: L.PoissonSampledLoss(replaced, 0.1),
        lambda: L.PoissonSampledLoss("x", 0.1),
        lambda: L.WithoutReplacementLoss(L.GaussianLoss(1.0), 10, 3),
        lambda: L.WithoutReplacementLoss(None, 10, 3),
        lambda: L.WithoutReplacementLoss(replaced, 3, 10),
        lambda: L.GaussianLoss(1.0, relation="add/remove"),
        lambda: L.ApproxLoss(1.0, 0.1, relation=None),
        lambda: L.RenyiLoss(None, (1.0,)),
        lambda: L.RenyiLoss((2.0,), None),
        lambda: L.RenyiLoss((), ()),
        lambda: L.RenyiLoss((1.0,), (1.0,)),
        lambda: L.RenyiLoss((3.0, 2.0), (1.0, 1.0)),
        lambda: L.RenyiLoss((2.0, 3.0), (1.0,)),
        lambda: L.RenyiLoss((2.0,), (-1.0,)),
        lambda: L.RenyiLoss((2.0,), (math.nan,)),
        lambda: L.RenyiLoss("ab", (1.0, 2.0)),
        lambda: L.FinitePairLoss((0.5, 0.5), (1.0,)),
        lambda: L.FinitePairLoss((0.5, 0.6), (0.5, 0.5)),
        lambda: L.FinitePairLoss((1.5, -0.5), (0.5, 0.5)),
        lambda: L.FinitePairLoss((math.nan, 1.0), (0.5, 0.5)),
        lambda: L.FinitePairLoss((), ()),
        lambda: L.FinitePairLoss(None, (1.0,)),
        lambda: L.FinitePairLoss("10", (1.0, 0.0)),
        lambda: L.TabulatedLoss((0.0,), (1.0,), (1.0,), (1.0,), (1.0,)),
        lambda: L.TabulatedLoss((0.0, 1.0), (0.1, 0.3), (0.1, 0.3), (0.1, 0.0), (0.1, 0.0)),
        lambda: L.TabulatedLoss(None, (1.0,), (1.0,), (1.0,), (1.0,)),
        lambda: L.from_renyi(lambda a: math.inf),
        lambda: L.from_renyi(lambda a: math.nan),
        lambda: L.from_renyi(lambda a: -1.0),
        lambda: L.from_renyi(lambda a: "x"),
        lambda: L.from_renyi(3.0),
        lambda: L.from_profile(lambda eps: 2.0),
        lambda: L.from_profile(3.0),
        lambda: L.from_trade_off(lambda a: math.nan),
        lambda: L.either(),
        lambda: L.either("x"),
        lambda: sf.Poisson(0.1).amplify("x"),
        lambda: sf.Poisson(0.1).amplify(None),
        lambda: sf.WithoutReplacement(10, 11),
        lambda: sf.WithoutReplacement(0, 0),
    ],
)
def test_what_is_no_loss_is_refused_where_it_is_built(build):
    with pytest.raises(SfumatoError) as caught:
        build()
    assert len(str(caught.value)) > 20


@pytest.mark.parametrize("other", [1, 1.0, "x", None, [], object()])
def test_only_losses_are_added(other):
    loss = L.GaussianLoss(1.0)
    for add in (lambda: loss + other, lambda: other + loss):
        with pytest.raises((TypeError, SfumatoError)):  # Python's own answer to `loss + 1`
            add()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "1",
        "null",
        None,
        1,
        "{",
        '{"sfumato":1}',
        '{"sfumato":2,"loss":"GaussianLoss","mu":1,"relation":"add/remove"}',
        '{"sfumato":1,"loss":"NoLoss"}',
        '{"sfumato":1,"loss":"PrivacyLoss","relation":"add/remove"}',
        '{"sfumato":1,"loss":"Symmetric","relation":"add/remove"}',
        '{"sfumato":1,"loss":["GaussianLoss"],"mu":1}',
        '{"sfumato":1,"loss":"GaussianLoss"}',
        '{"sfumato":1,"loss":"GaussianLoss","mu":"1","relation":"add/remove"}',
        '{"sfumato":1,"loss":"GaussianLoss","mu":NaN,"relation":"add/remove"}',
        '{"sfumato":1,"loss":"GaussianLoss","mu":1e999,"relation":"add/remove"}',
        '{"sfumato":1,"loss":"GaussianLoss","mu":[1],"relation":"add/remove"}',
        '{"sfumato":1,"loss":"GaussianLoss","mu":1,"relation":"friends"}',
        '{"sfumato":1,"loss":"GaussianLoss","mu":1,"relation":null}',
        '{"sfumato":1,"loss":"GaussianLoss","mu":1,"sigma":2,"relation":"add/remove"}',
        '{"sfumato":1,"loss":"Sum","terms":[[1]],"relation":"add/remove"}',
        '{"sfumato":1,"loss":"Sum","terms":[["1",{"loss":"PureLoss","eps":1}]],"relation":"add/remove"}',
        '{"sfumato":1,"loss":"Sum","terms":{},"relation":"add/remove"}',
        '{"sfumato":1,"loss":"Sum","relation":"add/remove"}',
        '{"sfumato":1,"loss":"Either","options":[],"relation":"add/remove"}',
        '{"sfumato":1,"loss":"OneWay","inner":{"loss":"PureLoss","eps":1,"relation":"add/remove"},"relation":"add/remove"}',
        '{"sfumato":1,"loss":"PoissonSampledLoss","inner":1,"rate":0.1,"relation":"add/remove"}',
        '{"sfumato":1,"loss":"PoissonSampledLoss","inner":{"loss":"PureLoss","eps":1,"relation":"replace-one"},'
        '"rate":0.1,"relation":"add/remove"}',
        "[" * 100_000,
    ],
)
def test_texts_that_describe_no_loss_are_refused(text):
    with pytest.raises(UnknownDescription):
        L.from_json(text)


def test_a_nested_description_a_thousand_deep_is_answered_or_refused():
    text = '{"loss":"PureLoss","eps":0.1,"relation":"add/remove"}'
    for _ in range(1000):
        text = '{"loss":"PoissonSampledLoss","inner":' + text + ',"rate":0.5,"relation":"add/remove"}'
    _, error = outcome(lambda: L.from_json('{"sfumato":1,' + text[1:]).delta(0.0))
    assert error is None or isinstance(error, UnknownDescription)


def test_one_more_is_too_many_as_well():
    most = 10**15 * L.GaussianLoss(0.1)
    with pytest.raises(InvalidParameter, match="too many repetitions"):
        most + L.GaussianLoss(0.1)
