"""`sfumato ask`, `preview` and `budget`: the commands of analysts."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.common import ANCHOR, FILE, INTERRUPTED, JSON, LEDGER, PLACE, TOKEN, fit, is_service, terminal_width
from sfumato.errors import NotReached
from sfumato.progress import show_progress

if TYPE_CHECKING:
    from sfumato.client import Remote
    from sfumato.curator import Curator
    from sfumato.curator.answer import Answer

PRICE = "Give the price (--epsilon) or the accuracy (--error), not both."


def question_arguments(command: Callable[..., None]) -> Callable[..., None]:
    """DATA, SQL, and the options of a question."""
    options = (
        JSON,
        TOKEN,
        click.option("--as", "who", default="owner", show_default=True, help="Who asks, by their name in the policy."),
        ANCHOR,
        LEDGER,
        click.option("--policy", type=FILE, help="The policy [default: DATA with suffix .toml]."),
        click.option("--relative-error", type=float, help="Relative error, such as 0.05; --epsilon is then the limit."),
        click.option("--error", type=float, help="The 95 % error (±) of counts and sums."),
        click.option("--epsilon", type=float, help="The price of the question in ε."),
    )
    for option in options:
        command = option(command)
    return click.argument("data", type=PLACE)(click.argument("sql")(command))


@click.command(epilog=PRICE)
@question_arguments
@click.option("--key", help="Idempotency key: a request sent twice is charged once.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--arrow", "as_arrow", is_flag=True, help="Write an Arrow stream (needs pyarrow).")
def ask(
    data: Path | str, sql: str, epsilon: float | None, error: float | None, relative_error: float | None,
    policy: Path | None, ledger: Path | str | None, anchor: Path | None, who: str, as_json: bool, key: str | None,
    as_csv: bool, as_arrow: bool, token: str | None,
) -> None:  # fmt: skip
    """Ask a question; it is charged to the budget.

    DATA is a DuckDB file, a Parquet or CSV file, or a folder of these; an address postgresql://… (with --policy and
    --ledger); or a service with a token, https://stats.example/clinic. SQL is one SELECT with aggregates; - reads it
    from standard input. The question is charged before data are read. The same question, however it is spelled, is
    answered from storage for free.

    \b
    sfumato ask clinic.duckdb --epsilon 0.5 \\
      "SELECT ward, COUNT(*) AS n, AVG(stay) FROM visits GROUP BY ward"
    """
    import secrets

    from sfumato.curator.answer import Answer

    if as_json + as_csv + as_arrow > 1:
        raise click.UsageError("give one of --json, --csv and --arrow")
    request, text = key or secrets.token_hex(8), read_sql(sql)
    curator = open_asker(data, policy, ledger, anchor, who, token)
    try:
        with show_progress("asking"):
            answer = curator.ask(text, epsilon=epsilon, error=error, relative_error=relative_error, key=request)
    except NotReached as short:
        if isinstance(short.answer, Answer):
            click.echo(short.answer.to_json() if as_json else str(short.answer))
        raise
    except KeyboardInterrupt:
        click.echo(f"\nsfumato: interrupted. {describe_charge(curator, request)}", err=True)
        sys.exit(INTERRUPTED)
    if as_csv or as_arrow:
        click.echo(answer.to_csv() if as_csv else answer.to_arrow_stream(), nl=False)
    else:
        click.echo(answer.to_json() if as_json else format_for_terminal(answer))


@click.command(epilog=PRICE)
@question_arguments
def preview(
    data: Path | str, sql: str, epsilon: float | None, error: float | None, relative_error: float | None,
    policy: Path | None, ledger: Path | str | None, anchor: Path | None, who: str, as_json: bool, token: str | None,
) -> None:  # fmt: skip
    """Show the price, error and odds of a question. Free; reads no data.

    \b
    sfumato preview clinic.duckdb --error 25 "SELECT COUNT(*) FROM visits"
    """
    curator = open_asker(data, policy, ledger, anchor, who, token)
    result = curator.preview(read_sql(sql), epsilon=epsilon, error=error, relative_error=relative_error)
    click.echo(result.to_json() if as_json else fit(str(result)))


@click.command()
@click.argument("data", type=PLACE)
@LEDGER
@ANCHOR
@click.option("--as", "who", default="owner", show_default=True, help="Whose account.")
@TOKEN
@JSON
def budget(
    data: Path | str, ledger: Path | str | None, anchor: Path | None, who: str, token: str | None, as_json: bool
) -> None:  # fmt: skip
    """Show what is promised, what is spent, and what is left.

    For more: sfumato ledger report DATA.ledger
    """
    from sfumato.curator.preview import budget_standing
    from sfumato.errors import LedgerUnavailable
    from sfumato.ledger import Ledger
    from sfumato.ledger.location import resolve

    if is_service(data):
        result = open_remote(str(data), who, token).budget
    else:
        place = ledger or default_ledger(data)
        if isinstance(place, Path) and not place.exists():
            raise LedgerUnavailable(
                f"nothing has been asked yet.\n  found:  no {place.name}\n"
                "  do:     ask or preview a question: the first one creates the ledger"
            )
        result = budget_standing(Ledger.open(resolve(place), anchor=anchor), who)
    click.echo(result.to_json() if as_json else fit(str(result)))


def open_asker(
    data: Path | str, policy: Path | None, ledger: Path | str | None, anchor: Path | None, who: str, token: str | None
) -> "Curator | Remote":
    """A curator beside the data, or a service that has one."""
    return open_remote(str(data), who, token) if is_service(data) else open_curator(data, policy, ledger, anchor, who)


def open_remote(url: str, who: str, token: str | None) -> "Remote":
    """A service; the token says who asks."""
    from sfumato.client import connect

    if who != "owner":
        raise click.UsageError("--as is for data on this machine: a token says who asks a service")
    return connect(url, token=token)


def open_curator(
    data: Path | str, policy: Path | None, ledger: Path | str | None, anchor: Path | None, who: str
) -> "Curator":
    from sfumato.curator import Curator

    if is_service(data):
        raise click.UsageError("this works beside the data, not by a service: give a file, a folder or a database")
    if isinstance(data, str) and (policy is None or ledger is None):
        raise click.UsageError("with an address as DATA, give --policy and --ledger")
    beside = ledger or default_ledger(data)
    log_to_file(Path(f"{beside}.log") if isinstance(beside, Path) else Path("sfumato.log"))
    return Curator.open(data, policy or default_policy(Path(data)), ledger=ledger, anchor=anchor).analyst(who)


def default_ledger(data: Path | str) -> Path:
    """clinic.duckdb.ledger; only files have one."""
    if isinstance(data, str):
        raise click.UsageError("with an address as DATA, give --ledger")
    return Path(f"{data}.ledger")


def log_to_file(place: Path) -> None:
    """Write the operator's log to this file; it is created when something first fails."""
    import logging

    handler = logging.FileHandler(place, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logging.getLogger("sfumato").addHandler(handler)

    def close_log() -> None:
        logging.getLogger("sfumato").removeHandler(handler)
        handler.close()

    click.get_current_context().call_on_close(close_log)


def format_for_terminal(answer: "Answer") -> str:
    """The answer no wider than the terminal, with a bold header; plain text if the output is a file or a pipe."""
    width = terminal_width()
    if width is None:
        return str(answer)
    text = answer.within(width)
    if "NO_COLOR" in os.environ or text != str(answer) or not sys.stdout.isatty():
        return text
    lines = text.splitlines()
    foot = 2 + len(answer.rows)
    return "\n".join(
        [click.style(lines[0], bold=True), *lines[1:foot], *(click.style(x, dim=True) for x in lines[foot:])]
    )


def default_policy(data: Path) -> Path:
    """clinic.toml for clinic.duckdb."""
    return data.with_suffix(".toml")


def read_sql(sql: str) -> str:
    """The SQL argument; - means standard input."""
    return sys.stdin.read() if sql == "-" else sql


def describe_charge(curator: "Curator | Remote", key: str) -> str:
    """Say whether an interrupted question was charged."""
    from sfumato.curator import Curator

    if not isinstance(curator, Curator):
        return f"It may have been charged.\n  do:     ask it again with --key {key}: it is not charged twice"
    keys = [str(entry.content.get("key")) for entry in curator.ledger.history()]
    if any(known == key or known.startswith(f"{key} round ") for known in keys):
        return (
            "The question was charged, and stays charged.\n"
            f"  do:     ask it again with --key {key}: it is not charged again"
        )
    return "Nothing was charged."
