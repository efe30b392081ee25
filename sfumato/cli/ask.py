"""`sfumato ask`, `preview` and `budget`: what analysts use."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.common import FILE, INTERRUPTED
from sfumato.errors import NotReached
from sfumato.progress import patience

if TYPE_CHECKING:
    from sfumato.curator import Curator
    from sfumato.curator.answer import Answer

PRICE = "Say what it may cost (--epsilon) or how exact it must be (--error), not both."


def at_data(command: Callable[..., None]) -> Callable[..., None]:
    """DATA and SQL, and where policy and ledger are."""
    options = (
        click.option("--json", "as_json", is_flag=True, help="As JSON."),
        click.option("--as", "who", default="owner", show_default=True, help="Who asks: an analyst of the policy."),
        click.option("--anchor", type=FILE, help="The ledger's anchor [default: LEDGER.anchor]."),
        click.option("--ledger", type=FILE, help="The account book [default: DATA.ledger]."),
        click.option("--policy", type=FILE, help="The policy [default: beside DATA, ending in .toml]."),
        click.option("--relative-error", type=float, help="A share, such as 0.05; --epsilon is then what it may cost."),
        click.option("--error", type=float, help="± at 95 % that counts and sums must keep."),
        click.option("--epsilon", type=float, help="ε that the question may cost."),
    )
    for option in options:
        command = option(command)
    return click.argument("data", type=FILE)(click.argument("sql")(command))


@click.command(epilog=PRICE)
@at_data
@click.option("--key", help="A name for this request: sent twice, it is charged once.")
def ask(
    data: Path, sql: str, epsilon: float | None, error: float | None, relative_error: float | None,
    policy: Path | None, ledger: Path | None, anchor: Path | None, who: str, as_json: bool, key: str | None,
) -> None:  # fmt: skip
    """Ask a question, and pay for its answer.

    DATA is a DuckDB file, a Parquet or CSV file, or a folder of these. SQL is one SELECT with aggregates; - reads it
    from the standard input. The question is charged before data are read; the same question, however it is spelled, is
    answered from store, for free.

    \b
    sfumato ask clinic.duckdb --epsilon 0.5 \\
      "SELECT ward, COUNT(*) AS n, AVG(stay) FROM visits GROUP BY ward"
    """
    import secrets

    from sfumato.curator.answer import Answer

    request = key or secrets.token_hex(8)
    curator = opened(data, policy, ledger, anchor, who)
    try:
        with patience("asking"):
            answer = curator.ask(written(sql), epsilon=epsilon, error=error, relative_error=relative_error, key=request)
    except NotReached as short:
        if isinstance(short.answer, Answer):
            click.echo(short.answer.to_json() if as_json else str(short.answer))
        raise
    except KeyboardInterrupt:
        click.echo(f"\nsfumato: interrupted. {afterwards(curator, request)}", err=True)
        sys.exit(INTERRUPTED)
    click.echo(answer.to_json() if as_json else on_screen(answer))


@click.command(epilog=PRICE)
@at_data
def preview(
    data: Path, sql: str, epsilon: float | None, error: float | None, relative_error: float | None,
    policy: Path | None, ledger: Path | None, anchor: Path | None, who: str, as_json: bool,
) -> None:  # fmt: skip
    """Price, error and odds of a question. Free; no data are read.

    \b
    sfumato preview clinic.duckdb --error 25 "SELECT COUNT(*) FROM visits"
    """
    curator = opened(data, policy, ledger, anchor, who)
    found = curator.preview(written(sql), epsilon=epsilon, error=error, relative_error=relative_error)
    click.echo(found.to_json() if as_json else str(found))


@click.command()
@click.argument("data", type=FILE)
@click.option("--ledger", type=FILE, help="The account book [default: DATA.ledger].")
@click.option("--anchor", type=FILE, help="The ledger's anchor [default: LEDGER.anchor].")
@click.option("--as", "who", default="owner", show_default=True, help="Whose account.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def budget(data: Path, ledger: Path | None, anchor: Path | None, who: str, as_json: bool) -> None:
    """What was promised, what is spent, and what is left.

    More of it: sfumato ledger report DATA.ledger
    """
    from sfumato.curator.preview import standing
    from sfumato.errors import LedgerUnavailable
    from sfumato.ledger import Ledger

    place = ledger or Path(f"{data}.ledger")
    if not place.exists():
        raise LedgerUnavailable(
            f"nothing has been asked yet.\n  found:  no {place.name}\n"
            "  do:     ask or preview a question: the first one opens the ledger"
        )
    found = standing(Ledger.open(place, anchor=anchor), who)
    click.echo(found.to_json() if as_json else str(found))


def opened(data: Path, policy: Path | None, ledger: Path | None, anchor: Path | None, who: str) -> "Curator":
    from sfumato.curator import Curator

    logged(Path(f"{ledger or f'{data}.ledger'}.log"))
    return Curator.open(data, policy or beside(data), ledger=ledger, anchor=anchor).analyst(who)


def logged(place: Path) -> None:
    """The operator's log: written when something fails, and nowhere else."""
    import logging

    handler = logging.FileHandler(place, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logging.getLogger("sfumato").addHandler(handler)

    def ended() -> None:
        logging.getLogger("sfumato").removeHandler(handler)
        handler.close()

    click.get_current_context().call_on_close(ended)


def on_screen(answer: "Answer") -> str:
    """For a terminal: no wider than it is, and names stand out. Into a file or a pipe goes plain text."""
    if not sys.stdout.isatty():
        return str(answer)
    text = answer.within(shutil.get_terminal_size().columns)
    if "NO_COLOR" in os.environ or text != str(answer):
        return text
    lines = text.splitlines()
    foot = 2 + len(answer.rows)
    return "\n".join(
        [click.style(lines[0], bold=True), *lines[1:foot], *(click.style(x, dim=True) for x in lines[foot:])]
    )


def beside(data: Path) -> Path:
    """clinic.toml for clinic.duckdb."""
    return data.with_suffix(".toml")


def written(sql: str) -> str:
    return sys.stdin.read() if sql == "-" else sql


def afterwards(curator: "Curator", key: str) -> str:
    """What an interrupted question has cost."""
    keys = [str(entry.content.get("key")) for entry in curator.ledger.history()]
    if any(one == key or one.startswith(f"{key} round ") for one in keys):
        return (
            "The question had been charged, and stays so.\n"
            f"  do:     ask it again with --key {key}: it is not charged again"
        )
    return "Nothing was charged."
