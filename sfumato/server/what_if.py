"""What further questions would leave of a budget: from their price and the ledger alone."""

from dataclasses import dataclass

from sfumato.curator import Curator
from sfumato.errors import InvalidParameter
from sfumato.ledger import Amount
from sfumato.ledger.amounts import share_left
from sfumato.ledger.meter import odds
from sfumato.server.spending import found_by

MOST = 10_000  # questions


@dataclass(frozen=True)
class WhatIf:
    """So many further questions of one price; nothing has been charged."""

    question: str
    epsilon: float  # of each
    count: int
    fitting: int  # questions of this price that what is left covers
    left: float  # share of the account, now …
    after: float  # … and after these questions, or as many of them as fit
    spent: float  # ε of all answers then: a reading
    odds: str
    found: tuple[float, ...]  # the share of participants that an attacker finds then, at each rate of false alarms


def what_if(curator: Curator, question: str, epsilon: float, count: int) -> WhatIf:
    """If `count` questions such as this one were asked for ε each. No data are read."""
    if not 1 <= count <= MOST:
        raise InvalidParameter(f"how many questions?\n  found:  {count}\n  do:     give 1 to {MOST:,}")
    ledger = curator.ledger
    promise, price = ledger.promise, ledger.prices(curator.preview(question, epsilon=epsilon).offer.loss)[-1]
    _, limit, spent = ledger.account(curator.who)
    fitting = min((left // each for left, each in zip(limit - spent, price, strict=True) if each), default=MOST)
    asked = times(price, min(count, fitting))
    total = ledger.meter().spent + asked
    loss = promise.loss_of(total)
    return WhatIf(
        question, epsilon, count, min(fitting, MOST), share_left(limit, spent), share_left(limit, spent + asked),
        promise.epsilon_of(total, promise.delta), odds(loss), found_by(loss),
    )  # fmt: skip


def times(price: Amount, count: int) -> Amount:
    return Amount(*(count * units for units in price))
