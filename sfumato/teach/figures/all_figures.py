"""All figures of the documents, written to a folder as PNG files."""

import io
from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image  # a dependency of matplotlib

from sfumato.loss.kinds.coins import RandomizedResponseLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.laplace import LaplaceLoss
from sfumato.sampling.poisson import Poisson
from sfumato.teach.figures.compositions import central_limit, composition, gaussian_noise
from sfumato.teach.figures.contour import contour
from sfumato.teach.figures.curves import profiles, renyi_curves, tangents, trade_off_functions
from sfumato.teach.figures.data_dependent import propose_test_release, smooth_noise, stable_choice
from sfumato.teach.figures.definitions import hockey_stick, region, two_errors
from sfumato.teach.figures.larger_groups import all_orders, larger_groups
from sfumato.teach.figures.linear_regression import exposed_people, private_regressions
from sfumato.teach.figures.local_privacy import local_against_central
from sfumato.teach.figures.over_fitting import adaptive_over_fitting, over_fitting_bounds
from sfumato.teach.figures.random_losses import loss_law
from sfumato.teach.figures.smooth_noise_laws import sliding_and_dilation, smooth_noise_laws, trimmed_means


def lecture_figures(directory: str | Path) -> list[Path]:
    """Write the figures of the documents as PNG files; returns their paths in the order of their appearance."""
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    return [save_png(draw(), folder / f"{title}.png") for title, draw in lecture_drawings().items()]


def lecture_drawings() -> dict[str, Callable[[], Figure]]:
    """The name of each file → what draws it.

    Randomized response and Laplace are 1-DP; the Gaussian has μ = 1, so it is ½-zCDP, as every 1-DP mechanism is.
    """
    three = {
        "Gaussian, μ = 1": GaussianLoss(1.0),
        "Laplace, ε = 1": LaplaceLoss(1.0),
        "randomized response, ε = 1": RandomizedResponseLoss(1.0),
    }
    return {
        "hockey_stick": hockey_stick,
        "profiles": lambda: profiles(three),
        "two_errors": two_errors,
        "region": region,
        "tangents": lambda: tangents(GaussianLoss(1.0)),
        "trade_off_functions": lambda: trade_off_functions(three),
        "renyi_curves": lambda: renyi_curves(three),
        "composition": lambda: composition(LaplaceLoss(0.1)),
        "central_limit": central_limit,
        "contour": lambda: contour(10_000 * Poisson(0.01).amplify(GaussianLoss(1 / 0.8))),
        "gaussian_noise": gaussian_noise,
        "smooth_noise": smooth_noise,
        "stable_choice": stable_choice,
        "proposed": propose_test_release,
        "larger_groups": larger_groups,
        "all_orders": all_orders,
        "local_against_central": local_against_central,
        "adaptive_over_fitting": adaptive_over_fitting,
        "over_fitting_bounds": over_fitting_bounds,
        "exposed_people": exposed_people,
        "private_regressions": private_regressions,
        "loss_law": loss_law,
        "sliding_and_dilation": sliding_and_dilation,
        "smooth_noise_laws": smooth_noise_laws,
        "trimmed_means": trimmed_means,
    }


def save_png(figure: Figure, path: Path) -> Path:
    """Write a small PNG with 64 colours, which are enough for lines, and without a date: equal figures, equal files."""
    page = io.BytesIO()
    figure.savefig(page, format="png", dpi=150)
    with Image.open(page) as picture:
        picture.convert("RGB").quantize(64).save(path, optimize=True)
    return path
