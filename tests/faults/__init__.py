"""Ways to break a ledger, shared by the tests (a sample of each) and bench/bench_faults.py (all of them)."""

import json
import subprocess
import sys
from pathlib import Path


def alone(*words: object, seconds: float = 300) -> dict[str, object]:
    """Run tests/faults/__main__.py in a process of its own, with one thread, which may fork."""
    command = [sys.executable, "-m", "tests.faults", *map(str, words)]
    answer = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=seconds)
    assert answer.returncode == 0, answer.stderr
    found: dict[str, object] = json.loads(answer.stdout)
    return found
