"""Stored answers that serve a question again: the same canonical text, bought for at least the same price."""

import json
from dataclasses import replace

from sfumato.aggregates.price import Price
from sfumato.curator.offer import Offer
from sfumato.curator.scaling import Choice, NoisyNorms, cap_of
from sfumato.ledger import Ledger
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.leaky import LeakyLoss

ENOUGH = 1 - 1e-9  # of a price: what was bought with it serves again


def find_stored(offer: Offer, ledger: Ledger) -> tuple[Offer, bytes] | None:
    """The most exact stored answer to the same plan, with the offer that it is read by; None if none is as exact."""
    found: list[tuple[Offer, bytes]] = []
    for canonical in offer.served_by:
        for loss, answer in ledger.answers(canonical):
            if (stored := stored_offer(offer, loss, answer)) is not None:
                found.append((stored, answer))
    return max(found, key=lambda pair: (pair[0].whole or pair[0].price).amount, default=None)


def stored_offer(offer: Offer, loss: PrivacyLoss, answer: bytes) -> Offer | None:
    """The offer of the same plan that was charged as this loss, if it is at least as exact.

    A released answer with less noise may serve a request for more noise: showing it again is post-processing. Where
    contributions are scaled, what was paid for steps counts as paid.
    """
    inner, leak = (loss.inner, loss.failure) if isinstance(loss, LeakyLoss) else (loss, 0.0)
    price = offer.price.of(inner)
    if offer.scaled:
        return stored_scaled_offer(offer, price, leak, answer)
    if price is None or price.amount < offer.price.amount or leak != offer.leak:
        return None
    return offer.at_price.setdefault(price, replace(offer, price=price))


def offer_as_stored(offer: Offer, answer: bytes) -> Offer:
    """The offer by which an answer that was charged as this one is read: the answer stores its own bounds and keys."""
    return (stored_scaled_offer(offer, offer.price, offer.leak, answer) or offer) if offer.scaled else offer


def stored_scaled_offer(offer: Offer, price: Price | None, leak: float, answer: bytes) -> Offer | None:
    """The offer of an answer about scaled contributions, if at least as much was paid for it and its steps."""
    if price is None or leak > offer.leak:
        return None
    data = json.loads(answer)
    whole = price.with_amount(data["paid"])
    if whole.amount < (offer.whole or offer.price).amount * ENOUGH:
        return None
    choices = tuple(
        Choice(block, one["bound"], NoisyNorms.of(one), cap_of(block, offer.plan))
        for block, one in zip(offer.blocks, data["choices"], strict=True)
    )
    stored = data.get("ranks")
    ranks = Choice(offer.rank_block, stored["bound"], NoisyNorms.of(stored)) if stored else None
    keys = tuple(tuple(key) for key in data["keys"]) if offer.plan.discovered else None
    return replace(
        offer, price=price, leak=leak, choices=choices, ranks=ranks, shown=keys, whole=whole,
        whole_leak=max(offer.leak, offer.whole_leak),
    )  # fmt: skip
