"""Shares of a budget: the accounts of a ledger, and the limits that a set of shares gives them.

""               the common account: all that is set aside for nobody; the owner draws on it
"analyst ann"    set aside for ann
"others"         set aside for everybody without an account of their own, together; not for the owner
"plan x"         reserved for planned work
"former …"       what was spent by somebody who no longer has a share
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sfumato import checks
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.ledger.amounts import Amount

Accounts = Mapping[str, tuple[Amount, Amount]]  # name → (limit, spent)

COMMON, OTHERS, ANALYST, PLAN, FORMER = "", "others", "analyst ", "plan ", "former "
OWNER = "owner"  # the person who asks, unless another is named


@dataclass(frozen=True)
class Shares:
    """A share of the whole budget for each name, and for all others together.

    `others` is a share, False (nothing), or True (they draw on the common account).
    """

    named: Mapping[str, float]
    others: float | bool = False

    def __post_init__(self) -> None:
        shares = {
            checks.text("who", who): checks.probability(f"the share of {who}", share)
            for who, share in self.named.items()
        }
        object.__setattr__(self, "named", shares)
        if not isinstance(self.others, bool):
            object.__setattr__(self, "others", checks.probability("the share of others", self.others))
        if sum(self.parts().values()) > 1:
            raise InvalidParameter(
                f"the shares exceed the budget.\n  found:  a sum of {float(sum(self.parts().values())):g}\n"
                "  do:     give shares whose sum is at most 1"
            )

    def parts(self) -> dict[str, Fraction]:
        """Account → its share, as the decimal number that was written: 0.1 is one tenth, not the double near it."""
        named = {f"{ANALYST}{who}": Fraction(str(share)) for who, share in self.named.items()}
        return named if self.others is True else {**named, OTHERS: Fraction(str(float(self.others)))}

    def rename(self, account: str) -> str:
        """The name of an account once these shares are in force."""
        plain = account.removeprefix(FORMER)
        if not plain.startswith(ANALYST) and plain != OTHERS:
            return account
        return plain if plain in self.parts() else f"{FORMER}{plain}"

    def limits(self, accounts: Accounts, origins: Mapping[str, str]) -> dict[str, Amount]:
        """The limits of all accounts but plans, under these shares of the whole budget.

        No limit falls below what is spent. What was reserved for plans counts towards the share it came from.
        Raises `BudgetExceeded` if the common account has already spent what is to be set aside.
        """
        total = sum((limit for limit, _ in accounts.values()), Amount())
        spent = {self.rename(name): used for name, (_, used) in accounts.items() if not name.startswith(PLAN)}
        reserved = {name: limit for name, (limit, _) in accounts.items() if name.startswith(PLAN)}
        limits = {name: spent.get(name, Amount()) for name in {*spent, *self.parts()} - {COMMON}}
        for name, part in self.parts().items():
            planned = sum((limit for plan, limit in reserved.items() if origins.get(plan) == name), Amount())
            wanted = (int(units * part) - less for units, less in zip(total, planned, strict=True))
            limits[name] = Amount(*map(max, wanted, limits[name]))
        rest = [units - sum(aside) for units, *aside in zip(total, *limits.values(), *reserved.values(), strict=True)]
        if any(left < used for left, used in zip(rest, spent[COMMON], strict=True)):
            raise BudgetExceeded(
                "these shares no longer fit into the budget.\n"
                "  found:  too much was spent from the common account, or by people whose share is lowered now,\n"
                f"          to set aside {describe_shares(self)}\n"
                "  do:     make shares smaller, or renew the budget (sfumato ledger renew); nothing was changed"
            )
        return {**limits, COMMON: Amount(*rest)}


def describe_shares(shares: Shares) -> str:
    names = [f"{100 * share:g} % for {who}" for who, share in shares.named.items()]
    rest = [] if isinstance(shares.others, bool) else [f"{100 * shares.others:g} % for all others"]
    return ", ".join([*names, *rest])


def describe_account(account: str) -> str:
    """The name of an account in messages."""
    if account == COMMON:
        return "the common account"
    if account == OTHERS:
        return "the share of people whom the policy does not name"
    former, plain = account.startswith(FORMER), account.removeprefix(FORMER)
    kind, _, name = plain.partition(" ")
    words = {"analyst": f"the share of {name}", "plan": f"the plan {name!r}"}.get(kind, "the share of others")
    return f"the former {words.removeprefix('the ')}" if former else words
