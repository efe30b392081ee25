"""Sums by day beside the data: the same integers as of the rows; made again where rows changed, unused where stale."""

import dataclasses
import json

import duckdb
import pytest
from click.testing import CliRunner

from sfumato import Curator
from sfumato.aggregates.price import Mu
from sfumato.aggregates.registry import parse_question
from sfumato.cli import main
from sfumato.curator.lasting_views import build_view, drop_view, listed_views, refresh_views
from sfumato.curator.norm_tail import EDGES
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import statements
from sfumato.curator.scaling import Choice, NoisyNorms
from sfumato.curator.steps import KeyVotes, NormHistogram
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.views import CATALOG
from sfumato.errors import QueryRefused
from sfumato.sql.dialects import DIALECTS
from sfumato.sql.policy import Policy
from tests.curator import clinic

SUMS = "SELECT diagnosis, COUNT(*), SUM(cost), AVG(stay) FROM visits GROUP BY diagnosis"
SOME = "SELECT diagnosis, COUNT(*), SUM(cost) FROM visits WHERE {} GROUP BY diagnosis"
SERVED = [
    SUMS,
    "SELECT diagnosis, AVG(stay) FROM visits GROUP BY diagnosis",
    SOME.format("MONTH(day) = 2"),
    SOME.format("day >= '2024-01-15' AND day < '2024-03-01'"),
    SOME.format("day IS NULL OR day > '2024-02-20'"),
]
OTHERS = [SOME.format("stay > 3"), "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
          SOME.format("day > '2024-02-02' OR stay > 3")]  # fmt: skip
BOXED = Policy.read(clinic.POLICY)
SCALED = Policy.read(clinic.POLICY.replace("groups = 2\nrows = 3\n", ""))


def asked(sql, policy, to):
    """All statements of a question."""
    offer = offer_for_epsilon(parse_question(sql, policy), 1.0, 1e-9, Mu)
    if not offer.plan.table.scaled:
        return statements(offer, 7, to)
    norms = NoisyNorms((0,) * len(EDGES), 1.0)
    chosen = tuple(Choice(block, block.bound(2.5), norms) for block in offer.blocks)
    steps = [NormHistogram(offer.plan, offer.price, i) for i in range(len(offer.blocks))]
    steps += [KeyVotes(offer.plan, offer.price, 1e-9)] if offer.plan.discovered else []
    rest = statements(dataclasses.replace(offer, choices=chosen), 7, to)
    return [request.direct for step in steps for request in step.requests(7, to)] + rest


def tables(engine, texts):
    return [sorted(map(repr, engine.run(text))) for text in texts]


@pytest.fixture
def engine(tmp_path):
    """Timestamps, and somebody with many rows in one group on one day and on several."""
    found = DuckDB(clinic.built(tmp_path / "clinic.duckdb"))
    with duckdb.connect(str(found.path)) as connection:
        for day in ("2024-01-03", "2024-01-03", "2024-01-04", "2024-02-20", "2024-03-09"):
            connection.execute(
                f"INSERT INTO visits SELECT 13, ward, 'd1', 59.5, cost, DATE '{day}' FROM visits LIMIT 3"
            )
        connection.execute("INSERT INTO visits SELECT 6, ward, 'd1', 1, 1, NULL FROM visits LIMIT 1")
    yield found
    found.close()


@pytest.mark.parametrize("policy", [BOXED, SCALED], ids=["cut", "scaled"])
def test_sums_of_days_are_merged_into_those_of_all_rows(policy, engine):
    build_view(engine, policy, SUMS, "day")
    plain = dataclasses.replace(DIALECTS["duckdb"], schema=engine.schema())
    lasting = dataclasses.replace(plain, lasting=engine.lasting())
    for sql in SERVED:
        texts = asked(sql, policy, lasting)
        assert all(CATALOG in text for text in texts), sql
        assert tables(engine, texts) == tables(engine, asked(sql, policy, plain)), sql
    for sql in OTHERS:
        assert asked(sql, policy, lasting) == asked(sql, policy, plain)


BEGIN_DAYS = ["day >= '2024-02-03'", "day < TIMESTAMP '2024-02-03 00:00:00'",
              "day < DATE '2024-02-03'", "day >= '2024-01-15' AND day < DATE '2024-02-03' + INTERVAL 1 DAY",
              "NOT (day < '2024-02-03')"]  # fmt: skip
WITHIN_DAYS = ["day <= '2024-02-03'", "day > '2024-02-03'", "day >= '2024-02-03 12:00:00'", "day = '2024-02-03'",
               "day >= '2024-02-03' AND day < '2024-02-04 00:00:00.5'", "HOUR(day) < 12", "day < '2024-02-03 06:30'",
               "day < TIMESTAMP '2024-02-03 06:00:00' + INTERVAL 1 DAY"]  # fmt: skip


def test_moments_are_read_from_days_only_where_a_condition_begins_or_ends_at_midnight(engine):
    with duckdb.connect(str(engine.path)) as connection:
        some = "MINUTE * (ABS(HASH(stay, cost, patient_id)) % 48 * 30)"
        connection.execute(f"ALTER TABLE visits ALTER day TYPE TIMESTAMP USING day + INTERVAL 1 {some}")
    build_view(engine, BOXED, SUMS, "day")
    plain = dataclasses.replace(DIALECTS["duckdb"], schema=engine.schema())
    lasting = dataclasses.replace(plain, lasting=engine.lasting())
    for condition in [*BEGIN_DAYS, *WITHIN_DAYS]:
        texts = asked(SOME.format(condition), BOXED, lasting)
        assert (CATALOG in texts[0]) == (condition in BEGIN_DAYS), condition
        assert tables(engine, texts) == tables(engine, asked(SOME.format(condition), BOXED, plain)), condition


@pytest.mark.parametrize(("old", "new"), [("high = 1000", "high = 500"), ("low = -100", "low = -500")])
def test_a_view_of_other_bounds_is_not_used(old, new, engine):
    """Its sums are clamped to the bounds that it was made with, which are not those that noise is priced for."""
    build_view(engine, BOXED, SUMS, "day")
    to = dataclasses.replace(DIALECTS["duckdb"], schema=engine.schema(), lasting=engine.lasting())
    assert CATALOG in asked(SUMS, BOXED, to)[0]
    assert CATALOG not in asked(SUMS, Policy.read(clinic.POLICY.replace(old, new)), to)[0]


def test_days_are_made_again_where_rows_changed(engine):
    first = build_view(engine, SCALED, SUMS, "day")
    assert first.made == first.days > 50 and refresh_views(engine, SCALED)[0].made == 0
    with duckdb.connect(str(engine.path)) as connection:
        (mine,) = connection.execute(
            "SELECT COUNT(DISTINCT COALESCE(day, '1970-01-01')) FROM visits WHERE patient_id = 13"
        ).fetchone()
        connection.execute("DELETE FROM visits WHERE patient_id = 13")
    assert [now for _, now in listed_views(engine)] == [False] and engine.lasting() == (), "it is of other data"
    again = refresh_views(engine, SCALED)[0]
    assert again.made + again.removed == mine and again.days == first.days - again.removed
    plain = dataclasses.replace(DIALECTS["duckdb"], schema=engine.schema())
    lasting = dataclasses.replace(plain, lasting=engine.lasting())
    for sql in (SUMS, SOME.format("day < '2024-02-01'")):
        assert tables(engine, asked(sql, SCALED, lasting)) == tables(engine, asked(sql, SCALED, plain))
    drop_view(engine, first.name)
    assert listed_views(engine) == [] and engine.lasting() == ()


@pytest.mark.parametrize(
    "sql",
    ["SELECT MEDIAN(cost) FROM visits", "SELECT COUNT(DISTINCT diagnosis) FROM visits", SOME.format("day IS NULL"),
     "SELECT COUNT(*) FROM (SELECT ward FROM visits UNION ALL SELECT ward FROM visits) x"],
)  # fmt: skip
def test_what_is_no_sum_is_not_kept_by_day(sql, engine):
    with pytest.raises(QueryRefused, match="cannot be kept by day"):
        build_view(engine, SCALED, sql, "day")


def test_views_are_built_and_used_from_the_command_line(engine, tmp_path):
    policy = tmp_path / "clinic.toml"
    policy.write_text(clinic.POLICY.replace("epsilon = 8.0", "epsilon = 900"))
    engine.close()

    def run(*words):
        done = CliRunner().invoke(main, ["views", *words])
        assert done.exit_code == 0, done.output
        return done.output

    built = json.loads(run("build", str(engine.path), SUMS, "--day", "day", "--policy", str(policy), "--json"))
    assert json.loads(run("list", str(engine.path), "--json"))[0]["current"]
    with Curator.open(engine.path, policy).engine.snapshot():
        answer = Curator.open(engine.path, policy).ask(SUMS, epsilon=500)
    assert len(answer.rows) > 1
    run("refresh", str(engine.path), "--policy", str(policy))
    run("drop", str(engine.path), built[0]["name"])
    assert run("list", str(engine.path)) == ""


def test_the_name_of_a_folder_of_views_is_no_pattern(tmp_path):
    """As a pattern, clinic[1] is clinic1, whose units would be read instead, and c* is both."""
    counts = {}
    for name in ("clinic1", "clinic[1]", "c*", "it's"):
        found = DuckDB(clinic.built(tmp_path / f"{name}.duckdb"))
        with duckdb.connect(str(found.path)) as connection:
            connection.execute(f"DELETE FROM visits WHERE patient_id % 7 < {len(counts)}")
        build_view(found, BOXED, SUMS, "day")
        to = dataclasses.replace(DIALECTS["duckdb"], schema=found.schema())
        for sql in (SUMS, SOME.format("day < '2024-02-01'")):
            texts = asked(sql, BOXED, dataclasses.replace(to, lasting=found.lasting()))
            assert all(CATALOG in text for text in texts)
            assert tables(found, texts) == tables(found, asked(sql, BOXED, to)), name
        counts[name] = repr(tables(found, asked(SUMS, BOXED, to)))
        found.close()
    assert len(set(counts.values())) == len(counts)
