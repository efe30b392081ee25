"""The auditor passes every randomizer, and refutes randomizers with planted bugs.

Each audit of a correct randomizer would fail with probability at most 1e-6 with other bits.
"""

import random

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
        from sfumato.local.unit_vector import ranked

        return int(np.flatnonzero(ranked(np.array([1.0, 0.0]), seed, 16) == at)[0])

    assert not sf.audit.audit(nearest, 1.0, -1.0, samples=3000, confidence=SURE, loss=vectors.loss()).violated
    rappor = sf.local.Rappor(bits=4, hashes=1, source=Recorded("audit rappor"))

    def three(text):
        permanent = rappor.permanent(text)
        return sum(int(rappor.report(permanent)[v]) << v for v in range(4)) if permanent is not None else 0

    assert not sf.audit.audit(three, "a", "c", samples=3000, confidence=SURE, loss=rappor.loss(1)).violated


# ---- planted bugs ----------------------------------------------------------------------------------------------------


def test_a_coin_of_few_bits_is_refuted():
    """A float coin: a 6-bit random number against e^ε/(1 + e^ε), so that lies come too rarely at ε = 4."""
    rng = random.Random(1)
    claim = sf.local.Response.of(2, 4.0)
    cut = float(claim.p)

    def coin(value):
        return value if rng.randrange(64) / 64 < cut else 1 - value  # the truth with 63/64 or more

    exact = 63 / 64
    assert exact > cut
    assert sf.audit.audit(coin, 0, 1, samples=400_000, confidence=0.999, loss=claim.loss()).violated


def test_a_predictable_generator_is_refuted():
    """Math.random and its kin: who saw earlier outputs knows the next. A short linear generator stands for them."""
    claim, state = sf.local.Response.two_coins(), [12345]

    def draw():
        state[0] = (state[0] * 1103515245 + 12345) % 2**31
        return state[0]

    def predictable(value):
        seen = draw()  # published before, say as an identifier
        lies = draw() % 4 == 0
        return value ^ lies, seen % 4  # low bits of such a generator have a short period

    assert sf.audit.audit(predictable, 0, 1, samples=4000, confidence=0.999, loss=claim.loss()).violated


def test_a_memo_that_is_reused_for_another_question_is_refuted():
    """One permanent lie for two questions: their answers are linked, and two reports say more than two losses."""
    oracle = sf.local.Response.two_coins().with_source(Recorded("memo reused"))

    def linked(values):
        flips = int(oracle.randomize(0))  # one draw for both questions
        return values[0] ^ flips, values[1] ^ flips

    assert sf.audit.audit(linked, (0, 0), (0, 1), samples=4000, confidence=0.999, loss=oracle.loss()).violated


def test_a_fresh_draw_on_every_retry_is_refuted():
    """Five retries with fresh draws, claimed to cost one report."""
    oracle = sf.local.Response.two_coins().with_source(Recorded("retries"))

    def retried(value):
        return sum(int(oracle.randomize(value)) for _ in range(5))

    assert sf.audit.audit(retried, 0, 1, samples=4000, confidence=0.999, loss=oracle.loss()).violated
