"""The demonstrations: naive interfaces fail, correct claims are not refuted, and the output matches the counts.

Secrets are fair coins, so that the odds about each are even whatever is known of the others. Noise comes from recorded
bits; for other bits, a curator would be accused with probability < 1e-6 in each row.
"""

import json
import math
import re
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import bdtr, ndtr

import sfumato as sf
from sfumato.audit.canaries import p_value_of_loss
from sfumato.cli import main
from sfumato.ledger import Budget
from sfumato.teach.attacks import averaging, differencing, linkage, membership, reconstruction, refusals
from sfumato.teach.attacks.fixture import ask_count, attacked_database, epsilon_each
from sfumato.teach.attacks.outcome import AttackResult, best_guess, most_found

ROOT = Path(__file__).parents[3]
SMALL = {
    "differencing": lambda: differencing.demonstrate(1.0, 1, targets=12),
    "averaging": lambda: averaging.demonstrate(0.5, 1, tries=1500),
    "reconstruction": lambda: reconstruction.demonstrate(1.0, 1, people=30, questions=90),
    "membership": lambda: membership.demonstrate(1.0, 1, markers=500, trials=400),
    "linkage": lambda: linkage.demonstrate(1.0, 1, targets=12),
    "refusals": lambda: refusals.demonstrate(1.0, 1, targets=12),
}


@pytest.fixture(scope="module")
def shown():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.teach.attacks.averaging.CURATORS", 8)
        return {name: make() for name, make in SMALL.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_it_fits_a_terminal_and_is_the_same_as_json(shown, name):
    text, data = str(shown[name]), json.loads(shown[name].to_json())
    assert max(map(len, text.splitlines())) <= 80
    assert data["name"] == name
    for row in data["rows"]:
        assert row["interface"] in text and f"{row['share']:.3f}" in text
        assert row["certified"] <= row["share"] <= 1
        low, high = row["interval"]
        assert low <= row["share"] <= high and f"{low:.2f}–{high:.2f}" in text
        assert row["bound"] <= row["most"] + 1 / row["tries"] and f"{row['most']:.3f}" in text and row["tries"] > 1


def test_the_widest_of_them_fits_too(shown):
    for name, made in shown.items():
        rows = tuple(replace(row, claim="(1000, 1e-06)" if row.bound < 1 else row.claim) for row in made.rows)
        assert max(map(len, str(replace(made, rows=rows)).splitlines())) <= 80, name


@pytest.mark.parametrize("name", SMALL)
def test_what_claims_nothing_falls_and_a_curator_is_not_refuted(shown, name):
    rows = shown[name].rows
    opened = [row for row in rows if row.claim == "nothing"]
    private = [row for row in rows if row.claim != "nothing" and "fresh" not in row.interface]
    assert all(row.share >= 0.95 for row in opened[:1]) or name in ("averaging", "membership")
    assert private and not any(row.refuted for row in private)
    assert all(row.bound < 1 for row in private)


def test_fresh_noise_for_free_refutes_its_own_claim(shown):
    once, ten, hundred = shown["averaging"].rows[:3]
    assert not once.refuted
    assert ten.refuted and hundred.refuted
    assert "✗" in str(shown["averaging"])
    assert hundred.share > 0.9 > ten.share > once.share


def test_the_first_and_the_last_of_them_in_exact_numbers():
    """Means of Laplace noise: once, right with chance 1 − e^{−ε/2}/2; and the most that ε allows is e^ε/(1 + e^ε)
    for every mechanism, of which Laplace's own profile allows exactly what the attack reaches."""
    for eps in (0.5, 1.0):
        assert best_guess(sf.loss.LaplaceLoss(eps)) == pytest.approx(1 - math.exp(-eps / 2) / 2, abs=1e-9)
        assert best_guess(sf.loss.PureLoss(eps)) == pytest.approx(1 / (1 + math.exp(-eps)), abs=1e-9)


def test_published_frequencies_find_patients_and_noisy_ones_do_not(shown):
    exact, ten, one = shown["membership"].rows
    assert exact.share > 0.4 and not exact.refuted
    assert ten.share < exact.share and one.share < 0.1


def test_a_claim_of_too_little_noise_would_be_refuted():
    """The same studies, with a loss that is claimed to be a hundredth: so the judge is not blind."""
    found, noise = membership.scores(100, 500, 200.0, 400, 1), membership.study_noise(500, 200.0)
    assert not sf.audit.membership(found.inside, found.outside, noise[1], (0.01,), 1 - 1e-6).violated
    tiny = sf.loss.GaussianLoss(noise[1].mu / 100)
    assert sf.audit.membership(found.inside, found.outside, tiny, (0.01,), 1 - 1e-6).violated


def test_the_bound_on_finds_is_the_trade_off_function():
    alarms = np.array([0.001, 0.05, 0.5])
    assert most_found(sf.loss.GaussianLoss(1.0), alarms) == pytest.approx(ndtr([1 - 3.0902, 1 - 1.6449, 1]), abs=1e-4)


# ---- each attack where its answer is known --------------------------------------------------------------------------


@pytest.mark.slow
def test_an_informed_attacker_reaches_the_bound_and_two_counts_do_not():
    """Per budget μ: Φ(μ/2) for one count of noise 1/μ, Φ(μ/4) for two at half of the budget."""
    budget = Budget(8.0, 1e-6)
    mu = math.sqrt(budget.amount.real("gauss"))
    assert best_guess(budget.loss()) == pytest.approx(ndtr(mu / 2), abs=1e-5)
    secret = np.arange(400) % 2 == 0
    with attacked_database("people", {"id": np.arange(400), "secret": secret}) as database:
        one = [differencing.one_count(database, secret, i, 8.0) for i in range(40)]
        two = [differencing.two_counts(database, i, 8.0) for i in range(40)]
    spread = [np.std(np.array(found) - secret[:40]) * mu for found in (one, two)]
    assert spread[0] == pytest.approx(1.0, rel=0.65)  # 5.8 standard deviations of a standard deviation of 40
    assert spread[1] == pytest.approx(2.0, rel=0.65)


@pytest.mark.slow
def test_an_exact_interface_gives_away_everything_and_the_curator_nothing():
    """100 secrets from 200 questions that share ε = 1. A share of 0.75 right would come by chance with probability
    < 1e-4 if each bit were right with probability 0.55."""
    found = reconstruction.reconstruct(people=100, questions=200, seed=7)
    assert found.exact == 1.0
    assert min(found.rounded.values()) > 0.75
    assert found.curator < 0.75
    assert found.left < 0.01  # it was the whole budget


@pytest.mark.slow
def test_with_five_hundred_times_the_budget_the_attack_would_work():
    """So it is the budget that stops it, not a mistake in the attack."""
    found = reconstruction.reconstruct(people=30, questions=120, seed=7, epsilon=500.0)
    assert found.exact == 1.0
    assert found.curator > 0.9


def test_all_spellings_get_one_answer_and_one_charge():
    with attacked_database("people", {"id": np.arange(50), "secret": np.arange(50) < 25}) as database:
        curator = database.curator(0.5)
        answers = {ask_count(curator, text, epsilon_each(curator, 1)) for text in averaging.SPELLINGS}
        charges = [entry for entry in curator.ledger.history() if entry.content["kind"] == "charged"]
    assert len(answers) == len(charges) == 1


def test_three_facts_single_out_nearly_everybody():
    chart = linkage.chart()
    assert chart.lines[0].y[0] == 0 and chart.lines[0].y[-1] > 0.95
    town = linkage.Town.random(0)
    assert linkage.linkage_accuracy(town, coarse=False, targets=200) > 0.99
    assert 0.55 < linkage.linkage_accuracy(town, coarse=True, targets=200) < 0.85


def test_an_auditor_of_maxima_refuses_exactly_when_the_third_is_highest():
    for values, refused in (((1.0, 2.0, 3.0), True), ((3.0, 1.0, 2.0), False), ((2.0, 2.0, 1.0), False)):
        auditor = refusals.Maxima(np.array(values))
        assert auditor.highest(frozenset({0, 1, 2})) == max(values)
        if refused:
            with pytest.raises(refusals.TooRevealing):
                auditor.highest(frozenset({0, 1}))
        else:
            assert auditor.highest(frozenset({0, 1})) == max(values)
        with pytest.raises(refusals.TooRevealing):
            auditor.highest(frozenset({2}))  # one person's maximum is her value


# ---- what is reached ------------------------------------------------------------------------------------------------


@given(tries=st.integers(1, 60), share=st.floats(0, 1))
def test_what_is_certified_would_rarely_be_reached_by_less(tries, share):
    """For coins: P(K ≥ k) at the certified chance is at most one in a million."""
    k = round(share * tries)
    found = AttackResult("", k / tries, tries)
    assert 0 <= found.certified <= found.share
    if k:
        assert 1 - bdtr(k - 1, tries, found.certified) <= 1e-6 * (1 + 1e-6)


def test_nothing_can_refute_that_nothing_is_claimed():
    assert not AttackResult("", 1.0, 10**6).refuted
    assert AttackResult("", 1.0, 10**6, "much", 0.9).refuted
    assert AttackResult("", 0.0, 5).certified == 0


@given(tries=st.integers(1, 400), bound=st.floats(0.01, 0.99))
def test_the_most_in_so_many_guesses_is_passed_by_chance_with_a_fortieth_at_most(tries, bound):
    most = round(AttackResult("", 0.5, tries, "much", bound).most * tries)
    assert 1 - bdtr(most, tries, bound) <= 0.025 * (1 + 1e-9)
    assert most == 0 or 1 - bdtr(most - 1, tries, bound) > 0.025


@given(tries=st.integers(1, 400), share=st.floats(0, 1))
def test_an_interval_holds_every_chance_that_could_well_have_led_there(tries, share):
    """Clopper & Pearson: outside of it, what was reached or more extreme has a chance of 2.5 % at most."""
    k = round(share * tries)
    low, high = AttackResult("", k / tries, tries).interval
    assert low <= k / tries <= high
    assert k == 0 or 1 - bdtr(k - 1, tries, low) <= 0.025 * (1 + 1e-6)
    assert k == tries or bdtr(k, tries, high) <= 0.025 * (1 + 1e-6)


def test_many_guesses_from_one_transcript_are_allowed_more_than_as_many_transcripts():
    """They depend on each other; but no share is allowed that the trade-off function forbids."""
    loss = sf.Budget(epsilon=1.0, delta=1e-6).loss()
    apart, together = (AttackResult("", 0.6, 60, "much", best_guess(loss), one) for one in (None, loss))
    assert best_guess(loss) < apart.most < together.most < 1
    right = round(together.most * 60)
    assert p_value_of_loss(right + 1, 60, 60, loss) <= 0.025 < p_value_of_loss(right, 60, 60, loss)
    assert not together.refuted and replace(together, share=1.0).refuted


# ---- the command line -----------------------------------------------------------------------------------------------


def test_an_attack_is_typed_and_drawn(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(linkage, "demonstrate", partial(linkage.demonstrate, targets=6))
    place = tmp_path / "found.png"
    found = CliRunner().invoke(main, ["attack", "linkage", "--json", "--plot", str(place), "--seed", "3"])
    assert found.exit_code == 0
    assert [row["interface"] for row in json.loads(found.stdout)["rows"]][-1] == "a curator"
    assert place.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("words", [["--epsilon", "0"], ["--epsilon", "nan"], ["--seed", "-1"]])
def test_wrong_words_are_told(words):
    found = CliRunner().invoke(main, ["attack", "refusals", *words])
    assert found.exit_code in (2, 7) and "Traceback" not in found.output


def test_every_picture_of_an_attack_is_in_the_document():
    folder = ROOT / "docs" / "figures" / "attacks"
    text = (ROOT / "docs" / "why.md").read_text(encoding="utf-8")
    names = {name for name in SMALL if hasattr(import_module(f"sfumato.teach.attacks.{name}"), "chart")}
    assert {path.stem for path in folder.glob("*.png")} == names == set(re.findall(r"figures/attacks/(\w+)\.png", text))
