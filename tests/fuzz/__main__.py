"""`make fuzz`: very many questions, each a function of (seed, number). Ends with 1 if something does not hold.

Failures are printed with all that it takes to see them again: seed and number, policy, data, question, and a shorter
question that fails in the same way. What has failed once is kept in seeds.txt, and asked again by every test run.
"""

import argparse
import os
import sys
import time
from collections import Counter
from contextlib import ExitStack

from tests.engines.spark import INTERPRETED, started
from tests.faults.server import running
from tests.fuzz.run import BATCH, Run
from tests.fuzz.scaled import fuzz


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--count", type=int, default=100_000, help="questions")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--start", type=int, default=0, help="the number of the first one")
    options.add_argument("--engine", choices=["duckdb", "postgres", "spark"], default="duckdb")
    options.add_argument("--most", type=int, default=20, help="failures after which it ends")
    options.add_argument(
        "--family", default="", help="grouped, joins, semijoins, values, windows, times, texts, or scaled"
    )
    chosen = options.parse_args()
    if chosen.family == "scaled":
        print(dict(fuzz(chosen.seed, chosen.count)))  # raises at the first failure
        return 0
    failures, kinds, began = 0, Counter(), time.process_time()
    with ExitStack() as stack:
        dsn = stack.enter_context(running()).dsn if chosen.engine == "postgres" else None
        run = Run(
            chosen.seed, dsn, chosen.family, started(*INTERPRETED.items())[0] if chosen.engine == "spark" else None
        )
        for index in range(chosen.start, chosen.start + chosen.count):
            if index % (10 * BATCH) == 0:
                print(f"  {index:,} … {dict(run.count)}", file=sys.stderr, flush=True)
            failed = run.one(index)
            if failed is not None:
                failures += 1
                kinds[failed.kind] += 1
                print(
                    run.report(index, failed) if kinds[failed.kind] <= 3 else f"again {index}: {failed}"[:300],
                    flush=True,
                )
                if failures >= chosen.most:
                    break
        run.close()
    spent = time.process_time() - began
    print(
        f"{run.count['asked']:,} questions of seed {chosen.seed} on {chosen.engine}: {dict(run.count)}, {dict(kinds)}"
    )
    print(f"{spent:.0f} s of processor time, {os.getpid()}")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
