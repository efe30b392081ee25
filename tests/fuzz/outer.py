"""Random grouping sets, and random SQL around random aggregations, about random worlds.

Of grouping sets: whatever one unit is, it moves each part of each table within its price, in both norms; tables by
fewer keys are sums of those by more; one canonical text is one statement. Of outer queries: the question is that of the
aggregation inside, and no private table is named in what runs over released values.
"""

import argparse
import itertools
import math
import random
import sys
from collections import Counter

from sqlglot import ErrorLevel, exp, parse_one
from sqlglot.errors import SqlglotError

from sfumato.aggregates.noise_basis import NoiseBasis
from sfumato.aggregates.price import Mu
from sfumato.aggregates.registry import parse_question
from sfumato.curator.outer_query import bind
from sfumato.curator.several_aggregations import offers_of
from sfumato.engines.postprocessing import Postprocessor
from sfumato.errors import QueryRefused
from sfumato.sql.emit.bounding import statement
from sfumato.sql.plan import What
from tests.fuzz.checks import DATABASES, SALT, Failure, Home
from tests.fuzz.grammar import question_of
from tests.fuzz.worlds import world_of

BATCH = 50
AROUND = (
    "SELECT * FROM ({q}) t", "SELECT *, ROW_NUMBER() OVER () AS r FROM ({q}) t", "SELECT COUNT(*) AS c FROM ({q}) t",
    "WITH t AS ({q}) SELECT a.* FROM t a, (SELECT COUNT(*) AS c FROM t) b", "SELECT DISTINCT * FROM ({q}) t",
    "({q}) UNION ALL ({q})", "SELECT (SELECT COUNT(*) FROM ({q}) u) AS n, t.* FROM ({q}) t",
    "SELECT *, SUM({n}) OVER () AS total, {n} / SUM({n}) OVER () AS share FROM ({q}) t",
    "SELECT *, {n} - LAG({n}) OVER (ORDER BY {n}) AS more, RANK() OVER (ORDER BY {n}) AS place FROM ({q}) t",
    "SELECT MAX({n}) AS most, AVG({n}) AS mean, SUM({n}) FILTER (WHERE {n} > 2) AS some FROM ({q}) t",
    "SELECT CASE WHEN {n} > 3 THEN ROUND({n}, 1) ELSE COALESCE({n}, 0) END AS x FROM ({q}) t WHERE {n} <> 5 LIMIT 3",
    "WITH t AS ({q}) FROM t POSITIONAL JOIN {p}", "SELECT * FROM ({q}) t, (UNPIVOT {p} ON {n})",
    "SELECT * FROM ({q}) t, ({p} CROSS JOIN {p} u)", "SELECT * FROM ({q}) t, LATERAL (FROM {p}) u",
    "SELECT * FROM ({q}) t, (PIVOT {p} ON {n} USING COUNT(*)) u", "SELECT *, ARRAY(FROM {p}) FROM ({q}) t",
)  # fmt: skip


def with_sets(sql, dice):
    """The text with grouping sets of its keys; None if it has no keys of its own."""
    try:
        root = parse_one(sql, read="duckdb")
    except SqlglotError:
        return None
    group = root.args.get("group") if isinstance(root, exp.Select) else None
    if group is None or not 1 <= len(group.expressions) <= 3 or group.args.get("all"):
        return None
    keys = [key.copy() for key in group.expressions]
    several = dice.choice(("rollup", "cube", "sets"))
    if several == "sets":
        chosen = [dice.sample(keys, dice.randint(0, len(keys))) for _ in range(3)]
        parts = exp.GroupingSets(expressions=[exp.Tuple(expressions=[k.copy() for k in one]) for one in chosen])
    else:
        parts = (exp.Rollup if several == "rollup" else exp.Cube)(expressions=keys)
    group.set("expressions", [parts])
    return root.sql("duckdb", unsupported_level=ErrorLevel.IGNORE)


class OuterRun:
    """The questions of one seed."""

    def __init__(self, seed, processor=None):
        self.seed, self.processor, self.number, self.home = seed, processor, None, None
        self.count, self.known = Counter(), {}

    def open(self, number):
        if number != self.number:
            self.close()
            self.world = world_of(self.seed, number)
            self.home, self.number, self.known = Home(self.world), number, {}

    def close(self):
        if self.home is not None:
            self.home.close()
        self.home = self.number = None

    def parsed(self, sql):
        self.count["asked"] += 1
        try:
            return parse_question(sql, self.world.policy)
        except QueryRefused:
            return None
        except Exception as problem:
            raise Failure(f"reading raises {type(problem).__name__}", f"{sql}: {problem}"[:300]) from problem

    # ---- grouping sets ----------------------------------------------------------------------------------------------

    def sets(self, index):
        self.open(index // BATCH)
        dice = random.Random(f"sets {self.seed} {index}")
        sql = with_sets(question_of(self.world, "duckdb", self.seed, index), dice)
        found = self.parsed(sql) if sql is not None else None
        if found is None or found.outer is None:
            return
        self.count["planned"] += 1
        offers = offers_of(found.outer, 1.0, 1e-9, Mu)
        spent = math.sqrt(math.fsum(offer.price.amount**2 for offer in offers))
        leak = max(offer.leak for offer in offers)
        if spent > Mu.for_epsilon(1.0, 1e-9, Mu.leak(1e-9) if leak else 0.0).amount * (1 + 1e-12):
            raise Failure("shares exceed the price", sql)
        for table in found.outer.tables:
            if table.consistent:
                self.family([found.outer.questions[part.question].plan for part in table.parts], sql, dice)

    def family(self, plans, sql, dice):
        self.count["families"] += 1
        other, tables = dice.choice(DATABASES[1:]), {}
        for plan in plans:
            text = statement(plan, SALT, self.home.dialects[0])
            before = self.known.setdefault(plan.canonical, text)
            if before != text:
                raise Failure("one canonical text, two statements", sql)
            try:
                whole, changed = (self.parts(plan, self.home.run(which, text)) for which in ("whole", other))
            except Exception as problem:
                raise Failure(f"the engine raises {type(problem).__name__}", f"{sql}: {problem}"[:300]) from problem
            self.moved(plan, whole, changed, sql)
            tables[plan.keys] = whole
        for fine, coarse in itertools.permutations(tables, 2):
            if set(coarse) < set(fine):
                places, sums = [fine.index(key) for key in coarse], {}
                for key, row in tables[fine].items():
                    place = tuple(key[i] for i in places)
                    sums[place] = [a + b for a, b in zip(sums.get(place, [0] * len(row)), row, strict=True)]
                if {k: v for k, v in sums.items() if any(v)} != {k: v for k, v in tables[coarse].items() if any(v)}:
                    raise Failure("tables do not add up", sql)

    def parts(self, plan, rows):
        width, joint = len(plan.keys), NoiseBasis.of(plan)
        return {row[:width]: joint.parts_of([int(x or 0) for x in row[width:]]) for row in rows}

    def moved(self, plan, whole, changed, sql):
        if any(m.what is What.UNITS for m in plan.measures):
            raise Failure("people are forced to add up", sql)
        sizes = [part.size for part in NoiseBasis.of(plan).parts]
        nothing = [0] * len(sizes)
        for j, size in enumerate(sizes):
            moves = (
                [(whole.get(k, nothing)[j] - changed.get(k, nothing)[j]) / size for k in {*whole, *changed}]
                if size
                else []
            )
            self.count["moved"] += any(moves)
            if max(math.fsum(x * x for x in moves), math.fsum(map(abs, moves))) > plan.groups * (1 + 1e-9):
                raise Failure("a unit moves more than is claimed", f"{sql} {plan.keys} {moves}"[:300])

    def any_table(self, dice):
        return '"' + dice.choice(sorted(self.world.policy.tables)).replace('"', '""') + '"'

    # ---- SQL around aggregations ------------------------------------------------------------------------------------

    def around(self, index):
        self.open(index // BATCH)
        dice = random.Random(f"around {self.seed} {index}")
        inner = question_of(self.world, "duckdb", self.seed, index)
        plain = self.parsed(inner)
        if plain is None or plain.outer is not None:
            return
        titles = [title for title, _ in plain.columns]
        column = '"' + dice.choice(titles).replace('"', '""') + '"'
        sql = dice.choice(AROUND).format(q=inner.rstrip("; "), n=column, p=self.any_table(dice))
        found = self.parsed(sql)
        if found is None:
            self.count["refused"] += 1
            return
        self.count["planned"] += 1
        if found.plan.canonical != plain.plan.canonical:
            raise Failure("another question inside", sql)
        if found.outer is None:
            return
        self.count["free"] += 1
        private = {name for name, table in self.world.policy.tables.items() if not table.public}
        read = parse_one(found.outer.sql, read="duckdb")
        views = {cte.alias.lower() for cte in read.find_all(exp.CTE)}
        named = {table.name.lower() for table in read.find_all(exp.Table)} | {one.name for one in found.outer.public}
        if named & private - views:
            raise Failure("a private table is left in the outer query", found.outer.sql)
        if self.processor is not None:
            try:
                bind(found.outer, self.processor)
                self.count["bound"] += 1
            except QueryRefused:
                self.count["not bound"] += 1


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--count", type=int, default=2000)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    failures = 0
    with_process = Postprocessor()
    for kind in ("sets", "around"):
        run = OuterRun(chosen.seed, with_process)
        for index in range(chosen.count):
            try:
                getattr(run, kind)(index)
            except Failure as failure:
                failures += 1
                print(f"{kind} {index}: {failure}"[:600], flush=True)
        run.close()
        print(f"{kind}: {chosen.count:,} of seed {chosen.seed}: {dict(run.count)}", flush=True)
    with_process.close()
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
