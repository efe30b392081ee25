"""Laws that hold for every aggregate: a new one is collected by itself, and its example is asked."""

import inspect

import duckdb
import pytest

from sfumato.aggregates.builder import Term, col
from sfumato.aggregates.linear import Linear
from sfumato.aggregates.price import Mu, Pure
from sfumato.aggregates.registry import AGGREGATES, parse_question
from sfumato.aggregates.standalone import Standalone
from sfumato.curator.layout import estimates
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import release, statements
from sfumato.errors import QueryRefused
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built
from tests.curator.questions import moved

RULES = Policy.read(POLICY)
ASKED = [one for one in AGGREGATES.classes if one.example]


@pytest.fixture(scope="module")
def databases(tmp_path_factory):
    """The clinic, and the clinic without its busiest patient."""
    folder = tmp_path_factory.mktemp("clinics")
    places = {without: built(folder / f"{without}.duckdb", 40, without) for without in (None, 6)}
    return {without: duckdb.connect(str(place)) for without, place in places.items()}


def test_every_aggregate_is_linear_or_standalone_and_has_an_example():
    """TRIANGLES alone needs a table of edges, which the clinic has not."""
    assert all(issubclass(one, Linear) != issubclass(one, Standalone) for one in AGGREGATES.classes)
    assert {one.__name__ for one in AGGREGATES.classes if not one.example} == {"Triangles"}
    assert len({one.__name__ for one in AGGREGATES.classes}) == len(AGGREGATES.classes) >= 11


@pytest.mark.parametrize("kind", ASKED, ids=lambda kind: kind.__name__)
def test_the_example_asks_for_the_aggregate(kind):
    question = parse_question(kind.example, RULES)
    assert any(isinstance(one, kind) for one in question.aggregates)
    assert len(question.aggregates) == len({*question.aggregates})


METHODS = [(kind, *one.split(" = ")) for kind in AGGREGATES.classes for one in kind.methods]
VALUES = {"part": 0.25, "k": 3, "other": col("cost")}


@pytest.mark.parametrize(("kind", "name", "form"), METHODS, ids=[name for _, name, _ in METHODS])
def test_a_method_of_a_column_calls_its_aggregate(kind, name, form):
    values = [VALUES[one] for one in inspect.signature(getattr(Term, name)).parameters if one != "self"]
    (built_up,) = parse_question(f"SELECT {getattr(col('stay'), name)(*values)} FROM visits", RULES).aggregates
    written = form.replace("x", "stay", 1).replace("part", "0.25").replace(", k", ", 3").replace("other", "cost")
    (asked,) = parse_question(f"SELECT {written} FROM visits", RULES).aggregates
    assert built_up == asked and isinstance(asked, kind)


def test_every_aggregate_of_columns_has_a_method_and_no_two_share_one():
    names = [name for _, name, _ in METHODS]
    assert len(names) == len(set(names)) >= 16
    without = {one.__name__ for one in AGGREGATES.classes if not one.methods}
    assert without == {"CountUnits", "Triangles", "HoldsSomewhere", "HoldsEverywhere"}  # not of a column with numbers
    with pytest.raises(TypeError, match="part"):
        col("stay").quantile()
    with pytest.raises(AttributeError):
        col("stay").told()


@pytest.mark.parametrize("kind", ASKED, ids=lambda kind: kind.__name__)
def test_a_person_moves_exact_numbers_by_no_more_than_the_noise_is_made_for(kind, databases):
    assert moved(kind.example, RULES, databases[None], databases[6]) >= 0


@pytest.mark.parametrize("price", [Mu, Pure], ids=lambda price: price.__name__)
@pytest.mark.parametrize("kind", ASKED, ids=lambda kind: kind.__name__)
def test_what_is_released_can_be_read_and_intervals_hold_their_values(kind, price, databases):
    offer = offer_for_epsilon(parse_question(kind.example, RULES), 5.0, 1e-6, price)
    offer.prepare()
    tables = [databases[None].execute(text).fetchall() for text in statements(offer, 7, "duckdb")]
    rows = estimates(offer, release(offer, tables))
    assert rows or offer.plan.discovered
    for _, cells in rows:
        for aggregate, (value, low, high) in zip(offer.question.aggregates, cells, strict=True):
            assert (low is None and high is None) if not aggregate.has_interval else low <= value <= high
            assert offer.promise(aggregate)


@pytest.mark.parametrize("kind", ASKED, ids=lambda kind: kind.__name__)
def test_filter_is_of_the_rows_that_it_names(kind, databases):
    """The same as WHERE, in a question of its own; or refused in words."""
    (one, *_) = parse_question(kind.example, RULES).aggregates
    condition = parse_question("SELECT COUNT_IF(stay > 3) FROM visits", RULES).plan.where
    try:
        assert one.with_filter(condition).arguments
    except QueryRefused as refusal:
        assert "FILTER" in str(refusal)


@pytest.mark.parametrize("kind", AGGREGATES.classes, ids=lambda kind: kind.__name__)
def test_equal_aggregates_have_equal_texts(kind):
    """What is stored under a text is read by whoever has the same text."""
    if not kind.example:
        return
    first, again = (parse_question(kind.example, RULES) for _ in range(2))
    assert first.aggregates == again.aggregates and first.plan.canonical == again.plan.canonical
    other = parse_question(kind.example.replace("FROM visits", "FROM visits WHERE stay > 3"), RULES)
    assert other.plan.canonical != first.plan.canonical
