"""sfumato: a curator over a DuckDB file with a ledger on disk, which charges each question (1, 1e-6) as a whole; on a
Gaussian ledger, or on one that counts in ε (`pure`).

Each question is asked of a curator that was opened a moment ago, so nothing is remembered from another one; for many
draws one curator is kept, and ε grows in the ninth digit, so that no stored answer is good enough to be served again.
"""

import tempfile
from functools import cache
from itertools import count as numbered
from pathlib import Path

import sfumato as sf
from sfumato.sql.policy import Policy

PACKAGE, PREPARES = "sfumato", True
GROUPS, ROWS, LOW, HIGH = 5, 2, 0, 50
PLACE = tempfile.TemporaryDirectory(prefix="sfumato-bench-")
FRESH = numbered()

POLICY = """
version = 1
[budget]
epsilon = 900
delta = 0.05
question_delta = 1e-6
kind = "{kind}"
[tables.{name}]
unit = "user_id"
groups = {groups}
rows = {rows}
[tables.{name}.columns]
value = {{low = {low}, high = {high}}}
category = {{type = "number"{keys}}}
"""


def curator(table, groups=GROUPS, rows=ROWS, public=True, pure=False):
    path = Path(table)
    own = path.with_suffix(".duckdb")
    keys = f", keys = {list(range(1000))}" if public else ""
    stated = {"groups": groups, "rows": rows, "low": LOW, "high": HIGH, "keys": keys}
    text = POLICY.format(name=path.stem, kind="pure" if pure else "gaussian", **stated)
    return sf.Curator.open(
        own if own.exists() else path.with_name("tables.duckdb"),
        Policy.read(text),
        ledger=Path(PLACE.name) / f"{next(FRESH)}.ledger",
    )


kept = cache(curator)


def asked(table, sql, names, draws, **bounds):
    here = kept(table, **bounds) if draws else curator(table, **bounds)
    if not draws:
        here.engine.run("SELECT 1")  # the file is open

    def work():
        answer = here.ask(sql.format(Path(table).stem), epsilon=1 - 1e-9 * (10**5 - next(FRESH)))
        assert answer.charged
        return {name: [float(x) for x in answer.column(column)] for name, column in names.items()}

    return (lambda: {"draws": [work() for _ in range(draws)]}) if draws else work


def scalar(table, aggregate, draws, pure):
    bounds = {"groups": 1, "rows": GROUPS * ROWS, "pure": pure}
    return asked(table, f"SELECT {aggregate} AS n FROM {{}}", {"value": "n"}, draws, **bounds)


def by(table, aggregates, draws, pure, public=True, **names):
    sql = f"SELECT category, {aggregates} FROM {{}} GROUP BY category"
    return asked(table, sql, {"key": "category"} | names, draws, public=public, pure=pure)


def count(table, draws=0, pure=False):
    return scalar(table, "COUNT(*)", draws, pure)


def count_sum(table, draws=0, pure=False):
    return by(table, "COUNT(*) AS n, SUM(value) AS s", draws, pure, n="n", s="s")


def count_sum_avg(table, draws=0, pure=False):
    return by(table, "COUNT(value) AS n, SUM(value) AS s, AVG(value) AS a", draws, pure, n="n", s="s", avg="a")


def count_found(table, draws=0, pure=False):
    return by(table, "COUNT(*) AS n", draws, pure, public=False, n="n")


def count_sum_found(table, draws=0, pure=False):
    return by(table, "COUNT(*) AS n, SUM(value) AS s", draws, pure, public=False, n="n", s="s")


def median(table, draws=0, pure=False):
    return scalar(table, "MEDIAN(value)", draws, pure)


def users(table, draws=0, pure=False):
    return scalar(table, "COUNT(DISTINCT user_id)", draws, pure)


def users_by(table, draws=0, pure=False):
    return by(table, "COUNT(DISTINCT user_id) AS n", draws, pure, n="n")
