"""Attacks that broke other people's mechanisms, run against all of ours and against naive ones that must fall.

A1 and A9 (the bits of a double) are in test_bits, A2 and A3 (sums in floats and in 64 bits) in test_sums, A4 and A7
(noise used twice) in test_reuse, A5 (numbers that are none) in test_odd_numbers, A8 (the rare path of exact sampling)
in test_refinement. A6 (time) needs a quiet clock and is in bench/bench_noise.py.
"""
