"""Four tools for agents: what can be asked, what it would cost, an answer, and what is left.

An agent is an analyst whom nobody watches. It gets a token, or a name in the policy, of its own, and with it a share of
the budget that no number of calls exceeds; refusals are results that say what to do instead. What a tool returns is
released or public. An exception that was not foreseen becomes one fixed sentence, as its text might hold anything.
"""

import json
from collections.abc import Callable
from functools import wraps

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from sfumato.client import Remote
from sfumato.curator import Curator
from sfumato.errors import SfumatoError
from sfumato.server.catalogue import Catalogue

INSTRUCTIONS = """Answers questions in SQL about a private database with differential privacy. Each answer has noise, a
95 % interval, and a price in ε that is taken from a budget which never comes back. Call describe_tables first. Call
preview, which is free, before ask. Repeating a question is free and gives the same answer; asking it in many variants
costs each time. Report intervals together with numbers."""
FAILED = "this failed; why is not shown, as it could hold data"

Asker = Curator | Remote


def build(asker: Asker) -> MCPServer:
    """A server with the four tools, all about one data set and one asker."""
    server = MCPServer("sfumato", instructions=INSTRUCTIONS, log_level="ERROR")

    @server.tool()
    @foreseen
    def describe_tables() -> str:
        """Tables and columns that may be asked about, their bounds and public keys, and example questions. Free."""
        return json.dumps(catalogue(asker), ensure_ascii=False, default=str)

    @server.tool()
    @foreseen
    def preview(sql: str, epsilon: float) -> str:
        """What a question would cost, how exact its answer would be, and what would be left. Free; reads no data."""
        return str(asker.preview(sql, epsilon=epsilon))

    @server.tool()
    @foreseen
    def ask(sql: str, epsilon: float) -> str:
        """A private answer to one SELECT with aggregates, for this ε. Charged once; free if it was asked before."""
        answer = asker.ask(sql, epsilon=epsilon)
        return f"{answer.to_json()}\n\n{answer}"

    @server.tool()
    @foreseen
    def budget() -> str:
        """What was promised, what is spent, and what is left for you. Free."""
        return str(asker.budget)

    return server


def foreseen(tool: Callable[..., str]) -> Callable[..., str]:
    """A tool whose refusals are results with our own words."""

    @wraps(tool)
    def careful(*args: object, **named: object) -> str:
        try:
            return tool(*args, **named)
        except SfumatoError as refusal:
            raise ToolError(str(refusal)) from None
        except Exception:
            raise ToolError(FAILED) from None

    return careful


def catalogue(asker: Asker) -> object:
    """All that is public about the tables."""
    return Catalogue.of(asker.policy).to_dict() if isinstance(asker, Curator) else asker.catalogue
