"""SQL questions, on a small clinic with and without its busiest patient."""

from sfumato.audit.collection import Exhibit
from sfumato.audit.corpus import neighbours
from sfumato.audit.plans import SqlQuestion
from sfumato.sql.policy import Policy

POLICY = Policy.read("""
version = 1
[budget]
epsilon = 8.0
delta = 1e-6
[tables.visits]
unit = "patient_id"
groups = 2
rows = 3
[tables.visits.columns]
ward = {type = "text", keys = ["north", "south", "west"]}
diagnosis = {type = "text"}
stay = {low = 0, high = 60, step = 0.125}
cost = {low = -100, high = 1000}
urgent = {type = "boolean"}
day = {type = "date"}
[tables.wards]
public = true
[tables.wards.columns]
ward = {type = "text"}
floor = {type = "number", keys = [1, 2]}
""")

QUESTIONS = (
    "SELECT COUNT(*) FROM visits",
    "SELECT ward, COUNT(DISTINCT patient_id) FROM visits GROUP BY ward",
    "SELECT ward, SUM(stay), AVG(cost) FROM visits GROUP BY ward",
    "SELECT STDDEV(stay) FROM visits WHERE urgent",
    "SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis",
    "SELECT COUNT(DISTINCT diagnosis) FROM visits",
    "SELECT floor, SUM(stay) FROM visits JOIN wards USING (ward) GROUP BY floor",
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > 3 ORDER BY 2 DESC LIMIT 2",
    "SELECT MEDIAN(stay) FROM visits",
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward WITH RELATIVE ERROR 20 %",
)

WORST = next(pair for pair in neighbours(POLICY) if pair.name == "visits: many rows in many groups")
EXHIBITS = tuple(
    Exhibit("curator", lambda source, sql=sql: SqlQuestion(sql, POLICY), WORST.whole, WORST.without)  # type: ignore[misc]
    for sql in QUESTIONS
)
