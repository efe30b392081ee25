"""The ledger: a budget fixed in advance, and a book that keeps it."""

from sfumato.ledger.amounts import Amount
from sfumato.ledger.anchor import FileAnchor
from sfumato.ledger.budgets import Budget, Promise, PureBudget, ZcdpBudget
from sfumato.ledger.ledger import Ledger, Receipt

__all__ = ["Amount", "Budget", "FileAnchor", "Ledger", "Promise", "PureBudget", "Receipt", "ZcdpBudget"]
