"""What is drawn: each row is one piece of work, the peer that does it too, and the bars we set ourselves."""

from collections.abc import Iterator

from bench.common.row import Row

MILLION = 10**6
SCALES = (1, 10, 10**3, 10**6, 10**9, 10**12)
LAWS = ("rounded Gaussian", "discrete Gaussian", "discrete Laplace")
OTHER_LAWS = ("rounded Laplace", "staircase")
SCORES = ("normal", "all equal", "one far above", "whole")
MECHANISMS = ("Gaussian", "Laplace", "DiscreteGaussian", "DiscreteLaplace")


def draws() -> Iterator[Row]:
    """Integers, int64 out. NumPy: rint(normal), which is neither secure nor exact."""
    for law in (*LAWS, *OTHER_LAWS):
        for scale in SCALES if law in LAWS else (10, 10**6):
            work, arguments = f"10⁶ {law}, scale {scale:g}", {"law": law, "scale": scale, "count": MILLION}
            if law in LAWS:
                yield Row("1", work, "draws", arguments, "opendp", ratio=600)
            yield Row("1", work, "draws", arguments, "numpy", ratio=1.5 if law in LAWS else None)


def releases() -> Iterator[Row]:
    """What users call: v + noise for 10⁶ integers. NumPy: rint(noise) + v, which neither saturates nor is secure."""
    for mechanism in MECHANISMS:
        for scale in (1, 10, 10**3, 10**6, 10**9):
            arguments = {"mechanism": mechanism, "scale": scale, "count": MILLION}
            work = f"{mechanism}({scale:g}).release of 10⁶ integers"
            yield Row("2", work, "release_all", arguments, "numpy", ratio=1.5)


def single() -> Iterator[Row]:
    """One at a time. diffprivlib has no rounded Gaussian: its discrete one stands in, as OpenDP's does."""
    for scale in (1, 10**3, 10**12):
        for law in LAWS:
            arguments = {"law": law, "scale": scale}
            peers = ("opendp", "diffprivlib") if scale == 10**3 else (None,)
            for peer in peers:
                yield Row("3", f"one {law}, scale {scale:g}, fresh", "one", arguments, peer, most_ms=0.01)
    for peer in ("opendp", "diffprivlib"):
        arguments = {"law": "rounded Gaussian", "scale": 10}
        yield Row("3", "one rounded Gaussian, from a pool", "pooled", arguments, peer, most_ms=1e-4)
    yield Row("3", "release of one integer, pooled", "release", {"value": 5}, None)
    yield Row("3", "release of one real", "release", {"value": 5.5}, None)


ROWS: list[Row] = [
    *draws(),
    *(
        Row("2", f"10⁶ round(v + N), σ {scale:g}", "about", {"scale": scale, "count": MILLION}, "numpy", ratio=0.7)
        for scale in (1, 10**3, 10**6)
    ),
    *releases(),
    *single(),
    *(
        Row("4", f"one of 10⁶ by weight e^{{u/2}}, scores {kind}", "choice", arguments, peer, ratio=bar)
        for kind in SCORES
        for arguments in [{"way": "exponential", "kind": kind, "count": MILLION}]
        for peer, bar in (("opendp", None), ("numpy", 2.0))
    ),
    *(
        Row(
            "4",
            f"one of 10⁶ by permute-and-flip, scores {kind}",
            "choice",
            {"way": "permute and flip", "kind": kind, "count": MILLION},
            "numpy",
        )
        for kind in SCORES
    ),
    Row("5", "10⁶ randomized responses, ε = ln 2", "flips", {"count": MILLION}, "opendp"),
    Row("5", "10⁶ randomized responses, ε = ln 2", "flips", {"count": MILLION}, "numpy", ratio=1),
    Row("5", "10⁶ coins e^-x, each its own x", "coins", {"count": MILLION}, "numpy"),
    Row("5", "one of 10⁶ fresh weights", "weights", {"count": MILLION}, "numpy"),
    *(
        Row("6", f"set-up of {law}, scale {scale:g}", "set_up", {"law": law, "scale": scale}, None, most_ms=10)
        for law in (*LAWS, *OTHER_LAWS)
        for scale in (10, 10**3, 10**9)
    ),
]
