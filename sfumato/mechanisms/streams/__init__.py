"""Mechanisms that answer a stream of questions or a growing count."""
