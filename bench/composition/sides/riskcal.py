"""riskcal: calibration and trade-off functions on top of dp-accounting's distributions."""

import numpy as np
from riskcal.accountants import CTDAccountant
from riskcal.analysis import get_beta_from_pld
from riskcal.calibration.blackbox import find_noise_multiplier_for_epsilon_delta

PACKAGE = "riskcal"


def noise(rate, steps, epsilon, delta, grid, tolerance):
    """With its default tolerance, 1e-3 in ε."""
    sigma = find_noise_multiplier_for_epsilon_delta(
        CTDAccountant, sample_rate=rate, num_steps=steps, epsilon=epsilon, delta=delta, grid_step=grid
    )
    return {"upper": [float(sigma)]}


def power(terms, alpha, grid, tolerance):
    """1 − β at each α, for one run of training."""
    ((_, steps, rate, sigma),) = terms
    accountant = CTDAccountant()
    accountant.history = [(sigma, rate, steps)]
    return {"upper": list(1 - get_beta_from_pld(accountant.get_pld(grid_step=grid), np.array(alpha)))}
