"""What is compared: each row is one piece of work, the peer that does it too, and the bars we set ourselves.

Work is described as plain data, so that each side can translate it: a composition is a list of terms
[kind, count, parameters…], with kinds gaussian (σ), laplace (b), response (ε), approx (ε, δ) and sampled (q, σ).
"""

from collections.abc import Sequence
from itertools import product

from bench.common.row import Row

PEER = "dp_accounting"
DELTA = 1e-6
GRID = 1e-4  # the peer's value_discretization_interval, its own default


def even(low: float, high: float, count: int) -> list[float]:
    """`count` numbers from low to high, equally far apart."""
    return [low + (high - low) * i / (count - 1) for i in range(count)]


def epsilon(item: str, work: str, terms: Sequence[object], delta: float = DELTA, **bars: object) -> Row:
    """Read ε(δ) of a composition."""
    tolerance = bars.get("gap") or 1e-5
    arguments = {"terms": terms, "delta": delta, "tolerance": tolerance, "grid": GRID}
    return Row(item, work, "epsilon", arguments, **{"peer": PEER} | bars)  # type: ignore[arg-type]


def training(k: int, q: float, sigma: float) -> list[object]:
    """k steps of noisy gradients."""
    return [["sampled", k, q, sigma]]


def steps(k: int, q: float, sigma: float) -> str:
    return f"k={k:g} q={q:g} σ={sigma:g}"


LONG_RUN = training(10**4, 0.01, 0.8)
LEAKY = [["approx", 1, e, 1e-12 * 1e3 ** (i / 99)] for i, e in enumerate(even(0.01, 0.2, 100))]
MIX = [
    *(["gaussian", 1, sigma] for sigma in even(20, 60, 50)),
    *(["laplace", 1, scale] for scale in even(20, 80, 50)),
    ["response", 100, 0.05],
    ["sampled", 1000, 0.01, 1.0],
]
QUERIES = (["gaussian", 1, 50.0], ["laplace", 1, 50.0], ["response", 1, 0.02])

FEW = [
    (10, 0.01, 1.0, DELTA),
    (20, 0.02, 1.2, 2e-3),
    (50, 0.003, 1.0, DELTA),
    (100, 0.001, 1.0, DELTA),
    (1000, 0.001, 0.8, DELTA),
    (10_000, 0.001, 0.8, DELTA),
    *((round(kq / q), q, sigma, DELTA) for q, sigma, kq in product((1e-4, 1e-2, 1e-1), (0.7, 1.5), (1, 10))),
    *((round(kq / q), q, sigma, DELTA) for q, sigma, kq in product((1e-3,), (0.7, 1.5), (0.1, 0.3, 3, 10))),
]

NOISE = {"rate": 256 / 60_000, "steps": 14_062, "epsilon": 1.0, "delta": DELTA, "tolerance": 1e-5, "grid": GRID}
CURVE = {"terms": LONG_RUN, "tolerance": 5e-6, "grid": GRID}
ERRORS = {"alpha": even(1e-3, 0.999, 1000)}


def running(count: int, **bars: object) -> Row:
    """Add one loss and read ε, `count` times, going round the queries."""
    arguments = {"terms": QUERIES, "count": count, "delta": DELTA, "tolerance": 1e-5, "grid": GRID}
    return Row(
        "8", f"add a loss, read ε: {count:,} times, each", "running", arguments, per=count, **{"peer": PEER} | bars
    )  # type: ignore[arg-type]


ROWS: list[Row] = [
    epsilon("1", "training k=1e3", training(10**3, 0.01, 0.8), ratio=60, gap=1e-6),
    epsilon("1", "training k=1e4", LONG_RUN, ratio=120, gap=1e-6),
    epsilon("1", "training k=1e6", training(10**6, 0.01, 0.8), ratio=400, gap=1e-6),
    epsilon("1", "training k=1e9", training(10**9, 0.01, 0.8), peer=None, gap=1e-6),
    epsilon("1", "training k=1e3", training(10**3, 0.01, 0.8), peer="prv_accountant", gap=1e-6),
    epsilon("1", "training k=1e4", LONG_RUN, peer="prv_accountant", gap=1e-6),
    Row("2", "σ for (1, 1e-6)", "noise", NOISE, PEER, ratio=100, gap=1e-5, never_above_peer=True),
    Row("2", "σ for (1, 1e-6)", "noise", NOISE, "riskcal", gap=1e-5, never_above_peer=True),
    epsilon("3", "100 distinct (ε, δ)", LEAKY, ratio=20, gap=1e-5),
    epsilon("4", "50 Gauss, 50 Laplace, 100 RR, 1000 steps", MIX, ratio=30, gap=1e-5),
    epsilon("5", "(0.05, 1e-10) × 500", [["approx", 500, 0.05, 1e-10]], ratio=500, gap=1e-10),
    epsilon("5", "RR(0.1) × 1000", [["response", 1000, 0.1]], ratio=500, gap=1e-10),
    epsilon("5", "RR(0.01) × 1e4", [["response", 10**4, 0.01]], ratio=500, gap=1e-10),
    epsilon("5", "RR(0.001) × 1e6", [["response", 10**6, 0.001]], peer=None, gap=1e-10),
    Row("6", "δ at 1000 ε, k=1e4", "profile", CURVE | {"eps": even(0.1, 10, 1000)}, PEER, ratio=50, gap=1e-5),
    Row(
        "6",
        "δ at 1000 ε + power at 1000 α (peer: δ)",
        "curves",
        CURVE | {"eps": even(0.1, 10, 1000), **ERRORS},
        PEER,
        ratio=50,
    ),
    Row("6", "power at 1000 α, k=1e4", "power", CURVE | ERRORS, "riskcal", gap=1e-5),
    *(epsilon("7", steps(k, q, s), training(k, q, s), d, ratio=1, gap=1e-4) for k, q, s, d in FEW),
    running(60, most_ms=0.3),
    running(10_000, peer=None, most_ms=0.3),
    running(1_000_000, peer=None, most_ms=0.3, long=True),
    epsilon("9", "Gauss σ=50 × 1000, δ=1e-30", [["gaussian", 1000, 50.0]], 1e-30, gap=1e-6),
    epsilon("9", "Gauss σ=50 × 1000, δ=1e-50", [["gaussian", 1000, 50.0]], 1e-50, gap=1e-6),
    epsilon("9", "training k=1e4, δ=1e-30", LONG_RUN, 1e-30, gap=1e-6),
    epsilon("9", "training k=1e4, δ=1e-50", LONG_RUN, 1e-50, gap=1e-6),
]
