"""Aggregates: one file each, with its spellings, its sums or its mechanism, and how noisy values become an estimate."""
