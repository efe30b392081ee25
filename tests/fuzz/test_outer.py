"""A few random grouping sets and outer queries in every test run; `python -m tests.fuzz.outer` asks thousands."""

from tests.fuzz.outer import OuterRun

COUNT, SEED = 60, 11


def test_random_grouping_sets_move_within_their_price_and_add_up():
    run = OuterRun(SEED)
    for index in range(COUNT):
        run.sets(index)
    run.close()
    assert run.count["planned"] > COUNT / 20


def test_random_sql_around_an_aggregation_asks_the_same_question():
    run = OuterRun(SEED)
    for index in range(COUNT):
        run.around(index)
    run.close()
    assert run.count["free"] > COUNT / 20
