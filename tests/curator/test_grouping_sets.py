"""ROLLUP, CUBE and GROUPING SETS: exact sensitivity, tables that add up, intervals that hold the truth."""

import itertools
import math

import duckdb
import pytest

from sfumato.aggregates.noise_basis import NoiseBasis
from sfumato.aggregates.price import Mu, Pure
from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.curator.grouping_sets import combine, shares_of
from sfumato.curator.release import release, statements
from sfumato.curator.several_aggregations import offers_of
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.sql.emit.bounding import statement
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built

SETS = {
    "rollup": "ROLLUP (ward, long)",
    "cube": "CUBE (ward, long)",
    "sets": "GROUPING SETS ((ward), (long), ())",
    "one more": "ward, ROLLUP (long)",
}
SELECT = "SELECT ward, stay > 7 AS long, COUNT(*) AS n, SUM(cost) AS paid, AVG(stay) AS mean FROM visits GROUP BY "
ROOM = Policy.read(
    POLICY.replace("epsilon = 8.0", "epsilon = 1000.0")
    .replace("groups = 2", "groups = 6")
    .replace("rows = 3", "rows = 7")
)


HUGE = 60.0  # noise is small beside hundreds of rows


def rules(groups, rows):
    return Policy.read(POLICY.replace("groups = 2", f"groups = {groups}").replace("rows = 3", f"rows = {rows}"))


@pytest.fixture(scope="module")
def databases(tmp_path_factory):
    """A small clinic, and the same without one patient, open."""
    folder = tmp_path_factory.mktemp("neighbours")
    places = [built(folder / "whole.duckdb"), *(built(folder / f"{p}.duckdb", without=p) for p in (3, 6, 13, 34))]
    found = [duckdb.connect(str(place), read_only=True, config={"threads": 1}) for place in places]
    yield found
    for one in found:
        one.close()


def exact(plan, database):
    """The parts of all groups, in one database."""
    rows = database.execute(statement(plan, 7, "duckdb")).fetchall()
    width, joint = len(plan.keys), NoiseBasis.of(plan)
    return {row[:width]: joint.parts_of([int(x or 0) for x in row[width:]]) for row in rows}


@pytest.mark.parametrize(("groups", "rows"), [(1, 1), (5, 2)])
@pytest.mark.parametrize("name", SETS)
def test_one_person_moves_all_tables_within_their_price(databases, name, groups, rows):
    """For each part: Σ(Δ/size)² ≤ groups and Σ|Δ|/size ≤ groups over all cells, whoever leaves."""
    outer = parse_question(SELECT + SETS[name], rules(groups, rows)).outer
    moved = 0
    for question in outer.questions:
        plan = question.plan
        sizes = [part.size for part in NoiseBasis.of(plan).parts]
        before, *others = [exact(plan, one) for one in databases]
        for after in others:
            nothing = [0] * len(sizes)
            moves = [
                [
                    (a - b) / size
                    for a, b, size in zip(before.get(k, nothing), after.get(k, nothing), sizes, strict=True)
                ]
                for k in {*before, *after}
            ]
            for column in zip(*moves, strict=True):
                moved += any(column)
                assert math.fsum(x * x for x in column) <= plan.groups * (1 + 1e-12)
                assert math.fsum(map(abs, column)) <= plan.groups * (1 + 1e-12)
    assert moved


@pytest.mark.parametrize("name", SETS)
def test_exact_tables_add_up_even_where_bounds_cut(databases, name):
    outer = parse_question(SELECT + SETS[name], rules(2, 3)).outer
    assert outer.tables[0].consistent
    tables = {question.plan.keys: exact(question.plan, databases[0]) for question in outer.questions}
    for fine, coarse in itertools.permutations(tables, 2):
        if set(coarse) < set(fine):
            places, sums = [fine.index(key) for key in coarse], {}
            for key, parts in tables[fine].items():
                found = sums.setdefault(tuple(key[i] for i in places), [0] * len(parts))
                sums[tuple(key[i] for i in places)] = [a + b for a, b in zip(found, parts, strict=True)]
            assert sums == tables[coarse]


@pytest.mark.parametrize("currency", [Mu, Pure])
@pytest.mark.parametrize("name", SETS)
def test_all_sets_together_cost_the_price(name, currency):
    outer = parse_question(SELECT + SETS[name], rules(2, 3)).outer
    offers = offers_of(outer, 1.0, 1e-9, currency)
    assert math.fsum(shares_of(outer).values()) == pytest.approx(1.0)
    amounts = [offer.price.amount for offer in offers]
    whole = currency.for_epsilon(1.0, 1e-9, 0.0).amount
    total = math.sqrt(math.fsum(a * a for a in amounts)) if currency is Mu else math.fsum(amounts)
    assert whole * (1 - 1e-9) <= total <= whole
    if currency is Mu:
        together = offers[0].loss
        for offer in offers[1:]:
            together = together + offer.loss
        assert together.epsilon(1e-9).upper <= GaussianLoss(whole).epsilon(1e-9).upper * (1 + 1e-9)


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    found = Curator.open(built(folder / "clinic.duckdb", patients=400), ROOM, ledger=folder / "ledger")
    return found


@pytest.mark.parametrize("name", ["rollup", "cube"])
def test_noisy_tables_add_up(curator, name):
    answer = curator.ask(SELECT + SETS[name], epsilon=1.0)
    cells = {(row[0], row[1]): row for row in answer.rows}
    for column in (answer.columns.index("n"), answer.columns.index("paid")):
        for ward in ("north", "south", "west"):
            children = cells[ward, True][column] + cells[ward, False][column]
            assert children == pytest.approx(cells[ward, None][column])
        total = sum(cells[ward, None][column] for ward in ("north", "south", "west"))
        assert total == pytest.approx(cells[None, None][column])
    assert not curator.ask(SELECT + SETS[name], epsilon=1.0).charged


def test_the_finest_table_is_the_plain_question(curator):
    curator.ask(SELECT + SETS["rollup"], epsilon=1.25)
    assert not curator.ask(SELECT + "ward, long", epsilon=0.1).charged


@pytest.mark.parametrize("name", SETS)
def test_with_nearly_no_noise_it_is_plain_sql(curator, name):
    """Of rows that are in a group: those with a listed ward, and a stay."""
    known = "ward IN ('north', 'south', 'west') AND NOT stay IS NULL AND NOT ISNAN(stay) AND NOT patient_id IS NULL"
    plain = curator.engine.run(
        f"SELECT ward, stay > 7 AS long, COUNT(*) FROM visits WHERE {known} GROUP BY {SETS[name]}"
    )
    answer = curator.ask(SELECT + SETS[name], epsilon=HUGE)
    found = {row[:2]: row[2] for row in answer.rows}
    for ward, long, n in plain:
        assert found[ward, long] == pytest.approx(n, abs=40)


def test_combined_intervals_hold_the_truth_and_are_narrower(databases):
    """Of 60 draws × 12 cells at 95 %, fewer than 640 inside has probability below 1e-4, even if cells go together."""
    sql = "SELECT ward, stay > 7 AS long, COUNT(*) AS n FROM visits GROUP BY CUBE (ward, long)"
    offers = offers_of(parse_question(sql, rules(2, 3)).outer, 1.0, 1e-9, Mu)
    tables = [[databases[0].execute(text).fetchall() for text in statements(offer, 7, "duckdb")] for offer in offers]
    truths = []
    for offer, (rows,) in zip(offers, tables, strict=True):
        known = {row[: len(offer.plan.keys)]: int(row[-1]) for row in rows}
        truths.append([known.get(key, 0) for key in offer.plan.public])
    inside = count = 0
    for _ in range(60):
        stored = [release(offer, mine) for offer, mine in zip(offers, tables, strict=True)]
        for offer, cells, truth in zip(offers, combine(offers, stored), truths, strict=True):
            (alone,) = offer.readers.values()
            for (found,), exact_count in zip(cells.estimates, truth, strict=True):
                value, low, high = found
                inside, count = inside + (low <= exact_count <= high), count + 1
                assert high - value <= alone.error * 1.01
    assert count == 720
    assert inside >= 640


def test_distinct_people_are_not_forced_to_add_up(curator):
    sql = "SELECT ward, COUNT(DISTINCT patient_id) AS people FROM visits GROUP BY ROLLUP (ward)"
    assert not parse_question(sql, ROOM).outer.tables[0].consistent
    answer = curator.ask(sql, epsilon=HUGE)
    people = dict(zip(answer.column("ward"), answer.column("people"), strict=True))
    assert people[None] < people["north"] + people["south"] + people["west"]


def test_grouping_tells_which_keys_are_summed_over(curator):
    shown = "ward, stay > 7 AS long, GROUPING(ward, stay > 7) AS g, COUNT(*) AS n"
    sql = f"SELECT {shown} FROM visits GROUP BY CUBE (ward, long)"
    rows = curator.ask(sql, epsilon=HUGE).rows
    assert {row[2] for row in rows} == {0, 1, 2, 3}
    assert all((row[0] is None) == (row[2] >= 2) for row in rows)
