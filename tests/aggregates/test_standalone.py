"""Aggregates with a mechanism of their own: trimmed means, modes and triangles, from SQL to the answer."""

import duckdb
import pytest

import sfumato as sf
from sfumato.aggregates.mode import StableMode
from sfumato.aggregates.price import Mu, Pure
from sfumato.aggregates.registry import parse_question
from sfumato.aggregates.trimmed_mean import TrimmedMeanRelease
from sfumato.curator import Curator
from sfumato.curator.offer import offer_for_epsilon
from sfumato.errors import QueryRefused
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.sql.policy import Policy
from tests.aggregates.friends import FRIENDS, RULES
from tests.curator.clinic import POLICY, built

PURE = POLICY.replace("delta = 1e-6", 'kind = "pure"')


@pytest.mark.parametrize(
    "sql",
    ["SELECT TRIANGLES(a, since) FROM friends", "SELECT TRIANGLES(a) FROM friends", "SELECT TRIANGLES() FROM visits",
     "SELECT since, TRIANGLES() FROM friends GROUP BY since", "SELECT COUNT(*) FROM friends WHERE TRIANGLES() > 3",
     "SELECT TRIANGLES() FROM (SELECT a, b FROM friends UNION ALL SELECT b, a FROM friends)",
     "SELECT edge, COUNT(*) FROM friends GROUP BY edge", "SELECT TRIANGLES(DISTINCT a, b) FROM friends",
     "SELECT TRIMMED_MEAN(stay) FROM visits", "SELECT TRIMMED_MEAN(stay, 0.5) FROM visits",
     "SELECT TRIMMED_MEAN(stay, 0) FROM visits", "SELECT TRIMMED_MEAN(stay, cost) FROM visits",
     "SELECT TRIMMED_MEAN(ward, 0.1) FROM visits", "SELECT TRIMMED_MEAN(patient_id, 0.1) FROM visits",
     "SELECT TRIMMED_MEAN(DISTINCT stay, 0.1) FROM visits", "SELECT TRIMMED_MEAN(stay, 0.1, 3) FROM visits",
     "SELECT TRIMMED_MEAN() FROM visits", "SELECT MODE() FROM visits", "SELECT MODE(*) FROM visits",
     "SELECT MODE(patient_id) FROM visits", "SELECT MODE(DISTINCT ward) FROM visits",
     "SELECT MODE(ward, day) FROM visits", "SELECT AVG(MODE(stay)) FROM visits",
     "SELECT MODE(MODE(ward)) FROM visits", "SELECT MODE(0.5) WITHIN GROUP (ORDER BY ward) FROM visits",
     "SELECT MODE() WITHIN GROUP (ORDER BY ward, day) FROM visits"],
)  # fmt: skip
def test_what_is_no_such_statistic_is_refused(sql):
    with pytest.raises(QueryRefused):
        parse_question(sql, RULES)


# ---- prices ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("currency", [Mu, Pure])
def test_all_of_a_question_costs_what_it_is_offered_for(currency):
    listed = "COUNT(*), MEDIAN(cost), TRIMMED_MEAN(cost, 0.1), MODE(day), MODE(ward)"
    sql = f"SELECT diagnosis, {listed} FROM visits GROUP BY diagnosis"
    offer = offer_for_epsilon(parse_question(sql, RULES), 1.0, 1e-9, currency)
    pieces = [offer.price.part(share) for share in offer.shares if share]
    power = 2 if currency is Mu else 1
    spent = offer.plan.groups * sum(piece.amount**power for piece in pieces)
    assert (1 - 1e-9) * offer.price.amount**power <= spent <= offer.price.amount**power
    slacks = [way.slack for way in offer.standalone]
    assert sum(map(bool, slacks)) == (2 if currency is Mu else 1)  # trimmed means cost pure ε, chosen modes nothing
    assert offer.key_delta + offer.plan.groups * sum(slacks) <= offer.leak
    assert isinstance(offer.loss, LeakyLoss) and offer.loss.failure == offer.leak
    for way, piece in zip(offer.standalone, pieces[-4:], strict=True):
        if isinstance(way, TrimmedMeanRelease):
            shares = [way.price.part(0.9), way.price.part(0.1)]
            assert sum(one.amount**power for one in shares) <= piece.amount**power
            inner = way.mechanism.loss()
            cost = inner.gdp(slack=way.slack * (1 + 1e-9)).upper if currency is Mu else max(inner.supremum())
            assert 0.9 * shares[0].amount < cost <= shares[0].amount * (1 + 5e-5)
        elif isinstance(way, StableMode):
            leak = LeakyLoss(piece.loss(), way.slack * (1 + 1e-9))
            for eps in (0.0, 0.01, 0.1):
                assert way.mechanism.loss().delta(eps).upper <= leak.delta(eps).upper + 1e-15


def test_charged_like_any_answer_stored_and_asked_again_for_nothing(friends):
    for sql, again in [
        ("SELECT TRIMMED_MEAN(stay, 0.1) AS m FROM visits", "select trimmed_mean(v.stay, 0.10) from visits v"),
        ("SELECT MODE(day) AS m FROM visits", "SELECT MODE() WITHIN GROUP (ORDER BY day DESC) FROM visits"),
        ("SELECT MODE(ward) AS m FROM visits WHERE stay > 1", "SELECT MODE(ward) FROM visits WHERE 1 < stay"),
        ("SELECT TRIANGLES() AS m FROM friends", "SELECT TRIANGLES(x.b, x.a) FROM friends x"),
    ]:
        price = friends.ledger.prices(friends.offer(sql, 1.0, None).loss)[-1]
        before = friends.ledger.verify().spent
        answer = friends.ask(sql, epsilon=1.0)
        assert answer.charged and friends.ledger.verify().spent == before + price
        assert answer.epsilon <= 1.0 and "m" in answer.columns
        assert not friends.preview(sql, epsilon=1.0).fits or friends.preview(sql, epsilon=1.0).free
        assert not friends.ask(again, epsilon=1.0).charged and friends.ask(sql, epsilon=0.5).rows == answer.rows


def test_a_preview_says_how_good_it_will_be_without_data(friends):
    friends.engine.close()
    friends.engine.path = friends.engine.path.with_name("gone")
    sql = "SELECT TRIMMED_MEAN(stay, 0.1) AS t, MODE(day) AS d, MODE(ward) AS w, MODE(stay) AS s FROM visits"
    words = str(friends.preview(sql, epsilon=1.0))
    assert "t: ± depends" in words and "d: shown with 95 % if it leads by" in words and "w: a value that" in words
    assert "t: ± depends" in str(friends.preview("SELECT TRIANGLES() AS t FROM friends", epsilon=1.0))


def test_pure_epsilon_without_delta_tells_what_needs_none(tmp_path):
    place = built(tmp_path / "c.duckdb", patients=500)
    with duckdb.connect(str(place)) as connection:
        connection.execute("CREATE TABLE friends (a TEXT, b TEXT, since DOUBLE)")
    curator = Curator.open(place, Policy.read(PURE + FRIENDS.replace("TYPE", "text")))
    for sql in ("SELECT TRIANGLES() FROM friends", "SELECT MODE(day) FROM visits"):
        with pytest.raises(QueryRefused, match="pure ε"):
            curator.ask(sql, epsilon=1.0)
    answer = curator.ask("SELECT MODE(ward) AS w, TRIMMED_MEAN(cost, 0.1) AS c FROM visits", epsilon=2.0)
    assert answer.columns == ("w", "c", "c low", "c high")
    assert curator.ledger.verify().spent.leak == 0


# ---- answers ---------------------------------------------------------------------------------------------------------


def test_modes_and_trimmed_means_are_what_they_are_called(friends):
    sql = "SELECT MODE(diagnosis) AS d, MODE(ward) AS w, MODE(cost > 3) AS t, TRIMMED_MEAN(cost, 0.4) AS c FROM visits"
    ((d, w, t, c, low, high),) = friends.ask(sql, epsilon=20.0).rows
    assert (d, t) == ("d0", True) and w in ("north", "south", "west")
    assert low <= c <= high and abs(c - 1000) < 1 and high - low < 5  # nearly all costs are clamped to 1000
    unclear = friends.ask("SELECT ward, MODE(day) AS d FROM visits GROUP BY ward", epsilon=1.0)
    assert unclear.columns == ("ward", "d") and unclear.column("d") == [None] * 3
    nothing = friends.ask(
        "SELECT TRIMMED_MEAN(stay, 0.1) AS m, MODE(day) AS d FROM visits WHERE cost > 1e9", epsilon=1.0
    )
    ((m, low, high, d),) = nothing.rows
    assert 0 <= low <= m <= high <= 60 and d is None
    assert (low, high) == (0, 60)  # nobody is there, and that is not told


def test_the_same_in_python(friends):
    stay, ward = sf.col("stay"), sf.col("ward")
    question = friends.table("visits").agg(t=stay.trimmed_mean(0.1), w=ward.mode().filter(stay > 2))
    text = "SELECT TRIMMED_MEAN(stay, 0.1) AS t, MODE(ward) FILTER (WHERE stay > 2) AS w FROM visits"
    assert question.preview(epsilon=1.0).offer.plan == friends.preview(text, epsilon=1.0).offer.plan
    graph_ = friends.table("friends").where(sf.col("since") > 2005).agg(n="TRIANGLES()")
    assert graph_.ask(epsilon=1.0).columns == ("n", "n low", "n high")
