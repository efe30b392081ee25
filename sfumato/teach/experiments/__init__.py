"""Experiments of lectures and papers, as calls: each returns what it measured."""
