"""The versions that pyproject.toml allows are those that are tested, and those that engines take."""

import tomllib

import pytest

from sfumato.engines.duckdb import BEYOND, OLDEST
from tools.oldest import PROJECT, constraints, oldest, requirements

TEXT = PROJECT.read_text("utf-8")


def test_every_requirement_has_an_oldest_version_and_an_end():
    listed = requirements(TEXT)
    assert len(listed) > 10
    for one in listed:
        assert oldest(one) and (",<" in one or "==" in one)
    assert len(constraints(TEXT, [])) == len(listed)


def test_extras_that_name_the_package_itself_are_left_out():
    assert not any(one.startswith("sfumato") for one in constraints(TEXT, []))


def test_constraints_can_be_of_some_only():
    (line,) = constraints(TEXT, ["duckdb"])
    assert line.startswith("duckdb==")
    with pytest.raises(SystemExit, match="not in pyproject"):
        constraints(TEXT, ["nothing"])


@pytest.mark.parametrize("requirement", ["duckdb", "duckdb<3", "duckdb~=1.5"])
def test_a_requirement_without_an_oldest_version_is_refused(requirement):
    with pytest.raises(SystemExit, match="without an oldest version"):
        oldest(requirement)


def test_a_single_version_is_the_oldest():
    assert oldest("torch==2.13.0") == ("torch", "2.13.0")


def test_brackets_are_no_part_of_a_name():
    assert oldest("psycopg[binary]>=3.2.2,<4") == ("psycopg", "3.2.2")


def test_duckdb_is_opened_in_the_versions_that_are_allowed():
    words = next(one for one in tomllib.loads(TEXT)["project"]["dependencies"] if one.startswith("duckdb"))
    assert words == f"duckdb>={'.'.join(map(str, OLDEST))},<{BEYOND[0]}"
