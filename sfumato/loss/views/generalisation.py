"""Over-fitting bounds that a privacy loss implies: how far a private choice can be from what fresh data would show.

The people in the data are n independent draws from one distribution. An output of the mechanism picks a statistic, a
mean over people of values in [0, 1]: the error of a model, a count, an answer. Over-fitting is the difference between
its value on the data and on the distribution. Theorems are about replacing one person, so an add/remove loss is
converted first, at its price.
"""

import math
from dataclasses import dataclass
from typing import SupportsFloat

from sfumato import checks
from sfumato.errors import InvalidParameter, MixedRelations
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.kinds.coins import ApproxLoss, PureLoss
from sfumato.loss.kinds.group import replace_one
from sfumato.rounding import round_up
from sfumato.sensitivity import Relation

PEOPLE = "people independent and from one distribution"
STATISTICS = f"statistics are means of values in [0, 1]; {PEOPLE}"
SHARES = (8, 64, 512, 1 << 13)  # of the probability that may be lost to rare outputs, tried one by one
SLACK = 1 + 2.0**-40  # rounding of the few operations here


@dataclass(frozen=True)
class Generalisation:
    """The over-fitting bounds that a loss about replacing one of n people implies. Every bound names its conditions.

    >>> import sfumato as sf
    >>> found = sf.loss.PureLoss(0.1, relation=sf.ReplaceOne).generalisation(10_000)
    >>> round(float(found.expectation()), 3)
    0.05
    >>> round(float(found.high_probability(0.05)), 3)
    0.06
    """

    loss: PrivacyLoss
    n: int

    def expectation(self) -> Bound:
        """|E[value on the data] − E[value on the distribution]| of the chosen statistic is at most δ(0).

        Theorem: a private choice over-fits by at most δ(0) in expectation [Dwork et al. 2015; Bassily et al.
            2016; docs/theorems/generalisation.md, Theorem 1]
        """
        return Bound(0.0, self.loss.total_variation().upper, f"total variation: {STATISTICS}")

    def answers(self, beta: SupportsFloat, *, error: SupportsFloat = 0.0, miss: SupportsFloat = 0.0) -> Bound:
        """How far an answer is from the distribution at most, with probability 1 − beta, if it is close to the data.

        "Close": within `error` of the value on the data, except with probability `miss`. The answer is part of the
        output. Each answer counts by itself; for all of several at once give beta divided by their number, and the loss
        of all together.

        Theorem: the answer that is worst on p of all outputs is off by at most (1 − f(p))/p − 1, f the trade-off
            function [Jung et al. 2020; docs/theorems/generalisation.md, Theorem 2]
        """
        b = failure_probability("beta", beta)
        near = checks.number("error", error, 0.0, 1.0, allowed="a number from 0 to 1")
        missed = checks.number("miss", miss, 0.0, 1.0, allowed="a probability")
        side = b / 4 if missed else b / 2  # for each of too high and too low; the rest for missed answers
        kept = self.loss.trade_off(side).lower
        gain = 1 - kept - side if kept >= side else self.loss.total_variation().upper
        found = near + (2 * missed / b if missed else 0.0) + gain / side
        found = min(1.0, found * SLACK + 1e-15 / side)
        if missed < b:  # or by the statistic itself
            found = min(found, near + self.high_probability(b - missed).upper)
        return Bound(0.0, found, f"trade-off function or max-information: {STATISTICS}")

    def high_probability(self, beta: SupportsFloat) -> Bound:
        """With probability 1 − beta the chosen statistic is no further on the data from the distribution than this.

        e^k·2e^{−2n·gap²} + β/2 = β for the max-information k at β/2: what is unlikely for a statistic that does not
        depend on the data is unlikely for one that depends on them as little as this.

        Theorem: events are at most e^k times as likely, plus β, as for independent data [Dwork et al. 2015;
            Hoeffding 1963, Thm 1]
        """
        b = failure_probability("beta", beta)
        k = self.max_information(b / 2).upper
        gap = math.sqrt((k + math.log(4 / b)) / (2 * self.n)) * SLACK if math.isfinite(k) else 1.0
        return Bound(0.0, min(1.0, gap), f"max-information and Hoeffding: {STATISTICS}")

    def max_information(self, beta: SupportsFloat) -> Bound:
        """The least k found with P[(data, output) ∈ O] ≤ e^k·P[(fresh data, output) ∈ O] + beta for all O; in nats.

        Pure ε costs as much as n randomized responses in a row, which are composed exactly. Otherwise: the loss at a
        very small δ, and rare outputs that say much about somebody; or the mutual information, by Markov's inequality.

        Theorem: the max-information of an ε-DP output is at most the loss of n runs of ε-DP [Dwork et al. 2015;
            docs/theorems/generalisation.md, Theorem 3]
        Theorem: an (ε, δ)-DP output costs n runs of (ε, δ′), and 2nδ/δ′ [cf. Rogers et al. 2016;
            docs/theorems/generalisation.md, Theorem 4]
        Theorem: mutual information I gives max-information (I + 1/e)/β [Rogers et al. 2016; docs/theorems/
            generalisation.md, Theorem 5]
        """
        b = failure_probability("beta", beta)
        found = [self._rare_outputs(b, share) for share in SHARES]
        found.append((self.mutual_information().upper + 1 / math.e) / b * SLACK)
        top = max(self.loss.supremum())
        if max(self.loss.leak()) == 0 and math.isfinite(top):
            found.append((self.n * PureLoss(top, relation=Relation.ReplaceOne)).epsilon(b).upper)
        return Bound(0.0, min(found), f"max-information: {PEOPLE}")

    def _rare_outputs(self, beta: float, share: int) -> float:
        """δ′ = β/(share·n): n runs of (ε, δ′) lose β/share by it, rare outputs β/4 if δ(ε) = βδ′/(8n)."""
        each = beta / (share * self.n)
        eps = self.loss.epsilon(beta * each / (8 * self.n)).upper
        if not math.isfinite(eps):
            return math.inf
        runs = self.n * ApproxLoss(eps, round_up(each), relation=Relation.ReplaceOne)
        return runs.epsilon(0.75 * beta * (1 - 2.0**-40)).upper

    def mutual_information(self) -> Bound:
        """I(data; output) ≤ n·KL, in nats.

        Theorem: the mutual information of n independent people with an output is at most n times the divergence of
            replacing one [Bun & Steinke 2016; docs/theorems/generalisation.md, Theorem 5]
        """
        return Bound(0.0, self.n * self.loss.kl().upper * SLACK, f"n times the divergence of one: {PEOPLE}")


def generalisation(loss: PrivacyLoss, n: object) -> Generalisation:
    """The over-fitting bounds for n people; an add/remove loss is converted to replace-one first."""
    people = checks.whole("n", n, 1, 10**12)
    if loss.relation is Relation.AddRemove:
        return Generalisation(replace_one(loss), people)
    if loss.relation is not Relation.ReplaceOne:
        raise MixedRelations(
            "over-fitting is about replacing people, in both directions.\n"
            f"  found:  a loss about {loss.relation.value}\n  do:     give the whole loss, not one direction"
        )
    return Generalisation(loss, people)


def failure_probability(name: str, value: SupportsFloat) -> float:
    found = checks.number(name, value, 0.0, 1.0, allowed="a probability above 0 and below 1")
    if not 0 < found < 1:
        raise InvalidParameter(
            f"{name} must be above 0 and below 1.\n  found:  {found:g}\n  do:     give the probability of failure, 0.05"
        )
    return found
