"""Pictures are drawn from the certified curves, look alike, and need nothing but matplotlib."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from sfumato import plots
from sfumato.errors import InvalidParameter
from sfumato.loss import ApproxLoss, GaussianLoss, LaplaceLoss, PoissonSampledLoss, RandomizedResponseLoss, nothing
from sfumato.loss.compare import compare
from sfumato.plots import hand

ROOT = Path(__file__).parents[1]
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
    "central limit": lambda: plots.central_limit(counts=(1, 4)),
    "hockey stick": plots.hockey_stick,
    "two errors": plots.two_errors,
    "region": plots.region,
}


def lines(figure: Figure, panel: int = 0) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The labelled lines of a panel."""
    found = figure.axes[panel].get_lines()
    return {str(line.get_label()): line.get_data() for line in found if not str(line.get_label()).startswith("_")}


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
    shown = hand.named([5 * LaplaceLoss(0.1), PoissonSampledLoss(GaussianLoss(1), 0.1), GaussianLoss(1)])
    laplace, sampled, gaussian = (pen.colour for pen in hand.pens(shown))
    assert (laplace, gaussian) == (hand.RED, hand.BLUE)
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
    assert set(names) == set(hand.ACCOUNTANTS)


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


def test_pictures_are_small_and_do_not_depend_on_the_time(tmp_path):
    first, second = (plots.saved(plots.region(), tmp_path / f"{i}.png").read_bytes() for i in range(2))
    assert first == second
    assert len(first) < 40_000


def test_the_lecture_figures_are_those_of_the_documents(tmp_path):
    made = plots.lecture_figures(tmp_path / "new" / "folder")
    kept = ROOT / "docs" / "figures"
    assert {path.name for path in made} == {path.name for path in kept.glob("*.png")}
    text = "".join(path.read_text(encoding="utf-8") for path in [ROOT / "README.md", ROOT / "docs" / "tutorial.md"])
    assert {path.name for path in made} == set(re.findall(r'src="(?:docs/)?figures/([\w.]+)"', text))


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)


def test_without_matplotlib_the_error_says_what_to_install():
    answer = run("import sys; sys.modules['matplotlib'] = None; import sfumato.plots")
    assert answer.returncode
    assert "ImportError: pictures need matplotlib." in answer.stderr
    assert "pip install 'sfumato[plot]'" in answer.stderr


def test_drawing_leaves_pyplot_alone():
    program = "import sys; from sfumato import plots; plots.region()._repr_png_()"
    assert run(f"{program}; print('matplotlib.pyplot' in sys.modules)").stdout == "False\n"
