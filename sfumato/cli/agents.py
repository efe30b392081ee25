"""`sfumato mcp`: the door for agents."""

from pathlib import Path

import click

from sfumato.cli.ask import open_asker
from sfumato.cli.common import ANCHOR, FILE, LEDGER, PLACE, TOKEN


@click.command()
@click.argument("data", type=PLACE)
@click.option("--policy", type=FILE, help="The policy [default: DATA with suffix .toml].")
@click.option("--as", "who", default="owner", show_default=True, help="The agent's name in the policy.")
@LEDGER
@ANCHOR
@TOKEN
def mcp(
    data: Path | str, policy: Path | None, who: str, ledger: Path | str | None, anchor: Path | None, token: str | None
) -> None:  # fmt: skip
    """Let an agent ask, by the Model Context Protocol on standard input and output.

    DATA is a file with its policy beside it, or a service. Give each agent a token or a name of its own: it
    can never spend more than that share, whatever it tries. Needs `pip install 'sfumato[mcp]'`.

    \b
    sfumato mcp https://stats.example/clinic          # with SFUMATO_TOKEN set
    sfumato mcp clinic.duckdb --as assistant
    """
    try:
        from sfumato.server.agents.tools import build
    except ModuleNotFoundError as missing:
        raise click.UsageError(f"there is no {missing.name} here: pip install 'sfumato[mcp]'") from None
    build(open_asker(data, policy, ledger, anchor, who, token)).run("stdio")
