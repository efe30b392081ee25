"""Counts with a bound chosen from a noisy histogram, without a database: errors and coverage against the best box.

    python bench/truth/simulate.py [--repeats 100] [--only flights] [--epsilon 0.5 1]

A repeat draws the noise of the histogram of norms; given the bound chosen from it, squared error and coverage of each
group are computed in closed form, so that 100 repeats tell errors within 3 % or so. "Own": the histogram has a tenth of
the price. "Stored": it was bought before at the price of ε = 1. Both pay 2 % for the number of people who are scaled.
The box: for the whole price, the (groups, rows) with the least error, found by looking at the data; no private method.

The constants of norm_tail were chosen with the questions marked * (flights, nafld, lognormal, Weibull, Pareto(2)).
Pizza was looked at, too: it showed that bins of a factor 2 are too wide between 8 and 16.
"""

import argparse
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.truth.data import prepared
from bench.truth.questions import QUESTIONS, Question, Rows, load
from sfumato.curator.norm_tail import BINS, EDGES, ROOT_NORMS, WHOLE_NORMS, Tail
from sfumato.curator.scaling import CANDIDATES, choose_for_sums, missing_by_tail

Floats = NDArray[np.float64]
EPSILONS = (0.2, 0.5, 1.0, 2.0)
DELTA = 1e-6
SHARE, PEOPLE = 0.10, 0.02  # of μ²: for the histogram, for the number of people who are scaled
STORED = 1.0  # ε that a stored histogram was bought for
Z = 2.24  # two-sided 97.5 %; another 2.5 % are for what is left out
LIMITS = np.unique(np.rint(2.0 ** (np.arange(60) / 4)))  # rows in a box


def mu_of(epsilon: float, delta: float = DELTA) -> float:
    """The μ of Gaussian differential privacy that (ε, δ) buys (Dong, Roth & Su 2022, Cor. 1)."""
    low, high = 1e-6, 50.0
    for _ in range(100):
        mu = (low + high) / 2
        cdf = NormalDist().cdf
        found = cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * cdf(-epsilon / mu - mu / 2)
        low, high = (mu, high) if found < delta else (low, mu)
    return low


@dataclass(frozen=True, eq=False)
class Prepared:
    """What every repeat needs: for each candidate bound what it leaves out, by group, and how many units are scaled."""

    groups: int
    points: Floats  # small norms of a total are whole; by group their squares are
    truth: Floats
    histogram: Floats
    left_out: Floats  # candidates × groups
    scaled: Floats  # candidates
    boxes: tuple[tuple[float, float], ...]  # squared sensitivity, squared bias of the best boxes

    @staticmethod
    def of(rows: Rows, keyed: bool = True) -> "Prepared":
        norms = np.sqrt(rows.squares())
        place = np.minimum(np.searchsorted(EDGES, norms * (1 - 1e-12)), BINS - 1)
        out, scaled = [], []
        for bound in CANDIDATES.tolist():
            above = norms > bound * (1 + 1e-12)
            weight = np.where(above, 1 - bound / norms, 0.0)
            loss = np.bincount(rows.k, rows.c * weight[rows.u], rows.groups) if above.any() else np.zeros(rows.groups)
            out.append(loss)
            scaled.append(above.sum())
        return Prepared(
            rows.groups,
            ROOT_NORMS if keyed else WHOLE_NORMS,
            rows.truth(),
            np.bincount(place, minlength=BINS).astype(float),
            np.array(out),
            np.array(scaled, float),
            boxes(rows),
        )

    def box_error(self, mu: float) -> float:
        """Root of the summed squared error of the best box at the whole price."""
        return math.sqrt(min(self.groups * square / mu**2 + bias for square, bias in self.boxes))


def boxes(rows: Rows) -> tuple[tuple[float, float], ...]:
    """(groups·rows², squared bias) for limits on groups, kept by one hash, and on rows in each."""
    rank = np.empty(len(rows.u))
    order = np.lexsort((np.random.default_rng(3).random(len(rows.u)), rows.u))
    many = np.bincount(rows.u)
    rank[order] = np.arange(len(order)) - (np.cumsum(many) - many)[rows.u[order]]
    truth, found = rows.truth(), []
    for groups in [limit for limit in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128) if limit < 2 * many.max()]:
        inside = rank < groups
        for limit in LIMITS[: int(np.searchsorted(LIMITS, 2 * rows.c.max()))].tolist():
            kept = np.bincount(rows.k[inside], np.minimum(rows.c[inside], limit), rows.groups)
            found.append((groups * limit**2, float(((truth - kept) ** 2).sum())))
    return tuple(found)


@dataclass(frozen=True)
class Cell:
    """One question at one ε: error over that of the best box, coverage, shares left out, false alarms."""

    error: float
    coverage: float
    noise_only: float
    left_out: float
    at_most: float
    bound: float
    width: float  # of intervals, over those of noise alone
    warned: float


def measure(data: Prepared, epsilon: float, stored: bool, repeats: int, seed: int) -> Cell:
    """`repeats` histograms, and for each the expected square error and the coverage in closed form."""
    mu, rng = mu_of(epsilon), np.random.default_rng(seed)
    first = mu_of(STORED) if stored else mu * math.sqrt(SHARE)
    second = mu * math.sqrt(1 - PEOPLE - (0 if stored else SHARE))
    third = mu * math.sqrt(PEOPLE)
    found = []
    for _ in range(repeats):
        tail = Tail.of(data.histogram + rng.normal(0, 1 / first, BINS), 1 / first, points=data.points)
        bound = choose_for_sums(tail, 1 / second, data.groups, CANDIDATES)
        index = int(np.searchsorted(CANDIDATES, bound))
        sigma, out, missing = bound / second, data.left_out[index], missing_by_tail(tail, bound)
        most = np.array([missing.rows(count) for count in (data.truth - out + Z * sigma).tolist()])
        square = data.groups * sigma**2 + float((out**2).sum())
        coverage = float((ndtr(out / sigma + Z) - ndtr((out - most) / sigma - Z)).mean())
        noise_only = float((ndtr(out / sigma + 1.96) - ndtr(out / sigma - 1.96)).mean())
        total = max(tail.total(), 1.0)
        bin_ = int(np.searchsorted(EDGES[:-1] * (1 + 1e-9), bound))  # people beyond the bin of the bound are compared
        warned = float(ndtr((data.histogram[bin_ + 1 :].sum() - tail.units_above(EDGES[bin_])) * third - 1.64))
        width = float((1 + most / (2 * Z * sigma)).mean())
        left = out.sum() / data.truth.sum()
        found.append((square, coverage, noise_only, left, missing.most / total, bound, width, warned))
    square, *rest = np.array(found).T
    means = [float(np.median(one) if place in (3, 4, 5, 6) else one.mean()) for place, one in enumerate(rest, 1)]
    return Cell(math.sqrt(square.mean()) / data.box_error(mu), *means)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--repeats", type=int, default=100)
    options.add_argument("--only", nargs="+", default=[""], help="questions whose names begin so")
    options.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS)
    chosen = options.parse_args()
    wanted = tuple(one for one in QUESTIONS if any(one.name.startswith(name) for name in chosen.only))
    table: dict[Question, dict[tuple[float, bool], Cell]] = {}
    print("question: error over the best box, own / stored; coverage %, own | stored;")
    print("width over that of noise, own | stored; share left out (at most); warnings %; by ε =", *chosen.epsilon)
    start = time.perf_counter()
    for question, rows in load(prepared(), wanted).items():
        data = Prepared.of(rows, bool(question.keys))
        table[question] = {
            (epsilon, stored): measure(data, epsilon, stored, chosen.repeats, 1)
            for epsilon in chosen.epsilon
            for stored in (False, True)
        }
        print(line(question, table[question], chosen.epsilon), flush=True)
    summary(table, chosen.epsilon)
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)


def line(question: Question, cells: dict[tuple[float, bool], Cell], epsilons: tuple[float, ...]) -> str:
    errors = "  ".join(f"{cells[e, False].error:5.2f} /{cells[e, True].error:5.2f}" for e in epsilons)
    covered = [" ".join(f"{100 * cells[e, stored].coverage:3.0f}" for e in epsilons) for stored in (False, True)]
    left = " ".join(f"{100 * cells[e, False].left_out:.1f}(≤{100 * cells[e, False].at_most:.1f})" for e in epsilons)
    warned = " ".join(f"{100 * cells[e, False].warned:.0f}" for e in epsilons)
    width = [" ".join(f"{cells[e, stored].width:.1f}" for e in epsilons) for stored in (False, True)]
    return (
        f"{'*' if question.chosen else ' '}{question.name:26} {errors}  {covered[0]} | {covered[1]}"
        f"  {width[0]} | {width[1]}  {left}  {warned}"
    )


def summary(table: dict[Question, dict[tuple[float, bool], Cell]], epsilons: tuple[float, ...]) -> None:
    """Geometric means of errors, and the worst cells."""
    halves = {
        "eleven real, pooled": [one for one in table if one.bar],
        "chosen half, not heavy": [one for one in table if one.chosen and one.kind != "heavy"],
        "held-out half, not heavy": [one for one in table if not one.chosen and one.kind != "heavy"],
    }
    for name, questions in halves.items():
        for stored in (False, True):
            cells = {(q.name, e): table[q][e, stored] for q in questions for e in epsilons if e >= 0.5}
            if cells:
                mean, wide = (
                    math.exp(float(np.mean([math.log(value) for value in values])))
                    for values in ([c.error for c in cells.values()], [c.width for c in cells.values()])
                )
                worst = max(cells, key=lambda key: cells[key].error)
                least = min(cells, key=lambda key: cells[key].coverage)
                print(
                    f"{name}, {'stored' if stored else 'own'}, ε ≥ 0.5: {mean:.3f};"
                    f" width {wide:.2f};"
                    f" worst {cells[worst].error:.2f} {worst};"
                    f" least coverage {100 * cells[least].coverage:.1f} % {least}"
                )


if __name__ == "__main__":
    main()
