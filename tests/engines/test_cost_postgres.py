"""On PostgreSQL, too, how long a row takes follows from the question alone."""

import math
import re

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.errors import QueryRefused
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.postgres import COSTS, Postgres
from sfumato.sql.dialects.postgres_letter_case import COMPARISONS, case_comparison, letters_that_matter
from sfumato.sql.domains import DATE, LONGEST_TEXT, TEXT, TRUTH, Kind, number
from sfumato.sql.emit.bounding import statement
from sfumato.sql.expressions import Call, Column, Constant
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.costs import MOST_COST
from sfumato.sql.functions.texts import case_pairs, lower_text, upper_text
from sfumato.sql.policy import Policy
from tests.curator import clinic, odd
from tests.curator.spellings import same
from tests.engines.test_conformance import tables_of
from tests.sql.parse.test_ordinary import QUESTIONS
from tests.sql.test_simplify import RULES as SPELLED

RULES = Policy.read(clinic.POLICY)
POSTGRES = dialect_of("postgres")
AS_THEIR_TABLES = {"abs", "ceil", "clamp", "floor", "greatest", "least", "negative"}  # measured: no slower than stated
TYPES = {Kind.TEXT: "text", Kind.NUMBER: "double precision", Kind.DATE: "timestamp without time zone",
         Kind.TRUTH: "boolean"}  # fmt: skip
SCHEMA = {name: {column: TYPES[domain.kind] for column, domain in table.columns.items()}
          for name, table in SPELLED.tables.items()}  # fmt: skip
LETTERS = sorted(
    {sign for name in ("lower", "upper") for text in case_pairs(name) for sign in text} | set("kKiIsS%_1 😀")
)
CHANGES = {"lower": (str.lower, lower_text), "upper": (str.upper, upper_text)}
TEXT_COLUMN = Column("t.a", TEXT)


def attack(count):
    """Only a few rows take the time of all these."""
    calls = " || ".join(f"LOWER(diagnosis || '{i}')" for i in range(count))
    return f"SELECT COUNT(*) FROM visits WHERE CASE WHEN patient_id BETWEEN 17 AND 22 THEN {calls} ELSE '' END = 'a'"


# ---- what is refused, and what is not -------------------------------------------------------------------------------


def test_a_question_that_only_postgres_would_take_long_for_is_refused_there():
    question = parse_question(attack(20), RULES)
    dialect_of("duckdb").accepts(question.plan)
    with pytest.raises(QueryRefused, match="too long for one row on postgres"):
        POSTGRES.accepts(question.plan)


def test_no_statement_is_written_for_a_question_that_could_take_too_long():
    """Even if nobody asked before whether the dialect accepts it."""
    with pytest.raises(QueryRefused, match="too long for one row"):
        statement(parse_question(attack(20), RULES).plan, 7, "postgres")


@pytest.mark.parametrize("schema", [{}, SCHEMA], ids=["before the schema is known", "typed columns"])
def test_ordinary_questions_are_not_too_long_for_postgres(schema):
    to = Postgres(schema=schema)
    for sql in [*QUESTIONS, *(one for pair in same() for one in pair)]:
        plan = parse_question(sql, SPELLED).plan
        assert 0 <= to.about(plan).release_cost(plan) < MOST_COST, sql


def test_ten_patterns_on_one_column_are_an_ordinary_question_for_postgres():
    cases = " ".join(f"WHEN diagnosis ILIKE '%word {i}%' THEN 'group {i}'" for i in range(10))
    sql = f"SELECT CASE {cases} ELSE 'other' END AS g, COUNT(*) FROM visits GROUP BY g"
    POSTGRES.accepts(parse_question(sql, RULES).plan)


def test_a_column_costs_what_its_type_makes_it_cost():
    """A date that is written as a text is read by a regular expression; a schema is public."""
    months = " OR ".join(f"MONTH(day) + {i} = 3" for i in range(12))
    plan = parse_question(f"SELECT COUNT(*) FROM visits WHERE {months}", RULES).plan
    words = {**SCHEMA, "visits": {**SCHEMA["visits"], "day": "text"}}
    Postgres(schema=SCHEMA).about(plan)
    with pytest.raises(QueryRefused, match="too long for one row"):
        Postgres(schema=words).about(plan)


def test_what_in_repeats_is_counted_as_often_as_it_is_evaluated():
    """PostgreSQL makes x = y OR x = z of x IN (y, z), unless y and z are constants."""
    x, y = Call("lower", (TEXT_COLUMN,)), Column("t.b", TEXT)
    once, twice = (POSTGRES.cost(Call("in", (x, *others))) for others in ((y,), (y, y)))
    assert twice - once > POSTGRES.cost(x)


# ---- the table of costs ---------------------------------------------------------------------------------------------


def test_every_function_of_postgres_states_its_cost_or_is_known_to_take_no_longer():
    stated = {*COSTS, *(name for name, function in FUNCTIONS.items() if POSTGRES.name in function.cost_in)}
    assert stated | AS_THEIR_TABLES == POSTGRES.functions
    assert not stated & AS_THEIR_TABLES
    columns = {Kind.TEXT: TEXT, Kind.NUMBER: number(), Kind.TRUTH: TRUTH, Kind.DATE: DATE}
    for name in POSTGRES.functions:
        kinds = [(one if isinstance(one, tuple) else (one or Kind.TEXT,))[0] for one in FUNCTIONS[name].kinds]
        worst = POSTGRES.cost(Call(name, tuple(Column(f"t.{i}", columns[kind]) for i, kind in enumerate(kinds))))
        assert 0 < worst < math.inf, name


@pytest.mark.parametrize("kind", [Kind.NUMBER, Kind.DATE, Kind.TRUTH])
def test_a_long_text_is_not_read_to_see_that_it_is_no_number_or_date(kind):
    """LENGTH counts characters, and takes 50 ms for a text of 32 MB; how many bytes it has is stored beside it."""
    sql = Postgres(types={"t.a": "text"}).compiled(
        Column("t.a", {Kind.DATE: DATE, Kind.TRUTH: TRUTH}.get(kind, number()))
    )
    assert re.search(rf"OCTET_LENGTH\([^()]*\([^()]*\)[^()]*\) <= {LONGEST_TEXT}", sql.sql("postgres"))
    assert not re.search(r"(?<!OCTET_)LENGTH\(CAST", sql.sql("postgres"))


# ---- letters --------------------------------------------------------------------------------------------------------


@given(name=st.sampled_from(["lower", "upper"]), signs=st.frozensets(st.sampled_from(LETTERS), max_size=4))
@example(name="lower", signs=frozenset("k"))  # also the sign of Kelvin
@example(name="lower", signs=frozenset("K"))
@example(name="upper", signs=frozenset("ß"))
@example(name="upper", signs=frozenset("S"))  # also the long s
def test_only_letters_that_matter_make_a_difference_to_a_comparison(name, signs):
    ascii_, change = CHANGES[name]
    few = letters_that_matter(name, signs)
    for letter in LETTERS:
        narrow = change(letter) if letter in few else ascii_(letter) if letter.isascii() else letter
        assert all((narrow == sign) == (change(letter) == sign) for sign in signs)


WORDS = [
    "k",
    "K",
    "ki",
    "straße",
    "STRASSE",
    "ß",
    "ẞ",
    "ſ",
    "S",
    "ς",
    "σ",
    "İ",
    "ı",
    "Ǆ",
    "ǅ",
    "ǆ",
    "ж",
    "Ж",
    "𐐀",
    "",
    "é",
]


def compared(case, word, name):
    changed = Call(case, (TEXT_COLUMN,))
    pattern = Constant(f"%{word}_") if name == "like" else Constant(word)
    yield Call(name, (changed, pattern))
    yield Call(name, (changed, Call(case, (pattern,))))
    if name != "like":
        yield Call(name, (pattern, changed))


def test_letters_and_comparisons_of_letters_are_those_of_duckdb(server):
    import psycopg

    texts = [None, "", *LETTERS, *(f"x{letter}Y" for letter in LETTERS), "".join(LETTERS)[:LONGEST_TEXT]]
    asked = [Call(case, (TEXT_COLUMN,)) for case in CHANGES]
    asked += [
        one for case in CHANGES for word in WORDS for name in sorted(COMPARISONS) for one in compared(case, word, name)
    ]
    assert sum(case_comparison(one) is not None for one in asked) > len(asked) * 0.9
    with psycopg.connect(server.dsn) as postgres, duckdb.connect() as home:
        for db, sign in ((postgres.cursor(), "%s"), (home, "?")):
            db.execute("CREATE TEMP TABLE _sf_t (i INTEGER, a TEXT)")
            db.executemany(f"INSERT INTO _sf_t VALUES ({sign}, {sign})", list(enumerate(texts)))
        for start in range(0, len(asked), 50):
            some = asked[start : start + 50]
            listed = [
                ", ".join(dialect_of(name).compiled(one).sql(name) for one in some) for name in ("postgres", "duckdb")
            ]
            theirs, ours = (f"SELECT {one} FROM _sf_t ORDER BY i" for one in listed)
            assert postgres.execute(theirs.encode()).fetchall() == home.execute(ours).fetchall()


# ---- a server -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def engine(server, tmp_path_factory):
    import psycopg

    from sfumato.engines.postgres import Postgres as Engine

    place = clinic.built(tmp_path_factory.mktemp("clinic") / "clinic.duckdb")
    with psycopg.connect(server.dsn) as connection:
        odd.filled(connection.execute, "postgres", tables_of(place))
        for patient, letter in enumerate(("𐐀", "Ж", "a", "\u3000", "1", "\U00040000"), 17):
            hard = "b" + letter * LONGEST_TEXT * 2
            connection.execute("UPDATE visits SET diagnosis = %s WHERE patient_id = %s", [hard, patient])
    return Engine(server.dsn)


@pytest.fixture
def curator(engine, tmp_path):
    (tmp_path / "clinic.toml").write_text(clinic.POLICY.replace("epsilon = 8.0", "epsilon = 500.0"))
    return Curator.open(engine, tmp_path / "clinic.toml", ledger=tmp_path / "ledger")


def test_what_is_refused_costs_nothing_and_the_dearest_question_that_is_not_is_answered(curator):
    before = curator.ledger.accounts()
    with pytest.raises(QueryRefused, match="too long for one row on postgres"):
        curator.ask(attack(20), epsilon=1.0)
    assert curator.ledger.accounts() == before
    dearest = None
    for count in range(1, 20):
        try:
            curator.preview(attack(count), epsilon=1.0)
        except QueryRefused:
            break
        dearest = attack(count)
    assert curator.ask(dearest, epsilon=1.0).charged


def test_what_the_types_of_columns_make_too_long_is_refused_before_the_charge(curator, server):
    import psycopg

    sql = f"SELECT COUNT(*) FROM visits WHERE {' OR '.join(f'cost + {i} = 3' for i in range(40))}"
    with psycopg.connect(server.dsn, autocommit=True) as owner:
        owner.execute("ALTER TABLE visits ALTER COLUMN cost TYPE numeric")
    before = curator.ledger.accounts()
    with pytest.raises(QueryRefused, match="too long for one row on postgres"):
        curator.ask(sql, epsilon=1.0)
    assert curator.ledger.accounts() == before
    with psycopg.connect(server.dsn, autocommit=True) as owner:
        owner.execute("ALTER TABLE visits ALTER COLUMN cost TYPE double precision")
    assert curator.ask(sql, epsilon=1.0).charged
