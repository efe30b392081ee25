"""Agents: four tools, refusals in our own words, and an agent that cannot learn more than its share."""

import asyncio
import json
import sys

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.server.mcpserver.exceptions import ToolError

import sfumato as sf
from sfumato.client import connect
from sfumato.server.agents.tools import FAILED, build
from sfumato.server.identity import Role
from sfumato.server.service import Service
from tests.curator.clinic import POLICY, built
from tests.server.conftest import configuration
from tests.server.running import running

SHARE = 0.1
SQL = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def curator(tmp_path):
    built(tmp_path / "clinic.duckdb")
    (tmp_path / "clinic.toml").write_text(
        POLICY.replace("[tables.visits]", f"[analysts]\nbot = {SHARE}\n[tables.visits]", 1)
    )
    return sf.Curator.open(tmp_path / "clinic.duckdb", policy=tmp_path / "clinic.toml")


def call(server, name, **arguments):
    """The text that a tool returns."""
    return json.dumps(asyncio.run(server.call_tool(name, arguments)), default=str)


def test_the_four_tools(curator):
    server = build(curator.analyst("bot"))
    assert {tool.name for tool in asyncio.run(server.list_tools())} == {"describe_tables", "preview", "ask", "budget"}
    assert "diagnosis" in call(server, "describe_tables")
    lines = len(curator.ledger.history())
    assert "nothing has been charged" in call(server, "preview", sql=SQL, epsilon=0.1)
    assert len(curator.ledger.history()) == lines
    assert "95 %" in call(server, "ask", sql=SQL, epsilon=0.1)
    assert "left" in call(server, "budget")


def test_the_four_tools_of_a_service(tmp_path):
    """`describe_tables` failed by the address of a service: its catalogue was called as if it were a function."""
    settings = configuration(tmp_path)
    service = Service.open(settings)
    token = service.data["clinic"].identity.new("ann", Role.ANALYST)
    with running(service, settings) as door:
        remote = connect(door.url, token=token)
        server = build(remote)
        assert "diagnosis" in call(server, "describe_tables")
        assert "nothing has been charged" in call(server, "preview", sql=SQL, epsilon=0.1)
        assert "95 %" in call(server, "ask", sql=SQL, epsilon=0.1)
        assert "left" in call(server, "budget")
        with pytest.raises(ToolError, match="aggregate"):
            call(server, "ask", sql="SELECT patient_id FROM visits", epsilon=0.1)
        remote.close()
    service.close()


def test_refusals_say_what_to_do_and_other_errors_nothing(curator):
    server = build(curator.analyst("bot"))
    with pytest.raises(ToolError, match="aggregate"):
        call(server, "ask", sql="SELECT patient_id FROM visits", epsilon=0.1)

    class Broken:
        @property
        def budget(self):
            raise RuntimeError("patient 17 has hiv")

    with pytest.raises(ToolError, match=FAILED) as found:
        call(build(Broken()), "budget")
    assert "17" not in str(found.value)


def test_an_agent_that_tries_to_reconstruct_ends_at_its_share(curator):
    """A thousand different questions: it is refused once its share is spent, and what it was told costs no more."""
    server, refused = build(curator.analyst("bot")), 0
    for i in range(1000):
        try:
            call(
                server,
                "ask",
                sql=f"SELECT COUNT(*) AS n FROM visits WHERE patient_id = {i} AND stay > {i}",
                epsilon=0.5,
            )
        except ToolError as refusal:
            refused += 1
            assert "budget" in str(refusal)
            if refused == 5:
                break
    assert refused == 5
    _, limit, spent = curator.ledger.account("bot")
    assert spent.within(limit)


def test_by_standard_input_and_output(curator, tmp_path):
    async def run():
        words = ["-m", "sfumato", "mcp", str(tmp_path / "clinic.duckdb"), "--as", "bot"]
        where = StdioServerParameters(command=sys.executable, args=words)
        async with stdio_client(where) as (reading, writing), ClientSession(reading, writing) as session:
            await session.initialize()
            listed = await session.list_tools()
            done = await session.call_tool("ask", {"sql": SQL, "epsilon": 0.1})
            refused = await session.call_tool("ask", {"sql": "DROP TABLE visits", "epsilon": 0.1})
            return listed, done, refused

    listed, done, refused = asyncio.run(run())
    assert len(listed.tools) == 4
    assert not done.is_error and refused.is_error
