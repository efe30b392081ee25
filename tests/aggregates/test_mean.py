"""AVG: values are measured from a point of their lattice, so that whole steps round no value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.aggregates.registry import parse_question
from sfumato.sql.plan import What
from sfumato.sql.policy import Policy

POLICY = """
version = 1
[budget]
epsilon = 500.0
delta = 1e-3
[tables.t]
unit = "u"
rows = 1
{more}
[tables.t.columns]
x = {{low = {low}, high = {high}, step = {step}}}
y = {{low = {low}, high = {high}, step = {step}}}
"""
SQL = "SELECT AVG(x) AS m, VARIANCE(x) AS v, COVAR_POP(x, y) AS c FROM t"


@given(low=st.integers(-50, 50), width=st.integers(1, 101), power=st.integers(-3, 2), scaled=st.booleans())
def test_sums_are_measured_from_a_point_of_their_lattice(low, width, power, scaled):
    step = 2.0**power
    text = POLICY.format(low=low * step, high=(low + width) * step, step=step, more="")
    text = text.replace("rows = 1\n", "") if scaled else text
    for measure in parse_question(SQL, Policy.read(text)).plan.measures:
        if measure.what in (What.SUM, What.SQUARES) and measure.given is not None:
            exponent = measure.exponent // 2 if measure.what is What.SQUARES else measure.exponent
            assert measure.centre % 2.0**exponent == 0


@pytest.mark.parametrize("high", [8, 9])
def test_a_mean_of_integers_is_not_off_by_half_a_step(high, tmp_path):
    """Recorded noise; at this ε it is far below a half."""
    import duckdb

    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute(
            f"CREATE TABLE t AS SELECT i AS u, i % {high + 1} AS x, i % {high + 1} AS y FROM range(9000) r(i)"
        )
    curator = sf.Curator.open(tmp_path / "t.duckdb", Policy.read(POLICY.format(low=0, high=high, step=1, more="")))
    answer = curator.ask(SQL, epsilon=100.0)
    truth = high / 2, ((high + 1) ** 2 - 1) / 12
    assert answer.column("m")[0] == pytest.approx(truth[0], abs=0.05)
    assert answer.column("v")[0] == pytest.approx(truth[1], abs=0.1)
    assert answer.column("c")[0] == pytest.approx(truth[1], abs=0.1)
