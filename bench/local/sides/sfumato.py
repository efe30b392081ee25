"""Ourselves."""

import time

import numpy as np

import sfumato as sf

PACKAGE, PREPARES, CLOCK = "sfumato", True, time.process_time
rng = np.random.default_rng(0)
KINDS = {
    "randomized response": sf.local.Response,
    "projective": sf.local.ProjectiveResponse,
    "hashing": sf.local.LocalHashing,
    "hadamard": sf.local.HadamardResponse,
    "unary": sf.local.UnaryEncoding,
}


def worked(act, per=1):
    def work():
        act()
        return {"per": [per]}

    return work


def randomise(what, k, count):
    oracle = KINDS[what].of(k, 1.0)
    few = 10 if what == "unary" else 1
    values = rng.integers(0, k, count // few)
    values = values.astype(bool) if k == 2 else values
    return worked(lambda: oracle.randomize(values), 1 / few)


def estimate(what, k, count):
    oracle = KINDS[what].of(k, 1.0)
    reports = oracle.randomize(rng.integers(0, k, count // 10 if what == "unary" else count))
    reports = np.tile(reports, (10, 1)) if what == "unary" else reports
    return worked(lambda: sf.local.estimate(oracle, reports))


def shuffled(what, eps, people):
    """Fresh caches each time: the sums themselves are timed."""
    from sfumato.loss.kinds import blanket_sums

    randomizer = (
        eps if what == "clones" else sf.local.Response.of({"binary": 2, "3 values": 3, "16 values": 16}[what], eps)
    )

    def work():
        blanket_sums.upper_nodes.cache_clear()
        blanket_sums.lower_nodes.cache_clear()
        found = sf.local.Shuffled(randomizer, people).epsilon(1e-6)
        return {"per": [1], "lower": [found.lower], "upper": [found.upper]}

    return work
