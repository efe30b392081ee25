"""Random changes are valid, differ from the code, are drawn the same again, and a bad one is noticed."""

import ast

import pytest

from tests.mutants import executed
from tests.mutants.campaign import difference, outcome
from tests.mutants.executed import CoverageMap, digest, marked_modules
from tests.mutants.random_changes import Change, changed, changes, deciding, keyed_hash, parsed, sample

SMALL = ["sfumato/rounding.py", "sfumato/sql/emit/bounding.py", "sfumato/ledger/budgets.py"]
KINDS = {
    *("SQL", "and/or", "comparison", "constant", "direction", "dropped call", "dropped element", "dropped filter"),
    *("dropped fragment", "dropped keyword", "dropped operand", "dropped sign", "dropped term", "name"),
    *("negated condition", "operator", "removed statement", "returned constant", "swapped arguments"),
}


def named(path: str, words: str) -> Change:
    """The one change of a file whose name ends so."""
    [found] = [one for one in changes(path) if one.name.endswith(words)]
    return found


def test_every_kind_of_change_gives_code_that_compiles_and_differs():
    chosen = sample(SMALL, len(KINDS), seed=1)
    assert {one.kind for one in chosen} == KINDS
    as_it_is = {path: ast.dump(parsed(path)) for path in SMALL}
    for one in chosen:
        tree = changed(one)
        compile(tree, one.path, "exec")
        assert ast.dump(tree) != as_it_is[one.path], one.name


def test_a_change_is_shown_as_a_difference_of_lines():
    shown = difference(named("sfumato/rounding.py", "_least_above:comparison:GtE -> Gt")).splitlines()
    assert [line[0] for line in shown if "a * below" in line] == ["-", "+"]


def test_a_sample_is_the_same_again_and_a_longer_one_begins_with_it():
    short, long, other = sample(SMALL, 50, seed=1), sample(SMALL, 80, seed=1), sample(SMALL, 50, seed=2)
    assert long[:50] == short != other
    assert len({one.name for one in long}) == 80


def test_the_place_of_a_change_in_a_sample_depends_on_its_name_and_the_seed_alone():
    names = [one.name for one in sample(SMALL, 60, seed=3) if one.kind == "constant"]
    assert names == sorted(names, key=lambda name: keyed_hash(name, 3))


def test_texts_for_people_are_not_changed():
    kept = [
        one for path in SMALL for one in changes(path) if "found:" in one.before and one.kind != "removed statement"
    ]
    assert not kept
    assert not [one for path in SMALL for one in changes(path) if ".__repr__:" in one.name]


def test_every_module_that_decides_is_changed():
    files = deciding()
    assert {"sfumato/sensitivity.py", "sfumato/sql/simplify.py", "sfumato/noise/sampler.py"} <= set(files)
    assert {"sfumato/learn/spending.py", "sfumato/learn/torch/noise.py", "sfumato/local/odds.py"} <= set(files)
    assert deciding("sfumato/sql") == [path for path in files if path.startswith("sfumato/sql")]


def test_modules_that_note_what_they_execute_are_compiled_for_every_file():
    places, codes = marked_modules()
    assert places.keys() == codes.keys() == set(deciding())
    assert all(source == digest(path) for path, (_, _, source) in places.items())


@pytest.fixture
def rounding(tmp_path, monkeypatch):
    """What the first tests of rounding execute."""
    monkeypatch.setattr(executed, "RESULTS", tmp_path)
    monkeypatch.setattr(executed, "MAPPED", 0.5)
    return executed.map_of("tests/test_rounding.py")


def test_an_obvious_bug_is_noticed_and_a_harmless_change_is_not(rounding: CoverageMap):
    wrong = named("sfumato/rounding.py", "_least_above:comparison:GtE -> Gt")
    harmless = named("sfumato/rounding.py", ":constant:128 -> 129")
    assert rounding.executing(wrong)
    assert "test_rounding" in str(outcome(wrong, [rounding], 60.0)["noticed"])
    assert outcome(harmless, [rounding], 60.0)["noticed"] == ""
