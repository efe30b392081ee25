"""Do answers tell the truth where people have many rows? Questions through `Curator.ask`, against the bars.

    python bench/truth/run.py [--quick] [--repeats 100] [--only counts means] [--tables flights] [--json [FILE]]

Policies state types, units and keys; nobody states how many rows people have. Each repeat has a curator of its own with
an empty ledger. "Own": the first question of a table. "Stored": after a question at ε = 4 about the same rows, which
left its histogram of norms. Errors are over those of the box (groups, rows) that is best for the data (simulate.py).
A coverage fails if it is significantly below what is promised: 99 %, Bonferroni over all cells of its section.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.truth.curators import Curators, Stated
from bench.truth.data import BENCH, prepared
from bench.truth.questions import QUESTIONS, Question, Rows
from bench.truth.simulate import EPSILONS, Prepared, mu_of
from sfumato.curator.answer import Answer
from sfumato.curator.purchase import find_stored
from sfumato.errors import SfumatoError
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.sql.emit.norm import WHOLE
from sfumato.sql.policy import Policy

Floats = NDArray[np.float64]
FIRST = 4.0  # ε of the question that leaves a histogram
MEANS = (  # name, table, SQL of the answer, what is true
    ("AVG(dep_delay) by origin", "flights", "origin", "AVG(dep_delay)", "avg(dep_delay)"),
    ("AVG(arr_delay) by month", "flights", "month", "AVG(arr_delay)", "avg(arr_delay)"),
    ("AVG(distance)", "flights", "", "AVG(distance)", "avg(distance)"),
    ("share late by month", "flights", "month", *2 * ("AVG(CASE WHEN late THEN 1 ELSE 0 END)",)),
    ("AVG(y) by dept", "insteval", "dept", "AVG(y)", "avg(y)"),
    ("AVG(y)", "insteval", "", "AVG(y)", "avg(y)"),
)  # fmt: skip
RATIOS = (
    ("late / all by month", "flights", "month", "COUNT_IF(late) / COUNT(*)", "count_if(late) / count(*)"),
    ("y ≥ 4 / all by service", "insteval", "service", "COUNT_IF(y >= 4) / COUNT(*)", "count_if(y >= 4) / count(*)"),
)
COLUMNS = ("dep_delay", "arr_delay", "distance", "air_time")


@dataclass
class Bench:
    """Options, the database, and what was found."""

    file: Path
    repeats: int
    epsilons: tuple[float, ...]
    tables: tuple[str, ...]
    found: dict[str, list[dict[str, object]]] = field(default_factory=dict)

    @cached_property
    def curators(self) -> Curators:
        return Curators(self.file)

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        return duckdb.connect(str(self.file), read_only=True)

    def wants(self, table: str) -> bool:
        there = self.connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = ?", [table]).fetchall()
        return bool(there) and (not self.tables or table in self.tables)

    def note(self, section: str, row: dict[str, object]) -> None:
        self.found.setdefault(section, []).append(row)

    def ask(self, policy: Policy, sql: str, epsilon: float, first: str = "") -> Answer:
        with self.curators.fresh(policy) as curator:
            if first:
                curator.ask(first, epsilon=FIRST)
            return curator.ask(sql, epsilon=epsilon)

    def ask_and_read(self, policy: Policy, sql: str, epsilon: float, first: str = "") -> tuple[Answer, int, float]:
        """An answer, the squared norm that contributions were scaled to, and the deviation of its noise, in rows."""
        with self.curators.fresh(policy) as curator:
            if first:
                curator.ask(first, epsilon=FIRST)
            answer = curator.ask(sql, epsilon=epsilon)
            found = find_stored(curator.offer(sql, epsilon=epsilon), curator.ledger)
            assert found is not None and found[0].choices
            (noise,) = found[0].noise
            assert isinstance(noise, Gaussian)
            return answer, found[0].choices[0].bound, noise.sigma / WHOLE


def by_key(answer: Answer, keys: int, name: str) -> dict[tuple[object, ...], float]:
    """A column of an answer, by its keys."""
    values = answer.column(name)
    return {tuple(map(plain, row[:keys])): float(str(value)) for row, value in zip(answer.rows, values, strict=True)}


def plain(key: object) -> object:
    """Keys of numbers come as floats."""
    return int(key) if isinstance(key, float) and key.is_integer() else key


def significant(held: float, trials: int, promised: float, cells: int) -> bool:
    """Is so little held less than was promised, with 99 % over all cells?"""
    return bool(binom.cdf(round(held * trials), trials, promised) < 0.01 / max(1, cells))


def progress(text: str) -> None:
    print(f"  {text} …", file=sys.stderr, flush=True)


# ---- counts --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Asked:
    """A question in SQL, with its truth by key and what the best box would make of it."""

    question: Question
    rows: Rows
    truth: dict[tuple[object, ...], float]

    @staticmethod
    def of(bench: Bench, question: Question) -> "Asked":
        keys = ", ".join(question.keys)
        where = f"{question.unit} IS NOT NULL" + (f" AND {question.where}" if question.where else "")
        shown = f"{keys}, " if keys else ""
        truth = bench.connection.execute(
            f"SELECT {shown}count(*) FROM {question.table} WHERE {where} GROUP BY ALL"
        ).fetchall()
        return Asked(question, question.rows(bench.connection), {tuple(row[:-1]): float(row[-1]) for row in truth})

    def sql(self, more: str = "") -> str:
        keys = ", ".join(self.question.keys)
        where = f" WHERE {self.question.where}" if self.question.where else ""
        group = f" GROUP BY {keys}" if keys else ""
        return f"SELECT {f'{keys}, ' if keys else ''}COUNT(*) AS n{more} FROM {self.question.table}{where}{group}"

    @property
    def first(self) -> str:
        """Another question about the same rows, which leaves a histogram of norms but not the answer."""
        return self.sql(f", COUNT(DISTINCT {self.question.unit}) AS people")

    def columns(self, answer: Answer) -> Floats:
        """n, low, high (rows) of the keys that there are."""
        named = [by_key(answer, len(self.question.keys), name) for name in ("n", "n low", "n high")]
        return np.array([[column[key] for key in self.truth] for column in named])


@dataclass
class CountCell:
    """What 100 answers to one question at one ε were like."""

    name: str
    kind: str
    bar: bool
    epsilon: float
    stored: bool
    error: float  # over that of the best box: expected over the noise of the answers, given their bounds
    realised: float  # the same with the noise that they had
    owner: float  # over that of the box of an owner who states 90 % quantiles
    coverage: float
    people: float  # how often "at most m people count in part" held
    left_out: float  # what was said, a share
    at_most: float
    width: float  # of intervals, over the mean count
    warned: float
    answers: int


def count_cell(bench: Bench, asked: Asked, data: Prepared, policy: Policy, epsilon: float, stored: bool) -> CountCell:
    truth = np.array(list(asked.truth.values()))
    norms, mu = asked.rows.squares(), mu_of(epsilon)
    squares, expected, inside, people, seen = [], [], [], [], []
    for _ in range(bench.repeats):
        answer, bound, sigma = bench.ask_and_read(policy, asked.sql(), epsilon, asked.first if stored else "")
        n, low, high = asked.columns(answer)
        squares.append(((n - truth) ** 2).sum())
        expected.append(len(truth) * sigma**2 + float((left_out(asked.rows, norms, bound) ** 2).sum()))
        inside.append(((low <= truth) & (truth <= high)).mean())
        scaled = (norms > bound).sum()
        left = answer.left_out
        people.append(left is None or left.people is None or scaled <= left.people)
        seen.append((left.about, left.at_most, bool(left.warning)) if left else (0, 0, False))
    about, most, warned = np.array(seen, float).T
    error, realised = (math.sqrt(float(np.mean(values))) for values in (expected, squares))
    width = float(np.mean(high - low) / max(truth.mean(), 1))
    return CountCell(
        asked.question.name, asked.question.kind, asked.question.bar, epsilon, stored, error / data.box_error(mu),
        realised / data.box_error(mu), error / owner_error(asked.rows, mu), float(np.mean(inside)),
        float(np.mean(people)), float(np.median(about)), float(np.median(most)), width,
        float(warned.mean()), bench.repeats,
    )  # fmt: skip


def left_out(rows: Rows, norms: Floats, bound: int) -> Floats:
    """What scaling to this squared norm takes from each group."""
    taken = 1 - np.sqrt(bound / np.maximum(norms, bound))
    return np.bincount(rows.k, rows.c * taken[rows.u], rows.groups)


def owner_error(rows: Rows, mu: float) -> float:
    """Root of the summed squared error with bounds at the 90 % quantiles of groups per unit and of rows per group."""
    groups = math.ceil(np.quantile(np.bincount(rows.u), 0.9))
    limit = math.ceil(np.quantile(rows.c, 0.9))
    order = np.lexsort((np.random.default_rng(4).random(len(rows.u)), rows.u))
    many = np.bincount(rows.u)
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order)) - (np.cumsum(many) - many)[rows.u[order]]
    kept = np.bincount(rows.k[rank < groups], np.minimum(rows.c, limit)[rank < groups], rows.groups)
    return math.sqrt(float(((rows.truth() - kept) ** 2).sum()) + rows.groups * groups * limit**2 / mu**2)


def counts(bench: Bench) -> None:
    """Errors, coverage, people and warnings of counts."""
    cells: list[CountCell] = []
    print("\ncounts: error / best box (own, stored), coverage %, people %, said left out % (at most), warned %")
    for question in QUESTIONS:
        if not bench.wants(question.table) or question.table == "movielens":
            continue
        asked = Asked.of(bench, question)
        data, policy = Prepared.of(asked.rows, bool(question.keys)), bench.curators.policy(question.table, Stated())
        for epsilon in bench.epsilons:
            progress(f"{question.name} ε = {epsilon:g}")
            pair = [count_cell(bench, asked, data, policy, epsilon, stored) for stored in (False, True)]
            cells += pair
            for cell in pair:
                bench.note("counts", asdict(cell))
            print(count_line(pair), flush=True)
    count_summary(cells)


def count_line(pair: Sequence[CountCell]) -> str:
    own, stored = pair
    errors, held = f"{own.error:5.2f} /{stored.error:5.2f}", f"{100 * own.coverage:5.1f} {100 * stored.coverage:5.1f}"
    return (
        f"{own.name:26} {own.epsilon:3g}  {errors}  {held}"
        f"  {100 * own.people:4.0f} {100 * stored.people:4.0f}  {100 * own.left_out:5.2f} (≤{100 * own.at_most:5.1f})"
        f" {100 * stored.left_out:5.2f} (≤{100 * stored.at_most:5.1f})"
        f"  {100 * own.warned:3.0f} {100 * stored.warned:3.0f}"
    )  # fmt: skip


def count_summary(cells: Sequence[CountCell]) -> None:
    """The bars on counts."""
    smooth = [cell for cell in cells if cell.kind != "heavy"]
    low = [cell for cell in smooth if significant(cell.coverage, cell.answers, 0.95, len(smooth))]
    say(
        "coverage ≥ 95 % where tails have a shape",
        not low,
        "; ".join(f"{c.name} ε = {c.epsilon:g}: {c.coverage:.2f}" for c in low),
    )
    few = [cell for cell in cells if significant(cell.people, cell.answers, 0.975, len(cells))]
    say(
        "“at most m people” ≥ 97.5 % everywhere",
        not few,
        "; ".join(f"{c.name} ε = {c.epsilon:g}: {c.people:.2f}" for c in few),
    )
    for stored, bar in ((False, 0.90), (True, 0.82)):
        real = [cell for cell in cells if cell.bar and cell.stored == stored and cell.epsilon >= 0.5]
        if real:
            mean, worst = geometric([c.error for c in real]), max(real, key=lambda cell: cell.error)
            say(
                f"error over the best box, {'stored' if stored else 'own'}: ≤ {bar}, none above 1.25",
                mean <= bar and worst.error <= 1.25,
                f"{mean:.3f}; worst {worst.error:.2f}, {worst.name} ε = {worst.epsilon:g}",
            )
    owners = [cell.owner for cell in cells if cell.bar and cell.epsilon >= 0.5]
    if owners:
        say("error ≤ 0.5 of an owner's with 90 % quantiles", geometric(owners) <= 0.5, f"{geometric(owners):.2f}")
    ones = [cell for cell in cells if cell.kind == "ones"]
    for stored, bar in ((False, 1.08), (True, 1.02)) if ones else ():
        found = geometric([cell.error for cell in ones if cell.stored == stored] or [0.0])
        say(f"one row per person, {'stored' if stored else 'own'}: ≤ {bar}", found <= bar, f"{found:.3f}")
    say(
        "errors with the noise that was drawn, over expected ones",
        None,
        f"{geometric([c.realised / c.error for c in cells]):.3f}",
    )
    bots = [cell for cell in cells if cell.name.startswith("bots") and cell.stored]
    if bots:
        say(
            "bots, stored: coverage ≥ 90 %",
            all(c.coverage >= 0.9 for c in bots),
            str([round(c.coverage, 2) for c in bots]),
        )
    alarms = [cell.warned for cell in smooth if not cell.stored]
    power = {
        f"{c.name} ε = {c.epsilon:g}": round(c.warned, 2) for c in cells if c.name.startswith("bots") and not c.stored
    }
    say("warnings", None, f"false alarms {100 * float(np.mean(alarms or [0])):.1f} % of answers; power {power}")


def geometric(values: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(np.maximum(values, 1e-9)))))


def say(bar: str, met: bool | None, found: str) -> None:
    print(f"{'  ·' if met is None else ' ok' if met else ' NO'}  {bar}: {found}", flush=True)


# ---- the other sections --------------------------------------------------------------------------------------------


def capped(bench: Bench) -> None:
    """With `most = H` in the policy, intervals hold for all data."""
    print("\ncapped: most = H in the policy; coverage %, width over the mean count")
    cells = []
    for question in QUESTIONS:
        if question.kind != "heavy" or not bench.wants(question.table):
            continue
        asked = Asked.of(bench, question)
        most = 2 ** math.ceil(math.log2(asked.rows.lengths().max()))
        policy = bench.curators.policy(question.table, Stated(f"most = {most}"))
        truth = np.array(list(asked.truth.values()))
        for epsilon in bench.epsilons:
            held, width = [], []
            for _ in range(bench.repeats):
                _, low, high = asked.columns(bench.ask(policy, asked.sql(), epsilon))
                held.append(((low <= truth) & (truth <= high)).mean())
                width.append((high - low).mean() / truth.mean())
            cells.append((question.name, epsilon, float(np.mean(held))))
            print(
                f"{question.name:26} {epsilon:3g}  H = {most}: {100 * cells[-1][2]:5.1f}  {np.mean(width):.2f}",
                flush=True,
            )
            bench.note("capped", {"name": question.name, "epsilon": epsilon, "most": most, "coverage": cells[-1][2]})
    low_ones = [c for c in cells if significant(c[2], bench.repeats, 0.95, len(cells))]
    say("most = H: coverage ≥ 95 %", not low_ones, str(low_ones))


def partitions(bench: Bench) -> None:
    """How many flights, by five partitions of the same rows."""
    if not bench.wants("flights"):
        return
    print("\npartitions: how many flights, ε = 1, median of sums")
    policy, medians, held = bench.curators.policy("flights", Stated()), {}, []
    for key in ("", "origin", "month", "hour", "carrier", "dest"):
        asked = Asked.of(bench, Question(key or "total", "flights", "tailnum", (key,) if key else ()))
        truth, sums = sum(asked.truth.values()), []
        for _ in range(bench.repeats):
            n, low, high = asked.columns(bench.ask(policy, asked.sql(), 1.0))
            slack = math.sqrt(float(((n - low) ** 2).sum()))
            sums.append(n.sum())
            held.append(n.sum() - slack <= truth <= max(n.sum() + slack, high.sum()))
        medians[key or "total"] = float(np.median(sums))
    bench.note("partitions", medians)
    say(
        "sums are consistent",
        float(np.mean(held)) >= 0.95,
        f"truth {truth:,.0f}: " + ", ".join(f"{k} {v:,.0f}" for k, v in medians.items()),
    )


def means(bench: Bench) -> None:
    """Means and ratios: bias against noise, and coverage where there is an interval."""
    print("\nmeans and ratios: truth, mean answer, deviation, coverage %")
    cells = []
    for name, table, key, sql, exact in (*MEANS, *RATIOS):
        if not bench.wants(table):
            continue
        unit = "tailnum" if table == "flights" else "s"
        policy, shown, group = (
            bench.curators.policy(table, Stated()),
            f"{key}, " if key else "",
            f" GROUP BY {key}" if key else "",
        )
        rows = bench.connection.execute(
            f"SELECT {shown}{exact} FROM {table} WHERE {unit} IS NOT NULL{group}"
        ).fetchall()
        truth = {tuple(row[:-1]): float(row[-1]) for row in rows}
        for epsilon in bench.epsilons:
            progress(f"{name} ε = {epsilon:g}")
            answers = [
                bench.ask(policy, f"SELECT {shown}{sql} AS n FROM {table}{group}", epsilon)
                for _ in range(bench.repeats)
            ]
            cell = mean_cell(answers, truth, len(shown) > 0)
            cells.append((name, epsilon, cell))
            bench.note("means", {"name": name, "epsilon": epsilon} | cell)
            print(f"{name:26} {epsilon:3g}  " + "  ".join(f"{k} {v:.4g}" for k, v in cell.items()), flush=True)
    low = [
        (n, e)
        for n, e, c in cells
        if c["coverage"] >= 0 and significant(c["coverage"], bench.repeats, 0.95, len(cells))
    ]
    say("means: coverage ≥ 95 %", not low, str(low))
    biased = [
        (n, e)
        for n, e, c in cells
        if "/" in n and abs(c["bias"]) > 0.25 * c["deviation"] + 3 * c["deviation"] / math.sqrt(bench.repeats)
    ]
    say("ratios are unbiased within noise", not biased, str(biased))


def mean_cell(answers: Sequence[Answer], truth: dict[tuple[object, ...], float], keyed: bool) -> dict[str, float]:
    keys = 1 if keyed else 0
    exact = np.array(list(truth.values()))
    n = np.array([[by_key(one, keys, "n")[key] for key in truth] for one in answers])
    held = -1.0
    if "n low" in answers[0].columns:
        low, high = (
            np.array([[by_key(one, keys, end)[key] for key in truth] for one in answers]) for end in ("n low", "n high")
        )
        held = float(((low <= exact) & (exact <= high)).mean())
    biases, spread = np.median(n, axis=0) - exact, n.std(axis=0)
    worst = int(np.argmax(np.abs(biases) / np.maximum(spread, 1e-12)))
    return {
        "truth": float(exact.mean()), "mean": float(n.mean()), "rmse": float(np.sqrt(((n - exact) ** 2).mean())),
        "bias": float(biases[worst]), "deviation": float(spread[worst]), "coverage": held,
    }  # fmt: skip


def keys(bench: Bench) -> None:
    """Private keys shown, beside boxes with each number of groups."""
    print("\nkeys shown: scaled votes, boxes by groups")
    ratios = {}
    for table, key in (("flights", "dest"), ("flights", "carrier"), ("insteval", "d")):
        if not bench.wants(table):
            continue
        sql = f"SELECT {key}, COUNT(*) AS n FROM {table} GROUP BY {key}"
        for epsilon in bench.epsilons:
            progress(f"{key} ε = {epsilon:g}")
            many: Callable[[Policy, int], float] = lambda policy, times, sql=sql, epsilon=epsilon: float(  # noqa: E731
                np.mean([len(bench.ask(policy, sql, epsilon)) for _ in range(times)])
            )
            ours = many(bench.curators.policy(table, Stated(private=(key,))), bench.repeats)
            boxes = {
                groups: many(
                    bench.curators.policy(table, Stated(f"groups = {groups}\nrows = 10", private=(key,))),
                    bench.repeats // 4 + 1,
                )
                for groups in (1, 2, 4, 8, 16, 32)
            }
            ratios[f"{key} ε = {epsilon:g}"] = round(ours / max(*boxes.values(), 0.1), 2)
            bench.note("keys", {"key": key, "epsilon": epsilon, "ours": ours, "boxes": list(boxes.values())})
            print(
                f"{key:10} {epsilon:3g}  {ours:6.1f}   " + "  ".join(f"{g}: {n:.1f}" for g, n in boxes.items()),
                flush=True,
            )
    say("keys shown ≥ 0.97 of the best box", min(ratios.values(), default=1) >= 0.97, str(ratios))


def suggested(bench: Bench) -> None:
    """Suggested bounds of columns, ε = 0.5: which share of values they cut, and how much wider they are than values."""
    print("\nsuggested bounds, ε = 0.5: share of values outside, %, mean (worst); width over that of 98 % of values")
    means_: list[float] = []
    good = True
    for table, columns in (("flights", COLUMNS), ("insteval", ("y",))):
        if not bench.wants(table):
            continue
        policy = bench.curators.policy(table, Stated(unbounded=True))
        for column in columns:
            ends = f"SELECT quantile_cont({column}, 0.99) - quantile_cont({column}, 0.01) FROM {table}"
            wide, shares, widths = float(bench.connection.execute(ends).fetchall()[0][0]), [], []
            for _ in range(bench.repeats):
                with bench.curators.fresh(policy) as curator:
                    bounds = curator.suggest_bounds(f"{table}.{column}", epsilon=0.5)
                outside = f"avg(CASE WHEN {column} BETWEEN {bounds.low} AND {bounds.high} THEN 0 ELSE 1 END)"
                rows = bench.connection.execute(f"SELECT {outside} FROM {table} WHERE {column} IS NOT NULL").fetchall()
                shares.append(float(rows[0][0]))
                widths.append((bounds.high - bounds.low) / wide)
            means_.append(float(np.mean(shares)))
            width = float(np.median(widths))
            good &= width <= 8
            bench.note("suggested", {"column": column, "mean": means_[-1], "worst": max(shares), "width": width})
            print(f"{column:12} {100 * means_[-1]:5.2f} ({100 * max(shares):.1f})  {width:.3g}", flush=True)
    say(
        "suggested bounds cut ≤ 2 % in the mean",
        good and all(mean <= 0.02 for mean in means_),
        "and are ≤ 8 times as wide",
    )


SECTIONS = {one.__name__: one for one in (counts, capped, partitions, means, keys, suggested)}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--repeats", type=int, default=100)
    options.add_argument("--quick", action="store_true", help="8 repeats, ε = 0.5 and 2")
    options.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    options.add_argument("--tables", nargs="+", default=[])
    options.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS)
    options.add_argument("--json", nargs="?", const=BENCH / "results/truth.json", type=Path, metavar="FILE")
    chosen = options.parse_args()
    repeats, epsilons = (8, (0.5, 2.0)) if chosen.quick else (chosen.repeats, tuple(chosen.epsilon))
    bench = Bench(prepared(), repeats, epsilons, tuple(chosen.tables))
    start = time.perf_counter()
    for name in chosen.only:
        try:
            SECTIONS[name](bench)
        except SfumatoError as problem:
            say(name, False, str(problem).splitlines()[0])
        if chosen.json:  # after each section, as all of them take hours
            chosen.json.parent.mkdir(parents=True, exist_ok=True)
            chosen.json.write_text(json.dumps(bench.found | {"repeats": repeats}, indent=1, allow_nan=False) + "\n")
            print(f"{name} written to {chosen.json}", file=sys.stderr)
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
