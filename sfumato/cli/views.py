"""`sfumato views`: sums by day beside the data, from which questions about many days are answered faster."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.ask import default_policy
from sfumato.cli.common import FILE, JSON

if TYPE_CHECKING:
    from sfumato.engines.base import Engine
    from sfumato.engines.views import Refreshed
    from sfumato.sql.policy import Policy


@click.group()
def views() -> None:
    """Sums by day that last, beside the data: build, refresh, list, drop. For the owner only."""


POLICY = click.option("--policy", "-p", "policy", type=FILE, help="The policy [default: DATA with suffix .toml].")
DATA = click.argument("data", type=FILE)


@views.command()
@DATA
@click.argument("sql")
@click.option("--day", required=True, help="The column of dates by which sums are kept.")
@POLICY
@JSON
def build(data: Path, sql: str, day: str, policy: Path | None, as_json: bool) -> None:
    """Keep what a question sums, for each unit, group and day, in the folder DATA.views.

    Questions with the same conditions, keys and sums are answered from it, with any condition on the day. It holds
    units in the clear: protect the folder as you protect the data.

    \b
    sfumato views build clinic.duckdb "SELECT ward, COUNT(*), SUM(cost) FROM visits GROUP BY ward" --day day
    """
    from sfumato.curator.lasting_views import build_view

    show([build_view(*open_data(data, policy), sql, day)], as_json)


@views.command()
@DATA
@POLICY
@JSON
def refresh(data: Path, policy: Path | None, as_json: bool) -> None:
    """Make the days again whose rows have changed, in all views. Until then views of changed data are not used."""
    from sfumato.curator.lasting_views import refresh_views

    show(refresh_views(*open_data(data, policy)), as_json)


@views.command(name="list")
@DATA
@JSON
def list_views(data: Path, as_json: bool) -> None:
    """The views of DATA, and whether they are of the data as they are now."""
    from sfumato.curator.lasting_views import listed_views
    from sfumato.curator.open import open_engine
    from sfumato.sql.policy import Limits

    found = listed_views(open_engine(data, Limits()))
    if as_json:
        click.echo(json.dumps([{"name": v.name, "sql": v.sql, "day": v.day, "days": len(v.days), "current": now}
                               for v, now in found], ensure_ascii=False))  # fmt: skip
        return
    for view, now in found:
        click.echo(f"{view.name}  {len(view.days):>5} days  {'current' if now else 'stale, not used'}  {view.sql}")


@views.command()
@DATA
@click.argument("name")
def drop(data: Path, name: str) -> None:
    """Remove a view and its files."""
    from sfumato.curator.lasting_views import drop_view
    from sfumato.curator.open import open_engine
    from sfumato.sql.policy import Limits

    drop_view(open_engine(data, Limits()), name)


def open_data(data: Path, policy: Path | None) -> "tuple[Engine, Policy]":
    """The engine and the policy."""
    from sfumato.curator.open import open_engine
    from sfumato.sql.policy import Limits, Policy

    stated = Policy.load(policy or default_policy(data))
    return open_engine(data, Limits(), stated.delimiters), stated


def show(done: "list[Refreshed]", as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([{"name": one.name, "days": one.days, "made": one.made, "removed": one.removed}
                               for one in done]))  # fmt: skip
        return
    for one in done:
        click.echo(f"{one.name}: {one.days} days, {one.made} made, {one.removed} removed")
