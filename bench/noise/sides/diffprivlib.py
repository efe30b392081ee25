"""diffprivlib: one number at a time. Its scale follows from ε, so that ε is chosen for the scale that is asked for."""

import time

from diffprivlib import mechanisms

PACKAGE, PREPARES, CLOCK = "diffprivlib", True, time.process_time
TIMES = 50


def one(law, scale):
    if "Gaussian" in law:
        found = mechanisms.GaussianDiscrete(epsilon=min(1.0, 5 / scale), delta=1e-5)
    else:
        found = mechanisms.Geometric(epsilon=1 / scale)

    def work():
        for _ in range(TIMES):
            found.randomise(0)
        return {"per": [TIMES]}

    return work


pooled = one
