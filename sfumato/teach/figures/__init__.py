"""Pictures of privacy: profiles, trade-off functions, Rényi curves, and what each accountant makes of a composition.

Every function returns a matplotlib Figure and touches no global state (no pyplot, no window): `figure.savefig(path)`
keeps it, a notebook shows it. One mechanism has one colour throughout, chosen to survive colour-blindness.
"""

try:
    import matplotlib.axes  # noqa: F401
except ImportError as problem:
    raise ImportError("pictures need matplotlib.\n  do:     pip install 'sfumato[plot]'") from problem

from sfumato.teach.figures.all_figures import lecture_figures, saved
from sfumato.teach.figures.attack_charts import attacked
from sfumato.teach.figures.compositions import accountants, central_limit, composition, gaussian_noise
from sfumato.teach.figures.contour import contour
from sfumato.teach.figures.curves import profiles, renyi_curves, tangents, trade_off_functions
from sfumato.teach.figures.data_dependent import proposed, smooth_noise, stable_choice
from sfumato.teach.figures.definitions import hockey_stick, region, two_errors
from sfumato.teach.figures.larger_groups import all_orders, guarantees, larger_groups
from sfumato.teach.figures.style import Picture

__all__ = [
    "Picture", "accountants", "all_orders", "attacked", "central_limit", "composition", "contour", "gaussian_noise",
    "guarantees", "hockey_stick", "larger_groups", "lecture_figures", "profiles", "proposed", "region",
    "renyi_curves", "saved", "smooth_noise", "stable_choice", "tangents", "trade_off_functions", "two_errors",
]  # fmt: skip
