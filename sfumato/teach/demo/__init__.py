"""Demos for newcomers: the curator on synthetic data, and a tour of the calculus."""
