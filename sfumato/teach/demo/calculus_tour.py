"""A tour of the calculus of privacy loss in the terminal: `sfumato demo --calculus`, or `make tour`."""

import argparse
import json
import math
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import sfumato as sf
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.views.gaussian_noise import analytic, classical_1, classical_2, slides_2
from sfumato.progress import show_progress
from sfumato.teach.classical.approximations import Estimate
from sfumato.teach.classical.compare import Comparison

WIDTH = 80
DELTA = 1e-6

Cell = str | float | Bound | Estimate | None


@dataclass(frozen=True)
class Table:
    """A table of the tour, as text or JSON."""

    title: str
    text: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __str__(self) -> str:
        body = [tuple(format_cell(cell) for cell in row) for row in (self.columns, *self.rows)]
        columns = [align(column) for column in zip(*body, strict=True)]
        lines = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
        lines.insert(1, "─" * max(map(len, lines)))
        return "\n".join([self.title, *textwrap.wrap(self.text, WIDTH), "", *lines, ""])

    def plain(self) -> dict[str, object]:
        """The table as plain data; bounds with both sides."""
        rows = [[plain_value(cell) for cell in row] for row in self.rows]
        return {"title": self.title, "text": self.text, "columns": list(self.columns), "rows": rows}


def align(column: Sequence[str]) -> list[str]:
    """The column padded to one width: numbers to the right, words to the left."""
    width = max(map(len, column))
    numeric = all(text.lstrip("≈ ")[:1].isdigit() or text in ("∞", "–") for text in column[1:])
    return [text.rjust(width) if numeric else text.ljust(width) for text in column]


def format_cell(cell: Cell) -> str:
    """A cell as text; numbers with a few digits."""
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    number = cell.value if isinstance(cell, Estimate) else float(cell)
    text = "∞" if math.isinf(number) else f"{number:,.0f}" if number >= 1e4 else f"{number:.5g}".replace("e-0", "e-")
    return f"≈ {text}" if isinstance(cell, Estimate) else text


def plain_value(cell: Cell) -> object:
    """A cell as plain data; infinity is a text, as JSON has no infinity."""
    if isinstance(cell, Bound):
        return {"lower": plain_value(cell.lower), "upper": plain_value(cell.upper), "method": cell.method}
    if isinstance(cell, Estimate):
        return {"estimate": plain_value(cell.value), "method": cell.method}
    return str(cell) if isinstance(cell, float) and not math.isfinite(cell) else cell


# ---- the tables ------------------------------------------------------------------------------------------------------


def views() -> Table:
    """Many views of one loss."""
    losses = (sf.loss.GaussianLoss(1.0), sf.loss.LaplaceLoss(1.0), sf.loss.RandomizedResponseLoss(1.0))
    looks: dict[str, Callable[[PrivacyLoss], Cell]] = {
        "ε at δ = 0": lambda loss: loss.epsilon(0.0),
        "ε at δ = 1e-6": lambda loss: loss.epsilon(DELTA),
        "δ at ε = 0.5": lambda loss: loss.delta(0.5),
        "misses at 5 % false alarms": lambda loss: loss.trade_off(0.05),
        "right guesses in 100 (blind: 50)": lambda loss: 50 * (1 + float(loss.total_variation())),
        "KL divergence D₁": lambda loss: loss.kl(),
        "Rényi divergence D₂": lambda loss: loss.renyi(2.0),
        "Rényi divergence D₁₀": lambda loss: loss.renyi(10.0),
        "zCDP: least ρ": lambda loss: loss.zcdp(),
        "Gaussian DP: least μ": lambda loss: loss.gdp(),
    }
    return Table(
        "1. One mechanism, many views",
        "The privacy loss is a random variable, and every definition of differential privacy is a view of it. Three "
        "mechanisms at matched parameters: Laplace and randomized response are 1-DP, the Gaussian is ½-zCDP.",
        ("", "Gaussian μ=1", "Laplace ε=1", "rand. resp. ε=1"),
        tuple((text, *(look(loss) for loss in losses)) for text, look in looks.items()),
    )


def noise() -> Table:
    """Three formulas for the Gaussian mechanism, and the least noise."""
    rows = []
    for eps in (0.1, 0.5, 0.9, 2.0, 8.0):
        least, second = analytic(eps, DELTA), classical_2(eps, DELTA)
        first = classical_1(eps, DELTA) if eps < 1 else None
        rows.append((f"ε = {eps:g}", first, second, slides_2(eps, DELTA), least, float(second) / float(least)))
    return Table(
        "2. How much Gaussian noise?",
        "σ per unit of sensitivity for (ε, 1e-6)-DP. Classical 1 is proved for ε < 1 only; the last column shows how "
        "much noise the best closed formula wastes.",
        ("", "classical 1", "classical 2", "slides’ 2", "analytic", "classical 2 / analytic"),
        tuple(rows),
    )


def polls() -> Table:
    """A thousand randomized responses."""
    found = sf.compare(1000 * sf.loss.RandomizedResponseLoss(0.1), DELTA)
    forgotten = ("a peer that drops the count", 0.1001, "dp-accounting 0.6.0, PLDAccountant")
    return side_by_side(
        found,
        "3. Composition: 1,000 × randomized response, ε = 0.1",
        "Losses add up, so k runs of a mechanism are k * loss. Every accountant’s ε at δ = 1e-6:",
        forgotten,
    )


def training() -> Table:
    """DP-SGD."""
    step = sf.Poisson(rate=0.01).amplify(sf.loss.GaussianLoss(mu=1 / 0.8))
    return side_by_side(
        sf.compare(10_000 * step, DELTA),
        "4. Composition: DP-SGD, q = 0.01, σ = 0.8, 10,000 steps",
        "Each step uses a random 1 % of the people. Theorems about (ε, δ) alone do not use that the noise is Gaussian; "
        "the central limit theorem is not a bound.",
    )


def side_by_side(found: Comparison, title: str, text: str, *more: tuple[Cell, ...]) -> Table:
    """A comparison with short remarks; the remark of the exact answer is its two sides."""
    truth = found.rows[0].epsilon
    assert isinstance(truth, Bound)
    first = (found.rows[0].name, truth, f"{truth.lower:.7g} to {truth.upper:.7g}, {truth.method}")
    rows = [(row.name, row.epsilon, textwrap.shorten(row.note, 38, placeholder=" …")) for row in found.rows[1:]]
    return Table(title, text, ("accountant", "ε", "remark"), (first, *rows, *more))


def calibration() -> Table:
    """Calibration: the parameter that just meets a target."""
    step = sf.Poisson(rate=0.01).amplify(sf.loss.GaussianLoss(mu=1 / 0.8))

    def mnist(sigma: float) -> PrivacyLoss:
        return 14_062 * sf.Poisson(rate=256 / 60_000).amplify(sf.loss.GaussianLoss(mu=1 / sigma))

    one = sf.calibrate(lambda s: sf.loss.GaussianLoss(1 / s), epsilon=1.0, delta=DELTA)
    many = sf.calibrate(lambda s: 100 * sf.loss.LaplaceLoss(1 / s), epsilon=1.0, delta=DELTA, tolerance=1e-4)
    sigma = sf.calibrate(mnist, epsilon=1.0, delta=DELTA, tolerance=1e-4)
    steps = sf.calibrate(lambda k: int(k) * step, epsilon=8.0, delta=DELTA, integer=True)
    answers = {
        "σ of one Gaussian, ε = 1": (one.upper, one.lower),
        "scale of 100 Laplace answers, ε = 1": (many.upper, many.lower),
        "σ of DP-SGD, q = 256/60,000, 14,062 steps, ε = 1": (sigma.upper, sigma.lower),
        "steps of DP-SGD, q = 0.01, σ = 0.8, ε = 8": (steps.lower, steps.upper),
    }
    return Table(
        "5. Calibration: the parameter that just meets (ε, 1e-6)",
        "The first value meets the target; the second is certified to miss it. Noise is rounded up, steps down.",
        ("", "meets it", "misses it"),
        tuple((text, f"{meets:.7g}", f"{misses:.7g}") for text, (meets, misses) in answers.items()),
    )


TABLES = (views, noise, polls, training, calibration)


# ---- the tour --------------------------------------------------------------------------------------------------------


def write_figures(folder: Path) -> str:
    """Write the figures, and say where they are or why there are none."""
    try:
        from sfumato.teach import figures
    except ImportError as problem:
        return f"No figures: {problem}"
    with show_progress("drawing"):
        paths = figures.lecture_figures(folder)
    return f"{len(paths)} figures are in {folder}/: " + ", ".join(path.stem for path in paths)


def tour(*, figures: Path | None, as_json: bool) -> None:
    """Print every table as soon as it is computed."""
    tables = []
    for make in TABLES:
        with show_progress((make.__doc__ or "").rstrip(".")):
            table = make()
        tables.append(table)
        if not as_json:
            print(table, flush=True)
    if as_json:
        print(json.dumps([table.plain() for table in tables], ensure_ascii=False, indent=1, allow_nan=False))
    if figures is not None:
        print(textwrap.fill(write_figures(figures), WIDTH), file=sys.stderr if as_json else sys.stdout)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m sfumato.teach.demo.calculus_tour", description="A tour of the calculus of privacy loss."
    )
    parser.add_argument(
        "--figures", type=Path, default=Path("figures"), metavar="DIR", help="where to put them (./figures)"
    )
    parser.add_argument("--no-figures", action="store_true", help="tables only")
    parser.add_argument("--json", action="store_true", help="the tables as JSON")
    options = parser.parse_args(arguments)
    try:
        tour(figures=None if options.no_figures else options.figures, as_json=options.json)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
