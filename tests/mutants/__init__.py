"""Thirty bugs, planted in our own modules one at a time: the auditor must find each, and must not cry without it."""
