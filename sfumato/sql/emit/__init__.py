"""Plans as SQL text for an engine."""
