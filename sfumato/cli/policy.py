"""`sfumato policy`: what the data owner writes before anybody asks."""

import json
import sys
from pathlib import Path

import click

from sfumato.cli.ask import beside
from sfumato.cli.common import FILE


@click.group()
def policy() -> None:
    """Draft and check the data owner's policy.

    A policy says whose data these are, what is public, within which bounds values lie, how much one person may count,
    and how much may ever be told: the budget.
    """


@policy.command()
@click.argument("data", type=FILE)
@click.option("--output", "-o", type=FILE, help="Write it here; an existing file is left alone.")
def init(data: Path, output: Path | None) -> None:
    """Draft a policy from the schema of DATA. No value is read.

    \b
    sfumato policy init clinic.duckdb -o clinic.toml
    """
    from sfumato.engines.duckdb import schema, untyped
    from sfumato.errors import PolicyError
    from sfumato.sql.policy_draft import drafted

    text = drafted(schema(data), data.name, untyped(data))
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        raise PolicyError(f"the draft cannot be written.\n  found:  {output.name}: {problem.strerror}") from problem
    todo = text.count("TODO")
    click.echo(f"{output.name}: drafted, {todo} places wait for you. Then: sfumato policy check {data}")


@policy.command()
@click.argument("data", type=FILE)
@click.option("--policy", "place", type=FILE, help="The policy [default: beside DATA, ending in .toml].")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def check(data: Path, place: Path | None, as_json: bool) -> None:
    """Say what a policy promises, and what is missing in it. No value is read.

    Exit code 7 if questions would fail: a table or column that is not there, or a type that does not fit.
    """
    from sfumato.engines.duckdb import schema, untyped
    from sfumato.sql.policy import Policy
    from sfumato.sql.policy_draft import checked

    found = checked(Policy.load(place or beside(data)), schema(data), untyped(data))
    if as_json:
        lists = {"promises": found.promises, "wrong": found.wrong, "missing": found.missing}
        click.echo(json.dumps(lists, ensure_ascii=False))
    else:
        click.echo(str(found))
    sys.exit(7 if found.wrong else 0)
