"""Losses on a vertical line of the complex plane: what the contour engine needs to know of each."""
