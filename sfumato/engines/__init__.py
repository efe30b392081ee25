"""Engines: SQL text in, exact integers out. They see no budget and no noise."""
