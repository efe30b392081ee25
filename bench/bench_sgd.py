"""Private training against plain torch and Opacus: time of a step, peak memory, noise, accuracy.

Run by `make bench-sgd` in the environment that has Opacus. One thread, processor time (other processes of the machine
do not count), methods interleaved, the least of many rounds. Peak memory is that of a process of its own.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import torch  # noqa: E402

from bench.sgd.accuracy import accuracies  # noqa: E402
from bench.sgd.models import WORK  # noqa: E402
from bench.sgd.steps import METHODS  # noqa: E402

IN_TABLE = [name for name in METHODS if name != "Opacus hooks"]
REMEMBERED = ("plain", "sfumato", "Opacus ghost", "Opacus hooks")


def times(name, seconds):
    """The least processor time of a step by each method, in milliseconds."""
    make, data, count = WORK[name]
    torch.manual_seed(0)
    x, y = data(count)
    steps = {method: METHODS[method](make(), x, y) for method in IN_TABLE}
    for step in steps.values():
        step()
    best = dict.fromkeys(steps, np.inf)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for method, step in steps.items():
            started = time.process_time()
            step()
            best[method] = min(best[method], 1e3 * (time.process_time() - started))
    return best, steps["sfumato"].error


def show_times(name, seconds):
    best, error = times(name, seconds)
    plain, floor = best["plain"], best["plain + exact noise"]
    print(f"\n{name}, batch of {WORK[name][2]}   ({error})")
    for method, ms in best.items():
        print(f"  {method:34}{ms:9.2f} ms {ms / plain:7.2f} × plain {ms / floor:7.2f} × plain with exact noise")
    with_noise = best["Opacus ghost"] / best["sfumato"]
    without = best["Opacus ghost, no noise"] / best["sfumato, no noise"]
    print(f"  faster than Opacus ghost: {without:.2f} × without noise on both sides, {with_noise:.2f} × with it")


def peak(name, method):
    """Peak memory of three steps, in megabytes, of this whole process. What importing took at its peak is forgotten."""
    make, data, count = WORK[name]
    step = METHODS[method](make(), *data(count))
    Path("/proc/self/clear_refs").write_text("5")
    for _ in range(3):
        step()
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def show_memory(name):
    found = {}
    for method in REMEMBERED:
        command = [sys.executable, __file__, "--peak", name, method]
        found[method] = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    line = ", ".join(f"{method} {mb:.0f} ({mb / found['plain']:.2f} ×)" for method, mb in found.items())
    print(f"  peak memory, MB: {line}")


def show_noise():
    from sfumato.learn.torch.noise import Independent

    session, values, generator = Independent(1.0).begin(), np.zeros(10**6, np.int64), np.random.default_rng()
    best = {"exact": np.inf, "numpy": np.inf}
    for _ in range(15):
        for label, draw in (
            ("exact", lambda: session.release(values)),
            ("numpy", lambda: generator.normal(size=10**6)),
        ):
            started = time.process_time()
            draw()
            best[label] = min(best[label], 1e3 * (time.process_time() - started))
    print(
        f"\nnoise for 10⁶ parameters: exact {best['exact']:.1f} ms, numpy's normal {best['numpy']:.1f} ms: "
        f"{best['exact'] / best['numpy']:.2f} ×"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="parts of names of models; noise, accuracy")
    parser.add_argument("--seconds", type=float, default=30.0, help="time for each model")
    parser.add_argument("--runs", type=int, default=5, help="runs for each accuracy")
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.peak:
        print(peak(*options.peak))
        return

    def wanted(name):
        return not options.only or any(part in name for part in options.only)

    print(f"torch {torch.__version__}, 1 thread, processor time")
    for name in filter(wanted, WORK):
        show_times(name, options.seconds)
        show_memory(name)
    if wanted("noise"):
        show_noise()
    if wanted("accuracy"):
        for row in accuracies(options.runs):
            print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main()
