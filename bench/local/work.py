"""Local privacy: each row is one piece of work, the peer that does it too, and the bars we set ourselves."""

from collections.abc import Iterator
from pathlib import Path

from bench.common.row import Row

MILLION = 10**6
PEERS_FOLDER = Path(__file__).parents[1] / ".peers"
PEERS = {"randomized response": "multi_freq_ldpy", "unary": "multi_freq_ldpy", "hashing": "multi_freq_ldpy"}
RANDOMISE = (  # what, k, reports, milliseconds for a million of ours
    ("randomized response", 2, 20),
    ("randomized response", 1000, 50),
    ("projective", 1000, 50),
    ("hashing", 1000, 500),
    ("hadamard", 1000, 50),
    ("unary", 1000, None),
)
ESTIMATE = (("projective", 20), ("hadamard", 20), ("randomized response", 20), ("unary", 1000), ("hashing", 3000))


def randomise() -> Iterator[Row]:
    """A million values; peers do fewer and are scaled up."""
    for what, k, bar in RANDOMISE:
        peers = (PEERS.get(what), "opendp") if what == "randomized response" else (PEERS.get(what),)
        for peer in peers:
            arguments = {"what": what, "k": k, "count": MILLION}
            ratio = 50 if peer and bar else None
            yield Row("1", f"randomise 10⁶, {what}, k = {k}", "randomise", arguments, peer, ratio, most_ms=bar)


def estimate() -> Iterator[Row]:
    """A million reports, k = 1000. The peer clips and renormalises its estimates; the times compare the same counts."""
    for what, bar in ESTIMATE:
        arguments = {"what": what, "k": 1000, "count": MILLION}
        peer = PEERS.get(what)
        yield Row(
            "2", f"estimate 10⁶, {what}, k = 1000", "estimate", arguments, peer, 50 if peer else None, most_ms=bar
        )


BOUNDS = {"clones": ("feldman", "computeamplification.py"), "binary": ("wang", "unifiedamplification.py")}


def shuffled() -> Iterator[Row]:
    """ε at δ = 1e-6 of a million shuffled reports, and of ten thousand.

    Never above what two papers' bounds say. How long their code takes is only compared where it is there: our own
    version of their formulas would say nothing about it.
    """
    for what, bar in (("binary", 50), ("clones", 50), ("16 values", 1000), ("3 values", 1000)):
        for people in (10**4, 10**6):
            for eps in (1.0, 4.0):
                arguments = {"what": what, "eps": eps, "people": people}
                peer, file = BOUNDS.get(what, (None, ""))
                ratio = 50 if peer and (PEERS_FOLDER / peer / file).exists() else None
                work = f"shuffled ε, {what}, ε₀ = {eps:g}, n = {people:,}"
                yield Row("3", work, "shuffled", arguments, peer, ratio, most_ms=bar, never_above_peer=peer is not None)


ROWS: list[Row] = [*randomise(), *estimate(), *shuffled()]
