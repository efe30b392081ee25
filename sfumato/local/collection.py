"""A local collection in a ledger: an entry about persons, under replace-one neighbours."""

from sfumato.errors import MixedRelations
from sfumato.ledger.charges import Receipt
from sfumato.ledger.ledger import Ledger
from sfumato.loss.base import PrivacyLoss
from sfumato.sensitivity import ReplaceOne


def charge_collection(ledger: Ledger, loss: PrivacyLoss, *, question: str, key: str | None = None) -> Receipt:
    """Charge one round of reports, or a shuffled round, to a ledger about the same people. Estimates cost nothing more.

    A report shows that somebody answered: its loss is about replacing a person's value. A ledger about adding and
    removing people refuses it, as no conversion makes one into the other for free.
    """
    if ledger.promise.relation is not ReplaceOne and loss.relation is ReplaceOne:
        raise MixedRelations(
            "a local collection is about replacing a person's value; this ledger is about adding and removing people.\n"
            f"  found:  a loss about {loss.relation.value}, a budget about {ledger.promise.relation.value}\n"
            "  do:     either keep a ledger with relation=sf.ReplaceOne, and convert central answers by "
            "sf.loss.replace_one;\n"
            "          or ask everybody on a public list and count those who stay away as reports of a fixed value:\n"
            "          then give the loss with relation=sf.AddRemove"
        )
    return ledger.charge(loss, question=question, key=key)
