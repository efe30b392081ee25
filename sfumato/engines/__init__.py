"""Engines: SQL text in, exact integers out. An engine sees neither budget nor noise."""
