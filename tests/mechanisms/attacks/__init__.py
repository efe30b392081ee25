"""Attacks that broke other implementations, run against all our mechanisms and against naive ones that must fail.

A1 and A9 (the bits of a double) are in test_bits, A2 and A3 (sums in floats and in 64 bits) in test_sums, A4 and A7
(noise used twice) in test_reuse, A5 (NaN and other special values) in test_odd_numbers, A8 (rare branches of exact
sampling) in test_refinement. A6 (timing) needs a quiet machine and is in bench/bench_noise.py.
"""
