"""Tests of sfumato/aggregates: laws over all of them, and one file for each."""
