"""Charging a run: once, before the first batch, to a ledger or against (ε, δ)."""

import math
from dataclasses import dataclass

from sfumato import checks
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.learn.torch.noise import Move, Noise
from sfumato.ledger.charges import Receipt
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.shares import OWNER
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.sampling.base import Sampling

Funds = Ledger | tuple[float, float]


@dataclass(frozen=True)
class Charge:
    """What a run was charged: its loss, ε at δ, and the receipt of the ledger if there is one."""

    loss: PrivacyLoss
    epsilon: float
    delta: float
    receipt: Receipt | None = None

    def __str__(self) -> str:
        where = "" if self.receipt is None else f", line {self.receipt.seq} of the ledger"
        return f"charged ε = {self.epsilon:.4g} at δ = {self.delta:.3g}{where}"


def target(budget: Funds) -> tuple[float, float]:
    """(ε, δ) of a budget: all that a ledger promises."""
    if isinstance(budget, Ledger):
        return budget.promise.epsilon, budget.promise.delta
    if isinstance(budget, tuple) and len(budget) == 2:
        return checks.positive("epsilon", budget[0]), checks.probability("delta", budget[1])
    raise InvalidParameter(
        f"a budget is a ledger or (epsilon, delta).\n  found:  a {type(budget).__name__}\n"
        "  do:     give sf.Ledger.open(…) or e.g. (3.0, 1e-5)"
    )


def run_loss(noise: Noise, sampler: Sampling, move: Move, steps: int, failure: float = 0.0) -> PrivacyLoss:
    """What a run costs; `failure` is the probability that a batch exceeds its capacity where that may be seen."""
    loss = noise.loss(sampler, move, steps)
    return LeakyLoss(loss, failure, relation=loss.relation) if failure else loss


def share_needed(budget: Ledger, loss: PrivacyLoss, who: str | None) -> float:
    """The part of what is left in a ledger that this loss takes; above 1 if it does not fit."""
    _, limit, spent = budget.account(who or OWNER)
    left = limit - spent
    ways = ([(take, have) for take, have in zip(price, left, strict=True) if take] for price in budget.prices(loss))
    return min(max((take / have if have else math.inf for take, have in way), default=0.0) for way in ways)


def charge_run(budget: Funds, loss: PrivacyLoss, description: str, who: str | None) -> Charge:
    """Charge all steps at once. Raises BudgetExceeded, with nothing charged, if they do not fit."""
    epsilon, delta = target(budget)
    found = loss.epsilon(delta).upper
    if isinstance(budget, Ledger):
        return Charge(loss, found, delta, budget.charge(loss, question=description, who=who or OWNER))
    if found > epsilon:
        raise BudgetExceeded(
            f"this run does not fit its budget.\n  found:  ε = {found:.4g} at δ = {delta:.3g}, for a budget of "
            f"ε = {epsilon:g}\n  do:     take more noise, fewer steps or smaller batches; or leave noise out: then it "
            "is calibrated"
        )
    return Charge(loss, found, delta)
