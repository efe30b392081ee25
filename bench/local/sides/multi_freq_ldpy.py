"""multi-freq-ldpy: one report per call, from NumPy's generator; estimates are clipped and renormalised."""

import time

import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

PACKAGE, PREPARES, CLOCK = "multi-freq-ldpy", True, time.process_time
CLIENTS = {"randomized response": GRR_Client, "unary": UE_Client, "hashing": LH_Client}
FEW = {"randomized response": 20_000, "unary": 2000, "hashing": 5000}
REPORTS = {"randomized response": 100_000, "unary": 10_000, "hashing": 1000}


def randomise(what, k, count):
    client, few = CLIENTS[what], FEW[what]
    values = np.random.randint(0, k, few).tolist()
    client(0, k, 1.0)  # compiles

    def work():
        for value in values:
            client(value, k, 1.0)
        return {"per": [few / count]}

    return work


def estimate(what, k, count):
    client, few = CLIENTS[what], REPORTS[what]
    reports = [client(value, k, 1.0) for value in np.random.randint(0, k, few).tolist()]
    act = {
        "randomized response": lambda: GRR_Aggregator_MI(reports, k, 1.0),
        "unary": lambda: UE_Aggregator_MI(reports, 1.0),
        "hashing": lambda: LH_Aggregator_MI(reports, k, 1.0),
    }[what]

    def work():
        act()
        return {"per": [few / count]}

    return work
