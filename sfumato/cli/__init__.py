"""The command line: a thin surface over the package. It takes no decision, and imports nothing heavy to start."""

from sfumato.cli import agents, ask, attack, audit, common, data, demo, explain, ledger, policy, serve, survey, views
from sfumato.cli.common import main

__all__ = ["main"]

for command in (
    agents.mcp,
    ask.ask,
    ask.preview,
    ask.budget,
    policy.policy,
    policy.suggest,
    policy.register,
    ledger.ledger,
    data.data,
    views.views,
    audit.audit,
    attack.attack,
    demo.demo,
    survey.survey,
    serve.serve,
    serve.token,
    explain.explain,
    common.completion,
):
    main.add_command(command)
