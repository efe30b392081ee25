"""No bit is handed out twice: not after a fork, to a thread, in a copy, in a spawned process, or from a pool."""

import copy
import multiprocessing
import os
import pickle
import threading

import numpy as np
import pytest

from sfumato.noise import DiscreteLaplace, Keystream, Pool, Sampler
from sfumato.noise import entropy as module
from sfumato.noise.entropy import PROCESS, SYSTEM

pytestmark = pytest.mark.fresh_bits
FAR = Sampler(DiscreteLaplace(10**17))  # two draws agree with probability < 1e-17


def in_a_forked_child(act):
    """What `act` returns in a child made by os.fork, as an integer."""
    read, write = os.pipe()
    if not (child := os.fork()):
        try:
            os.write(write, str(act()).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    found = os.read(read, 1000)
    os.close(read)
    return int(found)


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking a process with threads
def test_forked_children_have_bits_of_their_own():
    stream = Keystream()
    stream.bits(8)  # bits are in reserve now
    acts = [lambda: stream.bits(128), lambda: int(stream.words(1, 64)[0]), FAR.one, lambda: int(FAR.draw(1)[0])]
    for act in acts:
        seen = [in_a_forked_child(act) for _ in range(4)] + [act()]
        assert len(set(seen)) == 5


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_pool_is_empty_in_a_forked_child():
    pool = Pool(FAR, 64)
    pool.ready(64)
    seen = [in_a_forked_child(pool.take) for _ in range(4)] + [pool.take()]
    assert len(set(seen)) == 5


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_is_noticed_without_the_hook_of_python(monkeypatch):
    if not PROCESS.wiped:
        pytest.skip("the kernel wipes no pages here")
    process = module.Process.__new__(module.Process)
    process.memory, process.wiped = module._page()
    process.number, process.pid = memoryview(process.memory).cast("Q"), 0
    before = process.current()
    assert in_a_forked_child(process.current) != before
    assert process.current() == before


def test_threads_have_bits_of_their_own():
    stream, seen = Keystream(), []
    threads = [threading.Thread(target=lambda: seen.append(stream.bits(128))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({*seen, stream.bits(128)}) == 9


def test_copies_have_bits_of_their_own():
    stream = Keystream()
    stream.bits(8)
    copies = [copy.copy(stream), copy.deepcopy(stream), pickle.loads(pickle.dumps(stream)), stream]
    assert len({other.bits(128) for other in copies}) == 4
    pool = Pool(FAR, 16)
    pool.ready(16)
    copies = [copy.copy(pool), copy.deepcopy(pool), pickle.loads(pickle.dumps(pool)), pool]
    assert len({other.take() for other in copies}) == 4


def draw_there(pool):
    return pool.take(), pool.sampler.one()


def test_a_spawned_process_has_bits_of_its_own():
    pool = Pool(FAR, 16)
    pool.ready(16)
    with multiprocessing.get_context("spawn").Pool(1) as workers:
        there = workers.map(draw_there, [pool, pool])
    here = pool.take(), FAR.one()
    assert len({*there[0], *there[1], *here}) == 6


def test_a_key_serves_a_limited_number_of_bytes(monkeypatch):
    monkeypatch.setattr(module, "PER_KEY", 1 << 13)
    stream = Keystream()
    ciphers = []
    for _ in range(10):
        stream.words(400, 64)
        ciphers.append(stream.cipher)
    assert len(set(map(id, ciphers))) >= 4
    numbers = [stream.bits(128) for _ in range(2000)]  # keys end in the middle of these, too
    assert len(set(numbers)) == 2000
    assert 0 not in numbers


def test_words_have_memory_of_their_own_and_only_the_bits_asked_for():
    stream = Keystream()
    first = stream.words(1000, 48)
    kept = first.copy()
    second = stream.words(1000, 48)
    assert (first == kept).all()
    assert not np.shares_memory(first, second)
    for bits in (1, 3, 16, 17, 32, 33, 63, 64):
        words = stream.words(4000, bits)
        assert int(words.max()) < 1 << bits
        assert int(words.max()).bit_length() == bits  # fails with probability 2^-4000
        assert stream.bits(bits) < 1 << bits
    assert stream.words(200_000, 64).size == 200_000  # longer than one piece of the cipher's input


def test_single_numbers_are_wiped_from_the_reserve():
    stream = Keystream()
    stream.bits(64)
    stream.bits(3)
    assert stream.used == 9
    assert not any(stream.reserve[:9])


def test_a_pool_hands_out_a_block_in_order_and_then_draws_another():
    from tests.noise.sources import Recorded

    pool = Pool(Sampler(DiscreteLaplace(50), source=Recorded("pool")), 10)
    same = Sampler(DiscreteLaplace(50), source=Recorded("pool"))
    expected = [*same.draw(10).tolist(), *same.draw(30).tolist()]
    found = [pool.take() for _ in range(5)]
    pool.ready(30)  # five are left, so three blocks more
    assert found + [pool.take() for _ in range(35)] == expected


def test_threads_share_a_pool_without_sharing_a_draw():
    pool, seen = Pool(FAR, 64), []

    def work():
        seen.extend([pool.take() for _ in range(500)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 2000


def test_the_stream_of_the_system_is_the_default():
    assert FAR.source is SYSTEM


@pytest.mark.parametrize("scale", [3, 10**12, 10**18])
def test_all_ways_out_of_a_pool_give_the_same_draws(scale):
    from tests.noise.sources import Recorded

    taken, added, compared = (Pool(Sampler(DiscreteLaplace(scale), source=Recorded("ways")), 64) for _ in range(3))
    for value in (0, -7, 10**30, -(10**30)):
        for _ in range(50):
            draw = taken.take()
            assert added.about(value) == value + draw
            assert compared.reaches(draw + value + (draw % 2), value) == (draw % 2 == 0)
