"""The survey flow: designs, responses that are stored, hostile lines, results, and the command line."""

import json
import random

import numpy as np
import pytest
from click.testing import CliRunner

import sfumato as sf
from sfumato.cli import main
from sfumato.errors import InvalidParameter
from sfumato.local.survey import (
    design_survey,
    estimate_survey,
    read_design,
    read_reports,
    respond,
    respond_once,
    simulate,
)
from tests.noise.sources import Recorded

PETS = design_survey("Do you have a pet?", ["no", "yes"], two_coins=True)
WIDE = design_survey("Where do you live?", [f"district {i}" for i in range(60)], epsilon=3.0)


@pytest.mark.parametrize("answers", [2, 5, 40, 100, 300])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_a_design_is_read_back_and_named_by_its_hash(answers, epsilon):
    made = design_survey("Which?", [f"answer {i}" for i in range(answers)], epsilon=epsilon)
    assert read_design(made.text) == made and read_design(made.text).hash == made.hash
    assert json.loads(made.text)["randomizer"] == made.randomizer.description
    assert "." not in json.dumps(made.randomizer.description)
    assert made.randomizer.epsilon <= epsilon
    other = design_survey("Which?", [f"answer {i}" for i in range(answers)], epsilon=epsilon * 1.01)
    assert other.hash != made.hash


def test_an_accuracy_becomes_an_epsilon():
    made = design_survey("Which?", ["a", "b", "c"], accuracy=(0.02, 5000))
    assert np.sqrt(made.randomizer.worst_variance / 5000) <= 0.02
    looser = design_survey("Which?", ["a", "b", "c"], epsilon=0.98 * made.randomizer.epsilon)
    assert np.sqrt(looser.randomizer.worst_variance / 5000) > 0.02


@pytest.mark.parametrize(
    "wrong",
    [
        {"answers": ["a"]}, {"answers": ["a", "a"]}, {"answers": []}, {"answers": ["a", ""]}, {"question": ""},
        {"epsilon": 0.0}, {"epsilon": float("nan")}, {"epsilon": 1e9}, {"accuracy": (0.1, 10)},
        {"epsilon": None, "accuracy": (1e-6, 1)}, {"epsilon": None, "two_coins": True, "answers": ["a", "b", "c"]},
    ],
    ids=repr,
)  # fmt: skip
def test_designs_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        design_survey(**{"question": "Which?", "answers": ["a", "b"], "epsilon": 1.0, **wrong})


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", "nonsense", "9" * 5000, '{"sfumato_survey":1}', "[" * 100_000,
        PETS.text.replace("3", "0"), PETS.text.replace('"truth":3', '"truth":3.5'), PETS.text.replace("rr", "xx"),
        PETS.text.replace('"k":2', '"k":1'), PETS.text.replace('"k":2', '"k":3'),
        PETS.text.replace('"lie":1', '"lie":true'),
        PETS.text.replace('"truth":3', '"truth":1e400'), PETS.text.replace('"truth":3', '"truth":NaN'),
    ],
)  # fmt: skip
def test_texts_that_are_no_design_are_refused(text):
    with pytest.raises(InvalidParameter):
        read_design(text)


def test_a_retry_sends_the_stored_report(tmp_path):
    """A fresh draw would differ in its identifier."""
    place = tmp_path / "mine"
    first = respond_once(PETS, "yes", place)
    assert respond_once(PETS, "no", place) == respond_once(PETS, "yes", place) == first
    assert place.stat().st_mode & 0o077 == 0
    assert respond(PETS, "yes") != respond(PETS, "yes")
    with pytest.raises(InvalidParameter, match="another survey"):
        respond_once(WIDE, "district 3", place)
    place.write_text("damaged")
    with pytest.raises(InvalidParameter):
        respond_once(PETS, "yes", place)


def test_reports_are_counted_by_kind():
    source = Recorded("kinds")
    lines = [respond(PETS, "yes", source) for _ in range(20)]
    foreign = respond(WIDE, "district 7", source)
    found = read_reports(PETS, [*lines, lines[3], foreign, "no JSON", "", "{}", '{"design":1}'])
    assert (len(found.reports), found.duplicate, found.other_design, found.malformed) == (20, 1, 1, 3)


def line(**changes):
    return json.dumps({"design": PETS.hash, "id": "0" * 32, "report": 1, **changes})


@pytest.mark.parametrize(
    "text",
    [
        line(report=-1), line(report=2), line(report=True), line(report=1.0), line(report="1"), line(report=None),
        line(report=[1]), line(report=2**70), line(more=1), line(id=5), line(id="x"), line(id="0" * 31),
        line(id="A" * 32),
        line(design=None), line(design=[PETS.hash]), line().replace("1}", "NaN}"), line().replace("1}", "Infinity}"),
        line().replace("1}", "1e0}"), line().replace('"report"', '"design"'), line() + "}", "[" + line() + "]", "\x00",
        "9" * 10_000, "[" * 60_000, " " * 70_000 + line(), '{"report": 1}', b"\xff\xfe", b"\xed\xa0\x80",
        line().replace('"report": 1', '"report": 1, "report": 0'),
    ],
    ids=lambda text: repr(text[:50]),
)  # fmt: skip
def test_a_malformed_line_is_counted_and_never_raises(text):
    found = read_reports(PETS, [text])
    assert (len(found.reports), found.malformed) == (0, 1)


@pytest.mark.slow
def test_a_hundred_thousand_fuzzed_lines_never_raise():
    """Valid lines with random edits, random bytes and random JSON: everything is counted, nothing else happens."""
    rng = random.Random(17)
    base = [respond(PETS, "yes", Recorded("fuzz")), respond(WIDE, "district 1", Recorded("fuzz"))]
    pieces = [
        "NaN",
        "-",
        "1e999",
        '"',
        "{",
        "}",
        "[",
        "]",
        "\\u0000",
        "\\ud800",
        "0",
        "true",
        "null",
        ",",
        ":",
        "é",
        "\x00",
    ]

    def fuzzed():
        kind = rng.randrange(4)
        if kind == 0:
            return bytes(rng.randrange(256) for _ in range(rng.randrange(60)))
        text = rng.choice(base)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice([*pieces, ""]) + text[at + rng.randrange(4) :]
            text = text or "x"
        return text if kind < 3 else text.encode(errors="replace")

    lines = [fuzzed() for _ in range(100_000)]
    for design in (PETS, WIDE):
        found = read_reports(design, lines)
        counted = sum(1 for line in lines if line.strip())  # blank lines are no reports
        assert len(found.reports) + found.malformed + found.duplicate + found.other_design == counted
        assert all(design.randomizer.is_report(y) for y in found.reports)
        assert found.malformed > 50_000


@pytest.mark.slow
@pytest.mark.parametrize("design", [PETS, WIDE], ids=["pets", "wide"])
def test_a_whole_survey_with_shuffling(design, tmp_path):
    """The share of the first answer among 1,500 people: inside the exact interval of 99.99 %."""
    source = Recorded(f"whole {design.hash}")
    n, k = 1500, len(design.answers)
    answers = [design.answers[0]] * 900 + [design.answers[1 + i % (k - 1)] for i in range(600)]
    reports = tmp_path / "reports"
    reports.write_text("".join(respond(design, answer, source) + "\n" for answer in answers))
    assert sf.local.shuffle_file(reports, tmp_path / "shuffled") == n
    places = (reports, tmp_path / "shuffled")
    found = [estimate_survey(design, place.read_bytes().splitlines(), confidence=0.9999) for place in places]
    for one in found:
        low, high = one.estimate.interval(confidence=0.9999)
        assert low[0] <= 0.6 <= high[0] and one.estimate.people == n
        assert "hostile reports could move" in str(one) and "whatever the shuffler does" in str(one)
    assert np.array_equal(found[0].estimate.counts, found[1].estimate.counts)
    plain = json.loads(found[0].to_json())
    assert plain["accepted"] == n and len(plain["shares"]) == k and plain["epsilon_shuffled"] < plain["epsilon"]


def test_a_survey_without_reports_is_refused():
    with pytest.raises(InvalidParameter, match="no report of this survey"):
        estimate_survey(PETS, ["nonsense", respond(WIDE, "district 2")])


def test_simulation_shows_what_people_would_give():
    found = simulate(PETS, 4000, [0.75, 0.25])
    assert abs(found.estimate.raw[1] - 0.25) <= 5.5 * np.sqrt(3 / 4 / 4000)
    for wrong in ([0.5, 0.6], [1.0], [0.5, float("nan")]):
        with pytest.raises(InvalidParameter):
            simulate(PETS, 100, wrong)


def test_the_command_line_goes_all_the_way(tmp_path):
    run = CliRunner().invoke
    design, store, reports = (str(tmp_path / name) for name in ("pets.json", "mine.json", "reports.jsonl"))
    made = run(main, ["survey", "design", design, "Do you have a pet?", "-a", "no", "-a", "yes", "--two-coins"])
    assert made.exit_code == 0, made.output
    first = run(main, ["survey", "respond", design, "yes", "--store", store])
    again = run(main, ["survey", "respond", design, "no", "--store", store])
    assert first.output == again.output and PETS.hash in first.output
    with open(reports, "w") as file:
        file.writelines(respond(PETS, "yes") + "\n" for _ in range(200))
    found = run(main, ["survey", "estimate", design, reports])
    assert found.exit_code == 0 and "200 accepted" in found.output
    plain = run(main, ["survey", "estimate", design, reports, "--json"])
    assert json.loads(plain.output)["accepted"] == 200
    shuffled = run(main, ["survey", "shuffle", reports, str(tmp_path / "out")])
    assert shuffled.exit_code == 0
    shown = run(main, ["survey", "simulate", design, "--people", "500", "--share", "0.7", "--share", "0.3"])
    assert "500 accepted" in shown.output
    page = run(main, ["survey", "page", design, str(tmp_path / "page")])
    assert page.exit_code == 0 and (tmp_path / "page" / "index.html").exists()
    twice = run(main, ["survey", "design", design, "Another?", "-a", "no", "-a", "yes", "--epsilon", "1"])
    assert twice.exit_code == 1 and "there already" in twice.output
    assert run(main, ["survey", "estimate", design, str(tmp_path / "nowhere")]).exit_code == 2
    wrong = run(main, ["survey", "respond", design, "perhaps", "--store", str(tmp_path / "x")])
    assert wrong.exit_code == 1 and "none of the survey's answers" in wrong.output


def test_marks_line_ends_and_empty_lines_cost_nobody_their_report(tmp_path):
    design = design_survey("Pets?", ["no", "yes"], two_coins=True)
    lines = [respond(design, "yes") for _ in range(5)]
    text = "\ufeff" + "\r\n".join([*lines, "", "   ", ""])
    place = tmp_path / "reports.jsonl"
    place.write_text(text, encoding="utf-8", newline="")
    with place.open("rb") as found:
        tallied = read_reports(design, found)
    assert (len(tallied.reports), tallied.malformed) == (5, 0)
    (tmp_path / "design.json").write_text("\ufeff" + design.text, encoding="utf-8")
    assert read_design(tmp_path / "design.json") == design
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidParameter, match="not the design"):
        read_design(tmp_path / "binary")


def test_bits_limit_a_design():
    answers = [f"answer {i}" for i in range(200)]
    assert design_survey("?", answers, epsilon=1.0).randomizer.scheme == "subset"
    assert design_survey("?", answers, epsilon=1.0, bits=16).randomizer.scheme == "pgr"
    with pytest.raises(sf.errors.OutOfReach, match="8 bits at least"):
        design_survey("?", answers, epsilon=1.0, bits=3)
