"""`sfumato explain NAME`: what an error means, what was charged, and what to do. The site shows the same texts."""

from collections.abc import Mapping
from dataclasses import dataclass

import click

from sfumato import errors
from sfumato.cli.common import CODES
from sfumato.errors import SfumatoError


@dataclass(frozen=True)
class Explanation:
    """How an error comes about, what was charged, and what to do."""

    cause: str
    charged: str
    do: str


FREE, KEPT, NOT_ABOUT = "Nothing.", "The charge stays.", "Nothing: no question was asked."

EXPLANATIONS: Mapping[str, Explanation] = {
    "SfumatoError": Explanation(
        "The root of all errors below. `except sf.errors.SfumatoError` catches every error that sfumato raises "
        "on purpose.",
        "See the error itself.", "Read the message: it says what was asked, what was found and what to do.",
    ),
    "InvalidParameter": Explanation(
        "A number, a name or an option is outside its allowed range: a negative ε, a file that does not exist.",
        FREE, "Change the value as the message says.",
    ),
    "MixedRelations": Explanation(
        "Two losses were combined that are about different neighbours, such as add/remove and replace-one.",
        FREE, "Convert one of them with `sf.loss.replace_one`, or state the same `relation=` for both.",
    ),
    "UnknownDescription": Explanation(
        "A stored loss has a class or a parameter that this version does not know. It may come from a newer version.",
        FREE, "Read it with the version that wrote it.",
    ),
    "OutOfReach": Explanation(
        "A target cannot be met by any parameter, such as a δ below what a mechanism always leaks.",
        FREE, "Relax the target, or take another mechanism.",
    ),
    "Exhausted": Explanation(
        "A mechanism for a limited number of answers, such as AboveThreshold, has given its last one.",
        "What was charged when it was made.", "Make a new one, which is charged again.",
    ),
    "OneOfAKind": Explanation(
        "A state between two answers was copied, pickled or used in a forked process. Two copies would answer "
        "twice for one price.",
        FREE, "Keep it in one process, or make one for each.",
    ),
    "PolicyError": Explanation(
        "The policy is wrong, incomplete, still a draft, or does not fit the database.",
        FREE, "`sfumato policy check DATA` lists everything at once. The keys are listed in the reference of policies.",
    ),
    "QueryRefused": Explanation(
        "The text asks something that the policy does not allow, or that sfumato does not support. The refusal "
        "depends on "
        "the text, the policy and the ledger, never on data.",
        FREE, "Change the text as the message says. The page “What may be asked” lists what is supported.",
    ),
    "UnboundedColumn": Explanation(
        "A column without `low` and `high` is summed in a way for which no bounds can be found privately, such "
        "as SUM(a + b).",
        FREE, "Write CLAMP(x, low, high) in the question, or state bounds in the policy.",
    ),
    "NotStored": Explanation(
        "Only stored answers were asked for, and nobody has asked this question about this version of the data.",
        FREE, "Ask without that restriction, for its price.",
    ),
    "EngineUnavailable": Explanation(
        "The database does not respond, or does not know a table, a column or a function. This was noticed "
        "before the charge.",
        FREE, "Start the database, or adapt the policy to its schema. Details are in the operator's log.",
    ),
    "AnswerFailed": Explanation(
        "The engine failed twice after the question was charged: a full disk, a limit on time or memory.",
        KEPT + " An error that depends on data would be an answer.",
        "The operator repairs the cause, then runs `sfumato ledger unblock`. Ask again with the same key: that "
        "is free.",
    ),
    "PostprocessingFailed": Explanation(
        "SQL over released values failed or took too long. The released values are stored.",
        KEPT, "Ask another query over the same values: it is free.",
    ),
    "TrainingFailed": Explanation(
        "The model, the loss or the data set raised an error on a batch. Its text may show data, so it is left out.",
        "The run was charged before its first step.",
        "Look for labels or indices out of range, and for rows of other shapes or types; then make a new run.",
    ),
    "CheckpointFailed": Explanation(
        "A checkpoint of a training run could not be written. The model in memory and its charge are unchanged.",
        "The run was charged before its first step.", "Free some space and save again.",
    ),
    "NotReached": Explanation(
        "The price was not enough for the relative error, or to find bounds of a column.",
        "What was bought: the message says how much.",
        "Use the best answer so far (`error.answer`), or allow a larger ε: what was bought is not paid for again.",
    ),
    "AccessRefused": Explanation(
        "A service does not let this person do this now. The three errors below say why.", FREE, "See there.",
    ),
    "NotAuthenticated": Explanation(
        "There is no token, or it is unknown, expired or revoked. Which of these is not said.",
        FREE, "Set `SFUMATO_TOKEN`, or ask the owner for a new token (`sfumato token new`).",
    ),
    "NotAllowed": Explanation(
        "The role of the token does not include this act: an auditor may not ask, an analyst may not publish a policy.",
        FREE, "Use a token with another role.",
    ),
    "TooManyRequests": Explanation(
        "More calls than a service takes of one person or of all: `rate`, `burst` and `concurrent` in its "
        "configuration.",
        FREE, "Wait for as long as `after` or Retry-After says.",
    ),
    "ServiceFailed": Explanation(
        "A service failed in a way that it was not made for. The text is always the same.",
        "Unknown to the caller: ask again with the same key, which is charged once at most.",
        "The operator reads the log, and reports a bug.",
    ),
    "LedgerError": Explanation(
        "The root of all problems with a ledger. Nothing was released.", "See the error itself.", "See below.",
    ),
    "BudgetExceeded": Explanation(
        "The account does not cover the price. The message names the largest ε of this question that fits.",
        FREE, "Ask with a smaller ε, reuse stored answers, or ask the owner to renew the budget.",
    ),
    "LedgerUnavailable": Explanation(
        "The store of the ledger cannot be reached or written: a server that is down, a full disk, a file that "
        "is read-only.",
        FREE, "Repair it, then ask again with the same key.",
    ),
    "CommitUnknown": Explanation(
        "The connection broke while a charge was committed, and the ledger could not find out whether it got through.",
        "It counts as charged.", "Ask again with the same key: that finds out, and is charged once at most.",
    ),
    "LedgerDamaged": Explanation(
        "A line was changed or cut off, an old copy was put back, or the anchor is missing or disagrees.",
        FREE, "Do not delete the anchor. Follow “Restore a ledger”: budget that was spent must not come back.",
    ),
    "KeyReused": Explanation(
        "An idempotency key was used before for another question.", FREE, "Take a new key for each new request.",
    ),
    "QuestionBlocked": Explanation(
        "The engine failed twice on this question. Nobody can ask it until the operator has repaired the cause.",
        "Nothing more than before.", "The operator: `sfumato ledger blocked`, then `sfumato ledger unblock`.",
    ),
    "AlreadyRun": Explanation(
        "A charged question without a stored answer was already run twice; a third run could reveal something.",
        KEPT, "Ask with a new key, which is charged.",
    ),
}  # fmt: skip


def all_errors() -> tuple[type[SfumatoError], ...]:
    """All classes of `sfumato.errors`, parents before children."""
    found = (one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, SfumatoError))
    return tuple(sorted(found, key=lambda one: len(one.__mro__)))


def exit_code(kind: type[SfumatoError]) -> int:
    """The exit code of the command line."""
    return next((code for known, code in CODES if issubclass(kind, known)), 1)


@click.command()
@click.argument("name", required=False)
def explain(name: str | None) -> None:
    """Explain the error NAME: its cause, what was charged, what to do. Without NAME: list all errors.

    \b
    sfumato explain BudgetExceeded
    """
    known = {kind.__name__.lower(): kind for kind in all_errors()}
    if name is None:
        for kind in known.values():
            click.echo(f"{kind.__name__:<22} {exit_code(kind):>3}  {' '.join((kind.__doc__ or '').split())}")
        return
    found = known.get(name.lower())
    if found is None:
        raise errors.InvalidParameter(
            f"there is no error of this name.\n  found:  {name!r}\n  do:     `sfumato explain` lists all"
        )
    about = EXPLANATIONS[found.__name__]
    summary = click.wrap_text(" ".join((found.__doc__ or "").split()), 80)
    click.echo(f"{found.__name__} (exit code {exit_code(found)})\n\n{summary}\n")
    for label, text in (("cause", about.cause), ("charged", about.charged), ("do", about.do)):
        click.echo(click.wrap_text(f"{label + ':':<9}{text}", 80, subsequent_indent=" " * 9))
