"""Exact noise and choices against NumPy's generator, OpenDP and diffprivlib, timed in one run; then time against value.

    python bench/bench_noise.py [--only 1 4] [--rounds 3] [--limit 60] [--json [FILE]]

Times are of what "work" says: 10⁶ draws, `release` of an array of 10⁶ integers, one draw, one choice. They are
processor times, since machines are shared. Peers that draw one after the other draw fewer and are scaled up. Each side
runs in a warm process of its own, with one thread (common/serve.py), tables are made before the clock starts, and
bursts of the two sides alternate. Then, unless --only leaves it out: A6, does the time of a release tell its noise?
(bar: a rank correlation below 0.05 over 10⁵ releases), and C, chi-square of 10⁷ draws of each law.
Peers live in bench/.peers/<name>, which `make bench-noise` prepares; rows of those that are not there are left out.
"""

import sys
from argparse import Namespace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common.run import BENCH, options_of, sides, table, write
from bench.common.side import Side
from bench.noise.work import LAWS, MECHANISMS, OTHER_LAWS, ROWS

RELEASES, PEER_RELEASES, DRAWS = 100_000, 20_000, 10**7
MOST_RHO, LEAST_P = 0.05, 1e-4
WHOLE, REAL = 10**6, 10**6 + 0.25


def told(side: Side, job: str, key: str, **arguments: object) -> float | str:
    """One number that a side reports about itself, or what kept it from doing so."""
    reply = side.ask(job, arguments, 1, 0.0)
    answer = reply.get("answer")
    return float(answer[key][0]) if isinstance(answer, dict) else str(reply.get("error") or "late")


def latency(ours: Side, peer: Side) -> dict[str, float | str]:
    """A6. Integers come from a pool, and reals are drawn when asked for.

    The value is large, since Python makes integers near 0 quicker than others: the time of an answer near 0 tells the
    answer, which is public, and would hide what it tells about the noise.
    """
    found: dict[str, float | str] = {}
    print(f"\nA6  rank correlation of time and |noise| over {RELEASES:,} single releases, scale 10 (bar {MOST_RHO})")
    for mechanism in MECHANISMS:
        for value in (WHOLE, REAL) if not mechanism.startswith("Discrete") else (WHOLE,):
            more = {"mechanism": mechanism, "value": value, "scale": 10}
            rho = found[f"{mechanism} {value}"] = told(ours, "latency", "rho", **more, count=RELEASES)
            text = f"{rho:+.4f}  {'ok' if abs(rho) < MOST_RHO else 'MISSED'}" if isinstance(rho, float) else rho
            if peer.installed and value == WHOLE and mechanism.startswith("Discrete"):
                other = found[f"OpenDP {mechanism}"] = told(peer, "latency", "rho", **more, count=PEER_RELEASES)
                text += f"   OpenDP: {other:+.3f} over {PEER_RELEASES:,}" if isinstance(other, float) else f"   {other}"
            print(f"    {mechanism:18} of {value:<9} {text}", flush=True)
    return found


def fit(ours: Side) -> dict[str, float | str]:
    """C. One of the ten is below 0.1 in most runs; below 0.0001 almost never."""
    found: dict[str, float | str] = {}
    print(f"\nC   p-values of chi-square, {DRAWS:,} draws of each law (bar {LEAST_P})")
    for law in (*LAWS, *OTHER_LAWS):
        ps = [told(ours, "fit", "p", law=law, scale=scale, count=DRAWS) for scale in (1, 10)]
        found |= {f"{law} {scale}": p for scale, p in zip((1, 10), ps, strict=True)}
        text = ", ".join(f"{p:.3f}" if isinstance(p, float) else p for p in ps)
        good = all(isinstance(p, float) and p > LEAST_P for p in ps)
        print(f"    {law:18} scale 1 and 10: {text}  {'ok' if good else 'MISSED'}", flush=True)
    return found


def main() -> int:
    options: Namespace = options_of(__doc__ or "", "noise")
    ours, peers = sides(BENCH / "noise", ROWS, options.limit)
    results = table(ROWS, ours, peers, options)
    more = {}
    if not options.only or "A6" in options.only:
        more["latency"] = latency(ours, peers["opendp"])
    if not options.only or "C" in options.only:
        more["fit"] = fit(ours)
    if options.json:
        write(options.json, results, (ours, *peers.values()), **more)
    for side in (ours, *peers.values()):
        side.stop()
    return int(any(result.crashed for result in results))


if __name__ == "__main__":
    sys.exit(main())
