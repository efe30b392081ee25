"""Noise that fits the data: errors of trimmed means beside the published formula, and times beside sorting, counting
triangles, and DuckDB's own median. Ends with 1 if a bar is missed.

Times are processor time, the medians of runs that take turns, so that other work on the machine counts for little.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import duckdb
import numpy as np

from bench.dependent.trimmed import BARS, TRIMS, compared
from sfumato.curator import Curator
from sfumato.curator.release import table_requests
from sfumato.mechanisms.dependent import Graph, Kept, Quantile, Triangles
from sfumato.sql.dialects import dialect_of
from sfumato.sql.policy import Policy

RULES = """
version = 1
[budget]
epsilon = 10
delta = 1e-6
[tables.people]
unit = "row"
[tables.people.columns]
income = {low = 0, high = 1048576, step = 1}
age = {low = 0, high = 127, step = 1}
"""


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--sets", type=int, default=200, help="data sets for each trimmed mean")
    options.add_argument("--size", type=int, default=10**6, help="values to take medians of")
    options.add_argument("--edges", type=int, default=10**5)
    options.add_argument("--turns", type=int, default=15)
    chosen = options.parse_args()
    met = [line(*row) for row in (*trimmed(chosen.sets), *times(chosen.size, chosen.edges, chosen.turns))]
    print(f"{sum(met)} of {len(met)} bars are met")
    return int(not all(met))


def line(words: str, found: float, bar: float, more: str) -> bool:
    good = found <= bar
    print(f"{words:<58} {found:>7.3f}  ≤ {bar:<6.3g} {'ok' if good else 'MISSED':<7} {more}", flush=True)
    return good


def trimmed(sets: int):
    """Excess error of a trimmed mean, against that of the published Laplace log-normal noise."""
    for n in TRIMS:
        seen = compared(n, sets)
        more = (
            f"{seen.ours.size:.3g} at m = {seen.ours.trim}, t = {seen.ours.rate}; published {seen.published.size:.3g}"
            f" at m = {seen.published.trim}, t = {seen.published.rate}, {seen.alike.size:.3g} at our m;"
            f" Gaussian noise at the local sensitivity, which is not private, 1/{seen.most:.2f}"
        )
        yield f"trimmed mean of {n}: excess error, published = 1", 1 / seen.ratio, 1 / BARS[n], more


def times(size: int, edges: int, turns: int):
    rng = np.random.default_rng(1)
    incomes = np.exp(rng.normal(np.log(40_000), 0.8, size))
    whole, ages = np.clip(np.rint(incomes), 0, 1 << 20).astype(np.int64), rng.integers(0, 100, size)
    spent = taken({
        "sort": lambda: np.sort(whole),
        "replace": lambda: Kept.median(size, 0, 1 << 20).smooth(whole, 0.1),
        "add/remove": lambda: Quantile(0, 1 << 20).smooth(whole, 0.1),
    }, turns)  # fmt: skip
    for name, words in (("replace", "median, one replaced"), ("add/remove", "median, one more or less")):
        yield f"smooth sensitivity of a {words}, sort = 1", spent[name] / spent["sort"], 1.2, ms(spent[name])
    nodes = edges // 10
    pairs = rng.integers(0, nodes, (edges, 2))

    def plain() -> object:
        matrix = Graph.of(pairs, nodes).matrix
        return (matrix @ matrix).multiply(matrix).sum() // 6

    def ours() -> object:
        graph, counted = Graph.of(pairs, nodes), Triangles(nodes)
        return counted.value(graph), counted.curve(graph, 100)

    spent = taken({"plain": plain, "ours": ours}, turns)
    yield "triangles and their sensitivity, sparse count = 1", spent["ours"] / spent["plain"], 2.0, ms(spent["ours"])
    with tempfile.TemporaryDirectory() as folder:
        yield from medians(Path(folder), incomes, ages, turns)


def medians(folder: Path, incomes: np.ndarray, ages: np.ndarray, turns: int):
    """What a curator reads for MEDIAN, against what DuckDB takes for its own."""
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.register("given", {"income": incomes, "age": ages.astype(np.int32)})
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    curator = Curator.open(folder / "people.duckdb", Policy.read(RULES))
    for column in ("income", "age"):
        offer = curator.offer(f"SELECT MEDIAN({column}) FROM people", 1.0, None)
        (wanted,) = table_requests(
            offer, 1, replace(dialect_of(curator.engine.dialect), schema=curator.engine.schema())
        )
        spent = taken({
            "own": lambda column=column: curator.engine.run(f"SELECT median({column}) FROM people"),
            "ours": lambda wanted=wanted: curator.bounded_tables.rows(curator.engine, wanted),
        }, turns)  # fmt: skip
        yield f"what MEDIAN({column}) reads, DuckDB's median = 1", spent["ours"] / spent["own"], 1.5, ms(spent["ours"])


def taken(jobs: Mapping[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Seconds of processor time for each, in turns."""
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(turns):
        for name, job in jobs.items():
            began = time.process_time()
            job()
            found[name].append(time.process_time() - began)
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms"


if __name__ == "__main__":
    sys.exit(main())
