"""The hash that decides what is kept: even over keys and pairs of keys, and injective on what people group by."""

from itertools import combinations

import duckdb
import numpy as np
import pytest

from sfumato.sql.dialects import DIALECTS
from sfumato.sql.dialects.keyed_hash import Form, Hashed, keyed_hash

TO = DIALECTS["duckdb"]
UNITS = {"numbered": "i", "in tens": "i * 10", "large": "i + 1099511627776", "negative": "-i"}


def kept(forms, salt, unit, most=3, units=6000, keys=6):
    """units × keys: is this key among those of its unit with the least hashes?"""
    listed = [Hashed(name, form, known=True) for name, form in zip(("u", "k"), forms, strict=True)]
    rows = duckdb.sql(
        f"SELECT {keyed_hash(listed, salt, TO)} FROM (SELECT {unit} AS u, k"
        f" FROM RANGE({units}) a(i), RANGE({keys}) b(k))"
        " ORDER BY u, k"
    ).fetchnumpy()
    hashes = next(iter(rows.values())).reshape(units, keys)
    return np.argsort(np.argsort(hashes, axis=1), axis=1) < most


@pytest.mark.parametrize("unit", UNITS)
def test_each_key_and_each_pair_of_keys_is_kept_equally_often(unit):
    """|z| > 6 for one of 21 numbers and 3 salts: 1.2e-7."""
    for salt in (1, 2, 12345):
        found = kept((Form.WHOLE, Form.WHOLE), salt, UNITS[unit])
        n, k = found.shape
        shares = [(found[:, i].mean(), 3 / k) for i in range(k)]
        shares += [((found[:, i] & found[:, j]).mean(), 6 / (k * (k - 1))) for i, j in combinations(range(k), 2)]
        assert max(abs(share - p) / (p * (1 - p) / n) ** 0.5 for share, p in shares) < 6


def test_texts_are_kept_equally_often_and_differently_for_each_salt():
    found = [kept((Form.NUMBER, Form.NUMBER), salt, "i::DOUBLE", units=2000) for salt in (1, 2)]
    for one in found:
        assert abs(one.mean(axis=0) - 0.5).max() < 6 * 0.5 / 2000**0.5
    assert 0.3 < (found[0] == found[1]).mean() < 0.7


def test_equal_values_have_one_hash_and_others_another():
    values = [0.0, 1.0, -1.0, 0.5, -0.5, 0.1, 0.2, 1 / 3, 2.0**53, 2.0**53 + 2, -7.25, 1e15 + 0.5, None]
    many = len(values)
    hashed = keyed_hash([Hashed("x", Form.NUMBER)], 5, TO)

    def found(value):
        return duckdb.execute(f"SELECT {hashed} FROM (SELECT CAST(? AS DOUBLE) AS x)", [value]).fetchall()[0][0]

    assert len({found(value) for value in values}) == many
    assert found(-0.0) == found(0.0)
    whole = keyed_hash([Hashed("7::INTEGER", Form.WHOLE), Hashed("'a'", Form.TEXT)], 5, TO)
    number = keyed_hash([Hashed("7::DOUBLE", Form.NUMBER), Hashed("'a'", Form.TEXT)], 5, TO)
    assert duckdb.sql(f"SELECT {whole} = {number}").fetchall() == [(True,)], (
        "engines may store a whole number as either"
    )
    for value in (float("inf"), -float("inf"), 1.7e308, 5e-324, -5e-324):
        assert isinstance(found(value), int)
    assert len({found(1e300), found(-1e300), found(None), found(7.0)}) == 4


def test_dates_are_hashed_by_their_value():
    moments = ["2024-02-29", "2024-03-01", "2024-02-29 10:11:12.5", "0001-01-01", "infinity", None]
    hashed = keyed_hash([Hashed("x", Form.DATE)], 5, TO)

    found = {duckdb.execute(f"SELECT {hashed} FROM (SELECT CAST(? AS TIMESTAMP) AS x)", [one]).fetchall()[0]
             for one in moments}  # fmt: skip
    assert len(found) == len(moments)


def test_no_whole_number_is_too_large():
    ends = [-(2**63), 2**63 - 1, 0, None]
    listed = [Hashed(f"x{i}", Form.WHOLE) for i in range(12)]
    row = ", ".join(f"CAST({'NULL' if ends[i % 4] is None else ends[i % 4]} AS BIGINT) AS x{i}" for i in range(12))
    for salt in range(8):
        ((found,),) = duckdb.sql(f"SELECT {keyed_hash(listed, salt, TO)} FROM (SELECT {row})").fetchall()
        assert 0 <= found < 2**31
