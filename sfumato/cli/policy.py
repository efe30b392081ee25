"""`sfumato policy`: draft, check and edit the data owner's policy."""

import json
import shlex
import sys
from pathlib import Path

import click

from sfumato.cli.ask import default_policy, open_curator
from sfumato.cli.common import ANCHOR, FILE, JSON, LEDGER, PLACE, TOKEN, YES, confirm, is_service


@click.group()
def policy() -> None:
    """Draft, check and edit the data owner's policy.

    A policy states who is protected (the unit), what is public, and the privacy budget. Bounds of values may be stated;
    if they are not, they are found privately, for a price.

    \b
    sfumato policy init clinic.duckdb -o clinic.toml       a draft
    sfumato policy check clinic.duckdb                     what can be asked
    sfumato policy suggest clinic.duckdb visits.stay --epsilon 0.1 --write
    sfumato policy upgrade clinic.toml                     drop rows and groups
    sfumato policy publish https://stats.example/clinic clinic.toml
    """


@policy.command()
@click.argument("data", type=PLACE)
@click.option("--output", "-o", type=FILE, help="Write it to this file, which must not exist.")
def init(data: Path | str, output: Path | None) -> None:
    """Draft a policy from the schema of DATA. Reads no values.

    The unit (whose data a row is) is guessed from the names of columns, and said to be: check it, since all privacy is
    about units. Nothing must be known about how many rows people have, or how large values are. Values of columns whose
    type lists them (ENUM) are public keys. The draft has `draft = true`, and nobody can ask until you remove it.

    \b
    sfumato policy init clinic.duckdb -o clinic.toml
    """
    from sfumato.engines.addresses import engine_at
    from sfumato.engines.duckdb import likely_delimiters, schema, untyped
    from sfumato.errors import PolicyError
    from sfumato.sql.policy_draft import draft_policy

    if isinstance(data, Path):
        delimiters = likely_delimiters(data)
        text = draft_policy(schema(data, delimiters), data.name, untyped(data), dict(delimiters))
    else:
        database = engine_at(data)
        try:
            text = draft_policy(database.schema(), "a database", frozenset())
        finally:
            database.close()
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        raise PolicyError(
            f"the draft cannot be written.\n  found:  {output.name}: {problem.strerror}\n"
            "  do:     choose the name of a file that does not exist, in a folder that does"
        ) from problem
    todo, then = text.count("TODO:"), shlex.quote(str(data)) if isinstance(data, Path) else f"ADDRESS --policy {output}"
    click.echo(f"{output.name}: drafted, {todo} places marked TODO wait for you. Then: sfumato policy check {then}")


@policy.command()
@click.argument("data", type=PLACE)
@click.option("--policy", "place", type=FILE, help="The policy [default: DATA with suffix .toml].")
@TOKEN
@JSON
def check(data: Path | str, place: Path | None, token: str | None, as_json: bool) -> None:
    """Show what a policy promises, what is missing in it, and what can be asked. Reads no values.

    Exit code 7 if it is unfinished (a draft, a table without a unit), or if questions would fail: a missing table or
    column, or a type that does not fit.

    \b
    sfumato policy check clinic.duckdb
    sfumato policy check https://stats.example/clinic --policy new.toml
    """
    from sfumato.curator.open import open_engine
    from sfumato.curator.precheck import untyped_tables
    from sfumato.sql.policy import Policy
    from sfumato.sql.policy_draft import Check, check_policy

    if is_service(data):
        from sfumato.client import connect

        remote = connect(str(data), token=token)
        sent = {"text": read_policy(place) if place else remote.policy(), "data": remote.data}
        found = remote.request("POST", "/v1/policy/check", {k: v for k, v in sent.items() if v is not None})
        wrong = [*found["wrong"], *filter(None, [found["problem"]])]
        report = Check(found["promises"], tuple(wrong), found["missing"], found["examples"])
    else:
        stated = Policy.load(place or default_policy(Path(data)))
        engine = open_engine(data, stated.limits, stated.delimiters)
        try:
            report = check_policy(stated, engine.schema(), untyped_tables(engine))
        finally:
            engine.close()
    if as_json:
        lists = {
            "promises": report.promises, "wrong": report.wrong, "missing": report.missing, "examples": report.examples
        }  # fmt: skip
        click.echo(json.dumps(lists, ensure_ascii=False))
    else:
        click.echo(str(report))
    sys.exit(7 if report.wrong else 0)


@policy.command()
@click.argument("data", type=PLACE)
@TOKEN
def show(data: Path | str, token: str | None) -> None:
    """Print the policy of DATA, or the one in force at a service.

    \b
    sfumato policy show https://stats.example/clinic > clinic.toml
    """
    if is_service(data):
        from sfumato.client import connect

        click.echo(connect(str(data), token=token).policy(), nl=False)
    else:
        click.echo(read_policy(default_policy(Path(data))), nl=False)


@policy.command()
@click.argument("url")
@click.argument("place", metavar="FILE", type=FILE)
@TOKEN
@YES
def publish(url: str, place: Path, token: str | None, yes: bool) -> None:
    """Put the policy FILE in force at a service; for its owner.

    It is compared with the policy in force, and published after a yes. If another policy is published meanwhile,
    nothing happens.

    \b
    sfumato policy publish https://stats.example/clinic clinic.toml
    """
    from sfumato.client import connect

    remote, text = connect(url, token=token), read_policy(place)
    sent = {"text": text} | ({"data": remote.data} if remote.data else {})
    found = remote.request("POST", "/v1/policy/check", sent)
    for one in (*found["differences"], *found["wrong"], *filter(None, [found["problem"]])):
        click.echo(f"  {one}")
    if not found["differences"]:
        click.echo("nothing to change")
        return
    confirm(f"{place.name}: this holds for everybody's questions from now on.", yes)
    remote.request("POST", "/v1/policy/publish", {**sent, "based_on": found["based_on"]})
    click.echo(f"{place.name}: published")


@policy.command()
@click.argument("place", metavar="FILE", type=FILE)
@click.option("--write", is_flag=True, help="Change the file; otherwise the change is only shown.")
def upgrade(place: Path, write: bool) -> None:
    """Propose to drop `rows` and `groups` from the policy FILE.

    They cut rows away for every question alike. Without them each question scales what one person adds by a bound that
    it chooses, privately, inside its price, and its interval says what that leaves out. The lines stay as comments.
    Answers that were stored under the old bounds are not served for the new questions.

    \b
    sfumato policy upgrade clinic.toml
    sfumato policy upgrade clinic.toml --write
    """
    from sfumato.sql.policy_edit import without_limits

    show_or_write(place, without_limits(read_policy(place)), write)


@policy.command()
@click.argument("data", type=PLACE)
@click.argument("column")
@click.option("--epsilon", type=float, required=True, help="The price in ε; charged once.")
@click.option("--write", is_flag=True, help="Write the bounds into the policy; otherwise they are only shown.")
@click.option("--policy", "place", type=FILE, help="The policy [default: DATA with suffix .toml].")
@LEDGER
@ANCHOR
@TOKEN
def suggest(
    data: Path | str, column: str, epsilon: float, write: bool, place: Path | None, ledger: Path | str | None,
    anchor: Path | None, token: str | None,
) -> None:  # fmt: skip
    """Find bounds for a COLUMN of DATA, privately, and write them into the policy.

    Two noisy histograms of its values are charged to the budget, once. Bounds in the policy cost questions nothing;
    without them the first question that sums the column pays for them. The line says what they cost, and about which
    share of values lies outside.

    \b
    sfumato policy suggest clinic.duckdb visits.stay --epsilon 0.1
    sfumato policy suggest clinic.duckdb visits.stay --epsilon 0.1 --write
    """
    from sfumato.sql.policy_edit import with_column_bounds

    if is_service(data):
        from sfumato.client import connect

        remote = connect(str(data), token=token)
        wanted = {"column": column, "epsilon": epsilon} | ({"data": remote.data} if remote.data else {})
        click.echo(remote.request("POST", "/v1/policy/suggest", wanted)["text"])
        return
    where = place or default_policy(Path(data))
    bounds = open_curator(data, where, ledger, anchor, "owner").suggest_bounds(column, epsilon=epsilon)
    table, _, name = column.lower().partition(".")
    comment = f"suggested for ε = {epsilon:.3g}: {bounds.outside}"
    show_or_write(where, with_column_bounds(read_policy(where), table, name, bounds.low, bounds.high, comment), write)


@click.command()
@click.argument("data", type=PLACE)
@click.option("--epsilon", type=float, required=True, help="The price in ε; charged once.")
@click.option("--policy", "place", type=FILE, help="The policy [default: DATA with suffix .toml].")
@LEDGER
@ANCHOR
def register(
    data: Path | str, epsilon: float, place: Path | None, ledger: Path | str | None, anchor: Path | None
) -> None:  # fmt: skip
    """Buy noisy histograms of how much people contribute, once.

    Previews then say how exact an answer will be, and questions need not buy it again.

    \b
    sfumato register clinic.duckdb --epsilon 0.1
    """
    curator = open_curator(data, place, ledger, anchor, "owner")
    curator.register(epsilon=epsilon)
    click.echo(f"registered; {curator.remaining()}")


def read_policy(place: Path) -> str:
    from sfumato.errors import PolicyError

    try:
        return place.read_text("utf-8")
    except OSError as problem:
        raise PolicyError(f"the policy cannot be read.\n  found:  {place.name}: {problem.strerror}") from problem


def show_or_write(place: Path, text: str, write: bool) -> None:
    """Show what would change; and change it, if that is wanted."""
    import difflib

    before = read_policy(place)
    changes = difflib.unified_diff(before.splitlines(), text.splitlines(), place.name, place.name, n=1, lineterm="")
    click.echo("\n".join(changes) or f"{place.name}: nothing to change")
    if write and text != before:
        place.write_text(text, "utf-8")
        click.echo(f"{place.name}: written")
    elif text != before:
        click.echo("Nothing was written: --write does that.", err=True)
