"""Questions in SQL whose plan, keys, errors or charges tell what they should not."""

import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from sqlglot import exp

from sfumato.audit import audit
from sfumato.audit.corpus import Database, NeighbouringDatabases
from sfumato.audit.question_replay import SqlQuestion
from sfumato.curator import Curator, offer
from sfumato.curator import release as tables
from sfumato.curator.purchase import Buyer
from sfumato.errors import SfumatoError
from sfumato.sql.dialects import duckdb
from sfumato.sql.emit import unit_rows as emit
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.function import of_type
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY as CLINIC
from tests.curator.clinic import built
from tests.mutants.plant import SURE, mutant

POLICY = Policy.read("""
version = 1
[budget]
epsilon = 8.0
delta = 0.1
[tables.visits]
unit = "patient_id"
groups = 20
rows = 1
[tables.visits.columns]
ward = {type = "text", keys = ["north", "south"]}
diagnosis = {type = "text"}
[tables.notes]
unit = "row"
[tables.notes.columns]
ward = {type = "text", keys = ["north", "south"]}
[tables.wards]
public = true
[tables.wards.columns]
ward = {type = "text"}
floor = {type = "number", keys = [1, 2]}
""")
WARDS = ({"ward": "north", "floor": 1}, {"ward": "north", "floor": 1}, {"ward": "south", "floor": 2})


def pair(table, mine, others):
    """A database with rows of one person, and without them."""
    whole, without = (Database(POLICY, {table: tuple(rows), "wards": WARDS}) for rows in ([*others, *mine], others))
    return NeighbouringDatabases("planted", whole, without)


def visits(*diagnoses, patient=1, ward="north"):
    return [{"patient_id": patient, "ward": ward, "diagnosis": one} for one in diagnoses]


def of_others(count, diagnosis="1"):
    return [row for i in range(count) for row in visits(diagnosis, patient=100 + i)]


def audit_17():
    found = pair("visits", visits("rare"), of_others(3))
    asked = SqlQuestion("SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis", POLICY, delta=0.01)
    return audit(asked, found.whole, found.without, loss=asked.loss(), samples=200, confidence=SURE)


@mutant(17, "black box", audit_17)
def keys_as_they_are(patch):
    """Groups are shown whatever their noisy number of people is.

    Proof. A key that one person alone has is shown with this person and never without: δ = 1 for every ε.
    """

    patch(offer.Offer, "threshold", property(lambda self: -(10**15) if self.key_delta else None))


def audit_18():
    found = pair("visits", visits("1", ward="south"), [*of_others(5), *of_south(2)])
    asked = SqlQuestion("SELECT ward, COUNT(*) FROM visits GROUP BY ward", POLICY, epsilon=8.0)
    return audit(asked, found.whole, found.without, loss=asked.loss(), samples=1000, confidence=SURE)


@mutant(18, "black box", audit_18)
def having_before_noise(patch):
    """Groups with fewer than three people are left out by their exact count, before noise is added.

    Proof. A group of two counts as nobody and a group of three as three: one person moves it by 3, and 1 is covered.
    """

    right = tables.keys_and_integers

    def filtered(priced, rows):
        return [(key, counts) for key, counts in right(priced, rows) if counts[0] >= 3]

    patch(tables, "keys_and_integers", filtered)


def audit_19():
    found = pair("visits", visits(*(f"mine {i}" for i in range(20))), of_others(3))
    asked = SqlQuestion("SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis", POLICY, epsilon=1.0, delta=0.1)
    return audit(asked, found.whole, found.without, loss=asked.loss(), samples=1000, confidence=SURE)


@mutant(19, "black box", audit_19)
def threshold_for_one_group(patch):
    """The threshold of private keys forgets that a person may be in twenty groups.

    Proof. Each of twenty keys of one person is shown with probability δ/2, so that some are with 1 − (1 − δ/2)²⁰: at
    δ = 0.1, 0.64; without the person none is. Of δ = 0.1 that is six times as much.
    """

    right = offer.threshold
    patch(offer, "threshold", lambda law, leak, groups: right(law, leak, 1))


def audit_20():
    found = pair("notes", [{"ward": "north"}], [{"ward": "north"}, {"ward": "south"}])
    return SqlQuestion("SELECT floor, COUNT(*) FROM notes JOIN wards USING (ward) GROUP BY floor", POLICY).replay(found)


@mutant(20, "replay", audit_20)
def join_that_multiplies(patch):
    """A row finds every row of a public table that matches, not one.

    Proof. With "north" twice among the wards, one person's row counts twice: a move by 2 where 1 is covered.
    """

    def unmatched(join, number, to):
        return emit.with_alias(emit.stored_table(join.table.name), emit.table_alias(number))

    patch(emit, "deduplicate_public", unmatched)


def audit_24():
    found = pair("visits", visits("no number"), of_others(3))
    return SqlQuestion("SELECT COUNT(*) FROM visits WHERE CAST(diagnosis AS DOUBLE) > 0", POLICY).replay(found)


@mutant(24, "replay", audit_24)
def cast_that_raises(patch):
    """CAST raises where a text is no number.

    Proof. The question fails with one person's row and is answered without it.
    """

    raising = replace(FUNCTIONS["number"], emit=lambda a: exp.Cast(this=a, to=of_type("DOUBLE")))
    patch(duckdb, "FUNCTIONS", {**FUNCTIONS, "number": raising})


def audit_30():
    with tempfile.TemporaryDirectory() as folder:
        return Stopped(Path(folder))


@mutant(30, "faults", audit_30)
def charged_afterwards(patch):
    """The ledger is charged after the answer is known.

    Proof. Who makes the curator fail in between has seen data (by time, by the failure) and has paid nothing; repeated,
    nothing bounds the loss.
    """

    def buy_release(self, item, loss_at, key, checked):
        noisy = item.release(self.read(checked.requests))
        self.probe("noise: drawn")
        receipt = self.ledger.charge(item.loss, question=item.canonical, who=self.who, key=key)
        return self.ledger.keep(receipt, noisy)

    patch(Buyer, "buy_release", buy_release)


class Stopped:
    """A curator that is stopped when the noise is drawn: was the question charged?"""

    def __init__(self, folder):
        curator = Curator.open(built(folder / "clinic.duckdb"), Policy.read(CLINIC))
        before = curator.ledger.verify().spent

        def stop(point):
            if point == "noise: drawn":
                raise KeyboardInterrupt

        with suppress(KeyboardInterrupt, SfumatoError):
            replace(curator, probe=stop).ask("SELECT COUNT(*) FROM visits", epsilon=0.5)
        self.violated = curator.ledger.verify().spent == before
        self.verdict = "data were read, and nothing was charged"


def of_south(count):
    return [row for i in range(count) for row in visits("1", patient=200 + i, ward="south")]
