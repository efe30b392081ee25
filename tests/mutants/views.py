"""Views that last: sums of days that are merged in the wrong place."""

import tempfile
from dataclasses import replace
from pathlib import Path

import duckdb

from sfumato.aggregates.registry import parse_question
from sfumato.curator.lasting_views import build_view
from sfumato.curator.scaling import scaling_of
from sfumato.engines.duckdb import DuckDB
from sfumato.sql.dialects import DIALECTS
from sfumato.sql.emit.bounding import RowSums
from sfumato.sql.emit.norm import WHOLE, Scaling
from sfumato.sql.policy import Policy
from sfumato.sql.reserved_names import ROWS, UNIT, measure, qualify
from tests.mutants.contributions import Found
from tests.mutants.plant import mutant

POLICY = Policy.read("""
version = 1
[budget]
epsilon = 8.0
delta = 1e-6
[tables.visits]
unit = "patient_id"
[tables.visits.columns]
day = {type = "date"}
""")
COUNTED, BOUND = "SELECT COUNT(*) FROM visits", 4


def audit_39():
    """Of one person with a row on each of four days, weighted, at most √BOUND rows may count."""
    with tempfile.TemporaryDirectory() as place:
        engine = DuckDB(Path(place) / "clinic.duckdb")
        with duckdb.connect(str(engine.path)) as connection:
            connection.execute(
                "CREATE TABLE visits AS SELECT 7 AS patient_id, DATE '2024-01-01' + i::INT AS day FROM RANGE(4) t(i)"
            )
        build_view(engine, POLICY, COUNTED, "day")
        to = replace(DIALECTS["duckdb"], schema=engine.schema(), lasting=engine.lasting())
        scaling = scaling_of(parse_question(COUNTED, POLICY).plan, True, to)
        ((moved,),) = engine.run(scaling.request(scaling.sums([BOUND])).direct)
        engine.close()
    return Found(moved > WHOLE * BOUND**0.5, f"one person moved a count by {moved / WHOLE:g}, for {BOUND**0.5:g}")


@mutant(39, "exact", audit_39)
def daily_squares(patch):
    """Norms are summed over the squares of days, as the days of a view are not merged before.

    Proof. Somebody with one row on each of four days has the norm 4, not √(1 + 1 + 1 + 1) = 2: so all of it counts
    where 2 was priced.
    """
    right = Scaling.pairs

    def pairs(self):
        rows = RowSums.of(self.plan, self.measures, self.to)
        if not rows.by_day:
            return right(self)
        values = [f"CAST({ROWS}.{measure(j)} AS BIGINT) AS {measure(j)}" for j in range(len(self.measures))]
        days = rows.source.replace("_all ", "_days ")
        return f"SELECT {', '.join([*qualify(ROWS, [UNIT, *self.keys]), *values])} FROM {days}"

    patch(Scaling, "pairs", pairs)
