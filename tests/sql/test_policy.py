"""Reading a policy: what may be left out because the rest implies it."""

import pytest

from sfumato.errors import PolicyError
from sfumato.sql.domains import Kind
from sfumato.sql.policy import Policy

HEAD = (
    "version = 1\nbudget = {epsilon = 1, delta = 1e-6}\n[tables.flights]\nunit = 'tailnum'\n[tables.flights.columns]\n"
)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("{low = 1, high = 12}", Kind.NUMBER),
        ("{keys = ['EWR', 'JFK']}", Kind.TEXT),
        ("{keys = [1, 2.5]}", Kind.NUMBER),
        ("{keys = [true, false]}", Kind.TRUTH),
        ("{keys = [2013-01-01, 2013-01-02]}", Kind.DATE),
    ],
)
def test_a_range_or_keys_imply_the_type_of_a_column(column, kind):
    assert Policy.read(f"{HEAD}origin = {column}").tables["flights"].columns["origin"].kind is kind


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("timestamp", "date"), ("DATETIME", "date"), ("varchar", "text"), ("string", "text"), ("bool", "boolean"),
        ("int", "integer"), ("BIGINT", "integer"), ("double", "number"), ("Float", "number"),
    ],
)  # fmt: skip
def test_types_may_be_called_as_databases_call_them(spelling, name):
    found, wanted = (Policy.read(f"{HEAD}origin = {{type = '{one}'}}") for one in (spelling, name))
    assert found.tables["flights"].columns == wanted.tables["flights"].columns


@pytest.mark.parametrize("column", ["{}", "{keys = []}", "{keys = ['EWR', 1]}", "{keys = 'EWR'}"])
def test_a_column_that_implies_no_type_is_refused_by_name(column):
    with pytest.raises(PolicyError, match=r"tables\.flights\.columns\.origin\.type.\n  found:  nothing"):
        Policy.read(f"{HEAD}origin = {column}")
