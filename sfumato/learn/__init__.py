"""Private learning: models that are trained under the same budget as every other question."""
