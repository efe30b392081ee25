"""Shared by all commands: the main group, exit codes, error output, common options."""

import os
import shutil
import sys
import textwrap
from pathlib import Path
from typing import Any

import click

from sfumato.errors import (
    AnswerFailed,
    BudgetExceeded,
    EngineUnavailable,
    LedgerError,
    NotReached,
    PolicyError,
    QueryRefused,
    QuestionBlocked,
    SfumatoError,
)

FILE = click.Path(path_type=Path)


class PlaceType(click.ParamType[Path | str]):
    """A parameter type: a file or folder as a path, or an address such as postgresql://… or https://… as a text."""

    name = "place"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path | str:
        return value if isinstance(value, Path) or "://" in value else Path(value)


PLACE = PlaceType()
SERVICES = ("https://", "http://")
TOKEN = click.option("--token", envvar="SFUMATO_TOKEN", help="The token for a service [default: $SFUMATO_TOKEN].")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
JSON_LINES = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
YES = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
LEDGER = click.option("--ledger", type=PLACE, help="The ledger, a file or an address [default: DATA.ledger].")
ANCHOR = click.option("--anchor", type=FILE, help="The ledger's anchor [default: LEDGER.anchor].")
INTERRUPTED = 130
# The first match counts. Any other error is 1; click uses 2 for a misspelt command.
CODES: tuple[tuple[type[SfumatoError], int], ...] = (
    (QueryRefused, 3), (BudgetExceeded, 4), (AnswerFailed, 5), (QuestionBlocked, 8), (NotReached, 9), (LedgerError, 6),
    (PolicyError, 7), (EngineUnavailable, 10),
)  # fmt: skip

ENDING = """\b
First steps:
  sfumato demo                                a tour, on made-up data
  sfumato policy init clinic.duckdb           draft a policy from the schema
  sfumato policy check clinic.duckdb          what is missing in it
  sfumato preview clinic.duckdb "SELECT …" --epsilon 0.1     the price; free
  sfumato ask clinic.duckdb "SELECT …" --epsilon 0.1         the answer
  sfumato attack differencing                 why exact answers leak
  sfumato audit                               audit every mechanism
\b
Exit codes:
  0 success · 2 misspelt command · 3 question refused, nothing charged
  4 budget used up · 5 charged, but not answered · 6 ledger · 7 policy
  8 question blocked until the operator acts · 9 relative error not reached
  10 database unavailable, nothing charged · 130 interrupted · 1 other errors
  `sfumato explain` lists all errors, `sfumato explain NAME` is about one
"""


class Commands(click.Group):
    """Our own errors end in their text and an exit code, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SfumatoError as problem:
            click.echo(f"sfumato: {problem}", err=True)
            click.echo(f"  more:   sfumato explain {type(problem).__name__}", err=True)
            code = next((code for kind, code in CODES if isinstance(problem, kind)), 1)
        except KeyboardInterrupt:
            click.echo("\nsfumato: interrupted", err=True)
            code = INTERRUPTED
        sys.exit(code)  # outside `except`: an error still held would keep its engine open, and DuckDB complains


@click.group(
    cls=Commands, epilog=ENDING, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80}
)
@click.version_option(package_name="sfumato")
def main() -> None:
    """sfumato: a trusted curator for private data.

    It stands between a database and people who may ask anything. Every answer has enough noise to hide any one person,
    comes with its error, and is charged to a privacy budget that the data owner fixes in advance.
    """


def is_service(place: Path | str) -> bool:
    """Is this the address of a service?"""
    return isinstance(place, str) and place.startswith(SERVICES)


def terminal_width() -> int | None:
    """Columns of the terminal, or what COLUMNS says; None if the output is a file or a pipe."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        return None
    return max(20, shutil.get_terminal_size().columns)


def fit(text: str) -> str:
    """The text with no line wider than the terminal."""
    width = terminal_width()
    if width is None:
        return text
    lines = text.splitlines()
    return "\n".join(part for line in lines for part in wrap(line, width))


def wrap(line: str, width: int) -> list[str]:
    """One line as lines of this width, under the place where its words begin."""
    if len(line) <= width:
        return [line]
    begin = " " * min(len(line) - len(line.lstrip()), width // 2)
    return textwrap.wrap(line.lstrip(), width, initial_indent=begin, subsequent_indent=begin) or [line]


def confirm(words: str, yes: bool) -> None:
    """Show what is about to happen, and go on only after a yes; for acts that cannot be undone."""
    if not yes:
        click.echo(words, err=True)
        click.confirm("This cannot be undone. Go on?", abort=True, err=True)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands in a SHELL.

    \b
    eval "$(sfumato completion bash)"                        in ~/.bashrc
    eval "$(sfumato completion zsh)"                         in ~/.zshrc
    sfumato completion fish > ~/.config/fish/completions/sfumato.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(main, {}, "sfumato", "_SFUMATO_COMPLETE").source())
