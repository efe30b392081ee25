"""The ledger: a budget fixed in advance, and the durable record that enforces it."""

from sfumato.ledger.amounts import Amount
from sfumato.ledger.budgets import Budget, Promise, PureBudget, ZcdpBudget
from sfumato.ledger.charges import Receipt
from sfumato.ledger.hash_chain import FileAnchor
from sfumato.ledger.ledger import Ledger

__all__ = ["Amount", "Budget", "FileAnchor", "Ledger", "Promise", "PureBudget", "Receipt", "ZcdpBudget"]
