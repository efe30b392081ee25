"""Membership: find out from published frequencies whether somebody's genome was in the study. Homer et al. 2008."""

from dataclasses import dataclass

import numpy as np

from sfumato.audit.membership import membership as judged
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.numeric import Floats, floats
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.sensitivity import Sensitivity
from sfumato.teach.attacks.fixture import DELTA, promised
from sfumato.teach.attacks.outcome import Chart, Demonstration, Line, Reached, most_found

ALARMS = 0.01
STORY = """
A study of {people} patients publishes how many of them carry each of {markers:,} genetic markers; nothing else. The
attacker has one person's genome, from a cup, and knows how frequent markers are among all people. If the study leans
towards this genome in marker after marker, the person was in it, and so has the disease.
"""
LESSON = """
Each number is about all patients, but there are many, and each leans a little. An accuracy hides this, so the table
shows how many patients are found when one in a hundred others is accused; the bound is taken at the upper limit of what
was counted as alarms. Noise for all counts together, by their joint sensitivity, keeps within the trade-off function.
"""


@dataclass(frozen=True)
class Scores:
    """How much studies lean towards somebody who was in, and towards somebody who was not; one study for each."""

    inside: Floats
    outside: Floats


def released(markers: int, epsilon: float | None) -> tuple[Gaussian, PrivacyLoss] | None:
    """The noise of a study that publishes with (ε, 1e-6), and its loss; None for exact counts.

    One patient more changes each count by at most one, so all of them together by √markers.
    """
    if epsilon is None:
        return None
    whole = Sensitivity(l2=float(np.sqrt(markers)))
    noise = Gaussian.analytic(epsilon, DELTA, whole)
    return noise, noise.loss(whole)


def scores(people: int, markers: int, epsilon: float | None, trials: int, seed: int) -> Scores:
    """Studies with the attacked person and without, each of other people."""
    rng = np.random.default_rng(seed)
    noise = released(markers, epsilon)
    frequent = rng.uniform(0.1, 0.9, markers)
    found = []
    for taking_part, studies in ((True, trials), (False, 3 * trials)):  # alarms are rare, so more are needed
        genome = rng.random((studies, markers)) < frequent
        counts = rng.binomial(people - 1, frequent, (studies, markers)) + (genome if taking_part else 0)
        published = noise[0].release(counts) if noise else counts
        found.append(floats(((genome - frequent) * (published / people - frequent)).sum(axis=1)))
    return Scores(*found)


def demonstrate(
    epsilon: float = 1.0, seed: int = 0, people: int = 100, markers: int = 1000, trials: int = 1000
) -> Demonstration:
    """Finds at one false alarm in a hundred: from exact counts, and from noisy ones."""
    rows = []
    for eps in (None, 10 * epsilon, epsilon):
        found, noise = scores(people, markers, eps, trials, seed), released(markers, eps)
        (rate,) = judged(found.inside, found.outside, noise[1] if noise else None, (ALARMS,), 1 - 1e-6).rates
        name, claim = (f"noise for ε = {eps:g}", promised(eps)) if eps else ("exact counts", "nothing")
        rows.append(Reached(name, rate.found, trials, claim, rate.allowed))
    return Demonstration(
        "membership", "Membership: who was in the study?", STORY.format(people=people, markers=markers),
        "found at 1 %", ALARMS, tuple(rows), LESSON,
    )  # fmt: skip


def chart(epsilon: float = 1.0, seed: int = 0, trials: int = 5000) -> Chart:
    """Finds against false alarms, on logarithmic axes, beside the trade-off functions."""
    people, markers = 100, 1000
    alarms = np.geomspace(1e-3, 1.0, 40)
    lines = []
    for eps, role in ((None, "open"), (10 * epsilon, "private"), (epsilon, "private")):
        found, noise = scores(people, markers, eps, trials, seed), released(markers, eps)
        threshold = np.quantile(found.outside, 1 - alarms)
        finds = (found.inside > threshold[:, None]).mean(axis=1)
        name = f"noise for ε = {eps:g}" if eps else "exact counts"
        lines.append(Line(name, tuple(alarms), tuple(finds), role))
        if noise:
            lines.append(Line(f"the most at ε = {eps:g}", tuple(alarms), tuple(most_found(noise[1], alarms)), "bound"))
    return Chart(
        f"{people} patients, {markers:,} markers", "false alarms", "patients found", tuple(lines), ("log", "log"),
        1e-3,
    )  # fmt: skip
