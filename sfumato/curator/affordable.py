"""The largest ε of a question that an account still covers, and the refusal that names it. No data are read."""

from collections.abc import Callable
from decimal import Decimal

from sfumato.errors import BudgetExceeded
from sfumato.ledger import Amount, Ledger
from sfumato.ledger.accounts import DIGITS, refusal
from sfumato.loss.base import PrivacyLoss

STEPS: int = 9 * 10 ** (DIGITS - 1)  # candidates in one decade
LEAST = -6  # the decade of the least ε that may be asked


def largest_affordable_epsilon(
    loss_at: Callable[[float], PrivacyLoss], ledger: Ledger, left: Amount, asked: float
) -> float:
    """The largest ε with few digits, below the ε that was asked, whose price fits; 0 if none does.

    Binary search: prices grow with ε. The ε that is returned was itself tried, so asking for it does fit.
    """

    def fits(place: int) -> bool:
        prices = ledger.prices(loss_at(candidate_epsilon(place)))
        return any(price.within(left) for price in prices)

    low, high = -1, candidate_index(asked)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return candidate_epsilon(low) if low >= 0 else 0.0


def candidate_epsilon(place: int) -> float:
    """The candidate with this index: numbers with few digits, from 1e-6 on, in ascending order."""
    decade, step = divmod(place, STEPS)
    return float(f"{10 ** (DIGITS - 1) + step}e{decade + LEAST - DIGITS + 1}")


def candidate_index(epsilon: float) -> int:
    """The index of the smallest candidate above this ε."""
    written, first = Decimal(repr(epsilon)), int(10 ** (DIGITS - 1))
    decade = written.adjusted()
    return max((decade - LEAST) * STEPS + int(written.scaleb(-decade) * first) - first + 1, 0)


def budget_refusal(
    loss: PrivacyLoss, loss_at: Callable[[float], PrivacyLoss], ledger: Ledger, who: str, delta: float
) -> BudgetExceeded:
    """The refusal of a loss that the account does not cover, with the largest ε that fits."""
    account, limit, spent = ledger.account(who)
    left, cost = limit - spent, ledger.prices(loss)[-1]
    asked = loss.epsilon(delta).upper
    fits = 0.0 if cost.leak > left.leak else largest_affordable_epsilon(loss_at, ledger, left, asked)
    return refusal(asked, fits, delta, cost, left, account)
