"""The functions that answer the methods of `PrivacyLoss`, in one place."""

from sfumato.loss import describe, display
from sfumato.loss.base import Operations
from sfumato.loss.compose import sums
from sfumato.loss.kinds import group, wrappers
from sfumato.loss.views import divergences, gdp, profile, trade_off, zcdp

OPERATIONS = Operations(
    profile=profile.profile,
    delta=profile.delta,
    epsilon=profile.epsilon,
    trade_off=trade_off.trade_off,
    trade_off_curve=trade_off.trade_off_curve,
    mean=divergences.mean,
    renyi=divergences.renyi,
    chi_squared=divergences.chi_squared,
    hellinger=divergences.hellinger,
    hockey_stick=divergences.hockey_stick,
    least_rho=zcdp.least_rho,
    least_mu=gdp.least_mu,
    add=sums.add,
    repeat=sums.repeat,
    group=group.group,
    one_way=wrappers.one_way,
    describe=describe.describe,
    to_json=describe.to_json,
    name=display.name,
    html=display.html,
)
