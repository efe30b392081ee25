"""Questions put together in Python are the questions of SQL: the same plan, the same stored answer."""

import pytest

import sfumato as sf
from sfumato.aggregates.builder import sql
from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.errors import QueryRefused
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built

RULES = Policy.read(POLICY)


@pytest.mark.parametrize("name", ["group", "null", "current_date", "true", "a b", "interval"])
def test_a_column_may_have_any_name(name):
    """Also one that is a word of SQL."""
    rules = Policy.read("version = 1\n[budget]\nepsilon = 1\ndelta = 1e-6\n[tables.order]\nunit = 'select'\n"
                        f"columns.'{name}' = {{low = 0, high = 1}}\n")  # fmt: skip
    asked = sf.Curator(None, rules, None).table("order").where(sf.col(name) > 0).agg(sf.col(f"order.{name}").sum())
    written = f'SELECT SUM("{name}") FROM "order" WHERE "{name}" > 0'
    assert parse_question(str(asked.sql), rules).plan.canonical == parse_question(written, rules).plan.canonical


@pytest.fixture
def curator(tmp_path):
    return Curator.open(built(tmp_path / "clinic.duckdb", patients=300), RULES)


def visits():
    return sf.Curator(None, RULES, None).table("visits")


stay, cost = sf.col("stay"), sf.col("visits.cost")
PAIRS = [
    (visits().agg(sf.count()), "SELECT COUNT(*) FROM visits"),
    (
        visits().where(cost > 10, "stay < 5").group_by("ward").agg(n=sf.count(), mean=stay.mean()),
        "SELECT ward, AVG(stay) mean, COUNT(*) n FROM visits WHERE stay < 5 AND 10 < cost GROUP BY ward",
    ),
    (
        visits().where((stay > 1) & ~(cost <= 3) | sf.col("ward").isin("north", "o'west")).agg(s=(2 * stay - 1).sum()),
        "SELECT SUM(2 * stay - 1) s FROM visits WHERE (stay > 1 AND NOT cost <= 3) OR ward IN ('north', 'o''west')",
    ),
    (
        visits().join("wards", using="ward").group_by("floor", month=sql("MONTH(day)")).agg(s=stay.std(), v=stay.var()),
        "SELECT floor, MONTH(day) AS month, STDDEV(stay) s, VARIANCE(stay) v FROM visits JOIN wards USING (ward)"
        " GROUP BY floor, MONTH(day)",
    ),
    (
        visits().where(~stay.is_null()).agg("SUM(cost)", people=sf.col("patient_id").nunique(), n=stay.count()),
        "SELECT SUM(cost), COUNT(DISTINCT patient_id), COUNT(stay) FROM visits WHERE stay IS NOT NULL",
    ),
    (
        visits().agg(r=(stay / 2 + 1 - 3 * stay).mean(), q=(1 / (1 + stay)).count(), z=(5 - stay).sum()),
        "SELECT AVG(stay / 2 + 1 - 3 * stay), COUNT(1 / (1 + stay)), SUM(5 - stay) FROM visits",
    ),
    (
        visits().group_by("ward").agg(n=sf.count()).having(sf.col("n") > 5, "n < 1000").order_by("n DESC").limit(2),
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 5 AND n < 1000 ORDER BY n DESC LIMIT 2",
    ),
    (
        visits().where(sf.col("ward").isin(["west", "north"]), stay.isin(range(3)), cost.isin({7})).agg(sf.count()),
        "SELECT COUNT(*) FROM visits WHERE ward IN ('north', 'west') AND stay IN (0, 1, 2) AND cost = 7",
    ),
    (visits().where(stay != 3, stay == stay, stay >= 0).agg(sf.count()),
     "SELECT COUNT(*) FROM visits WHERE stay >= 0 AND stay <> 3 AND stay = stay"),
    (
        visits().group_by("ward").agg(a=stay.min(), b=stay.max(), c=stay.median(), d=stay.quantile(0.9)).offset(1),
        "SELECT ward, MIN(stay), MAX(stay), MEDIAN(stay), QUANTILE(stay, 0.9) FROM visits GROUP BY ward OFFSET 1",
    ),
    (
        visits().where(stay.between(1, 5), sf.col("ward").like("n%")).agg(
            long=sf.count().filter(stay > 3, cost < 9), s=(stay * 1000).clamp(0, 9).sum().filter("cost > 1")),
        "SELECT COUNT(*) FILTER (WHERE stay > 3 AND cost < 9), SUM(CLAMP(stay * 1000, 0, 9)) FILTER (WHERE cost > 1)"
        " FROM visits WHERE stay BETWEEN 1 AND 5 AND ward LIKE 'n%'",
    ),
    (
        visits().left_join("wards", on="visits.ward = wards.ward").group_by("floor").agg(n=sf.count()),
        "SELECT floor, COUNT(*) FROM visits LEFT JOIN wards ON wards.ward = visits.ward GROUP BY floor",
    ),
    (
        visits().select("ward", x=stay).union_all(visits().where(cost > 3).select("ward", x=cost))
        .group_by("ward").agg(s=sf.col("x").sum()),
        "SELECT ward, SUM(x) FROM (SELECT ward, cost AS x FROM visits WHERE cost > 3"
        " UNION ALL SELECT ward, stay FROM visits) GROUP BY ward",
    ),
    (
        visits().select("ward", double="2 * stay").where("double > 3").agg(s=sf.col("double").sum()),
        "WITH v AS (SELECT ward, stay * 2 AS double FROM visits) SELECT SUM(double) FROM v WHERE double > 3",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("built_up", "written"), PAIRS, ids=[written[:60] for _, written in PAIRS])
def test_python_and_sql_ask_for_the_same_release(built_up, written):
    mine, theirs = parse_question(built_up.sql, RULES), parse_question(written, RULES)
    assert mine.plan.canonical == theirs.plan.canonical
    assert (mine.having, mine.limit, len(mine.order)) == (theirs.having, theirs.limit, len(theirs.order))


def test_the_stored_answer_is_shared(curator):
    first = curator.ask("SELECT ward, COUNT(*) AS n FROM visits WHERE cost > 10 GROUP BY ward", epsilon=1.0)
    question = curator.table("visits").where(sf.col("cost") > 10).group_by("ward").agg(n=sf.count())
    assert question.preview(epsilon=1.0).free
    again = question.ask(epsilon=1.0)
    assert not again.charged
    assert again.rows == first.rows
    assert again.columns == first.columns


def test_names_and_texts_are_quoted():
    odd = visits().where(sf.col("ward") == "'; DROP TABLE visits --").agg(n=sf.count())
    assert parse_question(odd.sql, RULES).plan.where.arguments[0].value == "'; DROP TABLE visits --"
    with pytest.raises(QueryRefused, match="not a column"):
        parse_question(visits().where(sf.col('x" OR "1') == 1).agg(sf.count()).sql, RULES)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: bool(stay > 1),
        lambda: stay > 1 and cost > 2,
        lambda: stay == [1],
        lambda: stay.isin([]),
        lambda: stay.isin([1], [2]),
        lambda: visits().where("stay >"),
        lambda: visits().where("1; SELECT 2"),
        lambda: stay + object(),
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(QueryRefused):
        wrong()


def test_a_question_is_built_anew_at_each_step():
    base = visits().group_by("ward")
    small = base.where(stay < 1).agg(sf.count()).sql
    assert "WHERE" not in base.agg(sf.count()).sql
    assert "WHERE" in small
