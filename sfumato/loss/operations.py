"""The functions that answer the methods of `PrivacyLoss`, in one place; those that may take long show progress."""

from sfumato.loss import describe, display
from sfumato.loss.base import Operations
from sfumato.loss.compose import sums
from sfumato.loss.kinds import group, wrappers
from sfumato.loss.views import divergences, f_divergence, gdp, generalisation, law, profile, trade_off, zcdp
from sfumato.progress import watched

OPERATIONS = Operations(
    profile=watched("computing δ")(profile.profile),
    delta=watched("computing δ")(profile.delta),
    epsilon=watched("computing ε")(profile.epsilon),
    trade_off=watched("computing a trade-off")(trade_off.trade_off),
    trade_off_curve=watched("computing a trade-off")(trade_off.trade_off_curve),
    mean=watched("computing a divergence")(divergences.mean),
    renyi=watched("computing a divergence")(divergences.renyi),
    chi_squared=watched("computing a divergence")(divergences.chi_squared),
    hellinger=watched("computing a divergence")(divergences.hellinger),
    hockey_stick=watched("computing δ")(divergences.hockey_stick),
    f_divergence=watched("computing a divergence")(f_divergence.f_divergence),
    law=law.law,
    least_rho=watched("computing ρ")(zcdp.least_rho),
    least_mu=watched("computing μ")(gdp.least_mu),
    generalisation=generalisation.generalisation,
    add=sums.add,
    total=sums.total,
    group=watched("computing the loss of a group")(group.group),
    one_way=wrappers.one_way,
    describe=describe.describe,
    to_json=describe.to_json,
    name=display.name,
    html=display.html,
)
