"""prv-accountant: two-sided, ±0.01 in ε; the remove direction only."""

from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

PACKAGE = "prv_accountant"


def epsilon(terms, delta, grid, tolerance):
    ((_, count, rate, sigma),) = terms
    step = PoissonSubsampledGaussianMechanism(sampling_probability=rate, noise_multiplier=sigma)
    accountant = PRVAccountant(prvs=[step], max_self_compositions=[count], eps_error=0.01, delta_error=1e-3 * delta)
    return {"upper": [float(accountant.compute_epsilon(delta, [count])[2])]}
