"""A small clinic for tests: two tables, and neighbours of it."""

import tempfile
from functools import cache
from pathlib import Path

import duckdb

POLICY = """
version = 1
[budget]
epsilon = 8.0
delta = 1e-6
[tables.visits]
unit = "patient_id"
groups = 2
rows = 3
[tables.visits.columns]
patient_id = {type = "number"}
ward = {type = "text", keys = ["north", "south", "west"]}
diagnosis = {type = "text"}
stay = {low = 0, high = 60, step = 0.125}
cost = {low = -100, high = 1000}
day = {type = "date"}
[tables.wards]
public = true
[tables.wards.columns]
ward = {type = "text"}
floor = {type = "number", keys = [1, 2]}
"""

ODD = ["'NaN'::DOUBLE", "'inf'::DOUBLE", "'-inf'::DOUBLE", "NULL", "-0.0", "1e308", "-1e308", "5e-324", "60", "7.3"]


def built(place, patients=40, without=None):
    """A database at `place`: patient p has 1 + p mod 7 visits; `without` leaves one patient out."""
    Path(place).write_bytes(written(patients, without))
    return place


@cache
def written(patients, without):
    """The bytes of such a database."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "clinic.duckdb"
        write(duckdb.connect(str(place)), patients, without)
        return place.read_bytes()


def write(connection, patients, without):
    connection.execute(
        "CREATE TABLE visits (patient_id BIGINT, ward TEXT, diagnosis TEXT, stay DOUBLE, cost DOUBLE, day DATE)"
    )
    connection.execute(
        "CREATE TABLE wards AS SELECT * FROM (VALUES ('north', 1), ('south', 2), ('west', 2)) t(ward, floor)"
    )
    rows = []
    for p in range(patients):
        if p == without:
            continue
        for v in range(1 + p % 7):
            ward = ["'north'", "'south'", "'west'", "'attic'", "NULL"][(p + v) % 5]
            stay = ODD[(p * 3 + v) % len(ODD)]
            rows.append(
                f"({p}, {ward}, 'd{(p * v) % 9}', {stay}, {p * 20 - 50}, DATE '2024-01-01' + {(p * 11 + v) % 366})"
            )
    rows += ["(NULL, 'north', 'd1', 3, 3, NULL)", f"({patients}, 'north', NULL, 3, 3, 'infinity'::DATE)"]
    connection.execute("INSERT INTO visits VALUES " + ", ".join(rows))
    connection.close()
