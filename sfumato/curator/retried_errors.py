"""Retries of questions that name an error: answered as the first try was charged.

What an error costs follows from the histogram of norms, so a better histogram that was bought meanwhile would make
another price. Under the same idempotency key the price is that of the first try.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.curator.offer import Offer
from sfumato.errors import KeyReused
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.sql.question import Question

if TYPE_CHECKING:
    from sfumato.curator.curator import Curator


@dataclass(frozen=True)
class FirstTry:
    """What was charged under an idempotency key, and the answer if one was stored."""

    offer: Offer
    answer: bytes | None

    @staticmethod
    def find(curator: "Curator", question: Question, error: float, key: str | None) -> "FirstTry | None":
        """None if nothing was charged under this key; KeyReused if it was for another question or error."""
        charge = curator.ledger.find_charge(who=curator.who, key=key) if key is not None else None
        if charge is None or key is None:
            return None
        _, loss = charge
        inner, leak = (loss.inner, loss.failure) if isinstance(loss, LeakyLoss) else (loss, 0.0)
        price = curator.planner.currency.for_epsilon(curator.policy.epsilon, curator.policy.question_delta, 0.0)
        paid = price.of(inner)
        offer = Offer(question, paid if paid is not None else price, leak)
        receipt = curator.ledger.find_receipt(loss, question=offer.canonical, who=curator.who, key=key)  # or KeyReused
        answer = receipt.answer if receipt is not None else None
        if answer is not None and json.loads(answer).get("error", error) != error:
            raise KeyReused(
                "this request key was used for another question.\n  found:  the same key, another error\n"
                "  do:     use a new key for a new question"
            )
        return FirstTry(offer, answer)
