"""The same worlds with policies that state no bounds: a unit moves weighted sums, norms and votes within their bounds.

Everything is compared in whole numbers and fractions, for bounds and norms by chance.
"""

import random
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.aggregates.registry import parse_question
from sfumato.curator.release import split_keys
from sfumato.curator.scaling import blocks_of, histogram_edges, summed_measures
from sfumato.errors import QueryRefused
from sfumato.sql.emit.norm import WHOLE, Scaling
from sfumato.sql.plan import What
from sfumato.sql.reserved_names import NORMS
from tests.fuzz.checks import DATABASES, SALT, Failure, Home
from tests.fuzz.grammar import question_of
from tests.fuzz.worlds import world_of

BATCH = 60  # questions about one world
BOUNDS = re.compile(r"^(groups|rows) = \d+\n", re.MULTILINE)


def scaled_world(seed, number):
    """A world whose policy states no bounds."""
    world = world_of(seed, number)
    return replace(world, text=BOUNDS.sub("", world.text))


@dataclass
class ScaledChecker:
    """All that is checked about questions of one world, on DuckDB."""

    world: object
    engine: object

    def __post_init__(self):
        self.count, self.known = Counter(), {}

    def check(self, sql, dice):
        """Raises Failure if something does not hold; returns the plan, or None if nothing is scaled."""
        dialect = dice.choice(self.engine.dialects)
        try:
            plan = parse_question(sql, self.world.policy).plan
            dialect.accepts(plan)
        except QueryRefused:
            return None
        self.count["planned"] += 1
        if not plan.table.scaled or not (measures := summed_measures(plan)):
            return None
        squares = dice.random() < 0.7
        scaling = Scaling.of(plan, measures, blocks_of(plan, squares), squares, dialect)
        if not scaling.blocks:
            return None
        self.count["scaled"] += 1
        bounds = [int(2 ** dice.uniform(0, 24)) for _ in scaling.blocks]
        self.same_key(plan, scaling, dialect, bounds)
        pair = ("whole", dice.choice(DATABASES[1:]))
        self.norms(scaling, *pair)
        self.sums(scaling, bounds, *pair)
        if plan.discovered:
            self.votes(scaling, dice.randint(1, 5), *pair)
        return plan

    def run(self, which, scaling, read):
        try:
            return self.engine.run(which, scaling.request(read).direct)
        except Exception as problem:
            raise Failure(f"the engine raises {type(problem).__name__}", str(problem)[:300]) from problem

    def norms(self, scaling, one, other):
        """Norms of a unit depend on its own rows alone; each is in one bin of a histogram."""
        both = [
            {row[0]: row[1:] for row in self.run(which, scaling, f"SELECT * FROM {NORMS}")} for which in (one, other)
        ]
        units = both[0].keys() | both[1].keys()
        moved = [unit for unit in units if both[0].get(unit) != both[1].get(unit)]
        if len(moved) > 1 or (moved and moved[0] in both[0] and moved[0] in both[1]):
            raise Failure("norms depend on other units", repr(moved[:3]))
        place = len(scaling.blocks) - 1
        edges = histogram_edges(scaling.blocks[place])
        bins = [dict(self.run(which, scaling, scaling.histogram(place, edges))) for which in (one, other)]
        apart = sum(abs(bins[0].get(j, 0) - bins[1].get(j, 0)) for j in bins[0].keys() | bins[1].keys())
        if apart != len(moved):
            raise Failure("a unit is not in one bin", f"{bins} {moved}")
        self.count["moved"] += len(moved)

    def sums(self, scaling, bounds, one, other):
        """The norm of what moved, over all groups, is at most the bound."""
        width, apart = len(scaling.keys), [defaultdict(Fraction) for _ in scaling.blocks]
        for sign, which in ((1, one), (-1, other)):
            for shown, rest in split_keys(self.run(which, scaling, scaling.sums(bounds)), width):
                values = [int(x or 0) for x in rest]
                for block, found in zip(scaling.blocks, apart, strict=True):
                    for c in block.coordinates:
                        z = c.scale * values[c.measure] - c.shift * values[c.parent]
                        found[repr(shown), c.measure] += sign * Fraction(z, c.size)
        for block, bound, found in zip(scaling.blocks, bounds, apart, strict=True):
            moved = sum(z**2 if block.squares else abs(z) for z in found.values())
            power = 2 if block.squares else 1
            if moved * block.resolution**power > WHOLE**power * bound:
                raise Failure("a unit moves more than is claimed", f"{float(moved):.6g} {bound} {block}")

    def votes(self, scaling, most, one, other):
        """Votes of one unit are equal, few, and of norm 1."""
        width = len(scaling.keys)
        read = scaling.votes(most, SALT)
        tables = [split_keys(self.run(which, scaling, read), width) for which in (one, other)]
        both = [{repr(shown): int(many) for shown, (many,) in table} for table in tables]
        apart = [abs(both[0].get(key, 0) - both[1].get(key, 0)) for key in both[0].keys() | both[1].keys()]
        apart = [d for d in apart if d]
        squares = scaling.blocks[scaling.voters].squares
        if len(set(apart)) > 1 or len(apart) > most:
            raise Failure("votes of one unit are not equal and few", repr(apart[:5]))
        if (sum(d * d for d in apart) > WHOLE**2) if squares else (sum(apart) > WHOLE):
            raise Failure("a unit votes for more than one", repr(apart[:5]))
        self.count["voted"] += len(apart)

    def same_key(self, plan, scaling, dialect, bounds):
        """One canonical text, one statement."""
        same = [7] * len(bounds)
        text = (scaling.request(scaling.sums(same)).direct, scaling.blocks)
        key = (plan.canonical, scaling.blocks[0].squares, id(dialect))
        if self.known.setdefault(key, text) != text and any(m.what is not What.DISTINCT for m in plan.measures):
            raise Failure("two questions have one key", plan.canonical)


def fuzz(seed, count):
    """What was counted; raises at the first failure, with all that is needed to see it again."""
    total, checker = Counter(), None
    for index in range(count):
        if index % BATCH == 0:
            if checker is not None:
                total += checker.count
                checker.engine.close()
            world = scaled_world(seed, index // BATCH)
            checker = ScaledChecker(world, Home(world))
        sql = question_of(checker.world, "duckdb", seed, index)
        try:
            checker.check(sql, random.Random(f"scaled {seed} {index}"))
        except Failure as failure:
            raise AssertionError(f"seed {seed}, question {index}: {failure}\n{checker.world.text}\n{sql}") from failure
    checker.engine.close()
    return total + checker.count
