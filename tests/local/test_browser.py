"""The browser client draws what Python draws from the same words: in Node, and as a page in Chromium."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.local.survey import design_survey, read_reports
from sfumato.local.survey.design import client_file, write_page
from sfumato.local.survey.reports import report_text
from tests.noise.sources import Recorded

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "local.json").read_text(encoding="utf-8"))
CLIENT = Path(sf.local.__file__).parent / "survey" / "client" / "survey.js"
CHECK = Path(__file__).parent / "client_check.js"
NODE = shutil.which("node")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
node = pytest.mark.skipif(NODE is None, reason="node is not installed")


class Played:
    """A source that plays 32-bit words."""

    def __init__(self, words):
        self.words = iter(words)

    def bits(self, count):
        assert count == 32
        return next(self.words)


def designs():
    for scheme, k, eps in (("rr", 2, 1.0), ("rr", 7, 0.3), ("subset", 12, 1.0), ("subset", 60, 2.0)):
        kind = {"rr": sf.local.Response, "subset": sf.local.SubsetSelection}[scheme]
        yield kind.of(k, eps)
    yield sf.local.Response.two_coins()
    yield sf.local.UnaryEncoding.of(9, 1.0)
    yield sf.local.UnaryEncoding.of(70, 1.0)
    for k, eps in ((20, 1.0), (100, 1.0), (300, 2.0), (1000, 0.5)):
        yield sf.local.ProjectiveResponse.of(k, eps)
    for order, length in ((4, 4), (8, 3), (9, 3), (25, 3)):
        yield sf.local.ProjectiveResponse(50, sf.local.Odds(11, 4), order, length)


def python_reports(oracle, words, values):
    played = oracle.with_source(Played(words))
    return [oracle.answer(value, played.below) for value in values]


def in_node(cases):
    done = subprocess.run(
        [NODE, str(CHECK), str(CLIENT)],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", GOLDEN["js_vectors"]["cases"], ids=lambda case: case["name"])
def test_python_agrees_with_the_recorded_vectors(case):
    design = case["design"]
    odds = sf.local.Odds(design["truth"], design["lie"])
    kind = sf.local.Response if design["scheme"] == "rr" else sf.local.UnaryEncoding
    found = python_reports(kind(design["k"], odds), case["words"], case["values"])
    wanted = [y if isinstance(y, int) else sum(bit << v for v, bit in enumerate(y)) for y in case["reports"]]
    assert found == wanted


@node
def test_node_agrees_with_the_recorded_vectors():
    cases = [
        {**case, "design": {**case["design"], "scheme": case["design"]["scheme"].replace("oue", "unary")}}
        for case in GOLDEN["js_vectors"]["cases"]
    ]
    wanted = [
        [y if isinstance(y, int) else sum(bit << v for v, bit in enumerate(y)) for y in case["reports"]]
        for case in cases
    ]
    assert in_node(cases) == wanted


@node
def test_node_agrees_with_python_on_every_randomizer():
    oracles = list(designs())
    cases, wanted = [], []
    for oracle in oracles:
        values = [v % oracle.k for v in (0, 1, 5, 7, 19, oracle.k - 1, 3, 2)]
        source = Recorded(f"browser {oracle!r}")
        words = [source.bits(32) for _ in range(4 * len(values) * max(4, oracle.k))]
        cases.append({"design": oracle.description, "words": words, "values": values})
        answers = tuple(f"answer {v}" for v in range(oracle.k))
        design = sf.local.survey.Design("?", answers, oracle)
        wanted.append([report_text(design, y) for y in python_reports(oracle, words, values)])
    assert in_node(cases) == wanted


@node
def test_without_a_cryptographic_generator_nothing_is_drawn():
    program = f"""
        Object.defineProperty(globalThis, "crypto", {{ value: undefined, configurable: true }});
        const survey = require({str(CLIENT)!r});
        try {{ survey.systemWords()(); }} catch (problem) {{ process.stdout.write("refused: " + problem.message); }}
    """
    done = subprocess.run([NODE, "-e", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("refused: no cryptographic random numbers")


@node
def test_a_retry_sends_the_stored_line_whatever_the_answer():
    program = f"""
        const survey = require({str(CLIENT)!r});
        const kept = new Map();
        const store = {{ getItem: (key) => kept.get(key) ?? null, setItem: (key, line) => kept.set(key, line) }};
        const design = {{ randomizer: {{ scheme: "rr", k: 2, truth: 3, lie: 1 }} }};
        const lines = [0, 1, 1, 0].map((value) => survey.respond(design, "h", value, store));
        process.stdout.write(JSON.stringify(lines));
    """
    done = subprocess.run([NODE, "-e", program], capture_output=True, text=True, check=True, timeout=60)
    assert len(set(json.loads(done.stdout))) == 1


def test_the_client_uses_no_other_randomness_and_no_network():
    """Words that have no place in a file whose every outcome must come from the cryptographic generator."""
    for name in ("survey.js", "page.js"):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", client_file(name), flags=re.S)
        for word in ("Math.random", "Date", "performance", "fetch", "XMLHttpRequest", "sendBeacon", "eval", "import("):
            assert word not in text, f"{name} uses {word}"


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_page_in_chromium_makes_a_report_that_the_server_accepts(tmp_path):
    """The page answers by itself, through a script that presses the second button."""
    design = design_survey("Do you have a pet?", ["no", "yes"], two_coins=True)
    write_page(design, tmp_path / "page")
    index = tmp_path / "page" / "index.html"
    text = index.read_text(encoding="utf-8").replace(
        '<meta http-equiv="Content-Security-Policy" content="default-src \'self\'">', ""
    )
    press = "<script>document.querySelectorAll('#answers button')[1].click();</script></body>"
    index.write_text(text.replace("</body>", press), encoding="utf-8")
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        f"--user-data-dir={tmp_path / 'profile'}", "--allow-file-access-from-files", "--dump-dom", index.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    line = re.search(r'<pre id="report">(.*?)</pre>', done.stdout)[1].replace("&quot;", '"')
    found = read_reports(design, [line])
    assert len(found.reports) == 1 and found.reports[0] in (0, 1)
    assert "Do you have a pet?" in done.stdout


def test_a_page_is_written_to_a_folder_of_its_own(tmp_path):
    design = design_survey('</script><b>"?', ["a", "b"], epsilon=1.0)
    names = {path.name for path in write_page(design, tmp_path / "new")}
    assert names == {"index.html", "survey.js", "page.js", "style.css", "design.js"}
    assert "</script>" not in (tmp_path / "new" / "design.js").read_text(encoding="utf-8").replace("<\\/", "")
    with pytest.raises(sf.errors.InvalidParameter, match="folder of its own"):
        write_page(design, tmp_path / "new")
