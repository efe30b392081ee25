"""Figures of privacy losses: profiles, trade-off functions, Rényi curves, and compositions by every accountant.

Every function returns a matplotlib Figure and uses no global state (no pyplot, no window): `figure.savefig(path)` saves
it, and a notebook shows it. A mechanism has the same colour in all figures, from a palette for colour-blind readers.
"""

try:
    import matplotlib.axes  # noqa: F401
except ImportError as problem:
    raise ImportError("pictures need matplotlib.\n  do:     pip install 'sfumato[plot]'") from problem

from sfumato.teach.figures.all_figures import lecture_figures, save_png
from sfumato.teach.figures.attack_charts import attack_chart
from sfumato.teach.figures.compositions import accountants, central_limit, composition, gaussian_noise
from sfumato.teach.figures.contour import contour
from sfumato.teach.figures.curves import profiles, renyi_curves, tangents, trade_off_functions
from sfumato.teach.figures.data_dependent import propose_test_release, smooth_noise, stable_choice
from sfumato.teach.figures.definitions import hockey_stick, region, two_errors
from sfumato.teach.figures.larger_groups import all_orders, guarantees, larger_groups
from sfumato.teach.figures.linear_regression import exposed_people, private_regressions
from sfumato.teach.figures.local_privacy import local_against_central
from sfumato.teach.figures.over_fitting import adaptive_over_fitting, over_fitting_bounds
from sfumato.teach.figures.random_losses import loss_law
from sfumato.teach.figures.smooth_noise_laws import sliding_and_dilation, smooth_noise_laws, trimmed_means
from sfumato.teach.figures.style import Picture

attacked, proposed, saved = attack_chart, propose_test_release, save_png  # the names before version 0.2

__all__ = [
    "Picture", "accountants", "adaptive_over_fitting", "all_orders", "attack_chart", "attacked", "central_limit",
    "composition", "contour", "exposed_people", "gaussian_noise", "guarantees", "hockey_stick", "larger_groups",
    "lecture_figures",
    "local_against_central", "loss_law", "over_fitting_bounds", "private_regressions", "profiles",
    "propose_test_release", "proposed", "region", "renyi_curves", "save_png", "saved",
    "sliding_and_dilation", "smooth_noise", "smooth_noise_laws",
    "stable_choice", "tangents", "trade_off_functions", "trimmed_means", "two_errors",
]  # fmt: skip
