"""How long a row takes, and how long a text gets, follow from the question alone."""

import math
import sys
from pathlib import Path

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.aggregates.registry import parse_question
from sfumato.curator.outer_query import bind
from sfumato.errors import PolicyError, QueryRefused
from sfumato.sql.dialects import dialect_of
from sfumato.sql.domains import LONGEST_TEXT, TEXT, Kind
from sfumato.sql.expressions import Call, Column, Constant, Output
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.costs import MOST_COST
from sfumato.sql.functions.function import Function
from sfumato.sql.functions.like import LONGEST_PATTERN, like, pattern_problem
from sfumato.sql.policy import Policy
from sfumato.sql.postprocess import evaluate
from sfumato.sql.simplify import call
from tests.curator import clinic
from tests.sql.parse.test_ordinary import QUESTIONS

RULES = Policy.read(clinic.POLICY)
ATTACK = "SELECT COUNT(*) FROM visits WHERE CASE WHEN patient_id = 17 AND diagnosis = 'hiv' THEN {} ELSE '' END LIKE {}"
HARD = f"'%{'a_' * 20}b%c'"


@pytest.mark.parametrize(
    "sql",
    [
        ATTACK.format(f"'{'a' * 60_000}'", "'%a%b'"),
        ATTACK.format("diagnosis", HARD),
        ATTACK.format("diagnosis", f"'{'%a' * 40}b'"),
        ATTACK.format("diagnosis", f"'%{'a' * 5000}'"),
        ATTACK.format("diagnosis", "diagnosis"),
        ATTACK.format("diagnosis", "'%' || ward"),
        ATTACK.format("diagnosis", "CASE WHEN stay > 3 THEN '%a' ELSE 'b%' END"),
        f"SELECT COUNT(*) FROM visits WHERE diagnosis ILIKE {HARD}",
    ],
)
def test_what_could_take_long_in_one_row_is_refused_from_the_text(sql):
    with pytest.raises(QueryRefused, match=r"LIKE|too long"):
        parse_question(sql, RULES)


def test_a_question_is_refused_when_its_functions_add_up_to_much_in_one_row():
    """In a CASE that only one person reaches, too: all branches count, and what a view repeats counts each time."""
    branch = " ".join(f"WHEN patient_id = {i} THEN UPPER(LOWER(diagnosis || ward || '{i}'))" for i in range(60))
    with pytest.raises(QueryRefused, match="too long for one row"):
        parse_question(f"SELECT COUNT(*) FROM visits WHERE CASE {branch} END = 'A'", RULES)
    views = ", ".join(f"v{i} AS (SELECT patient_id, UPPER(x || x) AS x FROM v{i - 1})" for i in range(1, 8))
    text = f"WITH v0 AS (SELECT patient_id, diagnosis AS x FROM visits), {views} SELECT COUNT(*) FROM v7 WHERE x = 'A'"
    with pytest.raises(QueryRefused, match="too long"):
        parse_question(text, RULES)
    short = branch.replace("diagnosis || ward", "LEFT(diagnosis, 20)")
    parse_question(f"SELECT COUNT(*) FROM visits WHERE CASE {short} END = 'A'", RULES)


@pytest.mark.parametrize("sql", QUESTIONS)
def test_ordinary_questions_are_far_from_the_limit(sql):
    plan = parse_question(sql, RULES).plan
    assert 0 <= plan.key_cost + sum(one.cost for one in plan.evaluated) < MOST_COST / 4


def test_ten_patterns_on_one_column_are_an_ordinary_question():
    cases = " ".join(f"WHEN diagnosis ILIKE '%word {i}%' THEN 'group {i}'" for i in range(10))
    parse_question(f"SELECT CASE {cases} ELSE 'other' END AS g, COUNT(*) FROM visits GROUP BY g", RULES)


# ---- the table of costs ---------------------------------------------------------------------------------------------


def test_every_function_states_its_cost():
    with pytest.raises(TypeError, match="cost"):
        Function((Kind.TEXT,), lambda a: TEXT, lambda a: a)
    columns = {kind: Column(f"t.{kind.value}", clinic_domain(kind)) for kind in Kind}
    for name, function in FUNCTIONS.items():
        kinds = [(one if isinstance(one, tuple) else (one or Kind.TEXT,))[0] for one in function.kinds]
        worst = function.cost(*(columns[kind] for kind in kinds))
        assert 0 < worst < math.inf, name


def clinic_domain(kind):
    return next(domain for domain in RULES.tables["visits"].columns.values() if domain.kind is kind) if (
        kind is not Kind.TRUTH
    ) else FUNCTIONS["not"].domain()  # fmt: skip


def test_a_number_in_a_text_costs_more_to_read_than_one_that_is_a_number():
    """`make bench-cost` measured 3 µs for a text of 1,000 digits; what type a column has is public."""
    column = Column("t.a", clinic_domain(Kind.NUMBER))
    typed, words = (
        type(dialect_of("duckdb"))(schema={"t": {"a": type_}}, types={"t.a": type_}).cost(column)
        for type_ in ("DOUBLE", "VARCHAR")
    )
    assert typed == column.cost < words


def test_longer_texts_never_cost_less():
    long, short = Column("t.a", TEXT), call("substr", Column("t.a", TEXT), Constant(1), Constant(10))
    for name, function in FUNCTIONS.items():
        if function.kinds and all(kind in (Kind.TEXT, None) for kind in function.kinds):
            count = len(function.kinds)
            assert function.cost(*[short] * count) <= function.cost(*[long] * count), name


# ---- lengths --------------------------------------------------------------------------------------------------------

LETTERS = ["a", "ß", "ŉ", "ΐ", "İ", "ﬃ", "😀", " ", "\u3000", "%", "é", "1"]
TEXTS = st.builds(lambda sign, count, end: sign * count + end, st.sampled_from(LETTERS),
                  st.sampled_from([0, 1, 30, 999, 1000, 1001, 5000]), st.sampled_from(["", "b", "ß"]))  # fmt: skip
A, B = Column("t.a", TEXT), Column("t.b", TEXT)


def grown(inner):
    one, word = st.sampled_from(["lower", "upper", "trim", "ltrim", "rtrim", "text"]), st.sampled_from(["a", "ß", "1"])
    size = st.sampled_from([0, 1, 7, 999, 1000, 5000])
    return st.one_of(
        st.builds(call, one, inner),
        st.builds(lambda *parts: call("||", *parts), inner, inner, inner),
        st.builds(lambda a, n: call("substr", a, Constant(1), Constant(n)), inner, size),
        st.builds(lambda a, n: call("right", a, Constant(n)), inner, size),
        st.builds(lambda a, w: call("split_part", a, Constant(w), Constant(2)), inner, word),
        st.builds(lambda a, w: call("replace", a, Constant(w), Constant("x")), inner, word),
        st.builds(lambda a, b: call("coalesce", a, b), inner, inner),
        st.builds(lambda a, b, w: call("case", call("contains", a, Constant(w)), a, b), inner, inner, word),
        st.builds(lambda a: call("text", call("length", a)), inner),
    )


EXPRESSIONS = st.recursive(st.sampled_from([A, B, Constant("ß" * 40)]), grown, max_leaves=6)


@pytest.fixture(scope="module")
def database():
    with duckdb.connect() as connection:
        yield connection


@given(expression=EXPRESSIONS, a=TEXTS, b=TEXTS)
@example(expression=call("||", A, A), a="😀" * 5000, b="")
@example(expression=call("upper", call("||", A, B)), a="ŉ" * 1000, b="ΐ")
def test_no_text_is_longer_than_its_domain_says(database, expression, a, b):
    """In the engine, and of released values."""
    sql = dialect_of("duckdb").compiled(expression).sql("duckdb")
    ((found,),) = database.execute(f"SELECT {sql} FROM (SELECT ? AS a, ? AS b) AS _sf_t", [a, b]).fetchall()
    assert expression.domain.longest <= LONGEST_TEXT
    assert found is None or len(found) <= expression.domain.longest
    value = evaluate(released(expression), [a[:LONGEST_TEXT], b[:LONGEST_TEXT]])
    assert value is None or len(value) <= LONGEST_TEXT


@given(name=st.sampled_from(["lower", "upper", "trim", "ltrim", "rtrim"]), text=st.text(st.sampled_from(LETTERS)))
def test_letters_and_blanks_of_released_values_are_those_of_the_engine(database, name, text):
    """So none becomes two letters, as in Python, where a text would grow."""
    found = database.execute(f"SELECT {name}(?)", [text]).fetchall()
    assert found == [(evaluate(call(name, Output(0, TEXT)), [text]),)]


def released(expression):
    """The same of values that were released."""
    match expression:
        case Column(origin, domain):
            return Output("ab".index(origin[-1]), domain)
        case Call(name, arguments):
            return Call(name, tuple(map(released, arguments)))
    return expression


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_a_text_is_cut_only_where_it_could_be_too_long(engine):
    to = dialect_of(engine)
    assert "LEFT(" in to.compiled(A).sql(engine)
    inside = call("||", call("substr", A, Constant(1), Constant(10)), Constant("x"))
    assert not inside.domain.needs_cut
    assert inside.domain.longest == 11
    assert to.compiled(inside).sql(engine).count("LEFT(") == to.compiled(A).sql(engine).count("LEFT(")
    assert call("||", A, Constant("x")).domain.needs_cut


def test_a_long_text_of_a_column_is_cut_and_is_no_number_or_date(database):
    to, long = dialect_of("duckdb"), "1" * (LONGEST_TEXT + 1)
    for kind, found in ((Kind.TEXT, long[:-1]), (Kind.NUMBER, None), (Kind.DATE, None), (Kind.TRUTH, None)):
        domain = TEXT if kind is Kind.TEXT else clinic_domain(kind)
        typed = type(to)(types={"t.a": "VARCHAR"})
        sql = typed.compiled(Column("t.a", domain)).sql("duckdb")
        assert database.execute(f"SELECT {sql} FROM (SELECT ? AS a) AS _sf_t", [long]).fetchall() == [(found,)]


def test_public_keys_are_no_longer_than_texts():
    with pytest.raises(PolicyError, match="very long"):
        Policy.read(clinic.POLICY.replace('"west"', f'"{"w" * (LONGEST_TEXT + 1)}"'))


# ---- patterns -------------------------------------------------------------------------------------------------------

SIGNS = st.text(st.sampled_from("ab%_\\ß."), max_size=12)


@given(text=SIGNS, pattern=SIGNS)
@example(text="aab", pattern="%ab")
@example(text="abab", pattern="%a_%b")
@example(text="a", pattern="a%a")
def test_like_of_released_values_is_like_of_the_engine(database, text, pattern):
    assert database.execute("SELECT ? LIKE ?", [text, pattern]).fetchall() == [(like(text, pattern),)]


def test_like_of_released_values_takes_one_pass():
    """With a regular expression, each of these takes longer than anybody lives."""
    text = "a" * LONGEST_TEXT
    assert not like(text, "%a" * 90 + "%b")
    assert not like(text, "%a_" * 60 + "%b")
    assert not like(text, "%_" * 90 + "b%")
    assert like(text, "%a_" * 60 + "%a")


def test_patterns_that_are_quick_to_match_are_allowed():
    for pattern in ("%", "", "a%", "%a%", "a_c", "%a_c%", "a%_b", "%a%b%c%", "_%", "a" * LONGEST_PATTERN):
        assert pattern_problem(pattern) is None, pattern
    for pattern in ("%a_c%b", "%_%_", "%a" * 11, "a" * (LONGEST_PATTERN + 1)):
        assert pattern_problem(pattern) is not None, pattern


# ---- released values ------------------------------------------------------------------------------------------------


def test_texts_and_numbers_of_released_values_do_not_grow():
    text, number = Output(0, TEXT), Output(1, RULES.tables["visits"].columns["cost"])
    for _ in range(8):
        text, number = call("||", text, text), call("floor", call("*", number, number))
    assert evaluate(text, ["x" * 100, 1e300]) == "x" * LONGEST_TEXT
    assert evaluate(call("*", call("floor", Output(1, number.domain)), call("floor", Output(1, number.domain))),
                     ["", 1e300]) == math.inf  # fmt: skip
    assert evaluate(number, ["", 1e300]) is None or isinstance(evaluate(number, ["", 1e300]), float)


def test_long_expressions_over_very_many_groups_are_refused():
    many = clinic.POLICY.replace("cost = {low = -100, high = 1000}", 'cost = {type = "integer", low = 0, high = 999}')
    many = many.replace("stay = {low = 0, high = 60, step = 0.125}", 'stay = {type = "integer", low = 0, high = 799}')
    sql = "SELECT cost, stay, COUNT(*) AS n FROM visits GROUP BY cost, stay HAVING {}"
    assert parse_question(sql.format("n > 3"), Policy.read(many)).outer is None
    heavy = " AND ".join(f"n <> cost + {i}" for i in range(60))
    for text in (sql.format(heavy), f"SELECT * FROM ({sql.format('n > 3')}) WHERE {heavy}"):
        with pytest.raises(QueryRefused, match="too large"):
            bind(parse_question(text, Policy.read(many)).outer, processor=None)


def test_every_function_is_measured():
    """`make bench-cost` has inputs for each, and each states a cost for them."""
    sys.path.insert(0, str(Path(__file__).parents[3]))
    from bench.bench_cost import columns

    for name, function in FUNCTIONS.items():
        for hard in (True, False):
            inputs = list(columns(name, hard))
            assert inputs, name
            assert all(0 < function.cost(*arguments) < math.inf for _, arguments in inputs), name
