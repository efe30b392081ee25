"""Every class with a privacy claim has an exhibit, which the black box and replay do not refute.

Random bits are recorded. With other bits each black-box audit of a correct mechanism would fail with probability at
most 1e-6.
"""

import pytest

from sfumato.audit.blackbox import FEWEST
from sfumato.audit.exhibits import Exhibit, all_exhibits, claiming_classes, without_exhibit
from sfumato.audit.scaled_replay import FoundBounds
from sfumato.mechanisms import Mechanism
from tests.checks.mechanism_examples import classes_with_examples
from tests.noise.sources import Recorded

EXHIBITS = all_exhibits()


def name_of(exhibit: Exhibit) -> str:
    return f"{exhibit.part}: {exhibit.name[:60]}, {exhibit.pair[:30]}"


def test_every_class_that_promises_something_is_shown():
    assert not without_exhibit(), (
        f"state `examples` in {without_exhibit()}, or add exhibits to sfumato/audit/exhibits.py"
    )
    ours = {kind for kind in Mechanism.known.values() if kind.__module__.startswith("sfumato.")}
    assert ours <= claiming_classes()
    assert {exhibit.part for exhibit in EXHIBITS} >= {"mechanisms", "dependent", "curator"}


def outside() -> list[Exhibit]:
    """Exhibits of classes that tests/checks do not audit with more runs; and of each part one, and one with rows.

    Bounds take 13 s to find often enough: they are replayed exactly below, and `make audit` looks at them from outside.
    """
    first = {(exhibit.part, exhibit.rows): exhibit for exhibit in reversed(EXHIBITS)}
    known = {*classes_with_examples(), FoundBounds}
    return [one for one in EXHIBITS if type(one.mechanism) not in known or one is first[one.part, one.rows]]


@pytest.mark.parametrize("exhibit", outside(), ids=name_of)
def test_no_exhibit_is_refuted_from_outside(exhibit):
    runs = 4000 if exhibit.rows else FEWEST if exhibit.part == "curator" else 250  # questions are replayed, too
    found = exhibit.audit(runs, confidence=1 - 1e-6, source=Recorded(exhibit.name))
    assert not found.violated, found


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=name_of)
def test_no_exhibit_is_refuted_by_replay(exhibit):
    found = exhibit.replay()
    assert found is None or not found.violated, found


def test_an_exhibit_says_what_its_claim_rests_on():
    assert all(exhibit.theorems for exhibit in EXHIBITS if exhibit.part != "curator")
    assert all(exhibit.claim.delta(1.0).upper <= 1 for exhibit in EXHIBITS)
    assert len({(exhibit.name, exhibit.pair, str(exhibit.d0)) for exhibit in EXHIBITS}) == len(EXHIBITS)
