"""The HTTP door, as clients see it."""

import csv
import io
import json
import threading

import pytest

import sfumato as sf
from sfumato import errors
from sfumato.client import connect
from sfumato.curator.answer import Answer
from sfumato.errors import BudgetExceeded, KeyReused, NotAllowed, NotStored, QueryRefused
from sfumato.sql.policy import Policy

COUNT = "SELECT COUNT(*) AS n FROM visits"
WARDS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def charges(door):
    return len(door.service.data["clinic"].curator.ledger.verify().costs)


def test_an_answer_is_charged_once_for_one_key_and_found_at_its_address(door, token):
    before, body = charges(door), {"sql": WARDS, "epsilon": 0.1}
    replies = [door.request("POST", "/v1/ask", body, token["ann"], {"Idempotency-Key": '"monday"'}) for _ in range(3)]
    assert [status for status, _, _ in replies] == [200] * 3
    assert len({json.dumps(content["rows"]) for _, _, content in replies}) == 1
    status, _, found = door.request("GET", replies[0][1]["Location"], token=token["ann"])
    assert (status, found["rows"], found["id"]) == (200, replies[0][2]["rows"], replies[0][2]["id"])
    assert door.request("GET", replies[0][1]["Location"], token=token["bob"])[0] == 404
    assert charges(door) == before + 1


def test_a_hundred_retries_at_the_same_time_are_one_charge_and_one_answer(door, token):
    before, bodies = charges(door), []

    def retry():
        sent = {"sql": f"{COUNT} WHERE stay > 2", "epsilon": 0.1}
        bodies.append(door.request("POST", "/v1/ask", sent, token["ann"], {"Idempotency-Key": "storm"}))

    threads = [threading.Thread(target=retry) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {status for status, _, _ in bodies} <= {200, 429}
    assert len({json.dumps(content["rows"]) for status, _, content in bodies if status == 200}) == 1
    assert charges(door) == before + 1


def test_a_preview_is_free_and_says_what_an_answer_will_cost(door, token):
    before = charges(door)
    status, _, found = door.request("POST", "/v1/preview", {"sql": COUNT, "error": 20}, token["bob"])
    assert status == 200 and found["errors"]["n"] <= 20 and "nothing has been charged" in found["text"]
    assert charges(door) == before


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/csv", "text/csv"),
        ("text/*;q=0.5, application/json;q=0.1", "text/csv"),
        ("application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.stream"),
        ("text/html, application/xhtml+xml, */*;q=0.8", "application/json"),
    ],
)
def test_an_answer_comes_in_the_form_that_is_accepted(door, token, accept, media):
    sent = {"sql": WARDS, "epsilon": 0.1}
    status, headers, content = door.request("POST", "/v1/ask", sent, token["ann"], {"Accept": accept})
    assert status == 200 and headers["Content-Type"].startswith(media)
    if media == "text/csv":
        rows = list(csv.reader(io.StringIO(content.decode())))
        assert rows[0] == ["ward", "n", "n low", "n high"] and len(rows) == 4
        assert float(headers["Sfumato-Epsilon"]) <= 0.1 and headers["Sfumato-Charged"] in ("true", "false")
    if media.endswith("stream"):
        pyarrow = pytest.importorskip("pyarrow")
        assert pyarrow.ipc.open_stream(content).read_all().column_names == ["ward", "n", "n low", "n high"]


@pytest.mark.parametrize("accept", ["image/png", "text/csv;q=0", "application/json;q=x"])
def test_other_forms_are_not_acceptable(door, token, accept):
    before = charges(door)
    sent = {"sql": f"{COUNT} WHERE cost > 3", "epsilon": 0.1}
    assert door.request("POST", "/v1/ask", sent, token["ann"], {"Accept": accept})[0] == 406
    assert charges(door) == before


def test_a_long_question_is_answered_later_and_waited_for(door, token):
    sent = {"sql": f"{COUNT} WHERE stay > 7", "epsilon": 0.1}
    asked = {"Prefer": "respond-async", "Idempotency-Key": "patient"}
    status, headers, content = door.request("POST", "/v1/ask", sent, token["ann"], asked)
    assert (status, content["status"]) == (202, "running")
    door.service._jobs[content["id"]].result(30)
    status, _, found = door.request("GET", headers["Location"], token=token["ann"])
    assert status == 200 and found["columns"][0] == "n"
    assert door.request("GET", headers["Location"], token=token["bob"])[0] == 404


REFUSALS = [
    ({"sql": "SELECT * FROM visits", "epsilon": 0.1}, 422, "QueryRefused"),
    ({"sql": "not SQL", "epsilon": 0.1}, 422, "QueryRefused"),
    ({"sql": COUNT, "epsilon": 5.0}, 402, "BudgetExceeded"),
    ({"sql": COUNT}, 422, "InvalidParameter"),
    ({"sql": COUNT, "epsilon": 0.1, "data": "other"}, 403, "NotAllowed"),
    ({"sql": COUNT, "epsilon": -1}, 422, "InvalidRequest"),
    ({"sql": COUNT, "epsilon": "0.1"}, 422, "InvalidRequest"),
    ({"sql": COUNT, "epsilon": True}, 422, "InvalidRequest"),
    ({"sql": "", "epsilon": 0.1}, 422, "InvalidRequest"),
    ({"sql": COUNT, "epsilon": 0.1, "unknown": 1}, 422, "InvalidRequest"),
    ({"sql": COUNT, "epsilon": 0.1, "data": "../../etc/passwd"}, 422, "InvalidRequest"),
]


@pytest.mark.parametrize(("body", "status", "code"), REFUSALS)
def test_a_refusal_is_a_problem_with_its_code_and_charges_nothing(door, token, body, status, code):
    before = charges(door)
    found, headers, content = door.request("POST", "/v1/ask", body, token["bob"])
    assert (found, content["code"], headers["Content-Type"]) == (status, code, "application/problem+json")
    assert content["status"] == status and content["title"] and content["charged" if found != 422 else "detail"] != 1
    assert door.request("GET", content["type"])[2]["code"] == code
    assert charges(door) == before


def test_roles_are_those_of_the_service(door, token):
    for path in ("/v1/ledger/verify", "/v1/audit"):
        assert door.request("GET", path, token=token["ann"])[0] == 403
        assert door.request("GET", path, token=token["eve"])[0] == 200
    assert door.request("POST", "/v1/ask", {"sql": COUNT, "epsilon": 0.1}, token["eve"])[0] == 403
    text = door.request("GET", "/v1/policy", token=token["sam"])[2]["text"]
    status, _, found = door.request("POST", "/v1/policy/check", {"text": text}, token["sam"])
    assert (status, found["wrong"], found["differences"], found["problem"]) == (200, [], [], None)
    assert door.request("POST", "/v1/policy/check", {"text": "version = 2"}, token["sam"])[0] == 422


def test_a_policy_is_published_by_its_owner_as_it_was_checked(door, token):
    text = door.request("GET", "/v1/policy", token=token["owner"])[2]["text"]
    changed = text.replace("bob = 0.25", "bob = 0.3")
    checked = door.request("POST", "/v1/policy/check", {"text": changed}, token["owner"])[2]
    sent = {"text": changed, "based_on": checked["based_on"]}
    assert door.request("POST", "/v1/policy/publish", {"text": changed}, token["owner"])[0] == 422  # not reviewed
    assert door.request("POST", "/v1/policy/publish", sent, token["sam"])[0] == 403
    assert door.request("POST", "/v1/policy/publish", sent, token["owner"])[0] == 200
    assert door.request("GET", "/v1/policy", token=token["ann"])[2]["text"] == changed
    assert door.request("POST", "/v1/policy/publish", sent, token["owner"])[2]["code"] == "QueryRefused"  # once


def test_a_what_if_charges_nothing_and_bounds_for_sale_are_charged(door, token):
    before = charges(door)
    sent = {"sql": COUNT, "epsilon": 0.05, "count": 4}
    status, _, found = door.request("POST", "/v1/what-if", sent, token["ann"])
    assert status == 200 and found["fitting"] >= 4 and found["after"] < found["left"]
    assert door.request("POST", "/v1/what-if", {**sent, "count": 0}, token["ann"])[0] == 422
    assert charges(door) == before
    wanted = {"column": "visits.stay", "epsilon": 0.2}
    assert door.request("POST", "/v1/policy/suggest", wanted, token["ann"])[0] == 403
    status, _, found = door.request("POST", "/v1/policy/suggest", wanted, token["owner"])
    assert status == 200 and found["low"] < found["high"] and found["charged"] and charges(door) > before
    for wrong in ("visits.ward", "a.b", "visits.stay; DROP TABLE visits", "../../etc"):
        assert door.request("POST", "/v1/policy/suggest", {**wanted, "column": wrong}, token["owner"])[0] == 422


def test_an_analyst_reads_all_their_lines_page_by_page(door, token):
    """Lines of others do not fill pages: with a page of one line each, all of one's own are found."""
    for number in (3, 4):
        for who, compare in (("bob", ">"), ("ann", "<")):  # one question of two people would be charged to the first
            sent = {"sql": f"{COUNT} WHERE stay {compare} {number}", "epsilon": 0.01}
            assert door.request("POST", "/v1/ask", sent, token[who])[0] == 200
    found, start = [], 1
    while lines := door.request("GET", f"/v1/ledger?most=1&start={start}", token=token["ann"])[2]["lines"]:
        found += lines
        start = lines[-1]["line"] + 1
    assert len(found) >= 2 and {line["who"] for line in found} == {"ann"}


def test_tokens_are_given_listed_and_taken_over_http(door, token):
    status, _, made = door.request("POST", "/v1/tokens", {"who": "carl", "role": "auditor"}, token["owner"])
    assert status == 201
    listed = door.request("GET", "/v1/tokens", token=token["owner"])[2]["tokens"]
    (mine,) = [one for one in listed if one["who"] == "carl"]
    assert set(mine) == {"id", "who", "role", "created", "expires", "revoked"}
    assert door.request("GET", "/v1/data", token=made["token"])[2] == {"who": "carl", "data": {"clinic": "auditor"}}
    assert door.request("DELETE", f"/v1/tokens/{mine['id']}", token=token["owner"])[2] == {"revoked": True}
    assert door.request("GET", "/v1/data", token=made["token"])[0] == 401


def test_a_method_that_a_path_does_not_take_is_refused_with_those_that_it_does(door):
    status, headers, _ = door.request("PATCH", "/v1/tokens")
    assert (status, headers["Allow"]) == (405, "GET, POST")


def test_what_anybody_may_see_is_public(door):
    assert door.request("GET", "/health")[2]["status"] == "ok"
    status, _, text = door.request("GET", "/metrics")
    assert status == 200 and b"sfumato_calls_total" in text
    document = door.request("GET", "/openapi.json")[2]
    assert document["openapi"].startswith("3.1")
    schemas, paths = document["components"]["schemas"], document["paths"].values()
    bodies = [one["requestBody"]["content"]["application/json"]["schema"] for path in paths for one in path.values()
              if "requestBody" in one]  # fmt: skip
    assert len(bodies) >= 7 and all(schemas[body["$ref"].rpartition("/")[2]]["examples"] for body in bodies)
    assert Policy.read(schemas["PolicyText"]["examples"][0]["text"]).tables
    answers = document["paths"]["/v1/ask"]["post"]["responses"]
    assert {"200", "202", "401", "402", "422", "429"} <= set(answers)
    assert set(answers["200"]["content"]) >= {"application/json", "text/csv"}


# ---- the Python client ----------------------------------------------------------------------------------------------


@pytest.fixture
def ann(door, token):
    found = connect(f"{door.url}/clinic", token=token["ann"])
    yield found
    found.close()


def test_a_client_has_the_methods_of_a_curator(door, token, ann):
    local = door.service.data["clinic"].curator.analyst("ann")
    ann.ask(WARDS, epsilon=0.1, key="client")
    answer = ann.ask(WARDS, epsilon=0.1, key="client")  # stored by now
    assert isinstance(answer, Answer) and answer == local.ask(WARDS, epsilon=0.1, key="client")
    asked, same = ann.preview(WARDS, epsilon=0.1), local.preview(WARDS, epsilon=0.1)
    assert str(asked) == str(same) and dict(asked.errors()) == dict(same.errors())
    assert json.loads(asked.to_json()) == json.loads(same.to_json())
    assert ann.budget == local.budget
    built = ann.table("visits").where(sf.col("stay") > 1).agg(n=sf.count())
    assert built.ask(epsilon=0.1).columns == ("n", "n low", "n high")
    assert {table["name"] for table in ann.catalogue["tables"]} == {"visits", "wards"}
    assert {line["who"] for line in ann.history()} == {"ann"}


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (lambda ann: ann.ask("SELECT * FROM visits", epsilon=0.1), QueryRefused),
        (lambda ann: ann.ask(COUNT, epsilon=7.5), BudgetExceeded),
        (lambda ann: ann.verify(), NotAllowed),
        (lambda ann: [ann.ask(COUNT, epsilon=e, key="reused") for e in (0.1, 0.2)], KeyReused),
        (lambda ann: ann.request("GET", f"/v1/answers/{'0' * 32}"), NotStored),
    ],
)
def test_a_client_raises_the_errors_of_a_curator(ann, act, kind):
    with pytest.raises(kind):
        act(ann)


def test_a_client_waits_for_a_long_answer(door, ann, monkeypatch):
    monkeypatch.setattr(door.service, "limits", type(door.service.limits)(wait=0.0))
    ann.sleep = lambda seconds: [job.result(30) for job in door.service._jobs.values()]
    assert ann.ask(f"{COUNT} WHERE stay > 9", epsilon=0.1).columns[0] == "n"


def test_a_client_sends_a_lost_request_again_and_is_charged_once(door, ann):
    before, send, lost = charges(door), ann._send, []

    def lose_the_first_reply(*request):
        reply = send(*request)
        if not lost:
            lost.append(reply)
            raise ConnectionResetError
        return reply

    ann._send = lose_the_first_reply
    answer = ann.ask(f"{COUNT} WHERE stay > 11", epsilon=0.1)
    assert json.loads(lost[0][1])["rows"] == [list(row) for row in answer.rows]
    assert charges(door) == before + 1


@pytest.mark.parametrize("url", ["ftp://x", "http://example.org", "https://a:b@example.org", "clinic", "https://"])
def test_a_token_is_not_sent_where_it_could_be_read(url):
    with pytest.raises(errors.InvalidParameter):
        connect(url, token="sf_x_y")
