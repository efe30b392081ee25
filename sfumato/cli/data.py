"""`sfumato data`: acts of the owner on the data, and a check of CSV files."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from sfumato.cli.ask import default_ledger
from sfumato.cli.common import ANCHOR, FILE, JSON, LEDGER, PLACE, YES, confirm
from sfumato.cli.ledger import short_name


@click.group()
def data() -> None:
    """The version of the data, and a check of CSV files."""


@data.command()
@click.argument("data", type=PLACE)
@click.option("--raise", "why", metavar="WHY", help="Raise the version, since the data changed for this reason.")
@LEDGER
@ANCHOR
@YES
@JSON
def version(
    data: Path | str, why: str | None, ledger: Path | str | None, anchor: Path | None, yes: bool, as_json: bool
) -> None:
    """Show the version of DATA, or raise it after the data have changed.

    Stored answers are free until the owner raises the version. Then every question is charged again, to the same
    budget: a new version adds nothing to it. The version is never derived from the data: a question that is no longer
    free would reveal that a row was written. Open curators again afterwards: a curator answers from the data as they
    were when it was opened.

    \b
    sfumato data version clinic.duckdb
    sfumato data version clinic.duckdb --raise "visits of May are in"
    """
    from sfumato.errors import InvalidParameter
    from sfumato.ledger import Ledger

    place = ledger or default_ledger(data)
    book = Ledger.open(place, anchor=anchor)
    if why is not None:
        if not why.strip():
            raise InvalidParameter(
                "a new version needs a reason.\n  found:  an empty text\n"
                "  do:     say what has changed in the data; the reason is recorded in the ledger"
            )
        confirm(f"{short_name(place)}: stored answers will no longer be served, and asking again will be charged.", yes)
        book.new_version(why)
    acts = [entry.content for entry in book.history() if entry.content["kind"] == "version"]
    number = book.verify().version
    result = {
        "version": number,
        "changes": [{"version": a["number"], "why": a["why"], "time": a["time"]} for a in acts],
    }
    lines = [f"version {number}", *(f"  {a['number']!s:>4}  {a['why']}" for a in acts)]
    click.echo(json.dumps(result, ensure_ascii=False) if as_json else "\n".join(lines))


@data.command(name="check")
@click.argument("data", type=FILE)
@JSON
def check_data(data: Path, as_json: bool) -> None:
    """Count the malformed lines of CSV files. For the owner only: the numbers are exact.

    Each line is a row, and no line changes another one. So a text with line feeds in it is cut at the first one, and
    the rest is read as rows of its own: use Parquet for such tables. Exit code 7 if there are malformed lines.

    \b
    sfumato data check clinic.csv
    """
    from sfumato.engines.csv import check_csv
    from sfumato.engines.files import sources

    plain = [source for source in sources(data) if not source.is_parquet]
    checked = {source.files[0].name: check_csv(source.files[0], source.separator) for source in plain}
    malformed = {name: {what: n for what, n in counts.descriptions().items() if n} for name, counts in checked.items()}
    if as_json:
        click.echo(json.dumps({name: asdict(counts) for name, counts in checked.items()}, ensure_ascii=False))
    for name, counts in checked.items() if not as_json else ():
        click.echo(f"{name}: {counts.lines} lines" + ("" if malformed[name] else ", all well-formed"))
        click.echo("".join(f"  {n:>8}  {what}\n" for what, n in malformed[name].items()), nl=False)
    if not checked and not as_json:
        click.echo(f"{data.name}: no CSV file; there is nothing to check")
    sys.exit(7 if any(malformed.values()) else 0)
