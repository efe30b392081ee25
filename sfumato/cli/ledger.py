"""`sfumato ledger`: create, read and verify the ledger of one data set, and the owner's acts on it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import click

from sfumato.cli.ask import default_ledger
from sfumato.cli.common import FILE, JSON, JSON_LINES, PLACE, TOKEN, YES, confirm, is_service, terminal_width


@click.group()
def ledger() -> None:
    """The ledger of one data set: its budget, and every charge.

    Each charge is a line, hash-chained to the line before. The anchor file beside the ledger detects old copies.
    PLACE is the ledger, a file or an address, or the data file that it stands beside.
    """


ANCHOR_OF_PLACE = click.option("--anchor", type=FILE, help="The anchor file [default: PLACE.anchor].")


def refuse_service(context: click.Context, parameter: click.Parameter, place: Path | str) -> Path | str:
    """The place, unless it is the address of a service, whose name would be taken for that of a file."""
    if is_service(place):
        raise click.UsageError("this works beside the ledger; of a service ask `budget`, `ledger history` or `verify`")
    return place


def find_ledger(context: click.Context, parameter: click.Parameter, place: Path | str) -> Path | str:
    """The place; the ledger beside it if the place is a file or folder of data. Few commands ask a service."""
    if not any(one.name == "token" for one in context.command.params):
        refuse_service(context, parameter, place)
    if isinstance(place, Path) and place.exists() and not is_sqlite(place):
        beside = default_ledger(place)
        return beside if beside.exists() else place
    return place


def is_sqlite(place: Path) -> bool:
    """Does this file begin as files of SQLite, and so ledgers, do?"""
    if not place.is_file():
        return False
    with place.open("rb") as file:
        return file.read(15) == b"SQLite format 3"


def new_ledger_arguments(command: Callable[..., None]) -> Callable[..., None]:
    """PLACE and --anchor, for commands that write a ledger where there may be none."""
    return click.argument("place", type=PLACE, callback=refuse_service)(ANCHOR_OF_PLACE(command))


def ledger_arguments(command: Callable[..., None]) -> Callable[..., None]:
    """PLACE and --anchor, for commands on a ledger that is there; its data name it, too."""
    return click.argument("place", type=PLACE, callback=find_ledger)(ANCHOR_OF_PLACE(command))


@ledger.command()
@new_ledger_arguments
@click.option("--epsilon", type=float, required=True, help="ε for all answers together.")
@click.option("--delta", type=float, default=0.0, show_default=True, help="δ for all answers together.")
@click.option("--kind", type=click.Choice(["gaussian", "pure", "zcdp"]), default="gaussian", show_default=True)
@JSON
def create(place: Path | str, anchor: Path | None, epsilon: float, delta: float, kind: str, as_json: bool) -> None:
    """Create a ledger where there is none."""
    from sfumato.ledger import Budget, Ledger, PureBudget, ZcdpBudget

    kinds = {"gaussian": Budget, "pure": PureBudget, "zcdp": ZcdpBudget}
    Ledger.create(place, kinds[kind](epsilon, delta), anchor=anchor).close()
    words = f"{short_name(place)}: ε = {epsilon:g} at δ = {delta:g}. Keep a copy of its anchor elsewhere."
    click.echo(json.dumps({"epsilon": epsilon, "delta": delta, "kind": kind}) if as_json else words)


@ledger.command()
@ledger_arguments
@TOKEN
@JSON
def verify(place: Path | str, anchor: Path | None, token: str | None, as_json: bool) -> None:
    """Verify the hash chain of all lines, the tables and the anchor."""
    from sfumato.client import connect
    from sfumato.ledger import Ledger

    if is_service(place):
        found = connect(str(place), token=token).verify()
    else:
        state = Ledger.open(place, anchor=anchor).verify()
        found = {"lines": state.seq, "head": state.hash, "intact": True}
    words = f"{short_name(place)}: {found['lines']} lines, intact; head {found['head']}"
    click.echo(json.dumps(found) if as_json else words)


@ledger.command()
@ledger_arguments
@JSON
def report(place: Path | str, anchor: Path | None, as_json: bool) -> None:
    """Report what is promised, what is spent, and by whom."""
    from sfumato.ledger import Ledger
    from sfumato.ledger.owner_report import report as ledger_report

    result = ledger_report(Ledger.open(place, anchor=anchor))
    click.echo(result.to_json() if as_json else str(result))


@ledger.command()
@ledger_arguments
@TOKEN
@JSON_LINES
def history(place: Path | str, anchor: Path | None, token: str | None, as_json: bool) -> None:
    """List every line of the ledger: when, who, for which ε, and what."""
    from sfumato.client import connect
    from sfumato.ledger import Ledger

    if is_service(place):
        for line in connect(str(place), token=token).history():
            number = int(str(line.pop("line")))
            click.echo(json.dumps(line, ensure_ascii=False) if as_json else describe_line(number, line, None))
        return
    opened = Ledger.open(place, anchor=anchor)
    for entry in opened.history():
        click.echo(entry.text if as_json else describe_line(entry.seq, entry.content, opened.promise.delta))


def describe_line(number: int, content: Mapping[str, object], delta: float | None) -> str:
    """One line of a ledger for people."""
    from datetime import UTC, datetime

    from sfumato.loss.describe import from_json

    when = datetime.fromtimestamp(float(str(content.get("time", 0))), UTC).strftime("%Y-%m-%d %H:%M")
    price = ""
    if content["kind"] == "charged":
        price = f"ε={from_json(str(content['loss'])).epsilon(delta or 1e-9).upper:.3g}"
    about = f"charge {content['charge']}" if "charge" in content else content.get("question")
    what = " ".join(str(content.get("why") or content.get("asked") or about or "").split())
    start = f"{number:5} {when} {content['kind']!s:9} {content.get('who', '')!s:10} {price:9} "
    width = terminal_width()
    return (start + what)[: None if width is None else max(width, len(start))].rstrip()


def short_name(place: Path | str) -> str:
    """The name of a place in messages, without the password that an address may hold."""
    return place.name if isinstance(place, Path) else "the ledger"


WHY = "The reason; it is recorded in the ledger."


@ledger.command()
@ledger_arguments
@click.option("--epsilon", type=float, required=True, help="ε of the further budget.")
@click.option("--delta", type=float, help="Its δ [default: that of the first budget].")
@click.option("--why", required=True, help=WHY)
@YES
@JSON
def renew(
    place: Path | str, anchor: Path | None, epsilon: float, delta: float | None, why: str, yes: bool, as_json: bool
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
        f"{short_name(place)}: a further ε = {more.epsilon:g} at δ = {more.delta:g}.\n"
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
def blocked(place: Path | str, anchor: Path | None, as_json: bool) -> None:
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
def unblock(place: Path | str, anchor: Path | None, charge: int, why: str, as_json: bool) -> None:
    """Let everybody ask the question of CHARGE again.

    Nothing is refunded. Whoever was charged asks again with the same --key, and is not charged again.
    """
    from sfumato.ledger import Ledger

    Ledger.open(place, anchor=anchor).unblock(charge, why)
    words = f"{short_name(place)}: the question of charge {charge} may be asked again."
    click.echo(json.dumps({"unblocked": charge, "why": why}, ensure_ascii=False) if as_json else words)


@ledger.command()
@ledger_arguments
@click.argument("file", type=FILE)
@JSON
def backup(place: Path | str, anchor: Path | None, file: Path, as_json: bool) -> None:
    """Write all of a ledger to a new FILE, in one consistent state.

    Services may go on meanwhile. Note the head that is printed, and keep it elsewhere: a restore uses it to
    check that the backup is the newest.

    \b
    sfumato ledger backup clinic.duckdb.ledger clinic-monday.backup
    """
    from sfumato.ledger import Ledger
    from sfumato.ledger.backup import backup as write_backup
    from sfumato.server.identity import TABLES

    head = write_backup(Ledger.open(place, anchor=anchor), file, TABLES)
    words = f"{file.name}: {head.seq} lines; head {head.hash}"
    click.echo(json.dumps({"lines": head.seq, "head": head.hash}) if as_json else words)


@ledger.command()
@click.argument("file", type=FILE)
@new_ledger_arguments
@click.option("--head", help="The hash of the newest line, as it was recorded elsewhere.")
@click.option("--count-as-spent", "why", metavar="WHY", help="Accept that all that was left at the backup is spent.")
@YES
@JSON
def restore(
    file: Path, place: Path | str, anchor: Path | None, head: str | None, why: str | None, yes: bool, as_json: bool
) -> None:  # fmt: skip
    """Put a backup FILE in the place of a ledger that was lost or damaged.

    A backup does not know what was charged after it. If the anchor, or the ledger that is there, has later lines, the
    restore is refused, as it would give back budget that was spent. With --count-as-spent all that was left at the
    backup counts as spent instead; renew the budget to go on. Repeat renewals that came after the backup. Stop services
    first. The old files are kept under other names.

    \b
    sfumato ledger restore clinic-monday.backup clinic.duckdb.ledger
    """
    from sfumato.ledger.backup import restore as put_back
    from sfumato.server.identity import TABLES

    if why is not None:
        confirm(
            f"{short_name(place)}: if lines are missing in {file.name}, all that is left of the budget is spent.", yes
        )
    found, missing = put_back(file, place, anchor=anchor, head=head, forfeit=why, extra=TABLES)
    rest = "" if missing == 0 else f"; {'an unknown number of' if missing is None else missing} lines count as spent"
    content = {"lines": found.seq, "head": found.hash, "missing": missing}
    click.echo(json.dumps(content) if as_json else f"{short_name(place)}: {found.seq} lines; head {found.hash}{rest}")
