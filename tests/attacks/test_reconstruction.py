"""The reconstruction attack on a live curator; bench/bench_reconstruction.py runs it at full size."""

from tests.attacks.reconstruction import attacked


def test_an_exact_interface_gives_away_everything_and_the_curator_nothing(tmp_path):
    """100 secrets from 200 questions that share ε = 1. A share of 0.75 right would come by chance with probability
    < 1e-4 if each bit were right with probability 0.55."""
    found = attacked(tmp_path, people=100, questions=200, seed=7)
    assert found.exact == 1.0
    assert found.curator < 0.75
    assert found.left < 0.01  # it was the whole budget


def test_with_five_hundred_times_the_budget_the_attack_would_work(tmp_path):
    """So it is the budget that stops it, not a mistake in the attack."""
    found = attacked(tmp_path, people=30, questions=120, seed=7, epsilon=500.0)
    assert found.exact == 1.0
    assert found.curator > 0.9
