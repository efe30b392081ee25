"""`sfumato policy`: draft and check the data owner's policy."""

import json
import sys
from pathlib import Path

import click

from sfumato.cli.ask import default_policy
from sfumato.cli.common import FILE, JSON


@click.group()
def policy() -> None:
    """Draft and check the data owner's policy.

    A policy states who is protected (the unit), what is public, the bounds of values, how much one person may
    contribute, and the privacy budget.
    """


@policy.command()
@click.argument("data", type=FILE)
@click.option("--output", "-o", type=FILE, help="Write it to this file, which must not exist.")
def init(data: Path, output: Path | None) -> None:
    """Draft a policy from the schema of DATA. Reads no values.

    \b
    sfumato policy init clinic.duckdb -o clinic.toml
    """
    from sfumato.engines.duckdb import schema, untyped
    from sfumato.errors import PolicyError
    from sfumato.sql.policy_draft import draft_policy

    text = draft_policy(schema(data), data.name, untyped(data))
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
    todo = text.count("TODO")
    click.echo(f"{output.name}: drafted, {todo} places marked TODO wait for you. Then: sfumato policy check {data}")


@policy.command()
@click.argument("data", type=FILE)
@click.option("--policy", "place", type=FILE, help="The policy [default: DATA with suffix .toml].")
@JSON
def check(data: Path, place: Path | None, as_json: bool) -> None:
    """Show what a policy promises, and what is missing in it. Reads no values.

    Exit code 7 if questions would fail: a missing table or column, or a type that does not fit.
    """
    from sfumato.engines.duckdb import schema, untyped
    from sfumato.sql.policy import Policy
    from sfumato.sql.policy_draft import check_policy

    report = check_policy(Policy.load(place or default_policy(data)), schema(data), untyped(data))
    if as_json:
        lists = {"promises": report.promises, "wrong": report.wrong, "missing": report.missing}
        click.echo(json.dumps(lists, ensure_ascii=False))
    else:
        click.echo(str(report))
    sys.exit(7 if report.wrong else 0)
