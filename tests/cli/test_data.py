"""`sfumato data`: versions of the data."""

import json

from tests.cli.conftest import COUNT


def test_a_new_version_of_the_data_is_an_act_of_the_owner(run, clinic):
    words = (COUNT, "--epsilon", 0.5, "--json")
    assert json.loads(run("ask", clinic, *words).output)["charged"]
    assert not json.loads(run("ask", clinic, *words).output)["charged"]
    assert run("data", "version", clinic).output == "version 1\n"
    assert run("data", "version", clinic, "--raise", "May").exit_code == 1  # nobody says yes
    assert run("data", "version", clinic, "--raise", " ", "--yes").exit_code == 1
    assert not json.loads(run("ask", clinic, *words).output)["charged"]
    told = json.loads(run("data", "version", clinic, "--raise", "visits of May", "--yes", "--json").output)
    assert told["version"] == 2
    assert [(one["version"], one["why"]) for one in told["changes"]] == [(2, "visits of May")]
    spent = json.loads(run("budget", clinic, "--json").output)["left"]
    assert json.loads(run("ask", clinic, *words).output)["charged"]  # from the same budget
    assert json.loads(run("budget", clinic, "--json").output)["left"] < spent
    assert "visits of May" in run("data", "version", clinic).output
