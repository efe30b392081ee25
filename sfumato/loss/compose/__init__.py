"""Composition: sums of losses, and the engines that answer for them."""
