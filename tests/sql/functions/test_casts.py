"""Numbers as texts: integers are doubles here, and their texts are those of integers all the same."""

import duckdb
import pytest

from sfumato.sql.dialects import dialect_of
from sfumato.sql.domains import number
from sfumato.sql.expressions import Call, Column
from sfumato.sql.functions.casts import to_text

TEXT = dialect_of("duckdb").compiled(Call("text", (Column("t.x", number()),))).sql("duckdb")


@pytest.mark.parametrize(
    ("value", "words"),
    [("3", "3"), ("-12", "-12"), ("0", "0"), ("0.5", "0.5"), ("10.05", "10.05"), ("100", "100"), ("1e300", "1e+300")],
)
def test_a_whole_number_is_written_without_a_point(value, words):
    for type_ in ("DOUBLE", "INTEGER") if value.lstrip("-").isdigit() else ("DOUBLE",):
        made = f"SELECT CAST({value} AS {type_}) AS x"
        assert duckdb.sql(f"SELECT {TEXT} FROM ({made}) _sf_t").fetchall() == [(words,)]
    assert to_text(float(value)) == words


def test_what_is_no_number_keeps_its_point():
    assert [to_text(one) for one in ("3.0", True, 7)] == ["3.0", "true", "7"]
