"""Policies drafted from names and types, and checked against them."""

import tomllib

import pytest

from sfumato.errors import PolicyError
from sfumato.sql.domains import Kind
from sfumato.sql.policy import Policy
from sfumato.sql.policy_draft import check_policy, draft_policy, guess_units
from sfumato.sql.schema_check import kind_of

SCHEMA = {
    "visits": {"patient_id": "BIGINT", "ward": "VARCHAR", "stay": "DOUBLE", "day": "DATE", "urgent": "BOOLEAN",
               "scan": "BLOB", "odd name": "DECIMAL(10,2)"},
    "wards": {"ward": "VARCHAR", "floor": "INTEGER"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("BIGINT", Kind.NUMBER), ("UTINYINT", Kind.NUMBER), ("DECIMAL(18,3)", Kind.NUMBER), ("FLOAT", Kind.NUMBER),
        ("VARCHAR", Kind.TEXT), ("UUID", Kind.TEXT), ("ENUM('PRINT', 'DOUBLE')", Kind.TEXT), ("TIME", Kind.TEXT),
        ("TIMESTAMP WITH TIME ZONE", Kind.DATE), ("DATE", Kind.DATE), ("BOOLEAN", Kind.TRUTH),
        ("INTEGER[]", None), ("STRUCT(a INTEGER)", None), ("MAP(VARCHAR, INTEGER)", None), ("BLOB", None),
        ("INTERVAL", None),
    ],
)  # fmt: skip
def test_types_of_databases_are_kinds_of_questions(name, kind):
    assert kind_of(name) is kind


def test_a_draft_is_toml_that_waits_for_its_owner():
    text = draft_policy(SCHEMA, "clinic.duckdb")
    data = tomllib.loads(text)
    assert data["tables"]["visits"]["unit"] == "patient_id"
    assert list(data["tables"]["visits"]["columns"]) == ["patient_id", "ward", "stay", "day", "urgent", "odd name"]
    with pytest.raises(PolicyError, match="no unit"):  # nobody has said whose data the wards are
        Policy.read(text)
    text = text.replace("draft = true", "draft = false")
    said = text.replace('# unit = "…"', "public = true  # ").replace("# public = true  #", "#")
    assert Policy.read(said).tables["wards"].public
    assert not check_policy(Policy.read(said), SCHEMA).wrong


@pytest.mark.parametrize("name", ['a"b', "ü", "x\ny", "", "a.b", "'", "tables]", "🙂", "a\x7fb", "\x1f"])
def test_any_name_is_quoted(name):
    values = "'" + name.replace("'", "''") + "x'"
    data = tomllib.loads(draft_policy({name: {name: f"ENUM({values})", "patient_id": "INTEGER"}}, name))
    assert list(data["tables"][name]["columns"]) == [name, "patient_id"]
    assert data["tables"][name]["columns"][name]["keys"] == [name + "x"]


@pytest.mark.parametrize("name", ["User\nID", "user 🙂 id", "Größe der user"])
def test_names_in_comments_and_units_are_quoted_and_stay_readable(name):
    two = draft_policy({"t": {name: "INT", "client_id": "INT", "Größe": "DOUBLE"}}, "Daten.csv")
    assert list(tomllib.loads(two)["tables"]["t"]["columns"]) == [name, "client_id", "Größe"]
    assert '"Größe" = {type = "number"}' in two


def test_units_are_guessed_from_names_only_when_they_speak_of_people():
    assert guess_units("orders", {"customer_id": "INT", "order_id": "INT"}) == ["customer_id"]
    assert guess_units("rides", {"Rider ID": "TEXT", "ride id": "TEXT"}) == ["Rider ID"]
    assert guess_units("patients", {"id": "INT", "age": "INT"}) == ["id"]
    assert guess_units("orders", {"id": "INT"}) == []
    assert guess_units("t", {"user_id": "INT", "client_id": "INT"}) == ["user_id", "client_id"]
    assert "perhaps user_id or client_id" in draft_policy({"t": {"user_id": "INT", "client_id": "INT"}}, "x")


POLICY = """
version = 1
[budget]
epsilon = 1.0
delta = 0.001
[analysts]
ann = 0.25
[tables.visits]
unit = "{unit}"
groups = 2
rows = 3
[tables.visits.columns]
ward = {{type = "text"}}
stay = {{type = "{stay}"}}
{more}
"""


def test_a_check_says_what_is_promised_and_what_is_left_open():
    found = check_policy(Policy.read(POLICY.format(unit="patient_id", stay="number", more="")), SCHEMA)
    assert not found.wrong
    assert max(map(len, str(found).splitlines())) <= 80
    text = " ".join(str(found).split())
    for part in (
        "(ε, δ) = (1, 0.001)",
        "ann may use 25 %",
        "visits: a person is a patient_id; counts in 2 groups of an answer, with 3 rows in each",
        "δ = 0.001 is a large chance",
        "visits.stay: no low and high",
        "visits.ward: no keys",
        "visits.day: not in the policy",
        "wards: not in the policy",
        "Questions can be asked.",
    ):
        assert part in text
    assert "visits.scan" not in text  # nothing can be done with it
    assert "visits.patient_id" not in text


@pytest.mark.parametrize(
    ("unit", "stay", "more", "complaint"),
    [
        ("person", "number", "", "visits: its unit, person, is not a column"),
        ("patient_id", "date", "", "visits.stay is DOUBLE in the database; the policy says date"),
        ("patient_id", "number", 'scan = {type = "text"}', "visits.scan is BLOB in the database; the policy says text"),
        ("patient_id", "number", 'gone = {type = "text"}', "visits.gone: there is no such column"),
        ("patient_id", "number", "[tables.gone]\npublic = true", "gone: there is no such table; there are visits"),
    ],
)  # fmt: skip
def test_a_check_finds_what_would_fail(unit, stay, more, complaint):
    found = check_policy(Policy.read(POLICY.format(unit=unit, stay=stay, more=more)), SCHEMA)
    assert any(complaint in line for line in found.wrong)
    assert "can be asked" not in str(found)


def test_a_draft_works_where_the_unit_is_known():
    schema = {"visits": {**SCHEMA["visits"], "ward": "ENUM('north', 'o''brien', 'ü')"}}
    text = draft_policy(schema, "clinic.duckdb")
    assert text.count("TODO:") == 1  # the line that makes it a draft
    assert "guessed from its name" in text and "# most = " in text
    draft = Policy.read(text)
    assert draft.draft and draft.tables["visits"].scaled
    assert draft.tables["visits"].columns["ward"].keys == ("north", "o'brien", "ü")
    found = check_policy(draft, schema)
    assert any("draft" in line for line in found.wrong)
    assert "can be asked" not in str(found)
    ready = Policy.read(text.replace("draft = true", "draft = false"))
    done = check_policy(ready, schema)
    assert not done.wrong
    assert "scaled as each question needs" in " ".join(str(done).split())
    assert done.examples == (
        "SELECT COUNT(*) FROM visits",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
        "SELECT AVG(stay) FROM visits",
    )


def test_a_draft_names_the_table_in_which_a_unit_may_be_found():
    schema = {"orders": {"order_id": "INT", "customer_id": "INT"}, "items": {"order_id": "INT", "price": "DOUBLE"}}
    text = draft_policy(schema, "shop.duckdb")
    assert '# unit = "orders.customer_id", with key = "order_id"' in text
    assert draft_policy({"a\nb": schema["orders"], "items": schema["items"]}, "x").count("\nb") == 0
    assert draft_policy(schema, "x").count("TODO:") == 2


def test_examples_are_questions():
    from sfumato.aggregates.registry import parse_question

    schema = {'odd "t"': {"user_id": "INT", "select": "VARCHAR", "x y": "BIGINT"}, "e": {"a": "INT", "b": "INT"}}
    edges = '[tables.e]\nedges = ["a", "b"]\n[tables.e.columns]\na = {type = "number"}\nb = {type = "number"}\n'
    text = draft_policy({'odd "t"': schema['odd "t"']}, "x").replace("draft = true", "") + edges
    policy = Policy.read(text)
    found = check_policy(policy, schema)
    assert len(found.examples) == 4
    for one in found.examples[:2]:
        parse_question(one, policy)
    parse_question(found.examples[2].replace("AVG", "COUNT"), policy)  # bounds are found by the curator


def test_a_draft_for_a_csv_file_says_how_numbers_and_dates_are_named():
    typed, untyped = (draft_policy({"t": {"stay": "VARCHAR"}}, "t.csv", found) for found in ((), ("t",)))
    assert "say no types" in untyped and "no types" not in typed
    assert tomllib.loads(untyped)["tables"]["t"]["columns"] == {"stay": {"type": "text"}}


def test_a_draft_knows_the_calendar_and_a_check_names_what_is_alike_together():
    schema = {
        "flights": {"user_id": "INT", "Month": "BIGINT", "hour": "DOUBLE", "origin": "VARCHAR", "dest": "VARCHAR"}
    }
    text = draft_policy(schema, "x")
    assert 'Month = {type = "integer", low = 1, high = 12}  # guessed from its name' in text
    assert 'hour = {type = "number"}' in text, "hours with parts may be lengths of time"
    found = check_policy(Policy.read(text.replace("draft = true", "")), schema)
    assert (
        "flights.origin, flights.dest: no keys, so groups are found privately, and small ones vanish" in found.missing
    )
