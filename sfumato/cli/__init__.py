"""The command line: a thin surface over the package; no decision is taken here, and nothing heavy is imported."""

from sfumato.cli import ask as asking
from sfumato.cli import attack as attacking
from sfumato.cli import audit as auditing
from sfumato.cli import demo as tours
from sfumato.cli import ledger as books
from sfumato.cli import policy as policies
from sfumato.cli.common import main

__all__ = ["main"]

for command in (
    asking.ask,
    asking.preview,
    asking.budget,
    policies.policy,
    books.ledger,
    books.data,
    auditing.audit,
    attacking.attack,
    tours.demo,
):
    main.add_command(command)
