"""The audit report: a wrong mechanism is refuted in it, and its HTML page is self-contained."""

import json
from dataclasses import dataclass
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

import sfumato as sf
from sfumato.audit import audit_all as everything
from sfumato.audit.audit_all import audit_exhibit, select_exhibits
from sfumato.audit.exhibits import Exhibit
from sfumato.audit.report import TIERS, Evidence, Finding, Report, Theorem, page
from sfumato.cli import main


@dataclass(frozen=True)
class Cheap:
    """Laplace noise that claims to cost a third. No mechanism of ours, so that nobody counts it among them.

    Theorem: none at all [nobody, 1999]
    """

    noise: sf.Laplace

    def release(self, value):
        return self.noise.release(value)

    def loss(self, sensitivity=1):
        return sf.Laplace(3 * self.noise.scale).loss(sensitivity)


RIGHT = Exhibit("mechanisms", lambda source: sf.Laplace(1.0, source=source), 0, 1, (1,), rows=True)
WRONG = Exhibit("mechanisms", lambda source: Cheap(sf.Laplace(1.0, source=source)), 0, 1, (1,), rows=True)


def reported(*exhibits):
    return Report("0.0", "today", 0.9999, tuple(audit_exhibit(one, 16) for one in exhibits))


@pytest.fixture(scope="module")
def both():
    return reported(RIGHT, WRONG)


def test_a_wrong_mechanism_is_refuted_in_the_report(both):
    """Four thousand runs; a right one is accused with probability < 2e-4, and bits are recorded."""
    assert [one.refuted for one in both.findings] == [False, True]
    assert "REFUTED: 1 of 2" in both.verdict and "Cheap" in both.verdict
    assert both.findings[1].mark("black box") == "✗"
    assert both.findings[0].theorems[0].source == "Dwork, McSherry, Nissim & Smith 2006, Prop. 1"
    assert both.findings[0].theorems[0].where == "sfumato.mechanisms.additive.laplace.Laplace"
    assert both.findings[0].claim == "Laplace(ε=1): ε = 1"


def test_the_report_fits_a_terminal_and_says_the_same_as_json(both):
    text, data = str(both), json.loads(both.to_json())
    assert max(map(len, text.splitlines())) <= 80
    assert data["refuted"] == [both.findings[1].name]
    assert [one["refuted"] for one in data["findings"]] == [False, True]
    assert len(data["rows"]) == 22 and data["false_alarm"] < 1e-3
    assert "none of 1 claims is refuted" in str(reported(RIGHT))


class Page(HTMLParser):
    """Checks that tags close in order, and notes what is loaded from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.loaded, self.tags = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.loaded += [value for key, value in attributes if key in ("src", "srcset") or ":" in (value or "")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(both):
    found = Page()
    found.feed(page(both))
    assert not found.open and not found.loaded
    assert not {"script", "link", "img", "iframe"} & set(found.tags)
    assert found.tags.count("tr") == 2 + 22 + 2  # findings, questions, and a head for each table


def test_what_strangers_write_stays_text():
    nasty = "<script>alert(1)</script> & \"'"
    one = Finding(nasty, nasty, nasty, nasty, (Theorem(nasty, nasty, nasty),), (Evidence("black box", nasty, True),))
    found = Page()
    found.feed(page(Report(nasty, nasty, 0.99, (one,))))
    assert "script" not in found.tags and not found.open


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(everything, "all_exhibits", lambda: (RIGHT, WRONG))
    monkeypatch.setattr(everything, "CONVERSATIONS", ())
    return lambda *words: CliRunner().invoke(main, ["audit", *map(str, words)])


def test_the_exit_code_says_whether_something_is_refuted(run, tmp_path):
    places = [tmp_path / f"report.{kind}" for kind in ("html", "json", "txt")]
    found = run("--quick", *(word for place in places for word in ("--out", place)))
    assert found.exit_code == 1 and "REFUTED" in found.stdout
    assert places[0].read_text().startswith("<!doctype html>")
    assert json.loads(places[1].read_text())["refuted"]
    assert "REFUTED" in places[2].read_text()
    fine = run("--quick", "--only", "mechanisms laplace(", "--json")
    assert fine.exit_code == 0
    assert [one["name"] for one in json.loads(fine.stdout)["findings"]] == [RIGHT.name]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--only", "nothing of the kind"), "no exhibit of the audit matches"),
        (("--out", "report.pdf"), "ends in .html"),
        (("--out", "no/such/folder/report.html"), "in a folder that exists"),
    ],
)
def test_wrong_words_are_told_at_once(run, words, told):
    found = run(*words)
    assert found.exit_code == 1 and told in found.output and "Traceback" not in found.output


def test_everything_that_is_shipped_can_be_chosen_and_described():
    for exhibit in select_exhibits():
        assert everything.describe_claim(exhibit) and exhibit.pair
        assert all(one.source for one in everything.cited_theorems(exhibit)), exhibit.name
    assert {one.part for one in select_exhibits(["dependent"])} == {"dependent"}


def test_the_tiers_are_named_as_in_the_table():
    assert {seen.tier for one in reported(RIGHT).findings for seen in one.evidence} <= set(TIERS)
