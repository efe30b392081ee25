"""Policies on their way into force, bounds for sale, and what-ifs: what owners and stewards do in the console."""

import html
import re

import pytest

from tests.server.console.conftest import Visitor

QUESTION = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.fixture(scope="module")
def policy(door):
    """The policy's file; restored afterwards."""
    place = door.service.data["clinic"].settings.policy
    text = place.read_text()
    yield place
    place.write_text(text)


def field(page: str, name: str) -> str:
    return html.unescape(re.search(rf'name="{name}" value="([^"]*)"', page)[1])


def audit_of(door, act):
    return [line.content for line in door.service.audit_log.lines(0, 100_000) if line.content["act"] == act]


def test_a_steward_drafts_and_an_owner_reviews_and_publishes(door, visitor, policy):
    text = policy.read_text()
    changed = text.replace("bob = 0.25", "bob = 0.2")
    assert changed != text
    _, _, page = visitor["sam"].post("/data/clinic/policy", {"do": "save", "text": changed})
    assert "analysts.bob: 0.25 → 0.2" in html.unescape(page) and 'value="publish"' not in page
    assert policy.read_text() == text  # nothing is in force yet
    _, _, page = visitor["owner"].get("/data/clinic/policy")
    assert "A draft that is not published" in page and "bob = 0.2\n" in html.unescape(page)
    _, _, page = visitor["owner"].post("/data/clinic/policy", {"do": "review", "text": changed})
    sent = {"do": "publish", "text": field(page, "text"), "based_on": field(page, "based_on")}
    status, _, _ = visitor["sam"].post("/data/clinic/policy", sent)
    assert status == 403 and policy.read_text() == text
    status, _, page = visitor["owner"].post("/data/clinic/policy", sent)
    assert status == 200 and "Published." in page
    assert policy.read_text() == changed and not policy.with_name(f"{policy.name}.draft").exists()
    assert door.service.data["clinic"].curator.ledger.shares().named["bob"] == 0.2
    assert len(audit_of(door, "publish policy")) == 2  # the refused one, too

    # the same review again: another policy is in force by now, so it is refused
    status, _, page = visitor["owner"].post("/data/clinic/policy", {**sent, "text": text})
    assert status == 422 and "review it again" in page and policy.read_text() == changed


@pytest.mark.parametrize(
    ("old", "new"), [("[budget]", "[budgets]"), ("epsilon = ", "epsilon = 9"), ("ann = 0.5", "ann = 0.9")]
)
def test_a_policy_that_breaks_a_promise_is_not_published(visitor, policy, old, new):
    text = policy.read_text()
    assert old in text
    status, _, _ = visitor["owner"].post("/data/clinic/policy", {"do": "publish", "text": text.replace(old, new, 1)})
    assert status in (400, 422) and policy.read_text() == text


def test_a_review_says_what_a_change_does_to_answers(visitor, policy):
    changed = re.sub(r"(rows = )(\d+)", lambda found: f"{found[1]}{3 * int(found[2])}", policy.read_text(), count=1)
    assert changed != policy.read_text()
    _, _, page = visitor["owner"].post("/data/clinic/policy", {"do": "review", "text": changed})
    assert "What it does to answers" in page
    errors = [float(x.replace(",", "")) for x in re.findall(r'<td class="number">([\d.,]+)</td>', page)]
    assert errors and all(then >= now for now, then in zip(errors[::2], errors[1::2], strict=True))


def test_suggested_bounds_are_charged_once_and_written_into_the_draft_only(door, visitor, policy):
    ledger, text = door.service.data["clinic"].curator.ledger, policy.read_text()
    before = len(ledger.verify().costs)
    sent = {"column": "visits.stay", "epsilon": "0.3", "text": text}
    status, _, page = visitor["owner"].post("/data/clinic/suggest", sent)
    assert status == 200 and "suggested:" in page and policy.read_text() == text
    charged = len(ledger.verify().costs)
    assert charged > before
    visitor["owner"].post("/data/clinic/suggest", sent)
    assert len(ledger.verify().costs) == charged
    assert visitor["ann"].post("/data/clinic/suggest", sent)[0] == 403


def test_a_what_if_is_free_and_agrees_with_the_budget(door, visitor):
    sent = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.05", "count": "3"}
    before = door.service.data["clinic"].curator.ledger.verify()
    status, _, page = visitor["ann"].post("/data/clinic/what-if", sent)
    assert status == 200 and "They fit." in page and "afterwards" in page
    _, _, page = visitor["ann"].post("/data/clinic/what-if", {**sent, "count": "10000", "epsilon": "1"})
    assert re.search(r"Only \d+ of them fit|None of them fits", page)
    for wrong in ({"count": "0.5"}, {"count": "20000"}, {"sql": "SELECT *"}, {"epsilon": "x"}):
        status, _, page = visitor["ann"].post("/data/clinic/what-if", {**sent, **wrong}, hx_request="true")
        assert status in (200, 400, 422) and "problem" in page
    assert door.service.data["clinic"].curator.ledger.verify() == before


def test_people_see_shares_and_auditors_the_best_attack(door, visitor, token):
    _, _, page = visitor["sam"].get("/data/clinic/people")
    assert "Share of the budget" in page and 'aria-label="Left for ann"' in page
    _, _, page = Visitor(door).log_in(token["eve"]).get("/data/clinic/audit")
    assert "The best attack on one person" in page and "By two exact answers" in page and "No report" in page
