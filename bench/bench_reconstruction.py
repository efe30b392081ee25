"""The reconstruction attack at full size: 200 people, 1,600 questions, total ε = 1, on 20 databases and a live curator.

    python bench/bench_reconstruction.py --databases 20

The bar: at most 0.55 of the secrets right in the mean; against exact answers all of them.
"""

import argparse
import sys

from sfumato.teach.attacks.reconstruction import reconstruct

BAR = 0.55


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--databases", type=int, default=20)
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--questions", type=int, default=1600)
    options = parser.parse_args()
    exact, curator = [], []
    for seed in range(options.databases):
        found = reconstruct(options.people, options.questions, seed)
        exact.append(found.exact)
        curator.append(found.curator)
        print(f"database {seed + 1:3}: exact {found.exact:.3f}, curator {found.curator:.3f}", flush=True)
    mean = sum(curator) / len(curator)
    met = mean <= BAR and min(exact) == 1.0
    print(f"mean through the curator {mean:.3f} (bar {BAR}), least on exact answers {min(exact):.3f}")
    print("met" if met else "NOT met")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
