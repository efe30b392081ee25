"""The refusal of a charge that the account does not cover: what was asked, what fits, what to do. In ε and δ."""

import math
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal

from sfumato.errors import BudgetExceeded
from sfumato.ledger.amounts import Amount
from sfumato.ledger.budgets import Promise
from sfumato.ledger.shares import describe_account

DIGITS = 4


def budget_exceeded(promise: Promise, cost: Amount, left: Amount, account: str) -> BudgetExceeded:
    """The refusal of a cost above what is left, in ε at the budget's own δ."""
    asked = promise.epsilon_of(replace(cost, leak=0), promise.delta)
    fits = round_down_digits(promise.largest_epsilon(left, promise.delta))
    return refusal(asked, fits, promise.delta, cost, left, account)


def refusal(asked: float, fits: float, delta: float, cost: Amount, left: Amount, account: str) -> BudgetExceeded:
    """The refusal in words; `fits` is the largest ε at this δ that the account still covers."""
    words, found, do = [f"ε = {asked:.4g} at δ = {delta:g}"], [], "ask the owner"
    if not replace(cost, leak=0).within(left):
        found.append(f"at most ε = {fits:g} at that δ fits" if fits > 0 else "nothing is left of ε")
    if cost.leak > left.leak:
        words.append(f"{float(cost.real('leak')):.3g} of the budget's δ, for what may come out by chance")
        found.append(f"{float(left.real('leak')):.3g} of δ is left")
    elif fits > 0:
        do = f"ask with epsilon={fits:g} or less, or ask the owner"
    return BudgetExceeded(
        f"the budget does not cover this.\n  asked:  {', and '.join(words)}\n"
        f"  found:  {describe_account(account)}: {', and '.join(found)}\n"
        f"  do:     {do}; nothing was charged.\n"
        "          A budget does not renew by itself; the owner can renew it (sfumato ledger renew)"
    )


def round_down_digits(x: float, digits: int = DIGITS) -> float:
    """The largest decimal number of few digits that is at most x; 0 for x = 0 or infinity."""
    if not 0 < x < math.inf:
        return 0.0
    exact = Decimal(repr(x))  # as printed: a number of few digits stays as it is
    unit = Decimal(1).scaleb(exact.adjusted() + 1 - digits)
    return float((exact / unit).to_integral_value(ROUND_FLOOR) * unit)
