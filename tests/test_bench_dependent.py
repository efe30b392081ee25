"""What `make bench-dependent` compares, on a few data sets."""

from bench.dependent.trimmed import compared


def test_a_trimmed_mean_errs_a_third_of_what_the_published_noise_adds():
    """501 normal numbers, twelve data sets: the published formula may trim as it likes, and ours is near what noise at
    the local sensitivity would give, which nobody may use."""
    seen = compared(501, 12, trims=(15, 40, 60), rates=(0.2,), steps=4)
    assert seen.ratio > 3 and seen.alike.size / seen.ours.size > 8
    assert 1 < seen.ours.size / seen.local.size < 1.15
