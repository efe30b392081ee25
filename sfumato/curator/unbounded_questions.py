"""Questions about columns for which the policy states no bounds: find or buy bounds, then ask under them.

The curator's road of a question is walked as it is, under a policy that has the bounds: nothing is charged or read here
in a way of its own.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sfumato.curator.affordable import loss_by_epsilon
from sfumato.curator.answer import Answer
from sfumato.curator.automatic_bounds import AutomaticBounds, FoundBounds, reads_unbounded, with_clamping
from sfumato.curator.preview import Preview
from sfumato.curator.release import table_requests
from sfumato.curator.steps import Steps, step_key
from sfumato.curator.suggest_bounds import is_seen, number_column, rough_range
from sfumato.curator.value_votes import magnitude_histogram, position_histogram
from sfumato.curator.wanted import Wanted
from sfumato.errors import NotReached, QueryRefused
from sfumato.ledger.meter import odds

if TYPE_CHECKING:
    from sfumato.curator.curator import Curator


def ask_unbounded(curator: "Curator", wanted: Wanted, key: str | None) -> Answer:
    """The answer under bounds that are stored, or bought now, inside the question's price."""
    if wanted.explained:
        return curator.explain(preview_unbounded(curator, wanted))
    found = AutomaticBounds.of(curator.planner, wanted, curator.ledger)
    charge = curator.ledger.find_charge(who=curator.who, key=key) if key is not None else None
    known = found.best_known(charge[0] if charge else None, lambda text: was_charged(curator, text, key))
    bounds, rest = known if known is not None else (buy_bounds(curator, found, key), found.rest)
    try:
        answer = under_bounds(curator, bounds).ask(
            rest.text,
            epsilon=rest.epsilon,
            error=rest.error,
            relative_error=rest.relative_error,
            key=key,
            **rest.bounds.stated(),
        )
    except NotReached as short:
        best = with_clamping(short.answer, bounds) if isinstance(short.answer, Answer) else None
        raise NotReached(str(short), best) from None
    if known is None and rest.epsilon is not None and rest.relative_error is None:  # what was paid for all
        loss = found.widest.loss
        answer = replace(
            answer, epsilon=loss.epsilon(answer.delta).upper, odds=odds(loss), charged=True,
            coverage=dict(answer.coverage),
        )  # fmt: skip
    return with_clamping(answer, bounds)


def preview_unbounded(curator: "Curator", wanted: Wanted) -> Preview:
    """The same before it is asked: with stored bounds as with bounds of the policy."""
    found = AutomaticBounds.of(curator.planner, wanted, curator.ledger)
    known = found.best_known()
    if known is not None:
        bounds, wanted = known
        preview = under_bounds(curator, bounds).preview(
            wanted.text,
            epsilon=wanted.epsilon,
            error=wanted.error,
            relative_error=wanted.relative_error,
            **wanted.bounds.stated(),
        )
        return replace(preview, lost=(*preview.lost, *(one.words for one in bounds)))
    if wanted.epsilon is None:
        raise QueryRefused(
            "what this error costs depends on bounds that are not known yet.\n"
            f"  found:  {'; '.join(found.plan_words)}\n"
            "  do:     ask; or preview by epsilon=; or let the owner buy bounds once: sfumato policy suggest"
        )
    preview, aggregates = curator.preview_of(found.widest), found.widest.question.aggregates
    unknown = tuple(one for one in aggregates if reads_unbounded(one))
    return replace(preview, lost=(*preview.lost, *found.plan_words), unbounded=unknown)


def buy_bounds(curator: "Curator", found: AutomaticBounds, key: str | None) -> tuple[FoundBounds, ...]:
    """Bounds of all columns of a question that have none; each histogram is a charge of its own."""
    curator.is_charged(found.widest.loss, found.widest.canonical, key)  # raises if the key was used for something else
    trial = found.widest if not found.widest.scaled else Steps.of(found.widest, curator.ledger).completed()
    curator.checked_requests(partial(table_requests, trial, curator.salt))  # before the first charge
    trial.prepare()
    loss_at = loss_by_epsilon(found.widest, curator.policy.question_delta)
    curator.require_affordable(found.charges, found.widest.loss, loss_at)
    for name, column, *_ in found.columns:
        table, of = number_column(f"{name}.{column}", curator.policy)
        sizes, _ = curator.value_histogram(magnitude_histogram(table, of), found.price, key)
        if not is_seen(sizes):
            raise NotReached(
                f"no bounds of {name}.{column} were found for this price.\n"
                f"  found:  too few people for ε = {found.epsilon:.2g}, of which a part is charged\n"
                "  do:     ask with a larger ε, or CLAMP it, or let the owner state low and high in the policy",
                None,
            )
        ends = rough_range(sizes.counts, sizes.sigma)
        curator.value_histogram(position_histogram(table, of, *ends), found.price, key)
    return next(found.combinations())


def under_bounds(curator: "Curator", bounds: Sequence[FoundBounds]) -> "Curator":
    """The same curator under a policy with these bounds."""
    planner = curator.planner.with_bounds(tuple(one.ends for one in bounds))
    asked = replace(curator, policy=planner.policy)
    vars(asked)["planner"] = planner
    return asked


def was_charged(curator: "Curator", question: str, key: str | None) -> bool:
    """Was this step bought under this request's key?"""
    own = step_key(key, question)
    return own is not None and curator.ledger.find_charge(who=curator.who, key=own) is not None
