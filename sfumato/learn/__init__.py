"""Private learning: estimators under the same ledger as questions."""
