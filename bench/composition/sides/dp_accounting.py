"""dp-accounting: privacy loss distributions on a grid, connect-the-dots, upper bounds only."""

import math
from itertools import cycle, islice

import dp_accounting
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.common import DifferentialPrivacyParameters

PACKAGE = "dp_accounting"


def single(kind, parameters, grid):
    """The distribution of one mechanism."""
    match kind, parameters:
        case "gaussian", (sigma,):
            return pld.from_gaussian_mechanism(sigma, value_discretization_interval=grid)
        case "laplace", (scale,):
            return pld.from_laplace_mechanism(scale, value_discretization_interval=grid)
        case "response", (eps,):
            return pld.from_randomized_response(2 / (1 + math.exp(eps)), 2, value_discretization_interval=grid)
        case "approx", (eps, delta):
            pair = DifferentialPrivacyParameters(eps, delta)
            return pld.from_privacy_parameters(pair, value_discretization_interval=grid)
        case "sampled", (rate, sigma):
            return pld.from_gaussian_mechanism(sigma, sampling_prob=rate, value_discretization_interval=grid)
    raise ValueError(kind)


def composed(terms, grid):
    """The distribution of the whole: self-composition where there are copies, then one after the other."""
    total = None
    for kind, count, *parameters in terms:
        one = single(kind, parameters, grid)
        many = one.self_compose(count) if count > 1 else one
        total = many if total is None else total.compose(many)
    return total


def epsilon(terms, delta, grid, tolerance):
    return {"upper": [composed(terms, grid).get_epsilon_for_delta(delta)]}


def noise(rate, steps, epsilon, delta, grid, tolerance):
    """Its own calibration, to 1e-4: closer takes it longer and gains nothing on this grid."""
    event = dp_accounting.GaussianDpEvent
    sigma = dp_accounting.calibrate_dp_mechanism(
        lambda: dp_accounting.pld.PLDAccountant(value_discretization_interval=grid),
        lambda s: dp_accounting.SelfComposedDpEvent(dp_accounting.PoissonSampledDpEvent(rate, event(s)), steps),
        epsilon,
        delta,
        bracket_interval=dp_accounting.ExplicitBracketInterval(0.3, 10),
        tol=1e-4,
    )
    return {"upper": [sigma]}


def profile(terms, eps, grid, tolerance):
    return {"upper": list(composed(terms, grid).get_delta_for_epsilon(eps))}


def curves(terms, eps, alpha, grid, tolerance):
    """It has no trade-off function: the profile alone."""
    return profile(terms, eps, grid, tolerance)


def running(terms, count, delta, grid, tolerance):
    """Compose one more, read ε, and so on: the last answer."""
    total = pld.identity(value_discretization_interval=grid)
    for kind, _, *parameters in islice(cycle(terms), count):
        total = total.compose(single(kind, parameters, grid))
        last = total.get_epsilon_for_delta(delta)
    return {"upper": [last]}
