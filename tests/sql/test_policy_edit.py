"""Edits of a policy's text: what they change, and that they change nothing else."""

import pytest

from sfumato.errors import PolicyError
from sfumato.sql.policy import Policy
from sfumato.sql.policy_edit import with_column_bounds, without_limits

POLICY = """# whose data these are
version = 1
[budget]
epsilon = 1.0   # for all
delta = 1e-6

[tables.visits]        # the hospital's
unit = "patient_id"
groups = 6             # one patient counts in 6 groups
rows = 10
[tables.visits.columns]
ward = {type = "text", keys = ["a, b", "low = 3"]}
stay = {type = "number", step = 0.25}   # in days
rows = {type = "integer", low = 0, high = 5}
"odd name" = {low = 0, high = 1}

[tables."my wards"]
unit = "row"
[tables."my wards".columns]
beds = {type = "number"}
"""


def test_limits_are_dropped_and_all_comments_stay():
    found = without_limits(POLICY)
    table = Policy.read(found).tables["visits"]
    assert table.scaled and not Policy.read(POLICY).tables["visits"].scaled
    assert table.columns == Policy.read(POLICY).tables["visits"].columns  # a column is called rows
    changed = [(a, b) for a, b in zip(POLICY.splitlines(), found.splitlines(), strict=True) if a != b]
    assert changed == [(line, f"# {line}") for line in POLICY.splitlines()[8:10]]
    assert without_limits(found) == found


@pytest.mark.parametrize(
    "text",
    [
        POLICY.replace("[tables.visits]        # the hospital's", "[tables]\nvisits.most = 3\n[tables.visits]"),
        'version = 1\nbudget = {epsilon = 1, delta = 1e-6}\n[tables]\nvisits = {unit = "p", rows = 3}\n',
        'version = 1\ntables.visits.rows = 3\ntables.visits.unit = "p"\nbudget = {epsilon = 1, delta = 1e-6}\n',
    ],
)
def test_other_layouts_are_left_to_their_owner(text):
    with pytest.raises((PolicyError, ValueError)):
        without_limits(text)


@pytest.mark.parametrize(
    ("table", "column", "line"),
    [
        ("visits", "stay", 'stay = {type = "number", step = 0.25, low = -1.5, high = 40.0}  # by us'),
        ("visits", "rows", 'rows = {type = "integer", low = -1.5, high = 40.0}  # by us'),
        ("visits", "odd name", '"odd name" = {low = -1.5, high = 40.0}  # by us'),
        ("my wards", "beds", 'beds = {type = "number", low = -1.5, high = 40.0}  # by us'),
    ],
)
def test_bounds_are_written_where_the_column_is(table, column, line):
    found = with_column_bounds(POLICY, table, column, -1.5, 40.0, "by us")
    assert line in found.splitlines()
    assert sum(a != b for a, b in zip(POLICY.splitlines(), found.splitlines(), strict=True)) == 1
    domain = Policy.read(found).tables[table].columns[column]
    assert (domain.low, domain.high) == (-1.5, 40.0)


@pytest.mark.parametrize(
    ("text", "column"),
    [(POLICY, "nothing"), (POLICY.replace("stay = {", "[tables.visits.columns.stay]\n# {"), "stay")],
)
def test_what_is_not_on_a_line_of_its_own_is_left_to_its_owner(text, column):
    with pytest.raises((PolicyError, ValueError)):
        with_column_bounds(text, "visits", column, 0.0, 1.0, "by us")
