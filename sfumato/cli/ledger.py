"""`sfumato ledger`: create, read and verify the ledger of one data set, and the owner's acts on it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from sfumato.cli.common import FILE, JSON, JSON_LINES, YES, confirm


@click.group()
def ledger() -> None:
    """The ledger of one data set: its budget, and every charge.

    Each charge is a line, hash-chained to the line before. The anchor file beside the ledger detects old copies.
    """


def ledger_arguments(command: Callable[..., None]) -> Callable[..., None]:
    """PLACE and --anchor, for every command on a ledger."""
    command = click.option("--anchor", type=FILE, help="The anchor file [default: PLACE.anchor].")(command)
    return click.argument("place", type=FILE)(command)


@ledger.command()
@ledger_arguments
@click.option("--epsilon", type=float, required=True, help="ε for all answers together.")
@click.option("--delta", type=float, default=0.0, show_default=True, help="δ for all answers together.")
@click.option("--kind", type=click.Choice(["gaussian", "pure", "zcdp"]), default="gaussian", show_default=True)
@JSON
def create(place: Path, anchor: Path | None, epsilon: float, delta: float, kind: str, as_json: bool) -> None:
    """Create a ledger where there is none."""
    from sfumato.ledger import Budget, Ledger, PureBudget, ZcdpBudget

    kinds = {"gaussian": Budget, "pure": PureBudget, "zcdp": ZcdpBudget}
    Ledger.create(place, kinds[kind](epsilon, delta), anchor=anchor).close()
    words = f"{place.name}: ε = {epsilon:g} at δ = {delta:g}. Keep a copy of its anchor elsewhere."
    click.echo(json.dumps({"epsilon": epsilon, "delta": delta, "kind": kind}) if as_json else words)


@ledger.command()
@ledger_arguments
@JSON
def verify(place: Path, anchor: Path | None, as_json: bool) -> None:
    """Verify the hash chain of all lines, the tables and the anchor."""
    from sfumato.ledger import Ledger

    state = Ledger.open(place, anchor=anchor).verify()
    words = f"{place.name}: {state.seq} lines, intact; head {state.hash}"
    click.echo(json.dumps({"lines": state.seq, "head": state.hash, "intact": True}) if as_json else words)


@ledger.command()
@ledger_arguments
@JSON
def report(place: Path, anchor: Path | None, as_json: bool) -> None:
    """Report what is promised, what is spent, and by whom."""
    from sfumato.ledger import Ledger
    from sfumato.ledger.owner_report import report as ledger_report

    result = ledger_report(Ledger.open(place, anchor=anchor))
    click.echo(result.to_json() if as_json else str(result))


@ledger.command()
@ledger_arguments
@JSON_LINES
def history(place: Path, anchor: Path | None, as_json: bool) -> None:
    """List every line of the ledger."""
    from sfumato.ledger import Ledger

    for entry in Ledger.open(place, anchor=anchor).history():
        content = entry.content
        what = content.get("why") or content.get("question") or ""
        short = f"{entry.seq:6} {content['kind']!s:9} {content.get('who', '')!s:12} {what!s:.40}"
        click.echo(entry.text if as_json else short)


WHY = "The reason; it is recorded in the ledger."


@ledger.command()
@ledger_arguments
@click.option("--epsilon", type=float, required=True, help="ε of the further budget.")
@click.option("--delta", type=float, help="Its δ [default: that of the first budget].")
@click.option("--why", required=True, help=WHY)
@YES
@JSON
def renew(
    place: Path, anchor: Path | None, epsilon: float, delta: float | None, why: str, yes: bool, as_json: bool
) -> None:
    """Add a further budget to a ledger that has used up its own.

    The guarantee is then one per period, on top of those before. People who are in the data throughout face the sum of
    all periods; this command shows that sum and asks for confirmation. It cannot be undone. The shares of analysts
    grow with the whole. The policy keeps naming the first budget.

    \b
    sfumato ledger renew clinic.duckdb.ledger --epsilon 1 --why "the year 2027"
    """
    from sfumato.ledger import Ledger
    from sfumato.ledger.owner_report import union

    opened = Ledger.open(place, anchor=anchor)
    first = opened.promise
    more = replace(first, epsilon=epsilon, delta=first.delta if delta is None else delta, slack=None)
    before, after = union(opened), union(opened, more)
    words = (
        f"{place.name}: a further ε = {more.epsilon:g} at δ = {more.delta:g}.\n"
        f"People in the data throughout then face ε = {after[0]:.4g} at δ = {after[1]:g} in all;"
        f" until now ε = {before[0]:.4g} at δ = {before[1]:g}."
    )
    confirm(words, yes)
    opened.renew(more, why)
    result = {"epsilon": more.epsilon, "delta": more.delta, "why": why, "union": after[0], "union_delta": after[1]}
    click.echo(json.dumps(result, ensure_ascii=False) if as_json else f"{words if yes else ''}\nDone.".strip())


@ledger.command()
@ledger_arguments
@JSON_LINES
def blocked(place: Path, anchor: Path | None, as_json: bool) -> None:
    """List the questions that the engine failed on twice.

    The reason is in the operator's log. Nobody can ask them until you repair the cause and unblock them:

    \b
    sfumato ledger unblock clinic.duckdb.ledger 17 --why "the disk was full"
    """
    from sfumato.ledger import Ledger

    entries = Ledger.open(place, anchor=anchor).blocked()
    for entry in entries:
        short = f"charge {entry.content['charge']!s:>6}  {entry.content['question']!s:.60}"
        click.echo(entry.text if as_json else short)
    if not entries and not as_json:
        click.echo("no question is blocked")


@ledger.command()
@ledger_arguments
@click.argument("charge", type=int)
@click.option("--why", required=True, help="What was repaired; it is recorded in the ledger.")
@JSON
def unblock(place: Path, anchor: Path | None, charge: int, why: str, as_json: bool) -> None:
    """Let everybody ask the question of CHARGE again.

    Nothing is refunded. Whoever was charged asks again with the same --key, and is not charged again.
    """
    from sfumato.ledger import Ledger

    Ledger.open(place, anchor=anchor).unblock(charge, why)
    words = f"{place.name}: the question of charge {charge} may be asked again."
    click.echo(json.dumps({"unblocked": charge, "why": why}, ensure_ascii=False) if as_json else words)
