"""OpenDP: outputs of its measurements on a number, as they are."""

import opendp.prelude as dp

PACKAGE, PREPARES = "opendp", False
dp.enable_features("contrib")


def outputs(name, epsilon, delta, value, count):
    space = dp.atom_domain(T="f64", nan=False), dp.absolute_distance(T="f64")
    measure = gaussian(space, epsilon, delta) if name == "Gaussian" else dp.m.make_laplace(*space, scale=1 / epsilon)
    return {"outputs": [float(measure(float(value))) for _ in range(count)]}


def gaussian(space, epsilon, delta):
    """The least noise that OpenDP itself says is (ε, δ)-DP."""

    def approximate(scale):
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale)), delta)

    return dp.m.make_gaussian(*space, scale=dp.binary_search_param(approximate, 1.0, (epsilon, delta), T=float))
