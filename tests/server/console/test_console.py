"""The console shows what the service says, to whom the service says it, and to nobody else."""

import hashlib
import html
import http.client
import json
import re
import ssl
import threading
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest

from sfumato.curator import Curator
from sfumato.server import console
from sfumato.server.configuration import DataSet
from sfumato.server.console.sessions import EACH, IDLE, Sessions
from sfumato.server.identity import Role
from sfumato.server.rights import Person
from sfumato.server.service import Service
from tests.server.conftest import QUICK, configuration
from tests.server.console.conftest import Visitor
from tests.server.running import running
from tests.server.test_run import write_certificate

STATIC = Path(console.__file__).parent / "static"
TEMPLATES = Path(console.__file__).parent / "templates"
QUESTION = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
PAGES = ("ask", "budget", "ledger", "policy", "people", "audit")
ASKED = {"sql": QUESTION, "by": "epsilon", "epsilon": "0.1"}


# ---- logging in -----------------------------------------------------------------------------------------------------


def test_a_log_in_gives_a_cookie_that_scripts_and_other_sites_cannot_use(door, token):
    status, headers, _ = Visitor(door).post("/login", {"token": token["ann"]})
    cookie = headers["Set-Cookie"].lower()
    assert status == 303 and headers["Location"] == "/console/"
    assert "httponly" in cookie and "samesite=strict" in cookie and "path=/console" in cookie
    assert "secure" not in cookie  # this door has no TLS
    assert token["ann"] not in headers["Set-Cookie"]


@pytest.mark.parametrize("text", ["", "sf_00000000_" + "A" * 43, "<script>alert(1)</script>", "\0", "é" * 100])
def test_a_wrong_token_opens_nothing(door, text):
    status, headers, page = Visitor(door).post("/login", {"token": text})
    assert status == 401 and "Set-Cookie" not in headers
    assert "this token is not valid here" in page and "<script>alert" not in page


@pytest.mark.parametrize("cookie", ["", "x", "A" * 43, "../../etc"])
@pytest.mark.parametrize("page", PAGES)
def test_without_a_session_every_page_leads_to_the_log_in(door, page, cookie):
    guest = Visitor(door)
    guest.cookie = cookie
    status, headers, _ = guest.get(f"/data/clinic/{page}")
    assert (status, headers["Location"]) == (303, "/console/login")


def test_a_part_of_a_page_without_a_session_sends_the_whole_page_to_the_log_in(door):
    status, headers, page = Visitor(door).post("/data/clinic/preview", ASKED, HX_Request="true")
    assert (status, headers["HX-Redirect"], page) == (200, "/console/login", "")


def test_log_out_ends_the_session(door, token):
    ann = Visitor(door).log_in(token["ann"])
    assert ann.get("/data/clinic/budget")[0] == 200
    assert ann.post("/logout")[0] == 303
    assert ann.get("/data/clinic/budget")[0] == 303


def test_a_revoked_token_ends_its_sessions(door):
    identity = door.service.data["clinic"].identity
    text = identity.new("bob", Role.ANALYST)
    bob = Visitor(door).log_in(text)
    assert identity.revoke(text.split("_")[1])
    assert bob.get("/data/clinic/budget")[0] == 303


def test_an_idle_session_ends():
    now = [0.0]
    sessions = Sessions(now=lambda: now[0])
    cookie = sessions.open(Person("ann", {}, "t"))
    now[0] = IDLE - 1
    assert sessions.find(cookie)
    now[0] = 2 * IDLE - 2
    assert sessions.find(cookie)
    now[0] = 3 * IDLE
    assert sessions.find(cookie) is None


def test_one_person_pushes_nobody_else_out():
    sessions = Sessions()
    bob = sessions.open(Person("bob", {}, "t"))
    ann = [sessions.open(Person("ann", {}, "t")) for _ in range(EACH + 5)]
    assert sessions.find(bob)
    assert [sessions.find(one) is not None for one in ann] == [False] * 5 + [True] * EACH


def test_under_tls_the_cookie_is_secure(tmp_path):
    write_certificate(tmp_path, 7)
    place = tmp_path / "cert.pem"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place, tmp_path / "key.pem")
    settings = configuration(tmp_path)
    service = Service.open(settings)
    token = service.data["clinic"].identity.new("ann", Role.ANALYST)
    with running(service, settings, context) as server:
        trusting = ssl.create_default_context(cafile=place)
        trusting.check_hostname = False
        wire = http.client.HTTPSConnection("127.0.0.1", server.port, context=trusting, timeout=30)
        wire.request("POST", "/console/login", urlencode({"token": token}))
        reply = wire.getresponse()
        assert reply.status == 303 and "secure" in reply.headers["Set-Cookie"].lower()
        wire.close()
    service.close()


# ---- forms of other sites -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", ["", "x", "A" * 43, "é"])
@pytest.mark.parametrize("path", ["ask", "preview", "verify", "policy", "people"])
def test_a_form_without_our_secret_does_nothing(door, visitor, path, secret):
    owner, identity = visitor["owner"], door.service.data["clinic"].identity
    before = len(identity.list()), door.service.data["clinic"].curator.ledger.verify().seq
    fields = {**ASKED, "csrf": secret, "who": "eve2", "role": "owner", "text": "version = 1"}
    status, _, page = owner.post(f"/data/clinic/{path}", fields)
    assert "this form is too old" in page and status == 403
    assert before == (len(identity.list()), door.service.data["clinic"].curator.ledger.verify().seq)


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
     {"Sec-Fetch-Site": "same-site"}],
)  # fmt: skip
def test_a_form_of_another_site_does_nothing_even_a_log_in(door, token, visitor, headers):
    assert Visitor(door).post("/login", {"token": token["ann"]}, **headers)[0] == 403
    assert visitor["ann"].post("/data/clinic/ask", ASKED, **headers)[0] == 403
    assert visitor["ann"].post("/logout", **headers)[0] == 403


@pytest.mark.parametrize("body", [b"\xff\xfe", b"&".join(b"a=%d" % i for i in range(50)), b"{}"])
def test_a_body_that_is_no_form_is_refused(visitor, body):
    status, _, _ = visitor["ann"].request("POST", "/data/clinic/ask", body, {})
    assert status in (403, 422)


# ---- asking ---------------------------------------------------------------------------------------------------------


def test_a_preview_shows_price_error_and_what_is_left_and_charges_nothing(door, visitor, token):
    before = door.service.data["clinic"].curator.ledger.verify().seq
    status, _, page = visitor["ann"].post("/data/clinic/preview", ASKED, HX_Request="true")
    ann = door.service.authenticate(token["ann"])
    preview = door.service.preview(ann, "clinic", QUESTION, epsilon=0.1)
    error = dict(preview.errors())["n"]
    assert status == 200 and "ε = 0.1" in page
    assert f'data-error="{error}"' in page
    assert f"{error:,.0f}"[:3] in page
    assert door.service.data["clinic"].curator.ledger.verify().seq == before


def test_a_preview_by_error_finds_the_price(visitor):
    _, _, page = visitor["ann"].post("/data/clinic/preview", {**ASKED, "by": "error", "error": "200"})
    assert float(re.search(r'data-error="([\d.]+)"', page)[1]) <= 200
    assert 0 < float(re.search(r'data-epsilon="([\d.]+)"', page)[1]) < 8


def test_a_question_that_is_being_written_is_told_what_is_wrong(visitor):
    status, _, page = visitor["ann"].post("/data/clinic/preview", {**ASKED, "sql": "SELECT"})
    assert status == 200 and "Not yet a question" in page


def test_an_answer_is_the_one_of_the_service_and_can_be_downloaded(door, visitor, token):
    status, _, page = visitor["ann"].post("/data/clinic/ask", {**ASKED, "epsilon": "0.2"}, HX_Request="true")
    assert status == 200, page
    stored = door.service.ask(door.service.authenticate(token["ann"]), "clinic", QUESTION, epsilon=0.2)
    assert not stored.charged  # the console's was
    for ward, n, low, high in stored.rows:
        row = re.search(rf"<td[^>]*><span>{ward}</span>.*?</tr>", page, re.S)[0]
        for number in (n, low, high):
            assert f"{number:,.0f}" in row
    assert page.count("<svg") == len(stored.rows)
    place = re.search(r'href="/console(/data/clinic/answers/[0-9a-f]+)\.csv"', page)[1]
    status, headers, csv = visitor["ann"].get(f"{place}.csv")
    assert status == 200 and csv.encode() == stored.to_csv()
    assert headers["Content-Disposition"] == 'attachment; filename="answer.csv"'
    assert visitor["ann"].get(f"{place}.json")[2]["rows"] == [list(row) for row in stored.rows]
    assert visitor["bob"].get(f"{place}.csv")[0] == 404
    assert visitor["ann"].get(f"{place}.exe")[0] == 404


def test_without_scripts_the_form_answers_with_a_page(visitor):
    status, _, page = visitor["ann"].post("/data/clinic/ask", ASKED)
    assert status == 200 and page.startswith("<!doctype html>") and 'class="answer"' in page
    assert html.escape(QUESTION) in page


@pytest.mark.parametrize("fields", [{"epsilon": "x"}, {"epsilon": "-1"}, {"epsilon": "nan"}, {"epsilon": "inf"},
                                    {"sql": "SELECT * FROM visits"}, {"sql": ""}, {"epsilon": "1e9"}])  # fmt: skip
def test_a_refusal_says_why_and_charges_nothing(door, visitor, fields):
    before = door.service.data["clinic"].curator.ledger.verify().seq
    status, _, page = visitor["ann"].post("/data/clinic/ask", {**ASKED, **fields}, HX_Request="true")
    assert status in (402, 422) and 'role="alert"' in page
    assert door.service.data["clinic"].curator.ledger.verify().seq == before


def test_an_answer_that_takes_long_is_fetched_later(door, visitor, monkeypatch):
    go, real = threading.Event(), Curator.ask

    def slow(self, *args, **named):
        go.wait(20)
        return real(self, *args, **named)

    monkeypatch.setattr(Curator, "ask", slow)
    monkeypatch.setattr(door.service, "limits", replace(door.service.limits, wait=0.05))
    try:
        status, _, page = visitor["ann"].post("/data/clinic/ask", {**ASKED, "epsilon": "0.3"}, HX_Request="true")
        assert status == 200 and 'aria-busy="true"' in page
        place = re.search(r'hx-get="/console([^"]+)"', page)[1]
        assert 'aria-busy="true"' in visitor["ann"].get(place)[2]
    finally:
        go.set()
    while 'aria-busy="true"' in (page := visitor["ann"].get(place)[2]):
        pass
    assert 'class="answer"' in page


# ---- who sees what --------------------------------------------------------------------------------------------------

SEEN = {
    "ann": {"ask", "budget", "ledger", "policy"},
    "eve": {"budget", "ledger", "policy", "audit"},
    "sam": set(PAGES),
    "owner": set(PAGES),
}


@pytest.mark.parametrize("who", SEEN)
@pytest.mark.parametrize("page", PAGES)
def test_a_role_sees_its_pages_and_no_links_to_others(visitor, who, page):
    status, headers, text = visitor[who].get(f"/data/clinic/{page}")
    needs_ask = page == "ask" and who == "eve"  # its parts are public to her, the act is not
    assert status == (200 if page in SEEN[who] or needs_ask else 403)
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
    if status == 200:
        assert set(re.findall(r'href="/console/data/clinic/(\w+)"', text)) == SEEN[who]


def test_an_auditor_cannot_ask(visitor):
    assert visitor["eve"].post("/data/clinic/ask", ASKED)[0] == 403


def test_an_analyst_sees_only_their_own_lines(visitor):
    visitor["ann"].post("/data/clinic/ask", {**ASKED, "epsilon": "0.05"})
    assert ">bob<" not in visitor["ann"].get("/data/clinic/ledger")[2]
    assert ">ann<" not in visitor["bob"].get("/data/clinic/ledger")[2]
    whole = visitor["eve"].get("/data/clinic/ledger")[2]
    assert ">ann<" in whole and ">opened<" in whole


def test_the_ledger_is_searched_and_verified(visitor):
    page = visitor["owner"].get("/data/clinic/ledger?q=opened")[2]
    assert page.count("<summary>") == 1
    assert "No lines." in visitor["owner"].get("/data/clinic/ledger?q=%22nothing%22holds%22this")[2]
    assert "Intact:" in visitor["eve"].post("/data/clinic/verify", HX_Request="true")[2]
    assert visitor["ann"].post("/data/clinic/verify")[0] == 403


def test_the_budget_is_the_one_of_the_service(door, visitor, token):
    page = visitor["ann"].get("/data/clinic/budget")[2]
    standing = door.service.budget(door.service.authenticate(token["ann"]), "clinic")
    assert f"ε = {standing.spent:.4g}" in page and f"ε = {standing.epsilon:g}" in page
    alarms, nothing, now, whole = json.loads(
        html.unescape(re.search(r'data-chart="curves" data-content="([^"]+)', page)[1])
    )
    assert alarms == nothing and all(a <= b <= c for a, b, c in zip(alarms, now, whole, strict=True))


def test_a_policy_is_tried_out_by_stewards_and_nothing_changes(door, visitor):
    text = door.service.data["clinic"].policy_text
    status, _, page = visitor["sam"].post("/data/clinic/policy", {"text": text.replace("bob = 0.25", "bob = 0.2")})
    assert status == 200 and "analysts.bob: 0.25 → 0.2" in html.unescape(page)
    assert door.service.data["clinic"].policy_text == text
    assert visitor["ann"].post("/data/clinic/policy", {"text": text})[0] == 403
    assert visitor["sam"].post("/data/clinic/policy", {"text": "no toml"})[0] == 422


def test_tokens_are_given_and_revoked_within_the_limits_of_a_role(door, visitor):
    new = {"who": "dan", "role": "analyst", "days": "1"}
    page = visitor["sam"].post("/data/clinic/people", new)[2]
    text = re.search(r'id="made">(sf_[^<]+)<', page)[1]
    assert Visitor(door).log_in(text)
    assert text not in visitor["sam"].get("/data/clinic/people")[2]
    assert visitor["sam"].post("/data/clinic/people", {**new, "role": "owner"})[0] == 403
    assert visitor["ann"].post("/data/clinic/people", new)[0] == 403
    assert visitor["owner"].post("/data/clinic/people", {**new, "role": "king"})[0] == 422
    visitor["sam"].post("/data/clinic/people", {"revoke": text.split("_")[1]})
    assert Visitor(door).post("/login", {"token": text})[0] == 401


# ---- hostile names --------------------------------------------------------------------------------------------------

EVIL = "<script>alert(1)</script>"
QUOTE = "\"'><img src=x onerror=alert(1)>"
EVIL_POLICY = f"""
version = 1
[budget]
epsilon = 8.0
delta = 1e-6
[tables.{json.dumps(EVIL)}]
unit = "patient"
groups = 1
rows = 1
[tables.{json.dumps(EVIL)}.columns]
patient = {{type = "number"}}
{json.dumps(QUOTE)} = {{type = "text", keys = [{json.dumps(EVIL)}, {json.dumps(QUOTE)}]}}
"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A data set whose table, column and keys are HTML."""
    import duckdb

    folder = tmp_path_factory.mktemp("hostile")
    table, column = f'"{EVIL}"', '"' + QUOTE.replace('"', '""') + '"'
    with duckdb.connect(str(folder / "h.duckdb")) as wire:
        wire.execute(f"CREATE TABLE {table} (patient INTEGER, {column} TEXT)")
        wire.execute(f"INSERT INTO {table} SELECT i, ? FROM range(50) t(i)", [EVIL])
    (folder / "h.toml").write_text(EVIL_POLICY)
    made = configuration(tmp_path_factory.mktemp("other"))
    settings = type(made)(
        {"hostile": DataSet("hostile", str(folder / "h.duckdb"), folder / "h.toml", str(folder / "h.ledger"))},
        folder / "audit", limits=QUICK,
    )  # fmt: skip
    service = Service.open(settings)
    with running(service, settings) as server:
        yield server
    service.close()


def dangerous(page):
    """Tags and handlers that no template of ours has."""
    return re.findall(r"<script>|<img src=x|onerror=alert\(1\)>", page.replace(html.escape(QUOTE), ""))


def test_names_and_keys_that_are_html_stay_text(hostile):
    identity = hostile.service.data["hostile"].identity
    owner = Visitor(hostile)
    owner.cookie = owner.post("/login", {"token": identity.new("owner", Role.OWNER)})[1]["Set-Cookie"].split(";")[0][
        16:
    ]
    page = owner.get("/data/hostile/ask")[2]
    owner.csrf = re.search(r'name="csrf" value="([^"]+)"', page)[1]
    column = '"' + QUOTE.replace('"', '""') + '"'
    asked = {**ASKED, "sql": f'SELECT {column}, COUNT(*) AS "<b>n" FROM "{EVIL}" GROUP BY {column}'}
    answer = owner.post("/data/hostile/ask", asked, HX_Request="true")
    assert answer[0] == 200 and html.escape(EVIL) in answer[2] and "<b>n" not in answer[2]
    pages = [page, answer[2], owner.post("/data/hostile/preview", asked)[2], owner.post("/data/hostile/ask", asked)[2]]
    owner.post("/data/hostile/people", {"who": QUOTE, "role": "analyst", "days": "3"})
    pages += [owner.get(f"/data/hostile/{name}")[2] for name in PAGES]
    pages += [owner.get("/data/hostile/ledger?q=%3Cscript%3Ealert(1)%3C/script%3E")[2]]
    pages += [owner.post("/data/hostile/ask", {**asked, "sql": EVIL}, HX_Request="true")[2]]
    pages += [owner.post("/data/hostile/policy", {"text": f'x = "{EVIL}"'})[2], owner.get(f"/{EVIL}")[2]]
    assert EVIL not in "".join(pages) and [dangerous(one) for one in pages] == [[]] * len(pages)
    assert sum(html.escape(EVIL) in one for one in pages) >= 6  # it was there to be escaped


# ---- assets ---------------------------------------------------------------------------------------------------------


def test_foreign_assets_are_those_that_were_recorded():
    recorded = json.loads((STATIC / "vendor" / "versions.json").read_text())
    for name, facts in recorded.items():
        assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == facts["sha256"]
        assert "ermission" in (STATIC / "vendor" / facts["licence"]).read_text()
    files = {path.name for path in (STATIC / "vendor").iterdir()}
    assert files == {*recorded, "versions.json", *(facts["licence"] for facts in recorded.values())}


def test_all_assets_are_small():
    assert sum(path.stat().st_size for path in STATIC.rglob("*") if path.is_file()) < 200_000


def test_no_page_has_a_style_or_a_script_in_it_or_leaves_the_machine():
    for path in TEMPLATES.iterdir():
        text = path.read_text()
        assert not re.search(r"\sstyle=|<style|\son\w+=|hx-on|<script(?![^>]* src=)|javascript:|https?://", text), path
        assert "| safe" not in text and "autoescape" not in text
    for name in ("console.js", "console.css"):
        assert not re.search(r"https?://|innerHTML|eval\(|@import", (STATIC / name).read_text())


def test_assets_are_served_and_nothing_beside_them(door):
    guest = Visitor(door)
    for name, kind in (
        ("console.css", "text/css"),
        ("vendor/htmx.min.js", "text/javascript"),
        ("icon.svg", "image/svg+xml"),
    ):
        status, headers, _ = guest.get(f"/static/{name}")
        assert status == 200 and headers["Content-Type"].startswith(kind)
    for name in ("../pages.py", "%2e%2e/pages.py", "vendor/../../pages.py", "/etc/passwd", ""):
        assert guest.get(f"/static/{name}")[0] == 404
