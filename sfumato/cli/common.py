"""What all commands share: the group, its exit codes, and how errors are told."""

import sys
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
INTERRUPTED = 130
# The first that fits counts; anything else is 1, and 2 is what click says of a misspelt command.
CODES: tuple[tuple[type[SfumatoError], int], ...] = (
    (QueryRefused, 3), (BudgetExceeded, 4), (AnswerFailed, 5), (QuestionBlocked, 8), (NotReached, 9), (LedgerError, 6),
    (PolicyError, 7), (EngineUnavailable, 10),
)  # fmt: skip

ENDING = """\b
First steps:
  sfumato demo                                see it at work, on made-up data
  sfumato policy init clinic.duckdb           draft a policy, from the schema
  sfumato policy check clinic.duckdb          what is missing in it
  sfumato preview clinic.duckdb "SELECT …" --epsilon 0.1     price, for free
  sfumato ask clinic.duckdb "SELECT …" --epsilon 0.1         and the answer
  sfumato attack differencing                 why bother: try to break it
  sfumato audit                               try to break all of it
\b
Exit codes:
  0 done · 2 misspelt command · 3 question refused, nothing charged
  4 budget used up · 5 charged, but not answered · 6 ledger · 7 policy
  8 question blocked until the operator acts · 9 relative error not reached
  10 database cannot be asked, nothing charged · 130 interrupted · 1 else
"""


class Commands(click.Group):
    """Errors of ours are for the person: their text, an exit code, and no traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SfumatoError as problem:
            click.echo(f"sfumato: {problem}", err=True)
            code = next((code for kind, code in CODES if isinstance(problem, kind)), 1)
        except KeyboardInterrupt:
            click.echo("\nsfumato: interrupted", err=True)
            code = INTERRUPTED
        sys.exit(code)  # here, so that no error keeps an engine until the end, when DuckDB complains about it


@click.group(
    cls=Commands, epilog=ENDING, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80}
)
@click.version_option(package_name="sfumato")
def main() -> None:
    """sfumato: a trusted curator. Each person is blurred, the picture is kept.

    It stands between a database and people who may ask anything. Every answer is noisy enough to hide any one person,
    says how noisy it is, and is paid for from a budget that the data owner fixes once.
    """
