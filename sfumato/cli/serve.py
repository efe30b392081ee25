"""`sfumato serve` and `sfumato token`: the commands of who runs a service."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.common import FILE, JSON

if TYPE_CHECKING:
    from sfumato.server.identity import Identity


@click.command()
@click.argument("place", type=FILE, required=False)
@click.option("--demo", is_flag=True, help="Serve a made-up clinic from a new folder, with tokens to try.")
@click.option("--check", is_flag=True, help="Only check the configuration, policies and ledgers.")
def serve(place: Path | None, demo: bool, check: bool) -> None:
    """Serve data sets to people who ask from elsewhere.

    PLACE is a configuration (docs/service.md), or the policy of one data set, whose data are beside it. Without
    certificates a service listens on this machine only. SIGTERM stops it gracefully; SIGHUP reloads certificates.

    \b
    sfumato serve --demo
    sfumato serve clinic.toml
    sfumato token new --service clinic.toml ann --role analyst
    """
    import asyncio

    from sfumato.errors import InvalidParameter
    from sfumato.server import logs
    from sfumato.server.configuration import Configuration
    from sfumato.server.run import run, tls_context

    if demo == (place is not None):
        raise click.UsageError("name a configuration, or say --demo")
    if demo:
        place = build_demo()
    assert place is not None
    settings = Configuration.load(place)
    settings.require_private()
    if check:
        from sfumato.server.service import Service

        tls_context(settings.tls)
        Service.open(settings).close()
        click.echo(f"{place.name}: {', '.join(settings.data)} can be served")
        return
    logs.configure(settings.private_log)
    try:
        asyncio.run(run(settings))
    except OSError as problem:
        raise InvalidParameter(f"a door cannot open.\n  found:  {problem.strerror or problem}") from problem


def build_demo() -> Path:
    """A clinic in a new folder, with a token for an analyst and for its owner."""
    import tempfile

    from sfumato.server.configuration import Configuration
    from sfumato.server.demo import build

    listens = (f"127.0.0.1:{free_port(port)}" for port in (8080, 5433))
    place, tokens = build(Path(tempfile.mkdtemp(prefix="sfumato-")), *listens)
    listen = Configuration.load(place).http
    click.echo(f"A made-up clinic in {place.parent}. Ask it from another terminal:\n")
    click.echo(f"  export SFUMATO_TOKEN={tokens['journalist']}")
    click.echo(f"  sfumato ask http://{listen}/clinic --epsilon 0.1 \\")
    click.echo('    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"\n')
    psql = Configuration.load(place).postgres
    assert psql is not None
    click.echo("Or from psql, or anything else that speaks to PostgreSQL; the token is the password:\n")
    click.echo("  PGPASSWORD=$SFUMATO_TOKEN PGOPTIONS='-c sfumato.epsilon=0.1' \\")
    click.echo(f"    psql -h {psql.host} -p {psql.port} -U journalist clinic\n")
    click.echo(f"Or look at it in a browser: http://{listen}/console/ and log in with the token.\n")
    click.echo(f"The owner's token is {tokens['owner']}\n")
    return place


def free_port(wanted: int) -> int:
    """This port of the machine, or another one if something listens there."""
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@click.group()
def token() -> None:
    """Tokens of people who ask a service.

    A token says who somebody is and what they may do. How much they may spend is the policy's. Tokens are kept beside
    the ledger of each data set, as hashes: a text is shown once, when it is made.
    """


def service_options(command: Callable[..., None]) -> Callable[..., None]:
    """--service and --data, for every command on tokens."""
    command = click.option("--data", "name", help="One data set [default: all of the service].")(command)
    return click.option(
        "--service", "place", type=FILE, envvar="SFUMATO_SERVICE", default="service.toml", show_default=True,
        help="The configuration, or a ledger.",
    )(command)  # fmt: skip


def identities(place: Path, name: str | None) -> "dict[str, Identity]":
    """The tokens of each data set of a service."""
    from sfumato.errors import InvalidParameter
    from sfumato.ledger.location import store_at
    from sfumato.server.configuration import Configuration
    from sfumato.server.identity import Identity

    if place.suffix != ".toml":
        ledgers = {place.name: str(place)}
    else:
        settings: Configuration = Configuration.load(place)
        ledgers = {one.name: one.ledger for one in settings.data.values() if name in (None, one.name)}
    if not ledgers:
        raise InvalidParameter(f"the service has no such data set.\n  found:  {name}")
    found = {}
    for data, ledger in ledgers.items():
        store = store_at(ledger)
        if not store.exists():
            raise InvalidParameter(
                f"there is no ledger yet.\n  found:  none of {data}\n  do:     sfumato serve --check {place.name}"
            )
        found[data] = Identity.open(store)
    return found


@token.command()
@click.argument("who")
@click.option("--role", type=click.Choice(["owner", "steward", "analyst", "auditor"]), default="analyst",
              show_default=True)  # fmt: skip
@click.option("--days", type=float, default=90, show_default=True, help="How long it lasts.")
@service_options
@JSON
def new(who: str, role: str, days: float, place: Path, name: str | None, as_json: bool) -> None:
    """Make a token for somebody, and show its text once.

    \b
    sfumato token new ann --role analyst --days 30
    """
    from sfumato.server.identity import Role

    text: str | None = None
    for identity in identities(place, name).values():
        text = identity.new(who, Role(role), days, text=text)
    click.echo(json.dumps({"token": text, "who": who, "role": role}) if as_json else text)
    if not as_json:
        click.echo("Keep it: it is not shown again.", err=True)


@token.command(name="list")
@service_options
@JSON
def list_tokens(place: Path, name: str | None, as_json: bool) -> None:
    """List all tokens, without their secrets."""
    import time

    now, listed = time.time(), []
    for data, identity in identities(place, name).items():
        for one in identity.list():
            state = "revoked" if one.revoked else "valid" if one.valid(now) else "expired"
            until = time.strftime("%Y-%m-%d", time.gmtime(one.expires))
            row = {"id": one.id, "data": data, "who": one.who, "role": one.role.value}
            listed.append({**row, "until": until, "state": state})
    for found in listed:
        click.echo(json.dumps(found) if as_json else "  ".join(map(str, found.values())))


@token.command()
@click.argument("id")
@service_options
def revoke(id: str, place: Path, name: str | None) -> None:
    """End a token at once; ID is in `sfumato token list`, and the second part of a token."""
    done = [one.revoke(id) for one in identities(place, name).values()]
    click.echo(f"{id}: revoked" if any(done) else f"{id}: no such token, or revoked before")
    sys.exit(0 if any(done) else 1)
