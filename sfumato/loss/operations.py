"""The functions that answer the methods of `PrivacyLoss`, in one place; those that may take long show progress."""

from sfumato.loss import describe, display
from sfumato.loss.base import Operations
from sfumato.loss.compose import sums
from sfumato.loss.kinds import group, wrappers
from sfumato.loss.views import divergences, f_divergence, gdp, generalisation, law, profile, trade_off, zcdp
from sfumato.progress import with_progress

OPERATIONS = Operations(
    profile=with_progress("computing δ")(profile.profile),
    delta=with_progress("computing δ")(profile.delta),
    epsilon=with_progress("computing ε")(profile.epsilon),
    trade_off=with_progress("computing a trade-off")(trade_off.trade_off),
    trade_off_curve=with_progress("computing a trade-off")(trade_off.trade_off_curve),
    mean=with_progress("computing a divergence")(divergences.mean),
    renyi=with_progress("computing a divergence")(divergences.renyi),
    chi_squared=with_progress("computing a divergence")(divergences.chi_squared),
    hellinger=with_progress("computing a divergence")(divergences.hellinger),
    hockey_stick=with_progress("computing δ")(divergences.hockey_stick),
    f_divergence=with_progress("computing a divergence")(f_divergence.f_divergence),
    law=law.law,
    least_rho=with_progress("computing ρ")(zcdp.least_rho),
    least_mu=with_progress("computing μ")(gdp.least_mu),
    generalisation=generalisation.generalisation,
    add=sums.add,
    total=sums.total,
    group=with_progress("computing the loss of a group")(group.group),
    one_way=wrappers.one_way,
    describe=describe.describe,
    to_json=describe.to_json,
    name=display.name,
    html=display.html,
)
