"""Units of one name are of one type in all tables, or one person would be written in two ways, and count twice."""

import pytest

from sfumato.errors import PolicyError
from sfumato.sql.policy import Policy
from sfumato.sql.schema_check import require_fit

TWO = """
version = 1
[budget]
epsilon = 1
delta = 1e-6
[tables.a]
unit = "person"
columns.x = {low = 0, high = 1}
[tables.b]
unit = "person"
columns.x = {low = 0, high = 1}
"""
CHILD = TWO.replace('[tables.b]\nunit = "person"', '[tables.b]\nunit = "a.person"\nkey = "of"\nparent_key = "id"')
GRAPHS = """
version = 1
[budget]
epsilon = 1
delta = 1e-6
[tables.a]
edges = ["s", "t"]
columns = {s = {type = "number"}, t = {type = "number"}}
[tables.b]
edges = ["s", "t"]
columns = {s = {type = "text"}, t = {type = "text"}}
"""


def schema(a, b):
    return {"a": {"person": a, "id": a, "x": "DOUBLE"}, "b": {"person": b, "of": b, "x": "DOUBLE"}}


@pytest.mark.parametrize("rules", [TWO, CHILD])
@pytest.mark.parametrize(
    ("a", "b"),
    [("BIGINT", "DOUBLE"), ("BIGINT", "DECIMAL(10,2)"), ("DECIMAL(10,2)", "DECIMAL(10,3)"), ("DATE", "TIMESTAMP"),
     ("UUID", "VARCHAR"), ("FLOAT", "DOUBLE"), ("bigint", "double precision")],
)  # fmt: skip
def test_units_whose_texts_could_differ_are_refused(rules, a, b):
    with pytest.raises(PolicyError, match="written in two ways"):
        require_fit(Policy.read(rules), schema(a, b))


@pytest.mark.parametrize("rules", [TWO, CHILD])
@pytest.mark.parametrize(
    ("a", "b"), [("BIGINT", "INTEGER"), ("VARCHAR", "BIGINT"), ("text", "character varying"), ("UUID", "UUID")]
)
def test_units_with_equal_texts_are_not(rules, a, b):
    require_fit(Policy.read(rules), schema(a, b))


def test_a_file_without_types_may_hold_anything():
    require_fit(Policy.read(TWO), schema("VARCHAR", "DOUBLE"), untyped=["a"])


def test_edges_of_numbers_and_edges_of_texts_are_not_in_one_policy():
    with pytest.raises(PolicyError, match="describe all nodes as text"):
        Policy.read(GRAPHS)
    Policy.read(GRAPHS.replace("number", "text"))
