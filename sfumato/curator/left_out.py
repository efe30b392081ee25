"""What an answer leaves out: how many people count in part, and what share of the rows that takes away."""

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sfumato.aggregates.intervals import spread
from sfumato.aggregates.price import IndependentNoise
from sfumato.curator.answer import BY_THE_TAIL, FOR_ALL_DATA, NOISE_ONLY, LeftOut, percent
from sfumato.curator.offer import Offer
from sfumato.curator.scaling import LEFT_OUT, Choice
from sfumato.mechanisms.additive.gaussian import Gaussian

ALARM = 1.64  # deviations of noise by which the number of people exceeds what the tail predicts, 5 % of the time


def left_out(offer: Offer, data: Mapping[str, Any]) -> LeftOut:
    """From what is stored of an answer."""
    choice = next((one for one in offer.choices or () if one.norms is not None), None)
    if choice is None or choice.tail is None or choice.missing is None or offer.people_noise is None:
        return LeftOut(NOISE_ONLY)
    counts = data["people"] if isinstance(data["people"], list) else [data["people"]]  # one number, in old answers
    people = max(0, sum(counts) + upper_error(offer.people_noise, len(counts)))
    return replace(expected(choice), people=people, warning=warning(choice, offer, counts[-1]))


def expected(choice: Choice) -> LeftOut:
    """What a bound leaves out, from the histogram that it was chosen from: known before anything is asked."""
    if choice.tail is None or choice.missing is None:
        return LeftOut(NOISE_ONLY)
    unit, length = choice.block.unit, choice.length / choice.block.unit
    total, most = max(choice.tail.total(), 1.0), choice.missing.most / unit
    about = min(choice.tail.about(length), most)
    grade = FOR_ALL_DATA if choice.missing.certain else BY_THE_TAIL
    return LeftOut(grade, None, about / total, min(1.0, most / total))


def expected_words(offer: Offer) -> tuple[str, ...]:
    """The same for a preview."""
    choice = next((one for one in offer.choices or () if one.norms is not None), None)
    if choice is None:
        return ()
    found = expected(choice)
    return (f"about {percent(found.about)} will be left out, at most {percent(found.at_most)} ({found.grade})",)


def upper_error(noise: IndependentNoise, numbers: int = 1) -> int:
    """What the noise of a sum of so many whole numbers falls short by with the probability 1 − LEFT_OUT at most."""
    return math.ceil(spread(((Fraction(1), noise),) * numbers, 2 * LEFT_OUT - 1).radius)


def warning(choice: Choice, offer: Offer, people: int) -> str:
    """More people are beyond the bin of the bound than the fitted tail predicts: then the interval may not hold the
    truth. Within that bin the histogram tells nothing, so those are not compared."""
    noise = offer.people_noise
    if choice.tail is None or noise is None or choice.missing is None or choice.missing.certain:
        return ""
    deviation = noise.sigma if isinstance(noise, Gaussian) else math.sqrt(2) * noise.scale
    length = choice.block.length(choice.far) / choice.block.unit
    if people - choice.tail.scaled(length) <= ALARM * deviation:
        return ""
    return (
        "WARNING: more people have long contributions than the shape of the others' suggests, so more may be left out "
        "than stated. Ask the owner to state `most` in the policy, or buy a histogram of norms first."
    )
