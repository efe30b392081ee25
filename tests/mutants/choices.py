"""Choices, responses and streams that tell more than they say."""

from fractions import Fraction

import numpy as np

import sfumato as sf
from sfumato.audit import audit
from sfumato.audit.exhibits import RowByRow
from sfumato.mechanisms import randomized_response
from sfumato.mechanisms.additive import bounded_statistics as statistics
from sfumato.mechanisms.choice import base as choice
from sfumato.mechanisms.choice.base import read_scores
from sfumato.mechanisms.streams import above_threshold
from sfumato.noise import DiscreteLaplace
from sfumato.noise.balls import ball, precision
from tests.mutants.plant import SURE, mutant


def audit_2():
    histogram = sf.Histogram(sf.DiscreteLaplace(1.0), (0, 1), sf.ReplaceOne)
    return audit(histogram, [0, 0], [0, 1], loss=histogram.loss(), samples=8192, confidence=SURE)


@mutant(2, "black box", audit_2, slow=True)
def histogram_of_replacement(patch):
    """A histogram takes the sensitivity of add/remove where people are replaced.

    Proof. Who moves from one category to another changes two counts: P(x)/P′(x) = e² where both are at their peak, and
    e is claimed.
    """

    def loss(self):
        return self.noise.loss(sf.Sensitivity(l0=1, linf=1, relation=self.relation))

    patch(statistics.Histogram, "loss", loss)


def audit_6():
    response = sf.RandomizedResponse(1.0, 8)
    return audit(RowByRow(response), 0, 1, loss=response.loss(), samples=1024, confidence=SURE)


@mutant(6, "black box", audit_6)
def binary_truth(patch):
    """k-ary response tells the truth as often as a binary one.

    Proof. With k = 8 and truth e/(1 + e) each lie has 1/7(1 + e): the ratio is 7e = e^2.95, and e is claimed.
    """

    def truth(self, prec):
        with precision(prec + 16):
            return 1 / (1 + ball(-self.eps).exp())

    patch(randomized_response.Truth, "ball", truth)


def audit_7():
    response = sf.RandomizedResponse(1.0, 3)
    return audit(RowByRow(response), 0, 1, loss=response.loss(), samples=4096, confidence=SURE)


@mutant(7, "black box", audit_7)
def one_epsilon_for_each_bit(patch):
    """k-ary response answers in unary: k bits, each with the whole ε. (We have no unary encoding to break yet.)

    Proof. Two values differ in two bits, each of which has ratio e^ε: e² together, and e is claimed.
    """

    def release(self, value):
        bits = np.arange(self.k) == np.asarray(value)[..., None]
        return bits ^ ~self.honest.draw(bits.size).reshape(bits.shape)

    def truth(self, prec):
        with precision(prec + 16):
            return 1 / (1 + ball(-self.eps).exp())

    patch(randomized_response.Truth, "ball", truth)
    patch(sf.RandomizedResponse, "release", release)


def audit_8():
    exponential = sf.Exponential(1.0, 1)
    return audit(exponential, [1, 0, 0, 0], [0, 1, 1, 1], loss=exponential.loss(), samples=8192, confidence=SURE)


@mutant(8, "black box", audit_8, slow=True)
def twice_the_rate(patch):
    """The exponential mechanism chooses by exp(ε·u/Δ), without the 2.

    Proof. Scores (1, 0, 0, 0) and (0, 1, 1, 1): P(0) is e/(e + 3) = 0.475 and 1/(1 + 3e) = 0.109, 4.35 > e times less.
    """

    right = choice.rate_of
    patch(choice, "rate_of", lambda eps, sensitivity: 2 * right(eps, sensitivity))


def audit_10():
    watch = sf.AboveThreshold(2.0, 0)
    return audit(watch, [0] * 5 + [1], [1] * 5 + [0], loss=watch.loss(), samples=1 << 16, confidence=SURE)


@mutant(10, "black box", audit_10, slow=True)
def shown_answers(patch):
    """Above threshold gives out the noisy answer that passed.

    Proof. (After Lyu, Su & Li 2017, section 3; noise as in the lecture notes it is from.) At ε = 2, five times no and
    then an answer of at most 1 has probability 0.0168 for (0, 0, 0, 0, 0, 1) and 0.0000434 for (1, 1, 1, 1, 1, 0):
    summed over all noise. Their ratio is e^5.96 > e².
    """

    def release(self, value):
        level, shown = self.threshold + self.noise.one(), []
        for answer in value:
            noisy = self.pool.about(int(answer))
            shown.append(noisy if noisy >= level else None)
            if noisy >= level:
                break
        return shown

    patch(sf.AboveThreshold, "release", release)
    patch(sf.AboveThreshold, "laws", property(lambda self: (DiscreteLaplace(1), DiscreteLaplace(1))))


def audit_11():
    watch = sf.AboveThreshold(1.0, 0, 10)
    up, down = [0] * 10 + [1] * 10, [1] * 10 + [0] * 10
    return audit(watch, up, down, loss=watch.loss(), samples=1 << 15, confidence=SURE)


@mutant(11, "black box", audit_11, slow=True)
def noise_for_one_yes(patch):
    """Above threshold has the query noise of one yes, and says yes ten times.

    Proof. Ten queries at 0 and ten at 1, against ten at 1 and ten at 0: summed over the threshold's noise, ten times no
    and then ten times yes has probability 3.06·10⁻⁶ on the one and 1.22·10⁻⁹ on the other. Their ratio is e^7.8 > e.
    """

    right = above_threshold.AboveThreshold.laws.func

    def laws(self):
        first, second = right(self)
        return first, DiscreteLaplace(Fraction(second.scale) / self.count)

    patch(sf.AboveThreshold, "laws", property(laws))


def audit_12():
    watch = sf.AboveThreshold(1.0, 0)
    return audit(watch, [0, 1], [1, 0], loss=watch.loss(), samples=2000, confidence=SURE)


@mutant(12, "black box", audit_12)
def no_query_noise(patch):
    """Above threshold adds noise to the threshold only.

    Proof. With (0, 1) the answers (no, yes) are possible and (yes, no) are not; with (1, 0) it is the other way round:
    an event of positive probability that is impossible for the neighbour, so that no ε holds.
    """

    def release(self, value):
        level = self.threshold + self.noise.one()
        return [int(answer) >= level for answer in value]

    patch(sf.AboveThreshold, "release", release)


def audit_13():
    best = sf.ReportNoisyMax(2.0, 1)
    return audit(best, [0] * 5, [1] * 5, loss=best.loss(), samples=1 << 14, confidence=SURE)


@mutant(13, "black box", audit_13, slow=True)
def shown_maximum(patch):
    """Report-noisy-max shows the noisy maximum.

    Proof. If all of five scores rise by 1, so does the maximum: its ratio is e^{5/scale} where all are below the peak,
    and with scale 2/ε that is e^{2.5ε}.
    """

    def release(self, value):
        noisy = read_scores(value) + self.sampler.draw(len(value))
        return int(noisy.max())

    patch(sf.ReportNoisyMax, "release", release)
