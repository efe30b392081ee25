"""Ways to break a ledger, shared by the tests (a sample of each) and bench/bench_faults.py (all of them)."""
