"""The command line: a thin surface over the package; no decision is taken here, and nothing heavy is imported."""

from sfumato.cli import asking, attacking, auditing, books, policies, tours
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
