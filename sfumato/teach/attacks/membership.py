"""Membership: infer from published frequencies whether somebody's genome was in a study. Homer et al. 2008."""

from dataclasses import dataclass

import numpy as np

from sfumato.audit.membership import membership as audit_membership
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.numeric import Floats, floats
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.sensitivity import Sensitivity
from sfumato.teach.attacks.fixture import DELTA, format_claim
from sfumato.teach.attacks.outcome import AttackResult, Chart, Demonstration, Line, most_found

ALARMS = 0.01
STORY = """
A study of {people} patients publishes how many of them carry each of {markers:,} genetic markers; nothing else. The
attacker has one person's genome and knows how frequent the markers are in the population. If the published frequencies
are shifted towards this genome in many markers, the person was in the study, and so has the disease.
"""
LESSON = """
Each number is about all patients, but there are many numbers, and each is shifted a little. The mean accuracy hides
this, so the table shows the share of patients found at one false alarm in a hundred; the bound is taken at the upper
confidence limit of the false alarms. Noise calibrated to the joint sensitivity of all counts stays within the bound.
"""


@dataclass(frozen=True)
class Scores:
    """The attacker's scores for people who were in the study and for people who were not; one study for each."""

    inside: Floats
    outside: Floats


def study_noise(markers: int, epsilon: float | None) -> tuple[Gaussian, PrivacyLoss] | None:
    """The noise of a study that publishes with (ε, 1e-6)-DP, and its loss; None for exact counts.

    One patient changes each count by at most 1, so the L2 sensitivity of all counts is √markers.
    """
    if epsilon is None:
        return None
    joint = Sensitivity(l2=float(np.sqrt(markers)))
    noise = Gaussian.analytic(epsilon, DELTA, joint)
    return noise, noise.loss(joint)


def scores(people: int, markers: int, epsilon: float | None, trials: int, seed: int) -> Scores:
    """Scores from independent studies with the attacked person and without."""
    rng = np.random.default_rng(seed)
    noise = study_noise(markers, epsilon)
    frequent = rng.uniform(0.1, 0.9, markers)
    found = []
    for taking_part, studies in (
        (True, trials),
        (False, 3 * trials),
    ):  # false alarms are rare, so more studies are needed
        genome = rng.random((studies, markers)) < frequent
        counts = rng.binomial(people - 1, frequent, (studies, markers)) + (genome if taking_part else 0)
        published = noise[0].release(counts) if noise else counts
        found.append(floats(((genome - frequent) * (published / people - frequent)).sum(axis=1)))
    return Scores(*found)


def demonstrate(
    epsilon: float = 1.0, seed: int = 0, people: int = 100, markers: int = 1000, trials: int = 1000
) -> Demonstration:
    """The share of patients found at one false alarm in a hundred, from exact and from noisy counts."""
    rows = []
    for eps in (None, 10 * epsilon, epsilon):
        found, noise = scores(people, markers, eps, trials, seed), study_noise(markers, eps)
        (rate,) = audit_membership(found.inside, found.outside, noise[1] if noise else None, (ALARMS,), 1 - 1e-6).rates
        name, claim = (f"noise for ε = {eps:g}", format_claim(eps)) if eps else ("exact counts", "nothing")
        rows.append(AttackResult(name, rate.found, trials, claim, rate.allowed))
    return Demonstration(
        "membership", "Membership: who was in the study?", STORY.format(people=people, markers=markers),
        "found at 1 %", ALARMS, tuple(rows), LESSON,
    )  # fmt: skip


def chart(epsilon: float = 1.0, seed: int = 0, trials: int = 5000) -> Chart:
    """The share of patients found against false alarms, on logarithmic axes, with the bounds of the claims."""
    people, markers = 100, 1000
    alarms = np.geomspace(1e-3, 1.0, 40)
    lines = []
    for eps, role in ((None, "open"), (10 * epsilon, "private"), (epsilon, "private")):
        found, noise = scores(people, markers, eps, trials, seed), study_noise(markers, eps)
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
