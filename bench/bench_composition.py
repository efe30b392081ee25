"""The same work for us and for other accountants, timed in one run: how many times as long do they take?

    python bench/bench_composition.py [--only 1 7] [--rounds 3] [--limit 60] [--long] [--json [FILE]]

Each side runs in a warm process of its own, with one thread (common/serve.py); bursts of the two sides alternate,
so that a busy machine is busy for both, and the least time of each counts. Our answers have two sides and cover both
directions; "our gap" is how far apart they are, relatively, and "excess" how far the peer is above our lower one.
Peers live in bench/.peers/<name>, which `make bench-composition` prepares; rows of those not there are left out.
Bars that are missed are shown, not punished: the exit status is 1 only if we failed to answer.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common.run import BENCH, options_of, sides, table, write
from bench.composition.work import ROWS


def main() -> int:
    options = options_of(__doc__ or "", "composition")
    ours, peers = sides(BENCH / "composition", ROWS, options.limit)
    results = table(ROWS, ours, peers, options)
    if options.json:
        write(options.json, results, (ours, *peers.values()))
    for side in (ours, *peers.values()):
        side.stop()
    return int(any(result.crashed for result in results))


if __name__ == "__main__":
    sys.exit(main())
