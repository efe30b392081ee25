"""Partition selection: which groups may be shown when their names are private."""
