"""What a question means: where no bound is met, the integers that leave the engine are those of plain SQL."""

import datetime
import threading

import duckdb
import pytest

from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.engines.duckdb import DuckDB
from sfumato.errors import PolicyError, QueryRefused
from sfumato.sql.emit.bounding import statement
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built

WIDE = POLICY.replace("groups = 2", "groups = 100000").replace("rows = 3", "rows = 1000000")
RULES = Policy.read(POLICY)
LOOSE = Policy.read(WIDE)
KNOWN = "patient_id IS NOT NULL"

SAME = {  # a question: what plain SQL makes of it
    "SELECT COUNT(*) FROM visits": f"SELECT COUNT(*) FROM visits WHERE {KNOWN}",
    "SELECT diagnosis, COUNT(*) FROM visits GROUP BY 1":
        f"SELECT diagnosis, COUNT(*) FROM visits WHERE {KNOWN} GROUP BY 1",
    "SELECT UPPER(diagnosis) AS diagnosis, COUNT(*) FROM visits GROUP BY UPPER(diagnosis)":
        f"SELECT UPPER(diagnosis), COUNT(*) FROM visits WHERE {KNOWN} GROUP BY 1",
    "SELECT CAST(cost / 7 AS INT) AS c, COUNT(*) FROM visits GROUP BY c":
        f"SELECT ROUND(cost / 7), COUNT(*) FROM visits WHERE {KNOWN} GROUP BY 1",
    "SELECT ROUND(cost / 7, 1) AS c, COUNT(*) FROM visits GROUP BY c":
        f"SELECT ROUND(cost / 7, 1), COUNT(*) FROM visits WHERE {KNOWN} GROUP BY 1",
    "SELECT LEAST(cost, stay, 3) AS c, COUNT(*) FROM visits WHERE stay < 60 GROUP BY c":
        f"SELECT LEAST(cost, stay, 3.0) + 0.0, COUNT(*) FROM visits WHERE {KNOWN} AND stay < 60 GROUP BY 1",
    "SELECT mod(cost, 7) AS c, COUNT(*) FROM visits GROUP BY c":
        f"SELECT cost % 7.0::DOUBLE, COUNT(*) FROM visits WHERE {KNOWN} GROUP BY 1",
    "SELECT substr(diagnosis, 2, 1) || '-' || ward AS c, COUNT(*) FROM visits GROUP BY c":
        f"SELECT substr(diagnosis, 2, 1) || '-' || ward, COUNT(*) FROM visits WHERE {KNOWN} GROUP BY 1",
    "SELECT concat(diagnosis, '/', ward) AS c, COUNT(*) FROM visits GROUP BY c":
        f"SELECT concat(diagnosis, '/', ward), COUNT(*) FROM visits WHERE {KNOWN} GROUP BY 1",
    "SELECT replace(ltrim(rtrim(diagnosis)), 'd1', 'x'), COUNT(*) FROM visits WHERE starts_with(ward, 'n') GROUP BY 1":
        f"SELECT replace(diagnosis, 'd1', 'x'), COUNT(*) FROM visits WHERE {KNOWN} AND ward LIKE 'n%' GROUP BY 1",
    "SELECT date_trunc('month', day) AS m, COUNT(*) FROM visits WHERE year(day) = 2024 GROUP BY m":
        f"SELECT date_trunc('month', day)::TIMESTAMP::TEXT, COUNT(*) FROM visits WHERE {KNOWN} AND day < 'infinity'"
        " GROUP BY 1",
    "SELECT COUNT(*) FROM visits WHERE day BETWEEN '2024-02-01' AND DATE '2024-03-01'":
        f"SELECT COUNT(*) FROM visits WHERE {KNOWN} AND day BETWEEN '2024-02-01' AND '2024-03-01'",
    "SELECT COUNT(*) FROM visits WHERE NOT (stay > 5 AND cost > 0)":
        f"SELECT COUNT(*) FROM visits WHERE {KNOWN} AND NOT (nullif(stay, 'nan') > 5 AND cost > 0)",
    "SELECT COUNT(*) FROM visits WHERE ward IN ('north', NULL)":
        f"SELECT COUNT(*) FROM visits WHERE {KNOWN} AND ward IN ('north', NULL)",
    "SELECT COUNT(*) FROM visits WHERE ward NOT IN ('north', NULL)":
        f"SELECT COUNT(*) FROM visits WHERE {KNOWN} AND ward NOT IN ('north', NULL)",
    "SELECT COUNT(*) FROM visits WHERE nullif(ward, 'north') IS NULL":
        f"SELECT COUNT(*) FROM visits WHERE {KNOWN} AND nullif(ward, 'north') IS NULL",
    "SELECT v.ward, COUNT(*) FROM visits v JOIN wards USING (ward) WHERE floor = 2 GROUP BY ward":
        f"SELECT ward, COUNT(*) FROM visits JOIN wards USING (ward) WHERE {KNOWN} AND floor = 2 GROUP BY 1",
    "SELECT COUNT(*) FROM visits WHERE ward NOT LIKE 'n%' OR diagnosis ILIKE 'D1'":
        f"SELECT COUNT(*) FROM visits WHERE {KNOWN} AND (ward NOT LIKE 'n%' OR diagnosis ILIKE 'D1')",
    "SELECT COUNT(*) FROM visits WHERE ward IS DISTINCT FROM 'north' AND (stay > 3) IS NOT TRUE":
        f"SELECT COUNT(*) FROM visits WHERE {KNOWN} AND ward IS DISTINCT FROM 'north'"
        " AND (nullif(stay, 'nan') > 3) IS NOT TRUE",
    "SELECT COUNT(*) FROM visits WHERE day IN ('2024-02-01', '2024-02-12', NULL)":
        f"SELECT COUNT(*) FROM visits WHERE {KNOWN} AND day IN ('2024-02-01', '2024-02-12', NULL)",
    "SELECT COUNT(*) FROM visits WHERE day > '2024-02-01 10:00:00'":
        f"SELECT COUNT(*) FROM visits WHERE {KNOWN} AND day::TIMESTAMP > '2024-02-01 10:00:00'",
    "SELECT floor, COUNT(*) FROM visits LEFT JOIN wards USING (ward) WHERE floor IS NOT NULL GROUP BY floor":
        f"SELECT floor, COUNT(*) FROM visits JOIN wards USING (ward) WHERE {KNOWN} GROUP BY floor",
    "SELECT COALESCE(CAST(floor AS TEXT), 'none') AS f, COUNT(*) FROM visits LEFT JOIN wards USING (ward) GROUP BY f":
        "SELECT COALESCE(CAST(floor AS TEXT), 'none') AS f, COUNT(*) FROM visits LEFT JOIN wards"
        f" USING (ward) WHERE {KNOWN} GROUP BY f",
    "SELECT TRUNC(cost / 7) AS c, COUNT(*) FROM visits GROUP BY c":
        f"SELECT TRUNC(cost / 7), COUNT(*) FROM visits WHERE {KNOWN} GROUP BY 1",
    "SELECT ROUND(SQRT(cost), 3) AS c, COUNT(*) FROM visits WHERE cost >= 0 GROUP BY c":
        f"SELECT ROUND(SQRT(cost), 3), COUNT(*) FROM visits WHERE {KNOWN} AND cost >= 0 GROUP BY 1",
    "SELECT ROUND(LN(cost), 3) AS c, COUNT(*) FROM visits WHERE LOG10(cost) > 1 GROUP BY c":
        f"SELECT ROUND(LN(cost), 3), COUNT(*) FROM visits WHERE {KNOWN} AND cost > 10 GROUP BY 1",
    "SELECT cost ** 2 AS c, COUNT(*) FROM visits WHERE EXP(-cost) < 1e9 GROUP BY c":
        f"SELECT cost * cost, COUNT(*) FROM visits WHERE {KNOWN} AND EXP(-cost) < 1e9 GROUP BY 1",
    "SELECT CAST(cost / 7 AS DECIMAL(4, 1)) AS c, COUNT(*) FROM visits GROUP BY c":
        f"SELECT CAST(cost / 7 AS DECIMAL(4, 1))::DOUBLE, COUNT(*) FROM visits WHERE {KNOWN} GROUP BY 1",
    "SELECT LEFT(diagnosis, 1) || RIGHT(diagnosis, 1) || SPLIT_PART(ward, 'o', 2), COUNT(*) FROM visits GROUP BY 1":
        "SELECT LEFT(diagnosis, 1) || RIGHT(diagnosis, 1) || SPLIT_PART(ward, 'o', 2), COUNT(*) FROM visits"
        f" WHERE {KNOWN} GROUP BY 1",
    "SELECT STRPOS(ward, 'r') AS c, COUNT(*) FROM visits GROUP BY c":
        f"SELECT STRPOS(ward, 'r'), COUNT(*) FROM visits WHERE {KNOWN} GROUP BY 1",
    "SELECT strftime(day, '%Y-%m') AS c, COUNT(*) FROM visits WHERE year(day) = 2024 GROUP BY c":
        f"SELECT strftime(day, '%Y-%m'), COUNT(*) FROM visits WHERE {KNOWN} AND day < 'infinity' GROUP BY 1",
    "SELECT date_trunc('week', day) AS c, COUNT(*) FROM visits WHERE year(day) = 2024 GROUP BY c":
        f"SELECT date_trunc('week', day)::TIMESTAMP::TEXT, COUNT(*) FROM visits WHERE {KNOWN} AND day < 'infinity'"
        " GROUP BY 1",
    "SELECT dayname(day) AS c, COUNT(*) FROM visits WHERE year(day) = 2024 GROUP BY c":
        f"SELECT dayname(day), COUNT(*) FROM visits WHERE {KNOWN} AND day < 'infinity' GROUP BY 1",
    "SELECT date_diff('day', DATE '2024-02-29', day) AS c, COUNT(*) FROM visits WHERE year(day) = 2024 GROUP BY c":
        f"SELECT day - DATE '2024-02-29', COUNT(*) FROM visits WHERE {KNOWN} AND day < 'infinity' GROUP BY 1",
    "SELECT date_diff('month', DATE '2023-02-27', day) AS c, COUNT(*) FROM visits WHERE year(day) = 2024 GROUP BY c":
        f"SELECT date_diff('month', DATE '2023-02-27', day), COUNT(*) FROM visits WHERE {KNOWN} AND day < 'infinity'"
        " GROUP BY 1",
    "SELECT quarter(day) * 1 AS q, week(day) * 1 AS w, dayofyear(day) * 1 AS d, isodow(day) * 1 AS i, COUNT(*)"
    " FROM visits WHERE year(day) = 2024 GROUP BY ALL":
        "SELECT dayofyear(day), isodow(day), quarter(day), week(day), COUNT(*)"
        f" FROM visits WHERE {KNOWN} AND day < 'infinity' GROUP BY ALL",
    "SELECT COUNT(*) FROM (WITH visits AS (SELECT * FROM visits WHERE cost > 100) SELECT cost FROM visits) v":
        f"SELECT COUNT(*) FROM visits WHERE {KNOWN} AND cost > 100",
}  # fmt: skip


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    return duckdb.connect(str(built(tmp_path_factory.mktemp("clinic") / "clinic.duckdb")))


@pytest.mark.parametrize("sql", SAME)
def test_a_question_means_what_sql_means(sql, clinic):
    plan = parse_question(sql, LOOSE).plan
    width = len(plan.keys)
    wanted = [m.what.value for m in plan.measures].index("rows")
    found = {row[:width]: row[width + wanted] or 0 for row in clinic.execute(statement(plan, 1, "duckdb")).fetchall()}
    truth = {row[:-1]: row[-1] for row in clinic.execute(SAME[sql]).fetchall()}
    assert truth
    assert found == truth


def exact(sql, clinic, rules=LOOSE):
    return clinic.execute(statement(parse_question(sql, rules).plan, 1, "duckdb")).fetchall()


def test_a_sum_of_values_above_zero_is_not_raised_to_its_bounds(clinic):
    """Once: one with a single row counted as if all rows that are allowed held the least value."""
    one = exact("SELECT SUM(CLAMP(cost, 5, 7)) FROM visits WHERE patient_id = 0", clinic, RULES)
    few = exact("SELECT SUM(CLAMP(cost, 5, 7)) FROM visits WHERE patient_id = 1", clinic, RULES)
    assert (len(one), len(few)) == (1, 1)
    assert 2 * one[0][0] == few[0][0]  # patient 0 has one visit, patient 1 has two; both cost less than 5


def test_a_public_row_is_found_once_even_if_its_keys_differ_only_in_spelling(tmp_path):
    """1 and 1.0 are one number to the policy, so a row of ours must not find both."""
    more = """
[tables.people]
unit = "row"
[tables.people.columns]
floor = {low = 0, high = 9}
[tables.floors]
public = true
[tables.floors.columns]
floor = {type = "number"}
"""
    rules = Policy.read(POLICY + more)
    connection = duckdb.connect(str(built(tmp_path / "clinic.duckdb")))
    connection.execute("CREATE TABLE people AS SELECT 1 AS floor")
    connection.execute("CREATE TABLE floors AS SELECT * FROM (VALUES ('1'), ('1.0'), (' 1'), ('2'), ('x')) t(floor)")
    sql = "SELECT COUNT(*) FROM people JOIN floors USING (floor)"
    assert connection.execute(statement(parse_question(sql, rules).plan, 1, "duckdb")).fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT COUNT(*) FROM visits WHERE cost > 10", "SELECT COUNT(*) FROM visits WHERE 10.0 < cost"),
        ("SELECT COUNT(*), ward, floor FROM visits JOIN wards USING (ward) GROUP BY ward, floor",
         "SELECT floor, ward, COUNT(*) FROM visits JOIN wards USING (ward) GROUP BY 1, 2"),
        ("SELECT COUNT(*) FROM visits WHERE ward IN ('a', 'b', 'a')",
         "SELECT COUNT(*) FROM visits WHERE ward IN ('b', 'a')"),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY ALL", "SELECT DISTINCT ward, COUNT(*) FROM visits GROUP BY ward"),
        ("SELECT COUNT(*) FILTER (WHERE stay > 3) FROM visits",
         "SELECT COUNT(CASE WHEN 3 < stay THEN 1 END) FROM visits"),
        ("SELECT COUNT_IF(stay > 3) FROM visits", "SELECT COUNT(*) FILTER (WHERE stay > 3) FROM visits"),
        ("SELECT COUNT(*) FROM visits WHERE day > '2024-03-31'",
         "SELECT COUNT(*) FROM visits WHERE day > DATE '2024-02-29' + INTERVAL 1 MONTH + INTERVAL 2 DAY"),
        ("SELECT COUNT(*) FROM visits WHERE day < '2024-02-29'",
         "SELECT COUNT(*) FROM visits WHERE day < TIMESTAMP '2024-03-31 00:00:00' - INTERVAL '1 month'"),
        ("SELECT COUNT(*) FROM visits WHERE ward IN ('a')", "SELECT COUNT(*) FROM visits WHERE 'a' = ward"),
    ],
)  # fmt: skip
def test_two_spellings_are_one_question(one, other):
    assert parse_question(one, RULES).plan.canonical == parse_question(other, RULES).plan.canonical


@pytest.mark.parametrize(
    ("change", "to"), [("rows = 3", "rows = 4"), ("high = 60", "high = 70"), ('"west"]', '"west", "east"]')]
)
def test_other_bounds_make_another_question(change, to):
    """A stored answer must not be read with bounds that it was not made with."""
    sql = "SELECT ward, SUM(stay) FROM visits GROUP BY ward"
    other = Policy.read(POLICY.replace(change, to))
    assert parse_question(sql, RULES).plan.canonical != parse_question(sql, other).plan.canonical


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(*) FROM visits",
        "SELECT COUNT(*) FILTER (WHERE diagnosis) FROM visits",
        "SELECT ABS(stay) FILTER (WHERE stay > 1), COUNT(*) FROM visits",
        "SELECT COUNT(*) OVER () FROM visits",
        "SELECT SUM(CASE WHEN diagnosis THEN 1 ELSE 0 END) FROM visits",  # would cast text to boolean, and raise
        "SELECT SUM(CASE WHEN stay > 1 THEN 1 ELSE diagnosis END) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE CASE WHEN stay > 1 THEN diagnosis ELSE 'a' END",
        "SELECT COUNT(*) FROM visits TABLESAMPLE 10%",
        "SELECT COUNT(*) FROM visits AS v(a, b)",
        "WITH v(cost, stay) AS (SELECT stay, cost FROM visits) SELECT SUM(cost) FROM v",
        "SELECT SUM(stay) FROM (SELECT * REPLACE (2 * stay AS stay) FROM visits) v",
        "SELECT COUNT(*) FROM (SELECT stay FROM visits LIMIT 5) v",
        "SELECT COUNT(*) FROM (SELECT stay FROM visits ORDER BY stay LIMIT 5) v",
        "SELECT COUNT(*) FROM (WITH v AS (SELECT * FROM visits) SELECT * FROM v) a JOIN v USING (ward)",
        "SELECT COUNT(*) FROM visits ASOF JOIN wards ON visits.ward = wards.ward",
        "SELECT COUNT(*) FROM visits FULL JOIN wards USING (ward)",
        "SELECT COUNT(*) FROM visits SEMI JOIN wards USING (ward)",
        "SELECT COUNT(*) FROM visits LEFT ANTI JOIN wards USING (ward)",
        "SELECT COUNT(*) FROM visits WHERE ward LIKE 'a!%' ESCAPE '!'",
        "SELECT COUNT(*) FROM visits WHERE CAST(day AS DOUBLE) > 1",
        "SELECT COUNT(*) FROM visits WHERE CAST(stay AS DATE) > '2024-01-01'",
        "SELECT COUNT(*) FROM visits WHERE CAST(stay AS DECIMAL(20, 15)) > 3",
        "SELECT COUNT(*) FROM visits WHERE substr(diagnosis, 5000000000) = ''",
        "SELECT COUNT(*) FROM visits WHERE replace(diagnosis, 'd', 'dddddddd') = ''",
        "SELECT COUNT(*) FROM visits WHERE date_trunc('decade', day) = '2024-01-01'",
        "SELECT COUNT(*) FROM visits WHERE DATE '2024-01-01' + INTERVAL (stay) DAY > day",
        "SELECT COUNT(*) FROM visits WHERE day > DATE '9999-12-31' + INTERVAL 1 DAY",
        "SELECT COUNT(*) FROM visits WHERE day > today()",
        "SELECT COUNT(*) FROM visits WHERE pow(stay, cost) > 1",
        "SELECT COUNT(*) FROM visits WHERE split_part(diagnosis, ward, 1) = 'a'",
        "SELECT COUNT(*) FROM visits WHERE right(diagnosis, stay) = 'a'",
        "SELECT COUNT(*) FROM (SELECT DISTINCT ward FROM visits) v",
        "SELECT COUNT(*) FROM (SELECT ward FROM visits OFFSET 3) v",
        "SELECT SUM(stay * 1e200) FROM visits",
        "SELECT random(), COUNT(*) FROM visits GROUP BY 1",
        "SELECT COUNT(*) FROM visits WHERE stay > (SELECT AVG(stay) FROM visits)",
        "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits)",
        "SELECT date_trunc('month', MAX(day)) FROM visits",
    ],
)
def test_what_is_not_understood_in_full_is_refused(sql):
    with pytest.raises(QueryRefused):
        parse_question(sql, RULES)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visits FULL JOIN wards USING (ward)",
        "SELECT COUNT(*) FROM visits LEFT ANTI JOIN wards USING (ward)",
        "SELECT COUNT(*) FROM visits a JOIN visits b ON a.ward = b.ward",
        "SELECT SUM(DISTINCT stay) FROM visits",
        "SELECT COUNT(*) FROM (SELECT ward FROM visits UNION SELECT ward FROM visits)",
        "SELECT COUNT(*) FROM (SELECT ward FROM visits EXCEPT ALL SELECT ward FROM visits)",
        "SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id",
        "SELECT ward, COUNT(*) FROM visits WHERE ward = 'attic' GROUP BY ward",
    ],
)
def test_hints_keep_the_meaning(sql):
    """What has no other words here is refused without a hint: one that is followed answers another question."""
    with pytest.raises(QueryRefused) as refused:
        parse_question(sql, RULES)
    assert "do:" not in str(refused.value)


@pytest.mark.parametrize(
    ("asked", "hinted"),
    [("LOG(3, cost + 200)", "LN(cost + 200) / LN(3)")],
)  # fmt: skip
def test_a_hint_that_is_given_is_the_same_in_other_words(asked, hinted, clinic):
    with pytest.raises(QueryRefused, match=r"do: .*(TRUNC|LN)"):
        parse_question(f"SELECT COUNT(*) FROM visits WHERE {asked} > 1", RULES)
    assert parse_question(f"SELECT COUNT(*) FROM visits WHERE {hinted} > 1", RULES)
    both = clinic.execute(
        f"SELECT MAX(ABS({asked} - {hinted})), COUNT({asked}) FROM visits WHERE cost > -150"
    ).fetchone()
    assert both[0] < 1e-9
    assert both[1] > 50


def test_constants_of_a_case_are_public_keys():
    question = parse_question(
        "SELECT CASE WHEN stay > 5 THEN 'long' ELSE 'short' END AS s, COUNT(*) FROM visits GROUP BY s", RULES
    )
    assert question.plan.public == (("long",), ("short",))


@pytest.mark.parametrize("keys", ['["a", "a"]', "[1]", "[]", '"a"', "[nan]"])
def test_keys_that_would_be_answered_twice_or_never_are_refused(keys):
    with pytest.raises(PolicyError):
        Policy.read(POLICY.replace('["north", "south", "west"]', keys))


def test_days_that_are_public_keys_are_counted(tmp_path):
    rules = POLICY.replace('day = {type = "date"}', 'day = {type = "date", keys = ["2024-01-01", "2024-01-02"]}')
    curator = Curator.open(built(tmp_path / "clinic.duckdb", patients=3000), Policy.read(rules))
    answer = curator.ask("SELECT day, COUNT(*) AS n FROM visits GROUP BY day HAVING day >= '2024-01-02'", epsilon=8.0)
    assert answer.column("day") == [datetime.date(2024, 1, 2)]
    assert answer.column("n")[0] > 5  # 3000 patients have 4 visits a year: about 32


def test_threads_do_not_fetch_each_others_rows(tmp_path):
    engine, wrong = DuckDB(built(tmp_path / "clinic.duckdb")), []

    def ask(i):
        for _ in range(30):
            if engine.run(f"SELECT {i}") != [(i,)]:
                wrong.append(i)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    "value", ["ROUND(POWER(ROUND(POWER(ROUND(POWER(cost, 10)), 10)), 10))", "CEIL(POWER(FLOOR(POWER(cost, 10)), 10))"]
)
def test_bounds_that_no_double_holds_are_no_bounds(value):
    with pytest.raises(QueryRefused, match=r"no bounds|too much"):
        parse_question(f"SELECT SUM({value}) FROM visits", Policy.read(POLICY))
    assert parse_question(f"SELECT SUM(CLAMP({value}, 0, 10)) FROM visits", Policy.read(POLICY)).plan.measures


@pytest.mark.parametrize("function", ["REPEAT(diagnosis, 3)", "INITCAP(diagnosis)", "MD5(diagnosis)"])
def test_a_function_that_is_not_allowed_is_named_and_not_a_part_of_it(function):
    with pytest.raises(QueryRefused) as refused:
        parse_question(f"SELECT COUNT(*) FROM visits WHERE {function} = 'a'", Policy.read(POLICY))
    assert str(refused.value).startswith(function.partition("(")[0])
    assert "is not supported in questions" in str(refused.value)


@pytest.mark.parametrize("end", [";", "; -- a remark", ";\n/* a remark */", " -- a remark", ";;"])
def test_a_question_may_end_with_semicolons_and_remarks(end):
    sql = "SELECT COUNT(*) FROM visits"
    assert parse_question(sql + end, Policy.read(POLICY)).plan == parse_question(sql, Policy.read(POLICY)).plan


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ("COUNT(*) AS n, COUNT(DISTINCT patient_id) AS n", ["n", "n 2"]),
        ('COUNT(*) AS n, AVG(stay) AS "n low", SUM(stay) AS "n high"', ["n", "n low 2", "n high 2"]),
        ('AVG(stay) AS "n low", COUNT(*) AS n', ["n low", "n 2"]),
        ('COUNT(*) AS n, SUM(stay) AS "n 2", COUNT(*) AS n', ["n", "n 2", "n 3"]),
    ],
)
def test_no_column_has_the_name_of_another_one_or_of_its_interval(columns, names):
    """`answer.column("n low")` was the lower end of n, and not what the question called so."""
    question = parse_question(f"SELECT {columns} FROM visits", RULES)
    assert [name for name, _ in question.columns] == names
