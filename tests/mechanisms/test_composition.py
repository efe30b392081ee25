"""Mechanisms on data, and one after the other: what they see, what they cost, what is refused before data are there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter, MixedRelations
from sfumato.loss import DiscreteLaplaceLoss, GaussianLoss, LaplaceLoss
from tests.mechanisms import laws
from tests.mechanisms.oracle import assert_within
from tests.noise.sources import Recorded, Scripted

QUIET = 0.001  # noise that is 0 but for a chance of e^-500


def test_a_mechanism_on_data_answers_its_query_and_has_its_price():
    count = sf.Laplace(QUIET).on(len, 1)
    assert count.release("abc") == 3
    assert sf.Laplace(2).on(len, 1).loss() == LaplaceLoss(0.5)
    known = sf.Sensitivity(l0=1, linf=2, relation=sf.ReplaceOne)
    assert sf.Gaussian(4).on(sum, known).loss() == GaussianLoss(0.5, relation=sf.ReplaceOne)
    best = sf.Exponential(1.0, 1).on(lambda data: [data.count(x) for x in "ab"])
    assert best.loss() == sf.Exponential(1.0, 1).loss() and best.release("abb") in (0, 1)


def test_a_chain_gives_all_answers_and_later_questions_may_look_at_earlier_answers():
    quiet = sf.DiscreteLaplace(QUIET)
    seen = []

    def above(data, answers):
        seen.append(answers)
        return sum(x > answers[0] for x in data)

    chain = sf.Chain((quiet.on(len, 1), quiet.following(above, 1), quiet.following(lambda data, a: a[1], 0)))
    assert chain.release([1, 5, 9, 4]) == (4, 2, 2)
    assert seen == [(4,)]
    assert sf.Chain(()).release([1]) == ()


def test_the_price_of_a_chain_is_the_sum():
    parts = (sf.Laplace(2).on(len, 1), sf.Gaussian(4).following(lambda data, answers: 0, 1), sf.Laplace(2).on(len, 1))
    chain = sf.Chain(parts)
    assert chain.loss() == 2 * LaplaceLoss(0.5) + GaussianLoss(0.25)
    assert sf.Chain((chain, parts[0])).loss() == 3 * LaplaceLoss(0.5) + GaussianLoss(0.25)
    assert sf.Chain(()).loss().epsilon(0).upper == 0
    assert chain.then(max).loss() == chain.loss()


def test_an_adaptive_chain_costs_no_more_than_the_sum():
    """All pairs of answers of two geometric releases, the second question chosen by the first answer."""
    law, other = laws.discrete_laplace(1, 120), laws.discrete_laplace(2, 120)

    def joint(count):
        answers = {}
        for a, p in laws.seen(laws.moved(law, count), 12).items():
            asked = count if a % 2 else -2 * count  # sensitivity 2, whatever a was
            for b, q in laws.seen(laws.moved(other, asked), 12).items():
                answers[a, b] = p * q
        return answers

    chain = sf.Chain(
        (
            sf.DiscreteLaplace(1).on(len, 1),
            sf.DiscreteLaplace(2).following(lambda data, answers: len(data) if answers[0] % 2 else -2 * len(data), 2),
        )
    )
    assert chain.loss() == DiscreteLaplaceLoss(1, 1) + DiscreteLaplaceLoss(2, 2)
    assert_within(chain.loss(), [(joint(1), joint(0)), (joint(2), joint(1))], [0.0, 0.5, 1.0, 1.5, 2.0])


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=5))
def test_chains_of_gaussians_are_gaussian(scales):
    chain = sf.Chain(tuple(sf.Gaussian(s).on(len, 1) for s in scales))
    one = GaussianLoss(sum(s**-2 for s in scales) ** 0.5)
    assert chain.loss().delta(1.0).upper == pytest.approx(one.delta(1.0).upper, rel=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sf.Laplace(2).on(len),
        lambda: sf.Laplace(2).on(3, 1),
        lambda: sf.Laplace(2).on(len, -1),
        lambda: sf.Laplace(2).on(len, float("nan")),
        lambda: sf.Laplace(2).on(len, sf.Sensitivity(l2=1)),
        lambda: sf.Laplace(2).following(len, float("inf")),
        lambda: sf.Laplace(2).clamped(0, 9).on(len),
        lambda: sf.BoundedLaplace(2, 0, 9).on(len),
        lambda: sf.Exponential(1.0, 1).on(len, 1),
        lambda: sf.Chain((sf.Laplace(2),)),
        lambda: sf.Chain((sf.Laplace(2).then(abs),)),
        lambda: sf.Chain((len,)),
    ],
)
def test_what_has_no_price_is_refused_before_data_are_there(make):
    with pytest.raises(InvalidParameter, match="do:"):
        make()


def test_relations_are_not_mixed():
    replaced = sf.Sensitivity(l0=1, linf=1, relation=sf.ReplaceOne)
    with pytest.raises(MixedRelations):
        sf.Chain((sf.Laplace(2).on(len, 1), sf.Laplace(2).on(len, replaced)))


def test_noise_is_drawn_before_the_query_sees_data():
    source, at = Recorded("before"), []
    count = sf.Gaussian(5, source=source).on(lambda data: at.append(source.used) or len(data), 1)
    count.release("abc")
    used = source.used
    count.release("abcdef")
    assert at == [used, used] and used > 0


def test_a_chain_shows_no_query():
    secret = "12345"
    chain = sf.Chain((sf.Laplace(2, source=Scripted("")).on(lambda data: secret, 1),))
    assert secret not in repr(chain) and "Laplace" in repr(chain)
