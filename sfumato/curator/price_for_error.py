"""Questions that name an error: the least price with which every count and sum is within it at 95 %.

Where contributions are scaled, what an error costs follows from the histogram of norms, so a better histogram that was
bought meanwhile would make another price. Under the same idempotency key the price is that of the first try.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass

from sfumato.aggregates.price import Price
from sfumato.curator.offer import Offer, required_leak
from sfumato.errors import KeyReused, QueryRefused
from sfumato.ledger import Ledger
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.sql.question import Question

CLOSE = 1e-4  # how near the least price is found


def offer_for_error(
    question: Question, error: float, delta: float, most: float, currency: type[Price],
    complete: Callable[[Offer], Offer] = lambda offer: offer,
) -> Offer:  # fmt: skip
    """The cheapest offer with this error, at most for the price that ε = `most` buys.

    `complete` chooses the bounds of an offer, where contributions are scaled.
    """
    leak = required_leak(question, delta, currency)
    whole = currency.for_epsilon(most, delta, leak)

    def at(share: float) -> Offer:
        return complete(Offer(question, whole.part(share) if share < 1 else whole, leak))

    def worst(offer: Offer) -> float:
        return max(offer.error(one) or 0.0 for one in question.aggregates)

    best = at(1.0)
    require_errors(best)
    if (found := worst(best)) > error:
        missing = max((one.missing.most for one in best.choices or () if one.missing is not None), default=0.0)
        also = f", of which up to {missing:.3g} rows are what may be left out" if missing else ""
        better = "; or let the owner buy better histograms first (register)" if missing else ""
        raise QueryRefused(
            f"± {error:g} would cost more than the whole budget.\n  found:  ± {found:.3g} at ε = {most:g}{also}\n"
            f"  do:     ask for a larger error, or for fewer aggregates or groups{better}"
        )
    return at(least_share(lambda share: worst(at(share)), found, error))


def require_errors(offer: Offer) -> None:
    """Refuse aggregates whose errors are known only after the answer."""
    if any(offer.error(one) is None for one in offer.question.aggregates):
        raise QueryRefused(
            "an absolute error can be promised for counts and sums only.\n"
            "  found:  an aggregate whose error depends on how many values there are\n"
            "  do:     ask by epsilon=, and look at the interval of the answer"
        )


def least_share(worst: Callable[[float], float], found: float, error: float) -> float:
    """Nearly the least share of a price whose error is small enough; the whole price has the error `found`.

    Errors are nearly a power of the share, so the last two shares predict the next one, a little to the side where the
    bracket is wider. Every third time, and where the prediction leaves the bracket, the geometric middle is tried.
    """
    low, high, share, power, turn = 1e-12, 1.0, 1.0, 1.0, 0
    while high / low > 1 + CLOSE:
        aim = share * (found / error) ** power
        aim *= 1 / (1 + CLOSE / 3) if share == high else 1 + CLOSE / 3
        turn += 1
        if turn % 3 == 0 or not low < aim < high:
            aim = math.sqrt(low * high)
        now = worst(aim)
        if 0 < now != found > 0:
            power = min(max(math.log(aim / share) / math.log(found / now), 0.5), 3.0)
        share, found = aim, now
        low, high = (low, aim) if now <= error else (aim, high)
    return high


# ---- retries under an idempotency key -------------------------------------------------------------------------------


@dataclass(frozen=True)
class FirstTry:
    """The charge under an idempotency key, and its answer if one was stored."""

    offer: Offer
    answer: bytes | None

    @staticmethod
    def find(
        ledger: Ledger, who: str, key: str | None, question: Question, error: float, price: Price
    ) -> "FirstTry | None":
        """None if nothing was charged under this key; KeyReused if it was for another question or error.

        `price` is any price of this ledger's currency: what was charged is read as another amount of it.
        """
        charge = ledger.find_charge(who=who, key=key) if key is not None else None
        if charge is None or key is None:
            return None
        _, loss = charge
        inner, leak = (loss.inner, loss.failure) if isinstance(loss, LeakyLoss) else (loss, 0.0)
        paid = price.of(inner)
        offer = Offer(question, paid if paid is not None else price, leak)
        receipt = ledger.find_receipt(loss, question=offer.canonical, who=who, key=key)  # or KeyReused
        answer = receipt.answer if receipt is not None else None
        if answer is not None and json.loads(answer).get("error", error) != error:
            raise KeyReused(
                "this idempotency key was used for another question.\n  found:  the same key, another error\n"
                "  do:     use a new key for a new question"
            )
        return FirstTry(offer, answer)
