"""SQL over released values never reads a private table, however a text names one."""

import duckdb
import pytest

from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.errors import QueryRefused
from sfumato.sql.dialects import dialect_of
from sfumato.sql.emit.public_rows import public_rows
from sfumato.sql.policy import Policy
from sfumato.sql.question import Outer
from tests.curator.clinic import POLICY

RULES = Policy.read(POLICY.replace("epsilon = 8.0", "epsilon = 1000.0"))
CANARY = "canary in the ward"
T = "(SELECT COUNT(*) c FROM visits) t"
ROWS_WANTED = """
WITH t AS (SELECT COUNT(*) c FROM visits) FROM t POSITIONAL JOIN visits
SELECT * FROM {t}, (UNPIVOT visits ON stay, cost)
SELECT * FROM {t}, (PIVOT visits ON ward USING COUNT(*)) p
SELECT * FROM {t}, (visits)
SELECT * FROM {t}, ((visits))
SELECT * FROM {t}, (wards JOIN visits USING (ward))
SELECT * FROM {t}, (wards JOIN (SELECT * FROM visits) x USING (ward))
SELECT * FROM {t}, ((wards CROSS JOIN wards b) CROSS JOIN visits)
SELECT * FROM {t}, LATERAL (SELECT * FROM visits) x
SELECT * FROM {t} CROSS JOIN LATERAL (SELECT stay FROM visits LIMIT 1) x
SELECT * FROM {t}, TABLE visits
SELECT * FROM {t}, (TABLE visits) v
SELECT * FROM {t}, (FROM visits) v
SELECT * FROM {t}, (FROM wards POSITIONAL JOIN visits) v
SELECT c, ARRAY(SELECT stay FROM visits) FROM {t}
SELECT c FROM {t} WHERE c > ANY (SELECT stay FROM visits)
SELECT c FROM {t} WHERE c IN (SELECT stay FROM visits)
SELECT c FROM {t} WHERE EXISTS (SELECT 1 FROM visits WHERE stay > c)
SELECT c, (SELECT MAX(stay) FROM visits) FROM {t}
SELECT c, (SELECT stay FROM visits LIMIT 1) FROM {t}
SELECT c FROM {t} UNION ALL BY NAME SELECT stay AS c FROM visits
SELECT c FROM {t} UNION ALL SELECT stay FROM visits
SELECT c FROM {t} EXCEPT SELECT stay FROM visits
SELECT c FROM {t} INTERSECT (FROM visits SELECT stay)
SELECT * FROM {t}, (SUMMARIZE visits)
SELECT * FROM {t}, (DESCRIBE visits)
SELECT * FROM {t}, (SHOW visits)
SELECT * FROM {t}, query_table('visits')
SELECT * FROM {t}, query('SELECT * FROM visits')
SELECT * FROM {t} ASOF JOIN visits ON t.c >= visits.stay
SELECT * FROM {t} SEMI JOIN visits ON t.c = visits.stay
SELECT * FROM {t} ANTI JOIN visits ON t.c = visits.stay
SELECT * FROM {t} NATURAL JOIN visits
SELECT * FROM {t} JOIN main.visits ON TRUE
SELECT * FROM {t} JOIN "VISITS" ON TRUE
SELECT * FROM {t} JOIN memory.main.visits ON TRUE
WITH RECURSIVE r AS (SELECT COUNT(*) c FROM visits UNION ALL SELECT stay FROM visits, r) SELECT * FROM r
WITH RECURSIVE r AS (SELECT stay AS c FROM visits UNION ALL SELECT c + 1 FROM r) SELECT * FROM r, {t}
WITH v AS (SELECT * FROM visits) SELECT * FROM {t}, v
WITH v AS (FROM visits) SELECT * FROM {t}, (FROM v)
WITH v AS (SELECT * FROM visits) SELECT * FROM {t} POSITIONAL JOIN v
WITH v AS (SELECT * FROM visits) SELECT * FROM {t}, (UNPIVOT v ON stay, cost)
WITH v AS (SELECT * FROM visits), w AS (SELECT * FROM v) SELECT * FROM {t}, (PIVOT w ON ward USING COUNT(*))
WITH v AS MATERIALIZED (SELECT * FROM visits) SELECT * FROM {t}, (v CROSS JOIN wards)
SELECT * FROM {t}, visits PIVOT (COUNT(*) FOR ward IN ('north'))
SELECT * FROM {t}, visits UNPIVOT (x FOR n IN (stay, cost))
SELECT * FROM {t}, visits TABLESAMPLE 10
SELECT * FROM {t}, unnest((SELECT list(stay) FROM visits)) u
SELECT * FROM {t}, unnest(ARRAY(SELECT stay FROM visits)) u
SELECT * FROM (VALUES ((SELECT stay FROM visits LIMIT 1))) v, {t}
SELECT c, ROW_NUMBER() OVER (ORDER BY (SELECT stay FROM visits LIMIT 1)) FROM {t}
SELECT c FROM {t} ORDER BY (SELECT stay FROM visits LIMIT 1)
SELECT c FROM {t} LIMIT (SELECT stay FROM visits LIMIT 1)
SELECT c FROM {t} GROUP BY c HAVING c > (SELECT stay FROM visits LIMIT 1)
SELECT c FROM {t} QUALIFY c > (SELECT stay FROM visits LIMIT 1)
SELECT DISTINCT ON ((SELECT stay FROM visits LIMIT 1)) c FROM {t}
SELECT COLUMNS(*) FROM {t}, visits
SELECT visits FROM {t}, visits
SELECT t.*, visits.* FROM {t} LEFT JOIN visits ON TRUE
SELECT list_transform([1], x -> (SELECT stay FROM visits LIMIT 1)) FROM {t}
SELECT CASE WHEN c > 0 THEN (SELECT stay FROM visits LIMIT 1) END FROM {t}
SELECT DISTINCT ON ((SELECT stay FROM visits LIMIT 1)) ward, COUNT(*) n, SUM(COUNT(*)) OVER () FROM visits GROUP BY ward
SELECT ward, COUNT(*), SUM(COUNT(*)) OVER w FROM visits GROUP BY ward WINDOW w AS (ORDER BY (FROM visits SELECT stay))
PIVOT visits ON ward USING COUNT(*)
UNPIVOT visits ON stay, cost
FROM visits
TABLE visits
"""  # fmt: skip
TEXTS = [line.format(t=T) for line in ROWS_WANTED.strip().splitlines()]
ANSWERED = """
SELECT * FROM (SELECT ward, COUNT(*) n FROM visits GROUP BY ward) JOIN (wards a JOIN wards b USING (ward)) USING (ward)
SELECT * FROM (SELECT ward, COUNT(*) n FROM visits GROUP BY ward) t, (wards)
SELECT * FROM ((SELECT COUNT(*) n FROM visits) t CROSS JOIN wards)
WITH t AS (SELECT COUNT(*) AS c FROM visits) FROM t POSITIONAL JOIN wards
WITH visits AS (SELECT COUNT(*) AS c FROM visits) FROM visits
SELECT * FROM (PIVOT (SELECT ward, COUNT(*) n FROM visits GROUP BY ward) ON ward IN ('north', 'west') USING SUM(n)) p
SELECT * FROM (SELECT ward, COUNT(*) n FROM visits GROUP BY ward) PIVOT (SUM(n) FOR ward IN ('north', 'south'))
"""


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    place = tmp_path_factory.mktemp("released") / "clinic.duckdb"
    with duckdb.connect(str(place)) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT i AS patient_id, ? AS ward, ? AS diagnosis, 7777.0 AS stay, 7777.0 AS cost, "
            "DATE '2024-01-01' AS day FROM range(30) t(i)", [CANARY, CANARY],
        )  # fmt: skip
        connection.execute("CREATE TABLE wards AS SELECT 'north' AS ward, 1 AS floor")
    return Curator.open(place, policy=RULES, ledger=":memory:")


@pytest.mark.parametrize("text", TEXTS)
def test_private_rows_are_not_among_what_is_read_as_it_is(text):
    try:
        outer = parse_question(text, RULES).outer
    except QueryRefused:
        return
    assert outer is not None
    assert all(table.public for table in outer.public)


@pytest.mark.parametrize("text", TEXTS)
def test_private_rows_are_in_no_answer(curator, text):
    left = curator.ledger.account(curator.who)
    try:
        answer = curator.ask(text, epsilon=1.0)
    except QueryRefused:
        assert curator.ledger.account(curator.who) == left
        return
    assert not any(cell in (CANARY, 7777.0) for row in answer.rows for cell in row)


@pytest.mark.parametrize("text", ANSWERED.strip().splitlines())
def test_public_tables_and_releases_may_be_named_in_the_same_ways(curator, text):
    assert len(curator.ask(text, epsilon=1.0).rows) >= 1


def test_an_outer_query_cannot_be_made_with_a_private_table():
    with pytest.raises(ValueError, match="public"):
        Outer("SELECT 1", (), (), (RULES.tables["visits"],))


def test_no_statement_reads_a_private_table_as_it_is():
    with pytest.raises(ValueError, match="private"):
        public_rows(RULES.tables["visits"], dialect_of("duckdb"))
