"""diffprivlib: outputs of its mechanisms on a number, as they are."""

from diffprivlib import mechanisms

PACKAGE, PREPARES = "diffprivlib", False


def outputs(name, epsilon, delta, value, count):
    more = {"delta": delta} if delta else {}
    made = getattr(mechanisms, name)(epsilon=epsilon, sensitivity=1, **more)
    return {"outputs": [float(made.randomise(value)) for _ in range(count)]}
