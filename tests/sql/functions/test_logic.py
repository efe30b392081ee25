"""Conditions on released values: three-valued, as SQL has them."""

from itertools import product

import duckdb
import pytest

from sfumato.sql.functions.logic import all_of, any_of, one_of

VALUES = (True, False, None)


@pytest.mark.parametrize("values", [*product(VALUES, repeat=2), *product(VALUES, repeat=3)])
def test_and_or_and_in_of_released_values_are_those_of_sql(values):
    texts = [{True: "true", False: "false", None: "NULL::BOOLEAN"}[value] for value in values]
    [(both, either, among)] = duckdb.sql(
        f"SELECT {' AND '.join(texts)}, {' OR '.join(texts)}, {texts[0]} IN ({', '.join(texts[1:])})"
    ).fetchall()
    assert (all_of(*values), any_of(*values), one_of(*values)) == (both, either, among)
