"""The demo of the curator: its output is true and fits a terminal, and the attack in it fails."""

import json

import pytest

from sfumato.teach.demo import clinic_tour
from sfumato.teach.demo.clinic_tour import QUESTIONS, Attack, main


@pytest.fixture(scope="module")
def shown():
    """The whole demonstration, once: its text and its data."""
    text, data = [], {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.print", lambda *words, **_: text.append(" ".join(map(str, words))))
        assert main([]) == 0
        assert main(["--json"]) == 0
    data = json.loads(text.pop())
    return "\n".join(text), data


@pytest.mark.slow
def test_it_fits_a_terminal_and_asks_a_dozen_questions(shown):
    text, data = shown
    assert max(map(len, text.splitlines())) <= 80
    assert len(data["questions"]) == len(QUESTIONS) == 12
    assert all(question.title in text for question in QUESTIONS)
    assert "│" in text and "95 %" in text and "░" in text


def test_answers_are_near_the_truth(shown):
    """Relative errors of counts by ward: noise of ± 4 % at 95 %, so 15 % off is beyond seven standard deviations."""
    wards = shown[1]["questions"][1]
    assert len(wards["truth"]) == 6
    for row, truth in zip(wards["answer"]["rows"], wards["truth"], strict=True):
        assert row[1] == pytest.approx(truth, rel=0.15)


def test_what_is_free_refused_and_spent(shown):
    asked = shown[1]["questions"]
    free = [one["title"] for one in asked if one["answer"] and not one["answer"]["charged"]]
    assert free == ["The same question, in other words: free"]
    assert [bool(one["refusal"]) for one in asked] == [False] * 10 + [True] * 2
    left = [one["left"] for one in asked if "journalist" not in one["title"]]  # who has a share of her own
    assert left == sorted(left, reverse=True)
    assert 0 < left[-1] < 1
    assert shown[1]["budget"]["left"] == left[-1]


def test_the_differencing_attack_fails(shown):
    """On exact data it never errs. Through the curator 24 guesses, each right with probability < 0.55: 23 or more
    right with probability < 2e-5."""
    attack = shown[1]["attack"]
    assert attack["exact"] == attack["targets"] == 24
    assert attack["noisy"] < 23
    assert max(map(abs, attack["differences"])) > 3


def test_the_words_about_the_attack_follow_the_numbers():
    text = str(Attack(24, 24, 13, (3.0, -14.0), 2.0))
    assert "13 of 24 right" in text
    assert "+3, -14" in text
    assert max(map(len, text.splitlines())) <= 80


def test_ctrl_c_ends_quietly(monkeypatch, capsys):
    def interrupted(folder, as_json):
        raise KeyboardInterrupt

    monkeypatch.setattr(clinic_tour, "show", interrupted)
    assert main([]) == 130
    assert not capsys.readouterr().err.strip()


def test_a_bar_is_as_wide_as_it_should_be():
    assert [clinic_tour.bar(x, 4) for x in (0.0, 0.5, 1.0)] == ["░░░░", "██░░", "████"]
