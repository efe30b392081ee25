"""Views of a loss: profile, trade-off function, divergences, Gaussian DP, zCDP."""
