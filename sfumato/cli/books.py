"""`sfumato ledger`: the account book of one data set, for its owner."""

import json
from collections.abc import Callable
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
