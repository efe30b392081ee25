"""Which account pays for a question, and the acts that move parts of the budget between accounts.

`shares.py` says what accounts there are and what shares of a budget come to; here the tables are read and changed.
"""

from sfumato.errors import InvalidParameter
from sfumato.ledger import tables
from sfumato.ledger.amounts import Amount
from sfumato.ledger.budgets import Promise
from sfumato.ledger.hash_chain import require_int
from sfumato.ledger.journal import NextLine
from sfumato.ledger.refusals import budget_exceeded
from sfumato.ledger.shares import ANALYST, COMMON, OTHERS, PLAN, Shares, paying_account
from sfumato.ledger.state import read_shares, replay
from sfumato.ledger.store import Transaction


def account_for(transaction: Transaction, who: str, plan: str | None) -> str:
    """The account that pays: the plan's if one is given, otherwise that of the person who asks."""
    if plan is not None:
        require_account(transaction, f"{PLAN}{plan}")
        return f"{PLAN}{plan}"
    rows = transaction.run("SELECT name FROM accounts WHERE name = ? OR name = ?", f"{ANALYST}{who}", OTHERS)
    return paying_account({str(name) for (name,) in rows}, who)


def require_account(transaction: Transaction, name: str) -> tuple[Amount, Amount]:
    """(limit, spent) of an account that must exist."""
    account = tables.accounts(transaction).get(name)
    if account is None:
        raise InvalidParameter(f"there is no such account.\n  found:  no {name}\n  do:     reserve it first")
    return account


def move(line: NextLine, promise: Promise, source: str, to: str, amount: Amount, why: str) -> None:
    """Move an unspent amount from one account to another, which may be new."""
    if not tables.lower_limit(line.transaction, source, amount):
        limit, spent = require_account(line.transaction, source)
        raise budget_exceeded(promise, amount, limit - spent, source)
    tables.raise_limit(line.transaction, to, amount)
    line.write({"kind": "moved", "from": source, "to": to, "amount": list(amount), "why": why})


def release_plan(line: NextLine, promise: Promise, plan: str) -> None:
    """Move what a plan has not spent back to where it came from."""
    limit, spent = require_account(line.transaction, plan)
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
    state = replay(tables.entries(line.transaction))
    state.share(shares, limits)
    tables.replace_accounts(line.transaction, state.accounts)
    units = {name: list(limit) for name, limit in limits.items()}
    line.write({"kind": "shares", "shares": dict(shares.named), "others": shares.others, "limits": units})
    return True
