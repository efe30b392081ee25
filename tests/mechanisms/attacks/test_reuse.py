"""A4, noise used twice after a fork, in threads, copies and spawned processes; A7, random words used twice.

Two answers with the same noise reveal the difference of the exact values. Each transcript below is long enough that two
of them agree with probability below 1e-6 if their noise is independent.
"""

import copy
import hashlib
import json
import multiprocessing
import os
import pickle
import threading
from collections import Counter

import numpy as np
import pytest

import sfumato as sf
from sfumato.noise.entropy import SYSTEM
from tests.checks.mechanism_examples import EXAMPLES
from tests.mechanisms.attacks.naive import NaiveLaplace, OneBuffer
from tests.noise.sources import Recorded

pytestmark = pytest.mark.fresh_bits
LENGTH, RARE = 200, 60
ASKED = [(example.make(SYSTEM), example.neighbours[0].first) for example in EXAMPLES]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def transcript(mechanism, value):
    """A digest of many answers: so many that RARE of them are not the commonest one.

    Two honest transcripts are then equal with a probability below 2⁻⁶⁰, also for mechanisms that nearly always say the
    same: where a share p of the answers is rare, each of about RARE/p answers agrees by chance with at most 1 − p.
    """
    answers = []
    while len(answers) < LENGTH or len(answers) - Counter(answers).most_common(1)[0][1] < RARE:
        answers += [repr(mechanism.release(value)) for _ in range(LENGTH)]
    return hashlib.sha256(repr(answers).encode()).hexdigest()


def transcripts(asked):
    return [transcript(mechanism, value) for mechanism, value in asked]


def in_a_forked_child(act):
    """What `act` returns in a child made by os.fork, through JSON."""
    read, write = os.pipe()
    if not (child := os.fork()):
        try:
            with os.fdopen(write, "w") as pipe:
                json.dump(act(), pipe)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        found = json.load(pipe)
    os.waitpid(child, 0)
    return found


def assert_all_different(*lists):
    """No two processes have the same transcript of any mechanism."""
    for (mechanism, _), found in zip(ASKED, zip(*lists, strict=True), strict=True):
        assert len(set(found)) == len(lists), mechanism


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking a process with threads
@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_forked_children_do_not_repeat_noise(example):
    """Each in children of its own: one that takes a new key would take it for all."""
    mechanism, value = example.make(SYSTEM), example.neighbours[0].first
    mechanism.release(value)  # what is drawn ahead is there before the fork
    children = [in_a_forked_child(lambda: transcript(mechanism, value)) for _ in range(2)]
    assert len({*children, transcript(mechanism, value)}) == 3


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_breaks_naive_noise():
    naive = NaiveLaplace()
    children = [in_a_forked_child(lambda: transcript(naive, 0.0)) for _ in range(2)]
    assert children[0] == children[1]


@pytest.mark.slow
def test_threads_do_not_repeat_noise():
    found = [[] for _ in range(2)]
    threads = [threading.Thread(target=lambda mine=mine: mine.extend(transcripts(ASKED))) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_all_different(*found)


@pytest.mark.slow
def test_spawned_processes_do_not_repeat_noise():
    for mechanism, value in ASKED:
        mechanism.release(value)
    with multiprocessing.get_context("spawn").Pool(1) as workers:
        there = workers.map(transcripts, [ASKED, ASKED])
    assert_all_different(*there, transcripts(ASKED))


def test_copies_break_naive_noise():
    """Ours are in tests/checks/test_mechanisms.py."""
    naive = NaiveLaplace()
    others = [copy.deepcopy(naive), pickle.loads(pickle.dumps(naive)), naive]
    assert len({transcript(other, 0.0) for other in others}) == 1


# ---- A7 --------------------------------------------------------------------------------------------------------------


class Overwritten(Recorded):
    """A source that keeps what it handed out, to spoil it afterwards."""

    def __init__(self, name):
        super().__init__(name)
        self.handed_out = []

    def words(self, count, bits):
        self.handed_out.append(super().words(count, bits))
        return self.handed_out[-1]

    def spoil(self):
        for words in self.handed_out:
            words.fill(0)


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_no_answer_is_a_view_of_random_words(example):
    source = Overwritten("overwritten")
    mechanism = example.make(source)
    value = example.neighbours[0].first
    rows = np.full((50, *np.shape(value)), value) if example.rows else value
    answers = [mechanism.release(x) for x in (value, rows, value, rows)]
    before = repr(answers)
    source.spoil()
    mechanism.release(rows)
    assert repr(answers) == before
    arrays = [answer for answer in answers if isinstance(answer, np.ndarray)]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])


def test_a_shared_buffer_breaks_naive_noise():
    source = OneBuffer()
    first = source.words(10, 32)
    kept = first.copy()
    source.words(10, 32)
    assert not np.array_equal(first, kept)


@pytest.mark.parametrize("scale", [1e17, 3.0])
def test_no_draw_of_a_pool_is_given_twice(scale):
    """Through two blocks: the draws of a pool are those of its sampler, each once and in order."""
    mechanism, same = (sf.DiscreteLaplace(scale, source=Recorded("in order")) for _ in range(2))
    size = same.pool.size
    expected = [*same.sampler.draw(size).tolist(), *same.sampler.draw(size).tolist()]
    assert [mechanism.release(0) for _ in range(2 * size)] == expected
