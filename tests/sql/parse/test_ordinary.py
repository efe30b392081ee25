"""Ordinary questions, as an analyst of a clinic would write them in the SQL of several systems: all are answered.

What follows a GROUP BY in an outer SELECT works on released values; it costs nothing and makes no other question.
"""

import pytest

from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.errors import QueryRefused
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built

RULES = Policy.read(POLICY.replace("epsilon = 8.0", "epsilon = 100.0"))
ORDINARY = """
SELECT count(*) FROM visits
SELECT ward, count(*) AS n FROM visits GROUP BY ALL ORDER BY n DESC
SELECT ward, count(*) FILTER (WHERE stay > 7) AS long FROM visits GROUP BY ward
SELECT ward, avg(stay) FILTER (WHERE cost > 100) AS mean FROM visits GROUP BY ward
SELECT date_trunc('week', day) AS week, count(*) FROM visits GROUP BY week ORDER BY week
SELECT date_trunc('quarter', day) AS q, count(*) FROM visits GROUP BY q
SELECT quarter(day) AS q, sum(cost) FROM visits GROUP BY q
SELECT dayname(day) AS d, count(*) FROM visits GROUP BY d
SELECT monthname(day) AS m, count(*) FROM visits GROUP BY m
SELECT week(day) AS w, count(*) FROM visits GROUP BY w
SELECT isodow(day) AS w, count(*) FROM visits GROUP BY w
SELECT dayofyear(day) AS w, count(*) FROM visits GROUP BY w
SELECT count(*) FROM visits WHERE day >= DATE '2024-03-01' AND day < DATE '2024-03-01' + INTERVAL 1 MONTH
SELECT count(*) FROM visits WHERE day BETWEEN '2024-01-01' AND '2024-06-30'
SELECT count(*) FROM visits WHERE diagnosis ILIKE '%d1%'
SELECT left(diagnosis, 1) AS chapter, count(*) FROM visits GROUP BY chapter
SELECT right(diagnosis, 1) AS c, count(*) FROM visits GROUP BY c
SELECT split_part(diagnosis, '.', 1) AS c, count(*) FROM visits GROUP BY c
SELECT count_if(stay > 3) FROM visits
SELECT sum(CASE WHEN stay > 7 THEN 1 ELSE 0 END) / count(*) AS share FROM visits
SELECT avg(CASE WHEN stay > 7 THEN 1 ELSE 0 END) AS share FROM visits
SELECT 100.0 * count(*) FILTER (stay > 7) / count(*) AS pct FROM visits
SELECT ward, count(DISTINCT patient_id) AS patients, count(*) AS visits FROM visits GROUP BY ward HAVING count(*) >= 10
SELECT ward, count(*) / count(DISTINCT patient_id) AS per FROM visits GROUP BY ward
SELECT ward, median(stay), quantile_cont(stay, 0.9), quantile_disc(stay, 0.25) FROM visits GROUP BY ward
SELECT ward, min(stay), max(stay) FROM visits GROUP BY ward
SELECT stddev_pop(stay), var_samp(stay), stddev_samp(cost), variance(cost) FROM visits
SELECT CASE WHEN stay < 3 THEN 'short' WHEN stay < 9 THEN 'medium' ELSE 'long' END AS s, count(*) FROM visits GROUP BY s
SELECT floor(stay / 10) * 10 AS bin, count(*) FROM visits GROUP BY bin ORDER BY bin
SELECT stay::INT AS days, count(*) FROM visits GROUP BY days
SELECT CAST(stay AS INTEGER) % 7 AS m, count(*) FROM visits GROUP BY 1
SELECT sum(sqrt(stay)), avg(ln(stay + 1)), avg(exp(-stay)), avg(pow(stay, 2)) FROM visits
SELECT avg(sign(cost)) FROM visits
SELECT date_diff('day', DATE '2024-01-01', day) AS since, count(*) FROM visits GROUP BY since
SELECT avg(clamp(date_diff('day', DATE '2024-01-01', day), 0, 366)) FROM visits
SELECT day - DATE '2024-01-01' AS since, count(*) FROM visits GROUP BY since
SELECT coalesce(ward, 'unknown') AS w, count(*) FROM visits GROUP BY w
SELECT ifnull(ward, 'unknown') AS w, count(*) FROM visits GROUP BY w
SELECT count(*) FROM visits WHERE ward IS DISTINCT FROM 'north'
SELECT count(*) FROM visits WHERE (stay > 3) IS TRUE
SELECT count(*) FROM visits WHERE ward != 'north' AND ward NOT LIKE 'w%'
SELECT ward, year(day) AS y, month(day) AS m, count(*) AS n FROM visits GROUP BY ward, y, m ORDER BY ward, y, m
SELECT strftime(day, '%Y-%m') AS ym, count(*) FROM visits GROUP BY ym ORDER BY ym
WITH recent AS (SELECT * FROM visits WHERE day >= '2024-06-01') SELECT ward, avg(stay) FROM recent GROUP BY ward
WITH a AS (SELECT *, cost / nullif(stay, 0) AS c FROM visits) SELECT ward, avg(clamp(c, 0, 500)) FROM a GROUP BY ward
SELECT ward, n FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t WHERE n > 10
WITH t AS (SELECT ward, count(*) AS n, avg(stay) AS m FROM visits GROUP BY ward) SELECT * FROM t ORDER BY n DESC LIMIT 2
SELECT DISTINCT ward, count(*) FROM visits GROUP BY ward
SELECT w.floor, avg(v.stay) FROM visits v LEFT JOIN wards w ON v.ward = w.ward GROUP BY w.floor
SELECT w.floor, avg(v.stay) FROM visits v JOIN wards w ON w.ward = v.ward WHERE w.floor = 2 GROUP BY w.floor
FROM visits SELECT ward, count(*) GROUP BY ward
SELECT ward, round(avg(stay), 1) AS mean_stay FROM visits GROUP BY ward ORDER BY mean_stay DESC NULLS LAST
SELECT ward, count(*) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 3 OFFSET 1
SELECT count(*) FROM visits WHERE year(day) = 2024 AND month(day) IN (6, 7, 8)
SELECT approx_count_distinct(patient_id) FROM visits
SELECT greatest(stay, 1) AS s, count(*) FROM visits GROUP BY s
SELECT trunc(stay) AS s, count(*) FROM visits GROUP BY s
SELECT if(stay > 3, 'a', 'b') AS s, count(*) FROM visits GROUP BY s
SELECT ward AS "Ward name", COUNT(*) AS "Number of visits" FROM visits GROUP BY "Ward name"
SELECT count(*) AS n FROM visits WHERE day > '2024-02-01 10:00:00'
SELECT count(*) AS n FROM visits WHERE day IN ('2024-02-01', '2024-02-02', NULL)
SELECT count(*) FROM visits WHERE cost > 1e2 AND cost < .5e3;
SELECT COUNT(*) FROM visits WHERE patient_id = 5
SELECT sum(stay) AS total, sum(stay) / 24 AS hours, count(*) AS n FROM visits ORDER BY total
SELECT count(DISTINCT CASE WHEN stay > 7 THEN patient_id END) AS long_stayers FROM visits
SELECT count(DISTINCT patient_id) FILTER (WHERE stay > 7) FROM visits
SELECT ward, sum(stay * cost) FROM visits GROUP BY ward
SELECT 'all wards' AS label, count(*) FROM visits
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY stay) FROM visits
SELECT ward, count(*) n FROM visits WHERE ward IN ('north','south') GROUP BY 1 ORDER BY 2 DESC
SELECT EXTRACT(isodow FROM day) AS d, COUNT(*) FROM visits GROUP BY 1
SELECT EXTRACT(quarter FROM day) AS d, COUNT(*) FROM visits GROUP BY 1
SELECT date_part('week', day) AS d, COUNT(*) FROM visits GROUP BY 1
SELECT lower(trim(ward)) AS w, count(*) FROM visits GROUP BY lower(trim(ward))
SELECT count(*) FROM visits WHERE CAST(day AS TEXT) LIKE '2024-0%'
SELECT stay > 7 AS long, count(*) FROM visits GROUP BY long
SELECT count(*) * 1.0 / 3 FROM visits
SELECT count(stay) * 100 / count(*) AS complete FROM visits
SELECT count(*) - count(stay) AS missing FROM visits
SELECT sum(stay) FILTER (WHERE ward = 'north') AS north, sum(stay) FILTER (WHERE ward = 'south') AS south FROM visits
SELECT ward, TRY_CAST(diagnosis AS INTEGER) IS NULL AS odd, count(*) FROM visits GROUP BY ALL
SELECT avg(stay)::INT FROM visits
SELECT CAST(avg(stay) AS DECIMAL(10, 2)) FROM visits
SELECT starts_with(diagnosis, 'd1') AS d1, count(*) FROM visits GROUP BY d1
SELECT instr(diagnosis, '1') > 0 AS d1, count(*) FROM visits GROUP BY d1
SELECT position('1' IN diagnosis) > 0 AS d1, count(*) FROM visits GROUP BY d1
SELECT count(*) FROM visits WHERE stay BETWEEN 1 AND 3 OR (cost NOT BETWEEN 0 AND 10)
SELECT count(*) FROM visits WHERE day::DATE = DATE '2024-02-03'
SELECT hour(CAST(day AS TIMESTAMP)) AS h, count(*) FROM visits GROUP BY h
SELECT ward, sum(cost)/sum(stay) AS daily FROM visits GROUP BY ward
SELECT SAFE_DIVIDE(SUM(cost), SUM(stay)) FROM visits
SELECT EXTRACT(YEAR FROM day) AS y, EXTRACT(DAYOFWEEK FROM day) AS d, COUNT(*) FROM visits GROUP BY y, d
SELECT DATE_DIFF(day, DATE '2024-01-01', DAY) AS d, COUNT(*) FROM visits GROUP BY d
SELECT IF(stay > 7, 'long', 'short') AS s, COUNT(*) FROM visits GROUP BY s
SELECT SAFE_CAST(diagnosis AS INT64) AS d, COUNT(*) FROM visits GROUP BY d
SELECT CAST(stay AS STRING) AS d, COUNT(*) FROM visits GROUP BY d
SELECT CAST(stay AS FLOAT64) AS d, COUNT(*) FROM visits GROUP BY d
SELECT COUNT(*) FROM visits WHERE day > DATE_SUB(DATE '2024-06-01', INTERVAL 30 DAY)
SELECT ward, ROUND(AVG(stay), 2) FROM visits GROUP BY ward
SELECT to_char(day, 'YYYY-MM') AS ym, count(*) FROM visits GROUP BY ym
SELECT date_part('dow', day) AS d, count(*) FROM visits GROUP BY d
SELECT (stay > 7)::int AS long, count(*) FROM visits GROUP BY long
SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY stay) FROM visits
SELECT width_bucket(stay, 0, 60, 6) AS b, count(*) FROM visits GROUP BY b
SELECT count(*) FROM visits WHERE day >= '2024-01-01'::date AND day < '2024-01-01'::date + interval '3 months'
SELECT substring(diagnosis from 1 for 2) AS d, count(*) FROM visits GROUP BY d
SELECT substring(diagnosis, 1, 2) AS d, count(*) FROM visits GROUP BY d
SELECT ward, stddev(stay), var_pop(stay) FROM visits GROUP BY ward
SELECT char_length(diagnosis) AS d, count(*) FROM visits GROUP BY d
SELECT ward, count(*)::numeric / 3 FROM visits GROUP BY ward
SELECT cast(stay as numeric) AS s, count(*) FROM visits GROUP BY s
SELECT ceiling(stay) AS s, count(*) FROM visits GROUP BY s
"""
QUESTIONS = [line for line in ORDINARY.splitlines() if line]


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    return Curator.open(built(tmp_path_factory.mktemp("ordinary") / "clinic.duckdb"), RULES)


@pytest.mark.slow
def test_ordinary_questions_are_answered(curator):
    assert len(QUESTIONS) >= 100
    for sql in QUESTIONS:
        assert curator.ask(sql, epsilon=0.01).columns, sql


AROUND = "SELECT ward, COUNT(*) AS n, AVG(stay) AS mean FROM visits GROUP BY ward"


@pytest.mark.parametrize(
    ("outer", "plain"),
    [
        (f"SELECT * FROM ({AROUND}) t", AROUND),
        ("SELECT n, ward FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY 1) WHERE n > 5 ORDER BY 1 DESC",
         "SELECT COUNT(*) AS n, ward FROM visits GROUP BY ward HAVING n > 5 ORDER BY n DESC"),
        ("WITH t AS (SELECT ward, AVG(stay) AS mean FROM visits GROUP BY ward)"
         " SELECT t.ward, round(t.mean, 1) AS r FROM t ORDER BY r LIMIT 2 OFFSET 1",
         "SELECT ward, ROUND(AVG(stay), 1) AS r FROM visits GROUP BY ward ORDER BY r LIMIT 2 OFFSET 1"),
        ("WITH v AS (SELECT ward FROM visits WHERE cost > 3), t AS (SELECT ward, COUNT(*) AS n FROM v GROUP BY 1),"
         " u AS (SELECT ward, n * 2 AS twice FROM t WHERE n > 1) SELECT twice / 2 AS n, ward FROM u WHERE twice < 100",
         "SELECT COUNT(*) * 2 / 2 AS n, ward FROM visits WHERE cost > 3 GROUP BY ward"
         " HAVING COUNT(*) > 1 AND COUNT(*) * 2 < 100"),
        ("SELECT n FROM (SELECT n + 1 AS n FROM (SELECT COUNT(*) AS n FROM visits))",
         "SELECT COUNT(*) + 1 AS n FROM visits"),
    ],
)  # fmt: skip
def test_a_select_around_aggregates_works_on_what_is_released(outer, plain):
    one, other = parse_question(outer, RULES), parse_question(plain, RULES)
    assert one.plan.canonical == other.plan.canonical
    shape = [(q.columns, q.having, q.order, q.limit, q.offset) for q in (one, other)]
    assert repr(shape[0]) == repr(shape[1])


def test_offset_leaves_out_the_first(curator):
    sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC"
    whole = curator.ask(sql, epsilon=1.0)
    rest = curator.ask(f"{sql} LIMIT 1 OFFSET 1", epsilon=1.0)
    assert rest.rows == whole.rows[1:2]
    assert not rest.charged


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT AVG(n) FROM ({AROUND}) t",
        f"SELECT ward, n FROM ({AROUND} LIMIT 2) t WHERE n > 1",
        f"SELECT ward, n FROM ({AROUND} LIMIT 2) t ORDER BY n",
        f"SELECT n FROM ({AROUND}) t JOIN wards USING (ward)",
        f"SELECT n, SUM(n) OVER () FROM ({AROUND}) t",
        f"WITH RECURSIVE t AS ({AROUND}) SELECT * FROM t",
        "SELECT * FROM " + "(SELECT * FROM " * 12 + f"({AROUND})" + ")" * 12,
    ],
)
def test_any_sql_around_an_aggregation_asks_the_same_question(sql):
    found = parse_question(sql, RULES)
    assert found.plan == parse_question(AROUND, RULES).plan
    assert found.outer is not None


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT ARG_MAX(ward, stay) FROM visits", "COUNT"),
        ("SELECT MAX(day) FROM visits", "DATE_DIFF"),
        ("SELECT COUNT(*) FROM visits WHERE day > now()", "whenever"),
        ("SELECT COUNT(*) FROM visits, wards", "USING"),
        ("SELECT COUNT(*) FROM visits WHERE stay // 2 = 1", "FLOOR"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_can(sql, words):
    with pytest.raises(QueryRefused, match=words):
        parse_question(sql, RULES)
