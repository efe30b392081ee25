"""How a budget was spent: each person sees their own charges, and the curves are those of the ledger."""

import pytest

QUESTION = "SELECT COUNT(*) FROM visits WHERE ward = '{}'"


def test_people_see_the_course_of_their_own_charges_and_overseers_that_of_all(service, people):
    for who, ward in (("ann", "north"), ("bob", "south"), ("ann", "west")):
        service.ask(people[who], "clinic", QUESTION.format(ward), epsilon=0.1)
    ann, bob, eve = (service.spending(people[who], "clinic") for who in ("ann", "bob", "eve"))
    assert ann.charges + bob.charges == eve.charges and bob.charges >= 1
    assert list(eve.epsilons) == sorted(eve.epsilons) and list(eve.times) == sorted(eve.times)
    assert eve.epsilons[-1] == pytest.approx(service.budget(people["eve"], "clinic").spent)
    assert bob.epsilons[-1] < ann.epsilons[-1] < eve.epsilons[-1]
    assert ann.found_now == bob.found_now == eve.found_now
    for alarm, now, whole in zip(eve.alarms, eve.found_now, eve.found_whole, strict=True):
        assert alarm <= now <= whole <= 1


def test_a_search_finds_the_newest_lines_first_and_only_those_that_one_may_see(service, people):
    service.ask(people["ann"], "clinic", QUESTION.format("north"), epsilon=0.1)
    lines = service.search(people["eve"], "clinic", "CHARGED visits")
    assert lines and all("charged" in line.text and "visits" in line.text for line in lines)
    numbers = [line.seq for line in service.search(people["eve"], "clinic")]
    assert numbers == sorted(numbers, reverse=True) and numbers[-1] == 1
    assert len(service.search(people["eve"], "clinic", most=1)) == 1
    assert service.search(people["bob"], "clinic") == []


def test_lines_of_charges_come_with_the_text_that_was_asked(service, people):
    text = QUESTION.format("north")
    service.ask(people["ann"], "clinic", text, epsilon=0.1)
    lines = service.search(people["ann"], "clinic", "where WARD = 'north'")
    assert [service.audit_log.asked("clinic", line) for line in lines if line.content["kind"] == "charged"] == [text]
    assert text in service.audit_log.asked_texts("clinic", service.history(people["eve"], "clinic")).values()
