"""Ten thousand random questions on a database with and without one person.

Nothing that an analyst sees beside the values may differ (status, columns, charge, error text), no statement may raise,
and no exact integer may move by more than the noise is made for. Ends with 1 at the first difference.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import duckdb

from sfumato.curator import Curator
from sfumato.engines.duckdb import schema
from sfumato.sql.dialects.duckdb import DuckDB
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built
from tests.curator.questions import Maker, moved, outcome, refusal_of

RULES = Policy.read(POLICY.replace("epsilon = 8.0", "epsilon = 1000.0"))
PEOPLE = [0, 3, 6, 13, 27, 39]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--count", type=int, default=10_000, help="questions")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--asked", type=int, default=10, help="one in so many is also asked of two curators")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        whole = built(Path(folder) / "whole.duckdb")
        files = [built(Path(folder) / f"{who}.duckdb", without=who) for who in PEOPLE]
        curators = [Curator.open(built(Path(folder) / f"asked{i}.duckdb", without=who), RULES)
                    for i, who in enumerate([None, 6])]  # fmt: skip
        typed = DuckDB(schema=schema(whole))
        one, others = duckdb.connect(str(whole)), [duckdb.connect(str(file)) for file in files]
        maker, answered, changes, asked, began = Maker(chosen.seed), 0, 0, 0, time.monotonic()
        for i in range(chosen.count):
            if i % 500 == 0:
                print(f"  {i:,} of {chosen.count:,} …", file=sys.stderr, flush=True)
            sql = maker.question()
            if refusal_of(sql, RULES) is None:
                answered += 1
                changes += moved(sql, RULES, one, others[i % len(others)], typed)
            if i % chosen.asked == 0:
                asked += 1
                seen = [outcome(curator, sql) for curator in curators]
                if seen[0] != seen[1] or seen[0][0][0] not in ("answered", "QueryRefused", "BudgetExceeded"):
                    print(f"differs: {sql}\n  {seen[0]}\n  {seen[1]}")
                    return 1
        spent = time.monotonic() - began
    print(f"{chosen.count:,} questions in {spent:.0f} s: {answered:,} planned and run on both databases,")
    print(f"{chosen.count - answered:,} refused; {changes:,} groups moved, none by more than its bound;")
    print(f"{asked:,} asked of both curators: status, columns, charge and error text are the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
