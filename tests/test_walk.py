"""`make walk` counts what a call runs: distinct functions of the package, and calls between its modules."""

import pytest

from sfumato.sensitivity import Sensitivity
from tools.walk import PACKAGE, Walk, is_ours, profiled, walks


def test_functions_of_the_package_are_counted_once_and_others_are_not():
    walk = Walk("norms")
    with profiled(walk):
        for _ in range(3):
            Sensitivity(l1=2, l2=1)
            sorted([3, 1, 2], key=lambda x: -x)
    assert {code.co_filename.removeprefix(f"{PACKAGE}/") for code in walk.functions} >= {"sensitivity.py"}
    assert all(is_ours(code) for code in walk.functions)
    assert set(walk.route) <= set(walk.files)
    assert not is_ours(test_functions_of_the_package_are_counted_once_and_others_are_not.__code__)


def test_modules_that_call_each_other_are_named_with_the_calls_each_way():
    walk = Walk("made up", hops=[("a", "b"), ("b", "a"), ("a", "b"), ("b", "c")])
    assert walk.pairs == [("a", "b", 2, 1)]
    assert walk.route == ["b", "a", "c"]


@pytest.mark.slow
def test_a_stored_repeat_runs_less_than_the_question_and_reads_no_data(tmp_path, capsys):
    found = {walk.name: walk for walk in walks(tmp_path)}
    assert set(found) == {"preview", "ask", "stored", "repeat", "reopened", "epsilon"}
    assert 0 < len(found["reopened"].functions) <= 120 and len(found["stored"].functions) <= 70
    assert len(found["epsilon"].functions) <= 80
    assert len(found["repeat"].functions) <= 70 and not found["repeat"].pairs
    assert (
        len(found["ask"].functions) <= 306 and len(found["ask"].files) <= 51
    )  # 289 to 297 and 50 when this was written
    assert not found["ask"].pairs, "no two files call each other"
    assert not any(module.startswith("loss/views") for module in found["ask"].files), "a preview has computed them"
    assert any(module.startswith("engines/") for module in found["ask"].files)
    assert not any(module.startswith(("engines/", "noise/sampler")) for module in found["reopened"].files)
    assert not any(module.startswith("ledger/sqlite") for module in found["epsilon"].files)
