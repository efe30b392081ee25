"""`sfumato ledger`: the account book of one data set, for its owner."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import click

from sfumato.cli.common import FILE


@click.group()
def ledger() -> None:
    """The account book of one data set.

    Every question that was charged is a line in it, chained to the one before; an anchor beside it notices old copies.
    """


JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")


def at_ledger(command: Callable[..., None]) -> Callable[..., None]:
    """PLACE and --anchor, which every command on a ledger takes."""
    command = click.option("--anchor", type=FILE, help="The anchor file [default: PLACE.anchor].")(command)
    return click.argument("place", type=FILE)(command)


@ledger.command()
@at_ledger
@click.option("--epsilon", type=float, required=True, help="ε of everything that is ever answered.")
@click.option("--delta", type=float, default=0.0, show_default=True, help="δ of the same.")
@click.option("--kind", type=click.Choice(["gaussian", "pure", "zcdp"]), default="gaussian", show_default=True)
@JSON
def create(place: Path, anchor: Path | None, epsilon: float, delta: float, kind: str, as_json: bool) -> None:
    """Make a ledger, where there is none."""
    from sfumato.ledger import Budget, Ledger, PureBudget, ZcdpBudget

    kinds = {"gaussian": Budget, "pure": PureBudget, "zcdp": ZcdpBudget}
    Ledger.create(place, kinds[kind](epsilon, delta), anchor=anchor).close()
    words = f"{place.name}: ε = {epsilon:g} at δ = {delta:g}. Keep a copy of its anchor in another place."
    click.echo(json.dumps({"epsilon": epsilon, "delta": delta, "kind": kind}) if as_json else words)


@ledger.command()
@at_ledger
@JSON
def verify(place: Path, anchor: Path | None, as_json: bool) -> None:
    """Follow the chain of all lines, and compare with the tables and the anchor."""
    from sfumato.ledger import Ledger

    state = Ledger.open(place, anchor=anchor).verify()
    words = f"{place.name}: {state.seq} lines, intact; head {state.hash}"
    click.echo(json.dumps({"lines": state.seq, "head": state.hash, "intact": True}) if as_json else words)


@ledger.command()
@at_ledger
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def report(place: Path, anchor: Path | None, as_json: bool) -> None:
    """What was promised, what is spent, and by whom."""
    from sfumato.ledger import Ledger
    from sfumato.ledger.report import report as made

    found = made(Ledger.open(place, anchor=anchor))
    click.echo(found.to_json() if as_json else str(found))


@ledger.command()
@at_ledger
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def history(place: Path, anchor: Path | None, as_json: bool) -> None:
    """Every line of the book."""
    from sfumato.ledger import Ledger

    for entry in Ledger.open(place, anchor=anchor).history():
        content = entry.content
        what = content.get("why") or content.get("question") or ""
        short = f"{entry.seq:6} {content['kind']!s:9} {content.get('who', '')!s:12} {what!s:.40}"
        click.echo(entry.text if as_json else short)


YES = click.option("--yes", "-y", is_flag=True, help="Do not ask whether you are sure.")
WHY = "The reason: it is written into the book."


@ledger.command()
@at_ledger
@click.option("--epsilon", type=float, required=True, help="ε of the further budget.")
@click.option("--delta", type=float, help="δ of it [default: that of the first budget].")
@click.option("--why", required=True, help=WHY)
@YES
@JSON
def renew(
    place: Path, anchor: Path | None, epsilon: float, delta: float | None, why: str, yes: bool, as_json: bool
) -> None:
    """Add a further budget to a ledger that has used up its own.

    A guarantee holds for a period: what is promised from now on comes on top of what was promised before. Who is in
    the data throughout faces the sum of all periods; what that is, this command says before it asks whether you are
    sure. There is no way back. Shares of analysts grow with the whole. The policy keeps naming the first budget.

    \b
    sfumato ledger renew clinic.duckdb.ledger --epsilon 1 --why "the year 2027"
    """
    from sfumato.ledger import Ledger
    from sfumato.ledger.report import union

    book = Ledger.open(place, anchor=anchor)
    first = book.promise
    more = replace(first, epsilon=epsilon, delta=first.delta if delta is None else delta, slack=None)
    before, after = union(book), union(book, more)
    words = (
        f"{place.name}: ε = {more.epsilon:g} at δ = {more.delta:g} on top of what was promised.\n"
        f"People in the data throughout then face ε = {after[0]:.4g} at δ = {after[1]:g} in all;"
        f" until now ε = {before[0]:.4g} at δ = {before[1]:g}."
    )
    sure(words, yes)
    book.renew(more, why)
    told = {"epsilon": more.epsilon, "delta": more.delta, "why": why, "union": after[0], "union_delta": after[1]}
    click.echo(json.dumps(told, ensure_ascii=False) if as_json else f"{words if yes else ''}\nDone.".strip())


def sure(words: str, yes: bool) -> None:
    """Go on only after a yes; what cannot be undone says so first."""
    if not yes:
        click.echo(words, err=True)
        click.confirm("This cannot be undone. Go on?", abort=True, err=True)


@click.group()
def data() -> None:
    """What the owner says about the data themselves."""


@data.command()
@click.argument("data", type=FILE)
@click.option("--raise", "why", metavar="WHY", help="The data have changed, for this reason: one version more.")
@click.option("--ledger", type=FILE, help="The account book [default: DATA.ledger].")
@click.option("--anchor", type=FILE, help="The ledger's anchor [default: LEDGER.anchor].")
@YES
@JSON
def version(data: Path, why: str | None, ledger: Path | None, anchor: Path | None, yes: bool, as_json: bool) -> None:
    """Which version of DATA answers are about; raise it after the data have changed.

    Stored answers are served for ever, for free, until the owner says that the data are new. Then every question is
    charged again, from the same budget: a version adds nothing to it. The number is never worked out from the data:
    that a question is no longer free would tell that somebody's row was written. Open curators again afterwards: they
    answer from the data of the moment of their opening.

    \b
    sfumato data version clinic.duckdb
    sfumato data version clinic.duckdb --raise "visits of May are in"
    """
    from sfumato.errors import InvalidParameter
    from sfumato.ledger import Ledger

    place = ledger or Path(f"{data}.ledger")
    book = Ledger.open(place, anchor=anchor)
    if why is not None:
        if not why.strip():
            raise InvalidParameter("say why there is a new version; the reason is written into the book")
        sure(f"{place.name}: stored answers will no longer be served, and asking again will be charged.", yes)
        book.new_version(why)
    acts = [entry.content for entry in book.history() if entry.content["kind"] == "version"]
    number = book.verify().version
    told = {"version": number, "changes": [{"version": a["number"], "why": a["why"], "time": a["time"]} for a in acts]}
    words = [f"version {number}", *(f"  {a['number']!s:>4}  {a['why']}" for a in acts)]
    click.echo(json.dumps(told, ensure_ascii=False) if as_json else "\n".join(words))


@data.command(name="check")
@click.argument("data", type=FILE)
@JSON
def check_data(data: Path, as_json: bool) -> None:
    """Count the lines of CSV files that are not read as they are written. For the owner alone: the numbers are exact.

    Each line is a row, and no line changes another one. A text that goes over several lines is therefore cut, and what
    follows counts as rows of whomever it names: give such tables as Parquet. Exit code 7 if there are odd lines.

    \b
    sfumato data check clinic.csv
    """
    from sfumato.engines.csv import check_csv
    from sfumato.engines.duckdb import files

    found = {file.name: check_csv(file) for file in files(data) if file.suffix.lower() == ".csv"}
    odd = {name: {what: n for what, n in counts.in_words().items() if n} for name, counts in found.items()}
    if as_json:
        click.echo(json.dumps({name: asdict(counts) for name, counts in found.items()}, ensure_ascii=False))
    for name, counts in found.items() if not as_json else ():
        click.echo(f"{name}: {counts.lines} lines" + ("" if odd[name] else ", all as they should be"))
        click.echo("".join(f"  {n:>8}  {what}\n" for what, n in odd[name].items()), nl=False)
    if not found and not as_json:
        click.echo(f"{data.name}: no CSV file; there is nothing to check")
    sys.exit(7 if any(odd.values()) else 0)


@ledger.command()
@at_ledger
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def blocked(place: Path, anchor: Path | None, as_json: bool) -> None:
    """Questions that the engine failed on, twice. Why is in the operator's log.

    Nobody can ask them until you have mended the cause and said so:

    \b
    sfumato ledger unblock clinic.duckdb.ledger 17 --why "the disk was full"
    """
    from sfumato.ledger import Ledger

    found = Ledger.open(place, anchor=anchor).blocked()
    for entry in found:
        short = f"charge {entry.content['charge']!s:>6}  {entry.content['question']!s:.60}"
        click.echo(entry.text if as_json else short)
    if not found and not as_json:
        click.echo("no question is blocked")


@ledger.command()
@at_ledger
@click.argument("charge", type=int)
@click.option("--why", required=True, help="What was mended: it is written into the book.")
@JSON
def unblock(place: Path, anchor: Path | None, charge: int, why: str, as_json: bool) -> None:
    """Let the question of CHARGE be asked again, by everybody.

    Nothing is paid back. Who was charged asks again with the same --key, and is not charged again.
    """
    from sfumato.ledger import Ledger

    Ledger.open(place, anchor=anchor).unblock(charge, why)
    words = f"{place.name}: the question of charge {charge} may be asked again."
    click.echo(json.dumps({"unblocked": charge, "why": why}, ensure_ascii=False) if as_json else words)
