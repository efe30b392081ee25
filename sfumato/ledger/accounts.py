"""Accounts: which one pays for a question, moves between them, and the refusal where an account does not cover a cost.

`shares.py` says what accounts there are and what shares of a budget come to; here the tables are read and changed.
"""

import math
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal

from sfumato.errors import BudgetExceeded
from sfumato.ledger import tables
from sfumato.ledger.amounts import Amount
from sfumato.ledger.budgets import Promise
from sfumato.ledger.hash_chain import require_int
from sfumato.ledger.journal import NextLine
from sfumato.ledger.shares import COMMON, PLAN, Shares, describe_account
from sfumato.ledger.state import read_shares, replay_entries
from sfumato.ledger.store import Transaction

DIGITS = 4


def move(line: NextLine, promise: Promise, source: str, to: str, amount: Amount, why: str) -> None:
    """Move an unspent amount from one account to another, which may be new."""
    if not tables.lower_limit(line.transaction, source, amount):
        limit, spent = tables.require_account(line.transaction, source)
        raise budget_exceeded(promise, amount, limit - spent, source)
    tables.raise_limit(line.transaction, to, amount)
    line.write({"kind": "moved", "from": source, "to": to, "amount": list(amount), "why": why})


def release_plan(line: NextLine, promise: Promise, plan: str) -> None:
    """Move what a plan has not spent back to where it came from."""
    limit, spent = tables.require_account(line.transaction, plan)
    source = plan_source(line.transaction, plan) or COMMON
    back = source if source in tables.accounts(line.transaction) else COMMON  # the share may have been withdrawn
    move(line, promise, plan, back, limit - spent, "release")


def plan_source(transaction: Transaction, plan: str) -> str | None:
    """The account that a plan was first reserved from, if there is such a plan."""
    contents = (entry.content for entry in tables.entries(transaction))
    return next((str(c["from"]) for c in contents if c["kind"] == "moved" and c["to"] == plan), None)


def latest_shares(transaction: Transaction) -> Shares | None:
    """The shares that were set last. (The text of a question has its quotes escaped, so it cannot match.)"""
    rows = transaction.run("SELECT seq FROM entries WHERE text LIKE ? ORDER BY seq DESC LIMIT 1", '%"kind":"shares"%')
    return read_shares(tables.entry(transaction, require_int(rows[0][0])).content) if rows else None


def changed_limits(transaction: Transaction, shares: Shares) -> dict[str, Amount] | None:
    """The limits of all accounts but plans under these shares; None if these shares and limits hold already."""
    accounts = tables.accounts(transaction)
    plans = [name for name in accounts if name.startswith(PLAN)]
    limits = shares.limits(accounts, {plan: plan_source(transaction, plan) or COMMON for plan in plans})
    present = {name: limit for name, (limit, _) in accounts.items() if name not in plans}
    return limits if limits != present or repr(latest_shares(transaction)) != repr(shares) else None


def set_shares(line: NextLine, shares: Shares) -> bool:
    """Rename accounts and set their limits as these shares say; False if nothing changes."""
    limits = changed_limits(line.transaction, shares)
    if limits is None:
        return False
    state = replay_entries(tables.entries(line.transaction))
    state.share(shares, limits)
    tables.replace_accounts(line.transaction, state.accounts)
    units = {name: list(limit) for name, limit in limits.items()}
    line.write({"kind": "shares", "shares": dict(shares.named), "others": shares.others, "limits": units})
    return True


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
