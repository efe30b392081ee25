"""Who draws on what: the accounts of a ledger, and the act that sets everybody's share anew.

""               the common account: all that is set aside for nobody; the owner draws on it
"analyst ann"    set aside for ann
"others"         set aside for everybody without an account of his own, together; the owner is not one of them
"plan x"         reserved for planned work
"former …"       what somebody spent who is not named any more, or others who draw on the common account now
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from fractions import Fraction

from sfumato import checks
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.ledger.amounts import Amount
from sfumato.ledger.request_names import text

Accounts = Mapping[str, tuple[Amount, Amount]]  # name → (limit, spent)

REST, OTHERS, ANALYST, PLAN, FORMER = "", "others", "analyst ", "plan ", "former "
OWNER = "owner"  # who asks unless somebody else is named


@dataclass(frozen=True)
class Shares:
    """A share of the whole budget for each name; and for all others together: a share, nothing (False), or whatever is
    set aside for nobody (True)."""

    named: Mapping[str, float]
    others: float | bool = False

    def __post_init__(self) -> None:
        shares = {
            text("who", who): checks.probability(f"the share of {who}", share) for who, share in self.named.items()
        }
        object.__setattr__(self, "named", shares)
        if not isinstance(self.others, bool):
            object.__setattr__(self, "others", checks.probability("the share of others", self.others))
        if sum(self.parts().values()) > 1:
            raise InvalidParameter(
                f"shares are parts of one budget.\n  found:  {float(sum(self.parts().values())):g} in all\n"
                "  do:     let them sum to 1 at most"
            )

    def parts(self) -> dict[str, Fraction]:
        """Account → its share, as the decimal number that was written."""
        named = {f"{ANALYST}{who}": Fraction(str(share)) for who, share in self.named.items()}
        return named if self.others is True else {**named, OTHERS: Fraction(str(float(self.others)))}

    def renamed(self, account: str) -> str:
        """What an account is called when these shares hold."""
        plain = account.removeprefix(FORMER)
        if not plain.startswith(ANALYST) and plain != OTHERS:
            return account
        return plain if plain in self.parts() else f"{FORMER}{plain}"

    def limits(self, accounts: Accounts, origins: Mapping[str, str]) -> dict[str, Amount]:
        """The limits of all accounts but plans, under these shares of all that there is.

        Nobody's limit falls below what is spent. What an account has reserved for plans counts as its own.
        Raises `BudgetExceeded` if the common account has spent what is to be set aside.
        """
        whole = sum((limit for limit, _ in accounts.values()), Amount())
        spent = {self.renamed(name): used for name, (_, used) in accounts.items() if not name.startswith(PLAN)}
        reserved = {name: limit for name, (limit, _) in accounts.items() if name.startswith(PLAN)}
        found = {name: spent.get(name, Amount()) for name in {*spent, *self.parts()} - {REST}}
        for name, part in self.parts().items():
            planned = sum((limit for plan, limit in reserved.items() if origins.get(plan) == name), Amount())
            wanted = (int(units * part) - less for units, less in zip(whole, planned, strict=True))
            found[name] = Amount(*map(max, wanted, found[name]))
        rest = [units - sum(aside) for units, *aside in zip(whole, *found.values(), *reserved.values(), strict=True)]
        if any(left < used for left, used in zip(rest, spent[REST], strict=True)):
            raise BudgetExceeded(
                "these shares do not fit into the budget any more.\n"
                "  found:  so much was spent from the common account, or by people whose share is lowered now, that\n"
                f"          {listed(self)} cannot be set aside\n"
                "  do:     make shares smaller, or renew the budget (sfumato ledger renew); nothing was changed"
            )
        return {**found, REST: Amount(*rest)}


def listed(shares: Shares) -> str:
    names = [f"{100 * share:g} % for {who}" for who, share in shares.named.items()]
    rest = [] if isinstance(shares.others, bool) else [f"{100 * shares.others:g} % for all others"]
    return ", ".join([*names, *rest])


def payer(accounts: Container[str], who: str) -> str:
    """The account that pays for somebody's questions: his own, or that of all others, or the common one."""
    if f"{ANALYST}{who}" in accounts:
        return f"{ANALYST}{who}"
    return OTHERS if OTHERS in accounts and who != OWNER else REST


def in_words(account: str) -> str:
    """What an account is called in messages."""
    if account == REST:
        return "the common account"
    if account == OTHERS:
        return "what is set aside for people whom the policy does not name"
    former, plain = account.startswith(FORMER), account.removeprefix(FORMER)
    kind, _, name = plain.partition(" ")
    words = {"analyst": f"the share of {name}", "plan": f"the plan {name!r}"}.get(kind, "what was set aside for others")
    return f"{words}, as it was" if former else words
