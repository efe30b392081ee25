"""Figures are drawn from the certified curves, share one style, and need nothing but matplotlib."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from sfumato import dependent, groups, plots
from sfumato.errors import InvalidParameter
from sfumato.loss import ApproxLoss, GaussianLoss, LaplaceLoss, PoissonSampledLoss, RandomizedResponseLoss, nothing
from sfumato.teach.classical.compare import compare
from sfumato.teach.figures import all_figures, style
from sfumato.teach.figures import data_dependent as fitted

ROOT = Path(__file__).parents[3]
THREE = [GaussianLoss(1), LaplaceLoss(1), RandomizedResponseLoss(1)]

PICTURES = {
    "Rényi curves": lambda: plots.renyi_curves(THREE),
    "Rényi curves of one loss": lambda: plots.renyi_curves(LaplaceLoss(1), orders=[1.5, 2, 3]),
    "trade-off functions": lambda: plots.trade_off_functions(THREE),
    "profiles": lambda: plots.profiles({"noise": GaussianLoss(2), "sampled": PoissonSampledLoss(GaussianLoss(1), 0.1)}),
    "profile of a leak": lambda: plots.profiles(ApproxLoss(1, 0.01)),
    "profile of nothing": lambda: plots.profiles(nothing()),
    "tangents": lambda: plots.tangents(LaplaceLoss(1)),
    "composition": lambda: plots.composition(RandomizedResponseLoss(0.5), counts=(1, 4, 16)),
    "accountants": lambda: plots.accountants(compare(50 * LaplaceLoss(0.1), 1e-6)),
    "contour": lambda: plots.contour(300 * PoissonSampledLoss(GaussianLoss(1), 0.05), 1e-5),
    "Gaussian noise": lambda: plots.gaussian_noise(1e-5),
    "smooth noise": lambda: plots.smooth_noise((21, 51)),
    "stable choice": lambda: plots.stable_choice(2.0, 1e-3),
    "proposed": lambda: plots.propose_test_release(1e-3),
    "local against central": lambda: plots.local_against_central(1000),
    "adaptive over-fitting": lambda: plots.adaptive_over_fitting(2000, 200),
    "bounds on over-fitting": lambda: plots.over_fitting_bounds(1000),
    "exposed people": lambda: plots.exposed_people(200),
    "private regressions": lambda: plots.private_regressions((300, 1000), 2),
    "central limit": lambda: plots.central_limit(counts=(1, 4)),
    "larger groups": lambda: plots.larger_groups((1, 10, 1000)),
    "guarantees by size": lambda: plots.guarantees({"5 %": groups.contract(0.05, 10).policy}, 1e-6, (1, 100)),
    "all orders": lambda: plots.all_orders(8.0),
    "hockey stick": plots.hockey_stick,
    "two errors": plots.two_errors,
    "region": plots.region,
    "loss law": plots.loss_law,
    "loss law of a sum": lambda: plots.loss_law(6 * RandomizedResponseLoss(0.3)),
    "sliding and dilation": plots.sliding_and_dilation,
    "smooth noise laws": lambda: plots.smooth_noise_laws((0.02, 0.1)),
    "trimmed means": lambda: plots.trimmed_means((101, 201), 2),
}


def lines(figure: Figure, panel: int = 0) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The labelled lines of a panel."""
    found = figure.axes[panel].get_lines()
    return {str(line.get_label()): line.get_data() for line in found if not str(line.get_label()).startswith("_")}


@pytest.mark.slow
@pytest.mark.parametrize("title", PICTURES)
def test_every_picture_can_be_drawn_and_has_named_axes(title):
    figure = PICTURES[title]()
    assert isinstance(figure, Figure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert all(axis.get_xlabel() for axis in figure.axes if axis.get_label() != "<colorbar>")


def test_a_mechanism_has_the_same_colour_everywhere():
    def colours(figure: Figure, panel: int) -> dict[str, str]:
        found = figure.axes[panel].get_lines()
        return {str(line.get_label()): str(line.get_color()) for line in found if "ε=" in str(line.get_label())}

    first = colours(plots.renyi_curves(THREE), 0)
    assert len(set(first.values())) == len(first) > 0
    assert first == colours(plots.trade_off_functions(THREE[::-1]), 1) == colours(plots.profiles(THREE), 1)


def test_repetitions_keep_the_colour_of_their_mechanism_and_strangers_get_their_own():
    shown = style.label_losses([5 * LaplaceLoss(0.1), PoissonSampledLoss(GaussianLoss(1), 0.1), GaussianLoss(1)])
    laplace, sampled, gaussian = (pen.colour for pen in style.pens(shown))
    assert (laplace, gaussian) == (style.RED, style.BLUE)
    assert sampled not in (laplace, gaussian)


def test_the_tangents_touch_the_trade_off_function_and_never_cross_it():
    figure = plots.tangents(GaussianLoss(1))
    curve = max((line.get_data() for line in figure.axes[0].get_lines()), key=lambda data: len(data[0]))
    below = [line.get_data() for line in figure.axes[0].get_lines() if line.get_linewidth() == 1.3]
    assert len(below) == 8
    for x, y in below:
        gap = curve[1] - np.interp(curve[0], x, y)
        assert gap.min() >= -1e-4  # the curve itself is drawn from below
        assert gap.min() <= 1e-4


def test_the_composition_picture_has_one_line_per_accountant():
    figure = PICTURES["composition"]()
    assert list(lines(figure)) == [row.name for row in reversed(compare(LaplaceLoss(1), 1e-6).rows)]
    (legend,) = figure.legends
    assert legend.get_texts()[0].get_text() == "optimal (sfumato)"


def test_every_accountant_has_a_colour():
    names = [row.name for row in compare(LaplaceLoss(1), 1e-6).rows if row.name != "plain Fourier"]
    assert set(names) == set(style.ACCOUNTANTS)


def test_the_contour_picture_shows_a_certificate():
    figure = PICTURES["contour"]()
    decay = lines(figure, 1)
    assert np.all(decay["|Φ(ω)|"][1] <= decay["ceiling"][1])
    _, gap = lines(figure, 3)["certified gap / δ"]
    _, error = lines(figure, 3)["true error / δ"]
    assert np.all(error <= gap)
    assert gap[-1] < 1e-7 < 0.1 < gap[0]


def test_a_closed_form_has_no_contour_to_draw():
    with pytest.raises(InvalidParameter, match="composed on a contour"):
        plots.contour(5 * GaussianLoss(1))


def test_the_analytic_noise_is_the_least():
    ratio = plots.gaussian_noise().axes[1].get_lines()
    assert all(np.min(line.get_ydata()) >= 1 for line in ratio)


def heights(figure: Figure, panel: int = 0) -> dict[str, np.ndarray]:
    return {text: y for text, (_, y) in lines(figure, panel).items()}


def test_smooth_noise_lies_between_local_and_global_and_a_choice_below():
    figure = plots.smooth_noise((51, 201, 501))
    left, right = heights(figure, 0), heights(figure, 1)
    for found in (left, right):
        smooth = found["smooth sensitivity"]
        assert np.all(found["local sensitivity: not private"] < smooth)
        assert np.all(smooth < found["Gaussian, global sensitivity"])
    assert np.all(3 * left["chosen by score"] < left["smooth sensitivity"])


def test_the_mean_error_of_a_choice_is_that_of_its_weights():
    """Against the definition, point by point: score and weight of each v in 0 … 40."""
    data, statistic = np.array([3.0, 3, 4, 9, 17, 30, 31]), dependent.Quantile(0, 40)
    chosen, v = dependent.ChosenQuantile(statistic, 1.5), np.arange(41)
    at_most, below = (np.searchsorted(data, v, side) for side in ("right", "left"))
    score = np.maximum(np.maximum(len(data) - 2 * at_most, 2 * below - len(data)), 0)
    weight = np.exp(-1.5 / 2 * score)  # one person moves the score by one
    expected = (weight * np.abs(v - 9)).sum() / weight.sum()
    assert fitted.error_of_choice(chosen, data) == pytest.approx(expected, rel=1e-12)
    assert fitted.mean_size(dependent.GaussianNoise()) == pytest.approx(np.sqrt(2 / np.pi), rel=1e-5)


def test_stable_values_need_less_of_a_lead_from_about_one_in_delta_candidates_on():
    figure = plots.stable_choice(1.0, 1e-6)
    (counts, _), found = lines(figure, 1)["permute and flip"], heights(figure, 1)
    stable, flipped = found["stable value, δ = 1e-6"], found["permute and flip"]
    assert np.all(flipped <= found["exponential mechanism"])
    assert np.all(stable[counts < 2e5] > flipped[counts < 2e5]) and np.all(stable[counts > 2e6] < flipped[counts > 2e6])


def test_a_tested_proposal_costs_no_more_than_the_sum_and_no_less_than_what_unsafe_neighbours_lose():
    found = heights(plots.propose_test_release(1e-6))
    cost, unsafe = found["propose-test-release"], found["what unsafe neighbours lose, $p_0$"]
    assert np.all(cost <= found["test + answer + δ"] * (1 + 1e-9)) and np.all(cost >= unsafe)


def test_pictures_are_small_and_do_not_depend_on_the_time(tmp_path):
    first, second = (plots.save_png(plots.region(), tmp_path / f"{i}.png").read_bytes() for i in range(2))
    assert first == second
    assert len(first) < 40_000


def test_figures_are_written_into_a_new_folder(tmp_path, monkeypatch):
    """Each by its name. What draws them is drawn above, of less."""
    few = {name: all_figures.lecture_drawings()[name] for name in ("region", "hockey_stick")}
    monkeypatch.setattr(all_figures, "lecture_drawings", lambda: few)
    made = plots.lecture_figures(tmp_path / "new" / "folder")
    assert [path.name for path in made] == ["region.png", "hockey_stick.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in made)


def test_the_lecture_figures_are_those_of_the_documents():
    made = {f"{name}.png" for name in all_figures.lecture_drawings()}
    kept = ROOT / "docs" / "figures"
    others = {"wards.png"}  # of the first answer: tools/first_picture.py
    assert made == {path.name for path in kept.glob("*.png")} - others
    shown = [
        ROOT / "README.md",
        ROOT / "docs" / "tutorial.md",
        ROOT / "docs" / "dependent.md",
        ROOT / "docs" / "larger-groups.md",
        ROOT / "docs" / "local.md",
        ROOT / "docs" / "selection.md",
        *sorted((ROOT / "docs" / "lectures").glob("*.md")),
    ]
    text = "".join(path.read_text(encoding="utf-8") for path in shown)
    assert made == set(re.findall(r'src="(?:docs/|\.\./)?figures/([\w.]+)"', text)) - others


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)


def test_without_matplotlib_the_error_says_what_to_install():
    answer = run("import sys; sys.modules['matplotlib'] = None; import sfumato.teach.figures")
    assert answer.returncode
    assert "ImportError: pictures need matplotlib." in answer.stderr
    assert "pip install 'sfumato[plot]'" in answer.stderr


def test_drawing_leaves_pyplot_alone():
    program = "import sys; from sfumato import plots; plots.region()._repr_png_()"
    assert run(f"{program}; print('matplotlib.pyplot' in sys.modules)").stdout == "False\n"
