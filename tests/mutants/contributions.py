"""Scaled contributions: weights, norms, votes, prices and intervals that are not what the theorems ask for."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

from sfumato.aggregates.noisy_sums import NoisySums
from sfumato.aggregates.price import Mu
from sfumato.audit.corpus import Database, NeighbouringDatabases
from sfumato.audit.question_replay import SqlQuestion
from sfumato.curator import release as releases
from sfumato.curator.norm_tail import BINS, SQUARES
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.scaling import Choice, NoisyNorms
from sfumato.curator.steps import NormHistogram
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.sql.emit.norm import WHOLE, Scaling
from sfumato.sql.plan import What
from sfumato.sql.policy import Policy
from sfumato.sql.reserved_names import BIN, NORMS, PAIRS, SIZES, UNIT, measure, norm, qualify
from tests.curator.people import DEFAULT, opened
from tests.mutants.plant import mutant
from tests.sql.emit.test_norm import counting, largest_weight, weights

POLICY = Policy.read("""
version = 1
[budget]
epsilon = 8.0
delta = 1e-6
[tables.visits]
unit = "patient_id"
most = 5
[tables.visits.columns]
ward = {type = "text", keys = ["north", "south"]}
diagnosis = {type = "text"}
stay = {low = 0, high = 60, step = 1}
""")
FREE = replace(POLICY, tables={"visits": replace(POLICY.tables["visits"], most=None)})
SUMS = "SELECT ward, COUNT(*), SUM(stay) FROM visits GROUP BY ward"


def visits(patient, many, ward="north", diagnosis="common", stay=60.0):
    return [{"patient_id": patient, "ward": ward, "diagnosis": diagnosis, "stay": stay}] * many


def pair(mine, others):
    """A database with rows of one person, and without them."""
    whole, without = (Database(FREE, {"visits": tuple(rows)}) for rows in ([*others, *mine], others))
    return NeighbouringDatabases("planted", whole, without)


class Found:
    """What an exact comparison says."""

    def __init__(self, violated, verdict):
        self.violated, self.verdict = violated, verdict


def audit_31():
    others = [row for i in range(6) for row in visits(100 + i, 4)]
    return SqlQuestion(SUMS, FREE).replay(pair(visits(1, 50), others))


@mutant(31, "replay", audit_31)
def weight_of_others(patch):
    """A unit's weight is that of the longest contribution of all.

    Proof. With a unit of 50 rows everybody counts 1/50, without it 1/4: so it moves the sums by the rows of all others.
    """
    right = Scaling.weight

    def weight(self, place, bound):
        longest = f"(SELECT MAX({NORMS}.{norm(place)}) FROM {NORMS})"
        return right(self, place, bound).replace(f"{NORMS}.{norm(place)}", longest)

    patch(Scaling, "weight", weight)


def audit_32():
    bound, norms = 3, [4, 5, 7, 11, 100, 2**40, 2**43, 2**50, 2**62]
    pairs = zip(norms, weights(counting(), norms, bound), strict=True)
    above = [q for q, w in pairs if w > largest_weight(q, bound, True)]
    return Found(bool(above), f"weights above the bound for norms {above}")


@mutant(32, "exact", audit_32)
def weight_in_doubles(patch):
    """A weight is a double that is rounded to the nearest whole number.

    Proof. For q = 11, B = 3 the nearest is above 2²⁰·√(3/11), so W²·q > U²·B: a unit moves the sums by more than U·C.
    """
    right = Scaling.weight

    def weight(self, place, bound):
        return right(self, place, bound).replace("FLOOR(", "ROUND(").replace(" - 1, 0)", ", 0)")

    patch(Scaling, "weight", weight)


def audit_33():
    return SqlQuestion(SUMS, FREE).replay(pair(visits(1, 3), visits(2, 2)))


@mutant(33, "replay", audit_33)
def choice_for_nothing(patch):
    """The histogram of norms has its noise, and is charged nearly nothing.

    Proof. One unit moves a bin by one, which costs 1/σ; the ledger is told a thousandth of it.
    """
    patch(NormHistogram, "loss", property(lambda self: self.price.part(1e-6).loss()))


@mutant(34, "replay", audit_33)
def two_votes(patch):
    """A unit is in its bin of the histogram, and in the first one as well.

    Proof. It moves two numbers by one each, which costs √2/σ; the price is 1/σ.
    """
    right = Scaling.histogram

    def histogram(self, place, edges):
        each = f"SELECT * FROM ({right(self, place, edges)}) AS {SIZES}({BIN}, n)"
        again = f"SELECT 0, COUNT(*) FROM {NORMS}"
        return f"SELECT {BIN}, CAST(SUM(n) AS BIGINT) FROM ({each} UNION ALL {again}) GROUP BY {BIN}"

    patch(Scaling, "histogram", histogram)


def audit_35():
    mine = [*visits(1, 181, diagnosis="rare")]
    mine += [row for i in range(99) for row in visits(1, 1, diagnosis=f"rare {i}")]
    asked = SqlQuestion("SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis", FREE, epsilon=7.2)
    return asked.replay(pair(mine, visits(2, 1)))


@mutant(35, "replay", audit_35)
def unequal_votes(patch):
    """Votes of one unit are as its rows, of norm 1, and the threshold is that of equal votes.

    Proof. One vote of 0.9985 and 99 of 0.0055: the chances of the one (δ, nearly) and of the many add up to 1.4 δ.
    """

    def votes(self, most, salt):
        rows = next(j for j, m in enumerate(self.measures) if m.what is What.ROWS)
        mine, names = f"{PAIRS}.{measure(rows)}", ", ".join(qualify("v", self.keys))
        long = f"SQRT(SUM({mine} * {mine}) OVER (PARTITION BY {PAIRS}.{UNIT}))"
        each = (
            f"SELECT {', '.join(qualify(PAIRS, self.keys))}, CAST(FLOOR({WHOLE} * {mine} / {long}) AS BIGINT) AS vote"
        )
        return f"SELECT {names}, SUM(v.vote) FROM ({each} FROM {PAIRS}) AS v GROUP BY {names}"

    patch(Scaling, "votes", votes)


def audit_36():
    """400 people with 5 rows each, scaled to norm 1; the owner states that nobody has more: what does COUNT(*) say?"""
    sql = "SELECT COUNT(*) FROM visits"
    offer = offer_for_epsilon(SqlQuestion(sql, POLICY).offer.question, 1.0, 1e-6, Mu)
    counts = [0] * BINS
    counts[next(j for j, edge in enumerate(SQUARES) if edge >= 25)] = 400 * WHOLE
    offer = replace(offer, choices=(Choice(offer.blocks[0], 1, NoisyNorms(tuple(counts), 10.0), 5.0),))
    _, low, high = next(iter(offer.readers.values())).read([400 * WHOLE])
    return Found(not low <= 2000 <= high, f"2,000 is outside of {low:.0f} … {high:.0f}")


@mutant(36, "exact", audit_36)
def interval_of_noise_alone(patch):
    """The interval says how far the noise is off, and nothing of what scaling took away.

    Proof. Without any noise the answer is 400 for 2,000 rows, whatever the noise is.
    """
    patch(NoisySums, "widen", lambda self, low, high, down, up, count=0.0: (low, high))


@mutant(37, "replay", audit_31)
def noise_without_its_size(patch):
    """Noise is made for the length of a contribution, and the size of a row is forgotten.

    Proof. A row adds up to 30 steps to the centred sum, so a unit moves it by 30 times what the noise is made for.
    """
    patch(Mu, "scaled_noise", lambda self, size, length: Gaussian(WHOLE * length / self.mu))


def audit_38():
    with tempfile.TemporaryDirectory() as folder:
        asked = opened(Path(folder), *DEFAULT)
        asked.ask("SELECT COUNT(*) FROM t", epsilon=0.5)
        again = asked.ask("SELECT COUNT(*) FROM t", epsilon=1.0)
        return Found(not again.charged, "an answer for half of the price serves for all of it")


@mutant(38, "ledger", audit_38)
def paid_too_much(patch):
    """A stored answer says that twice its price was paid.

    Proof. Who asks for the dearer answer later gets the cheap one, with twice the noise that the preview promised.
    """
    right = releases.release

    def release(offer, tables):
        data = json.loads(right(offer, tables))
        return json.dumps(data | {"paid": 2 * data["paid"]}).encode()

    patch(releases, "release", release)
