"""What every mechanism keeps to, run over every class.

Bits are recorded, so that each run is the same. With other bits an audit of a mechanism that keeps its promise would
fail with probability at most 0.001, and the count of missed errors with at most 1e-6.
"""

import copy
import math
import pickle
import re
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import bdtrc

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.mechanisms import Mechanism, Processed
from sfumato.mechanisms.base import Following, Measured
from sfumato.mechanisms.examples import Example
from tests.audit import wrong
from tests.checks.mechanism_examples import EXAMPLES, classes_with_examples, concrete_classes
from tests.noise.sources import Recorded, Scripted

every = pytest.mark.parametrize("example", EXAMPLES, ids=str)
PAIRS = [(example, pair) for example in EXAMPLES for pair in example.neighbours]
each_pair = pytest.mark.parametrize(("example", "pair"), PAIRS, ids=lambda x: str(x))
ONCE, MORE, AT_ONCE = 800, 3000, 10_000  # runs one by one, if these show nothing, and in arrays
WRAPPERS = {Processed, Measured, Following}  # their theorem is that of what they wrap
NONSENSE = [math.nan, math.inf, -math.inf, "1", 1j, [1.0], b"1"]


class Rows:
    """A mechanism that answers value by value, asked for many answers at once."""

    def __init__(self, mechanism: Mechanism):
        self.mechanism = mechanism

    def many(self, value, n):
        return self.mechanism.release(np.full((n, *np.shape(value)), value))


def recorded(example: Example, name: str) -> Mechanism:
    return example.make(Recorded(f"{name} of {example}"))


def bits_of(pair) -> str:
    """The label of the bits recorded for a pair; whether they suffice to tell neighbours apart depends on luck."""
    return f"apart Pair(d0={pair.first!r}, d1={pair.second!r}, told={pair.loss_arguments!r})"


def test_every_class_has_an_example():
    missing = concrete_classes() - classes_with_examples()
    assert not missing, f"state `examples` in {missing}"


# ---- privacy ---------------------------------------------------------------------------------------------------------


class Seen:
    """Answers that were given, for more than one look at them: each side's own, in turn."""

    def __init__(self, pair, here, there):
        self.values = pair.first, pair.second
        self.kept = {id(pair.first): here, id(pair.second): there}

    @staticmethod
    def one_by_one(mechanism, pair, n):
        answers = ((mechanism.release(pair.first), mechanism.release(pair.second)) for _ in range(n))
        return Seen(pair, *zip(*answers, strict=True))

    def many(self, value, n):
        assert len(self.kept[id(value)]) == n
        return self.kept[id(value)]


@pytest.mark.slow
@each_pair
def test_no_audit_refutes_the_loss(example, pair):
    """And the neighbours are told apart a little by the same answers: else the audit would look at nothing.

    What answers value by value is asked fewer times here, and very often below.
    """
    mechanism, runs = recorded(example, bits_of(pair)), ONCE // 8 if example.rows else ONCE
    seen = Seen.one_by_one(mechanism, pair, runs)
    found = sf.audit.audit(seen, pair.first, pair.second, loss=mechanism.loss(*pair.loss_arguments), samples=runs)
    assert not found.violated, found
    if not example.rows and found.epsilon.lower <= 0:
        assert tells_apart(seen, runs) or tells_apart(Seen.one_by_one(mechanism, pair, MORE), MORE)


def tells_apart(seen: Seen, runs: int) -> bool:
    return sf.audit.audit(seen, *seen.values, epsilon=0.0, samples=runs, confidence=0.99).violated


@pytest.mark.parametrize(("example", "pair"), [p for p in PAIRS if p[0].rows], ids=lambda x: str(x))
def test_no_audit_of_whole_arrays_refutes_the_loss(example, pair):
    mechanism = recorded(example, bits_of(pair))
    seen = Seen(pair, *(Rows(mechanism).many(value, AT_ONCE) for value in (pair.first, pair.second)))
    found = sf.audit.audit(seen, pair.first, pair.second, loss=mechanism.loss(*pair.loss_arguments), samples=AT_ONCE)
    assert not found.violated, found
    assert found.epsilon.lower > 0 or tells_apart(seen, AT_ONCE)


def test_audits_of_this_size_refute_too_little_noise_and_broken_bits():
    claim = sf.Laplace(1.0).loss(1)
    small = sf.Laplace(0.6, source=Recorded("too small"))
    assert sf.audit.audit(Rows(small), 0, 1, loss=claim, samples=AT_ONCE).violated
    assert sf.audit.audit(sf.Laplace(0.4, source=Recorded("far too small")), 0, 1, loss=claim, samples=ONCE).violated
    for draw, loss in ((wrong.naive_laplace(1), claim), (wrong.naive_gaussian(1), sf.Gaussian(1.0).loss(1))):
        naive = wrong.Wrong(draw, np.random.default_rng(0))
        assert sf.audit.audit(naive, 0.0, 1.0, loss=loss, samples=ONCE).violated


@every
def test_nothing_is_kept_of_the_data(example):
    mechanism = recorded(example, "repr")
    before = repr(mechanism)
    for value in (*example.inputs.extremes, *(d for pair in example.neighbours for d in (pair.first, pair.second))):
        mechanism.release(value)
    assert repr(mechanism) == before == repr(example.make(sf.noise.Keystream()))
    assert "\n" not in before and "source" not in before
    kept = [name for name in vars(mechanism) if name not in {f.name for f in fields(mechanism)}]
    assert set(kept) <= {name for cls in type(mechanism).__mro__ for name in vars(cls)}, "more than cached properties"


@every
def test_data_are_left_as_they_are(example):
    mechanism = recorded(example, "unchanged")
    for value in (*example.inputs.extremes, *(d for pair in example.neighbours for d in (pair.first, pair.second))):
        before = copy.deepcopy(value)
        mechanism.release(value)
        np.testing.assert_equal(*(vars(x) if hasattr(x, "__dict__") else x for x in (value, before)))


# ---- values at the edge ----------------------------------------------------------------------------------------------


def leaves(output: object) -> list[object]:
    """The numbers of an output."""
    if isinstance(output, dict):
        return list(output.values())
    return np.asarray(output, object).reshape(-1).tolist()


@every
def test_private_values_are_never_refused_and_answers_lie_on_the_lattice(example):
    mechanism = recorded(example, "edges")
    for value in example.inputs.extremes:
        for x in leaves(mechanism.release(value)) if example.step else ():
            assert x is None or (Fraction(x) / example.step).denominator == 1
            assert x is None or (x - x == 0 and abs(x) <= 2**63 * example.step)


@every
def test_types_and_shapes_of_answers_do_not_depend_on_values(example):
    """For values of one type: an integer that is huge, a float that is no number."""
    mechanism = recorded(example, "types")
    for kind in (int, float):
        found = {type(mechanism.release(value)) for value in example.inputs.extremes if type(value) is kind}
        assert len(found) <= 1
    for value in example.inputs.extremes:
        if example.rows and isinstance(value, np.ndarray | list):
            assert np.shape(mechanism.release(value)) == np.shape(value)


# ---- before a bit is drawn -------------------------------------------------------------------------------------------


@every
def test_prices_and_promises_draw_nothing(example):
    mechanism = example.make(Scripted(""))
    for pair in example.neighbours:
        mechanism.loss(*pair.loss_arguments)
    if example.distance:
        mechanism.error(0.9, **example.error_arguments)


@every
def test_nonsense_is_refused_before_a_bit_is_drawn(example):
    mechanism = example.make(Scripted(""))
    for value in example.inputs.refused:
        with pytest.raises(SfumatoError, match="do:"):
            mechanism.release(value)


@every
def test_parameters_that_make_no_sense_are_refused(example):
    mechanism = example.make(Scripted(""))
    for parameter in fields(mechanism):
        if type(getattr(mechanism, parameter.name)) not in (int, float):
            continue
        for bad in NONSENSE:
            with pytest.raises(SfumatoError, match="do:"):
                replace(mechanism, **{parameter.name: bad})


# ---- the same noise is never used twice ------------------------------------------------------------------------------


@every
def test_copies_have_noise_of_their_own(example):
    """Enough answers that two lists of them agree with probability below 1e-6 each time; few usually differ already."""
    mechanism = example.make(sf.noise.entropy.SYSTEM)
    value = example.neighbours[0].first
    mechanism.release(value)  # whatever is drawn ahead is drawn now
    others = [mechanism, copy.copy(mechanism), copy.deepcopy(mechanism), pickle.loads(pickle.dumps(mechanism))]
    answers = [""] * len(others)
    for many in (20, 180):
        answers = [before + repr([leaves(other.release(value)) for _ in range(many)])
                   for before, other in zip(answers, others, strict=True)]  # fmt: skip
        if len(set(answers)) == len(others):
            return
    raise AssertionError("two copies give the same 200 answers")


# ---- promises --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", [x for x in EXAMPLES if x.distance], ids=str)
def test_errors_are_missed_no_more_often_than_said(example):
    mechanism, value, n = recorded(example, "errors"), example.neighbours[0].first, 2000
    errors = [example.distance(value, mechanism.release(value)) for _ in range(n)]
    for confidence in (0.5, 0.95):
        bound = mechanism.error(confidence, **example.error_arguments)
        misses = sum(error > bound for error in errors)
        assert bdtrc(max(misses - 1, 0), n, 1 - confidence) > 1e-6


# ---- descriptions ----------------------------------------------------------------------------------------------------


@each_pair
def test_the_loss_comes_back_from_its_description(example, pair):
    loss = example.make(Scripted("")).loss(*pair.loss_arguments)
    assert sf.loss.from_json(loss.to_json()) == loss


@pytest.mark.parametrize("kind", sorted(concrete_classes() - WRAPPERS, key=lambda kind: kind.__name__))
def test_the_docstring_cites_a_theorem_and_a_year(kind):
    text = " ".join(found.__doc__ or "" for found in kind.__mro__[:2])
    assert "Theorem:" in text and re.search(r"(19|20)\d\d|docs/theorems", text)


STATED = [one for one in EXAMPLES if isinstance(getattr(one.make(sf.noise.Keystream()), "delta", None), float)]


@pytest.mark.parametrize("example", STATED, ids=str)
def test_what_leaks_is_at_most_the_stated_delta(example):
    """L keys leak no more than L·δ; where losses have a largest value, ε is finite at the very δ that is stated."""
    made = example.make(sf.noise.Keystream())
    loss, stated = made.loss(*example.neighbours[0].loss_arguments), made.delta
    if isinstance(made, sf.PartitionSelection):
        stated *= made.groups
    assert max(loss.leak()) <= stated
    if max(loss.supremum()) < math.inf:
        assert loss.epsilon(min(stated, 1.0)).upper <= max(loss.supremum()) < math.inf
