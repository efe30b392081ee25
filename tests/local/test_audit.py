"""The auditor passes every randomizer, and refutes randomizers with planted bugs.

Each audit of a correct randomizer would fail with probability at most 1e-6 with other bits.
"""

import json
import re
import shutil
import subprocess
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from tests.local.laws import LARGE
from tests.noise.sources import Recorded

SURE = 1 - 1e-6


class Numbered:
    """Reports as numbers, or rows of numbers, of one value many times at once."""

    def __init__(self, randomizer):
        self.randomizer = randomizer

    def release(self, value):
        return self.many(value, 1)[0]

    def many(self, value, count):
        found = np.asarray(self.randomizer.randomize(np.full(count, value)))
        if self.randomizer.scheme == "hashing":  # the seed is public: is the report the bucket of value 0, or of 1?
            a, b, y = found.T.astype(np.uint64)
            g = np.uint64(self.randomizer.buckets)
            mask = np.uint64(0xFFFFFFFF)
            bucket = [(((a * np.uint64(v) + b & mask) >> np.uint64(16)) * g) >> np.uint64(16) for v in (0, 1)]
            return 2 * (bucket[0] == y) + (bucket[1] == y)
        if found.ndim == 2:
            return np.unpackbits(found, axis=1)[:, :2] @ np.array([2, 1])
        return found


@pytest.mark.parametrize("oracle", LARGE, ids=repr)
def test_the_auditor_passes_every_frequency_oracle(oracle):
    subject = Numbered(oracle.with_source(Recorded(f"audit {oracle!r}")))
    assert not sf.audit.audit(subject, 0, 1, samples=20_000, confidence=SURE, loss=oracle.loss()).violated


@pytest.mark.parametrize("kind", [sf.local.DuchiMean, sf.local.PiecewiseMean, sf.local.HybridMean])
def test_the_auditor_passes_every_randomizer_of_numbers(kind):
    oracle = kind.of(1.0).with_source(Recorded(f"audit {kind}"))

    class Many:
        def release(self, x):
            return self.many(x, 1)[0]

        def many(self, x, count):
            return oracle.randomize(np.full(count, x))

    assert not sf.audit.audit(Many(), -1.0, 1.0, samples=20_000, confidence=SURE, loss=oracle.loss()).violated


@pytest.mark.slow
def test_the_auditor_passes_vectors_and_rappor():
    vectors = sf.local.UnitVector(2, sf.local.Odds(3, 1), 4, 16, source=Recorded("audit vectors"))

    def nearest(sign):
        seed, at = vectors.randomize([sign, 0.0])
        from sfumato.local.unit_vector import rank_codebook

        return int(np.flatnonzero(rank_codebook(np.array([1.0, 0.0]), seed, 16) == at)[0])

    assert not sf.audit.audit(nearest, 1.0, -1.0, samples=3000, confidence=SURE, loss=vectors.loss()).violated
    rappor = sf.local.Rappor(bits=4, hashes=1, source=Recorded("audit rappor"))

    def three(text):
        permanent = rappor.permanent(text)
        return sum(int(rappor.report(permanent)[v]) << v for v in range(4)) if permanent is not None else 0

    assert not sf.audit.audit(three, "a", "c", samples=3000, confidence=SURE, loss=rappor.loss(1)).violated


# ---- planted bugs ----------------------------------------------------------------------------------------------------


class CRandom:
    """rand() as the C standard prints it: 15 bits of a linear generator."""

    def __init__(self, seed):
        self.state = seed

    def __call__(self):
        self.state = (self.state * 1103515245 + 12345) & 0xFFFFFFFF
        return (self.state >> 16) & 32767


def test_a_float_coin_is_refuted():
    """rand()/32768.0 < p: at ε = 10.5 the largest such number is below p, so nobody ever lies."""
    claim, rand = sf.local.Response.of(2, 10.5), CRandom(1)
    p = float(claim.p)
    assert p > 32767 / 32768.0

    class Coin:
        def release(self, value):
            return value if rand() / 32768.0 < p else 1 - value

        def many(self, value, count):
            return np.array([self.release(value) for _ in range(count)])

    assert sf.audit.audit(Coin(), 0, 1, samples=700_000, confidence=0.999, loss=claim.loss()).violated
    exact = Numbered(claim.with_source(Recorded("exact coin")))
    assert not sf.audit.audit(exact, 0, 1, samples=700_000, confidence=SURE, loss=claim.loss()).violated


CLIENT = (Path(sf.local.__file__).parent / "survey" / "client" / "survey.js").read_text(encoding="utf-8")
SYSTEM_WORDS = re.compile(r"  function systemWords\(\) \{.*?\n  \}\n", re.S)
MATH_RANDOM = "  function systemWords() { return () => Math.floor(Math.random() * 4294967296); }\n"
PAGES = """
    const vm = require("vm");
    const input = JSON.parse(require("fs").readFileSync(0, "utf8"));
    const script = new vm.Script(input.client);
    const found = [];
    for (let person = 0; person < input.people; person += 1) {
      const page = vm.createContext({ crypto });  // a page of its own: V8 seeds its Math.random afresh
      script.runInContext(page);
      let kept = new Map();
      const store = { getItem: (key) => kept.get(key) ?? null, setItem: (key, line) => kept.set(key, line) };
      const design = { randomizer: { scheme: "rr", k: 2, truth: 3, lie: 1 } };
      const lines = [];
      for (let i = 0; i < input.tries; i += 1) {
        lines.push(JSON.parse(page.SfumatoSurvey.respond(design, "hash", input.value, store)));
        if (input.forgets) kept = new Map();
      }
      found.push(lines);
    }
    process.stdout.write(JSON.stringify(found));
"""
NODE = shutil.which("node")
node = pytest.mark.skipif(NODE is None, reason="node is not installed")


class Pages:
    """People who answer yes or no on a page in Node, each on a page of their own, and what a server makes of it."""

    def __init__(self, read, *, client=CLIENT, tries=1, forgets=False):
        self.read, self.settings = read, {"client": client, "tries": tries, "forgets": forgets}

    def release(self, value):
        return self.many(value, 1)[0]

    def many(self, value, count):
        asked = json.dumps({**self.settings, "value": value, "people": count})
        done = subprocess.run([NODE, "-e", PAGES], input=asked, capture_output=True, text=True, check=True, timeout=300)
        return np.array([self.read(lines) for lines in json.loads(done.stdout)])


def xorshift_outputs(count):
    """Bits of successive outputs of xorshift128+ as V8 has it, each a set of bits of the state: sums modulo 2.

    V8 shows the first half of the state, so outputs are linear; it hands out what it generated last first.
    """
    first, second = [1 << i for i in range(64)], [1 << (64 + i) for i in range(64)]
    found = []
    for _ in range(count):
        x, first = first, second
        x = [a ^ b for a, b in zip(x, [0] * 23 + x, strict=False)]
        x = [a ^ b for a, b in zip(x, x[17:] + [0] * 17, strict=True)]
        second = [a ^ b ^ c for a, b, c in zip(x, first, first[26:] + [0] * 26, strict=True)]
        found.append(first)
    return found[::-1]


def predictor():
    """The two low bits of the coin's word as sums of bits of the identifier: (bit, mask) by Gaussian elimination."""
    words = [output[32:] for output in xorshift_outputs(6)]  # Math.random()·2³² is the upper half
    seen = [words[2 + i][bit] for i in range(4) for bit in range(32)]  # the identifier: words 2 to 5
    basis: dict[int, tuple[int, int]] = {}

    def reduce(form, mask):
        while form and form.bit_length() in basis:
            other, with_mask = basis[form.bit_length()]
            form, mask = form ^ other, mask ^ with_mask
        return form, mask

    for i, form in enumerate(seen):
        left, mask = reduce(form, 1 << i)
        if left:
            basis[left.bit_length()] = (left, mask)
    solved = [reduce(words[1][bit], 0) for bit in (0, 1)]
    assert all(left == 0 for left, _ in solved)  # both bits follow from the identifier
    return [mask for _, mask in solved]


@node
def test_math_random_is_refuted():
    """The page's identifier comes from the same generator: from one line alone the server computes its coin.

    The same attack on the shipped client, which draws from the cryptographic generator, finds nothing.
    """
    masks, claim = predictor(), sf.local.Response.two_coins()

    def undo(lines):
        (line,) = lines
        digits = [int(line["id"][8 * i : 8 * i + 8], 16) for i in range(4)]
        bits = sum(word << 32 * i for i, word in enumerate(digits))
        coin = sum(((bits & mask).bit_count() & 1) << i for i, mask in enumerate(masks))
        return line["report"] ^ (coin == 3)  # three of four outcomes are the truth

    planted = SYSTEM_WORDS.sub(lambda _: MATH_RANDOM, CLIENT)
    assert planted != CLIENT
    found = sf.audit.audit(Pages(undo, client=planted), 0, 1, samples=300, confidence=0.999, loss=claim.loss())
    assert found.violated
    assert np.array_equal(Pages(undo, client=planted).many(1, 20), np.ones(20))  # every single coin is undone
    assert not sf.audit.audit(Pages(undo), 0, 1, samples=1000, confidence=SURE, loss=claim.loss()).violated


@node
def test_a_fresh_draw_on_every_retry_is_refuted():
    """A browser that forgets draws anew on each of five retries; one that keeps the line sends the same five times."""
    claim = sf.local.Response.two_coins()

    def yes(lines):
        return sum(line["report"] for line in lines)

    keeps, forgets = Pages(yes, tries=5), Pages(yes, tries=5, forgets=True)
    assert sf.audit.audit(forgets, 0, 1, samples=1000, confidence=0.999, loss=claim.loss()).violated
    assert not sf.audit.audit(keeps, 0, 1, samples=1000, confidence=SURE, loss=claim.loss()).violated


@pytest.mark.parametrize("kept", [True, False])
def test_retries_in_python_are_refuted_unless_the_line_is_kept(tmp_path, kept):
    design = sf.local.survey.design_survey("Do you have a pet?", ["no", "yes"], two_coins=True)
    source, numbers = Recorded(f"retries {kept}"), count()

    def five(answer):
        place = tmp_path / f"{next(numbers)}.json"
        again = partial(sf.local.survey.respond_once, design, answer, place) if kept else None
        fresh = partial(sf.local.survey.respond, design, answer)
        lines = [(again or fresh)(source=source) for _ in range(5)]
        return sum(json.loads(line)["report"] for line in lines)

    loss = design.randomizer.loss()
    assert sf.audit.audit(five, "no", "yes", samples=400, confidence=SURE, loss=loss).violated is not kept


@pytest.mark.parametrize("shared", [True, False])
def test_a_memo_that_is_reused_for_another_question_is_refuted(shared):
    """Two questions of which one value changes. With one memo for both, equal values have equal reports."""
    oracle = sf.local.Response.two_coins().with_source(Recorded(f"memo {shared}"))

    def device(values):
        memo: dict[int, int] = {}
        memos = (memo, memo if shared else {})
        asked = [sf.local.Memoised(oracle, name, memo) for name, memo in zip("ab", memos, strict=True)]
        return tuple(one.report(value, one.question) for one, value in zip(asked, values, strict=True))

    found = sf.audit.audit(device, (0, 0), (0, 1), samples=4000, confidence=SURE, loss=oracle.loss())
    assert found.violated is shared
