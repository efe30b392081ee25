"""sfumato: both directions, both sides. The public interface only, as a reader of the README would use it."""

from itertools import cycle, islice

import sfumato as sf

PACKAGE = "sfumato"


def single(kind: str, *parameters: float) -> sf.PrivacyLoss:
    match kind, parameters:
        case "gaussian", (sigma,):
            return sf.loss.GaussianLoss(1 / sigma)
        case "laplace", (scale,):
            return sf.loss.LaplaceLoss(1 / scale)
        case "response", (eps,):
            return sf.loss.RandomizedResponseLoss(eps)
        case "approx", (eps, delta):
            return sf.loss.ApproxLoss(eps, delta)
        case "sampled", (rate, sigma):
            return sf.Poisson(rate).amplify(sf.loss.GaussianLoss(1 / sigma))
    raise ValueError(kind)


def composed(terms):
    return sum(count * single(kind, *parameters) for kind, count, *parameters in terms)


def sides(bound):
    return {"lower": [bound.lower], "upper": [bound.upper]}


def epsilon(terms, delta, grid, tolerance):
    return sides(composed(terms).epsilon(delta, tolerance=tolerance))


def noise(rate, steps, epsilon, delta, grid, tolerance):
    def family(sigma):
        return composed([["sampled", steps, rate, sigma]])

    return sides(sf.calibrate(family, epsilon=epsilon, delta=delta, tolerance=tolerance))


def profile(terms, eps, grid, tolerance):
    found = composed(terms).delta(eps, tolerance=tolerance)
    return {"lower": found.lower.tolist(), "upper": found.upper.tolist()}


def power(terms, alpha, grid, tolerance):
    """1 − β at each α."""
    found = composed(terms).trade_off(alpha, tolerance=tolerance)
    return {"lower": (1 - found.upper).tolist(), "upper": (1 - found.lower).tolist()}


def curves(terms, eps, alpha, grid, tolerance):
    """Both; the profile is compared."""
    power(terms, alpha, grid, tolerance)
    return profile(terms, eps, grid, tolerance)


def running(terms, count, delta, grid, tolerance):
    """Add one loss, read ε, and so on: the last answer."""
    total = sf.loss.Running(delta, tolerance=tolerance)
    for kind, _, *parameters in islice(cycle(terms), count):
        last = total.add(single(kind, *parameters)).epsilon()
    return sides(last)
