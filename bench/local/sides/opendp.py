"""OpenDP: exact randomized response, one value per call; it has no estimator."""

import time

import opendp.prelude as dp

PACKAGE, PREPARES, CLOCK = "opendp", True, time.process_time
FEW = 2000
dp.enable_features("contrib")


def randomise(what, k, count):
    if k == 2:
        found = dp.m.make_randomized_response_bool(prob=0.7310585786300049)
        values = [i % 2 == 0 for i in range(FEW)]
    else:
        found = dp.m.make_randomized_response(categories=list(range(k)), prob=2.718281828 / (2.718281828 + k - 1))
        values = [i % k for i in range(FEW)]

    def work():
        for value in values:
            found(value)
        return {"per": [FEW / count]}

    return work


def estimate(what, k, count):
    raise NotImplementedError("OpenDP has no estimator for randomized response")
