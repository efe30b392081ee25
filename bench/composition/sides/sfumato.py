"""sfumato: both directions, both sides. The public interface only, as a reader of the README would use it."""

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
    """1 − β at each α. One at a time for now: to be replaced when trade_off takes arrays."""
    loss = composed(terms)
    found = [loss.trade_off(a, tolerance=tolerance) for a in alpha]
    return {"lower": [1 - bound.upper for bound in found], "upper": [1 - bound.lower for bound in found]}


def running(terms, count, delta, grid, tolerance):
    """Add one loss, read ε, and so on: to be written when a sum can grow without being composed anew."""
    raise NotImplementedError("no running total yet")
