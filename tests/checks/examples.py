"""Examples of every loss class, found through the register of classes: a new class without an example fails a test."""

import inspect
import math

import sfumato as sf
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.wrappers import OneWay, Reversed

L = sf.loss

EXAMPLES: list[PrivacyLoss] = [
    L.GaussianLoss(0.5),
    L.GaussianLoss(4.0),
    L.GaussianLoss(1e-4),
    L.GaussianLoss(0.5, relation=sf.ReplaceOne),
    L.LaplaceLoss(1.0),
    L.LaplaceLoss(1e-3),
    L.LaplaceLoss(8.0, relation=sf.ReplaceOne),
    L.DiscreteGaussianLoss(1.0),
    L.DiscreteGaussianLoss(5.0, 3),
    L.DiscreteGaussianLoss(3000.0, 20),
    L.DiscreteLaplaceLoss(2.0),
    L.DiscreteLaplaceLoss(1.5, 4),
    L.RandomizedResponseLoss(1.0),
    L.RandomizedResponseLoss(0.2, 7),
    L.ShuffledLoss(1.0, 50, 1 / (math.e + 1), 0.0, 0.0, relation=sf.ReplaceOne),
    L.ShuffledLoss(1.0, 300, 1 / (math.e + 3), 0.0, 2 / (math.e + 3), third=1 / (math.e + 3)),
    L.SignedPairLoss(1.0, 0.36),
    L.SignedPairLoss(0.5, 0.6224593312018546, relation=sf.ReplaceOne),
    L.PureLoss(0.7),
    L.ApproxLoss(0.5, 1e-4),
    L.ApproxLoss(0.0, 0.1),
    L.ApproxLoss(0.3, 1e-5).group(3),
    L.StaircaseLoss(1.0, 0.3),
    L.StaircaseLoss(2.0, 0.8),
    L.BoundedRangeLoss(1.0),
    L.FinitePairLoss((0.5, 0.3, 0.2), (0.2, 0.3, 0.5)),
    L.FinitePairLoss((0.9, 0.1, 0.0), (0.05, 0.9, 0.05)),
    L.ZcdpLoss(0.1),
    L.ZcdpLoss(0.02, 0.05),
    L.TcdpLoss(0.1, 12.0),
    L.TcdpLoss(0.002, 1e4, relation=sf.ReplaceOne),
    L.RenyiLoss((1.5, 2.0, 4.0, 16.0), (0.1, 0.14, 0.3, 1.2)),
    L.from_profile(lambda eps: L.LaplaceLoss(0.5).delta(eps).upper, top=0.5),
    L.PoissonSampledLoss(L.GaussianLoss(1.0), 0.1),
    L.PoissonSampledLoss(L.LaplaceLoss(1.0), 0.5),
    L.PoissonSampledLoss(L.FinitePairLoss((0.6, 0.4), (0.1, 0.9)), 0.2),
    L.WithoutReplacementLoss(L.GaussianLoss(1.0, relation=sf.ReplaceOne), 100, 10),
    L.PoissonSampledLoss(L.GaussianLoss(1.0), 0.1).reverse,
    L.SampledGaussianGroupLoss(1.0, 0.1, 3),
    L.FinitePairLoss((0.6, 0.4), (0.1, 0.9)).remove,
    L.PoissonSampledLoss(L.GaussianLoss(1.0), 0.1).add,
    L.either(L.GaussianLoss(0.5), L.LaplaceLoss(0.5)),
    L.GatedLoss(L.LaplaceLoss(0.5), (0.01, 0.02, 0.3, 0.9, 1.0), (0.99, 0.98, 0.7, 0.1, 0.0), 0.01),
    L.GatedLoss(L.FinitePairLoss((0.6, 0.4), (0.1, 0.9)), (0.2, 0.4, 0.6), (0.8, 0.6, 0.4), 0.3),
    L.GatedLoss(L.nothing(), (0.0, 0.1, 0.4), (1.0, 0.9, 0.6), 0.1),
    L.SelectedLoss(L.GaussianLoss(0.3), L.NegativeBinomialRuns.of_mean(20.0)),
    L.SelectedLoss(L.FinitePairLoss((0.6, 0.4), (0.1, 0.9)), L.NegativeBinomialRuns.of_mean(4.0, 1.0)),
    L.SelectedLoss(L.ApproxLoss(0.5, 1e-4), L.PoissonRuns(5.0)),
    3 * L.LaplaceLoss(0.3) + L.GaussianLoss(0.4),
    20 * L.RandomizedResponseLoss(0.2),
    5 * L.PoissonSampledLoss(L.GaussianLoss(1.0), 0.1) + L.ApproxLoss(0.1, 1e-7),
    L.nothing(),
    sf.dependent.SmoothLoss(sf.dependent.StudentNoise(6), 0.69, 0.2, 2),
    sf.dependent.SmoothLoss(sf.dependent.ArsinhNormalNoise(0.4), 1.0, 0.1),
    sf.dependent.SmoothLoss(sf.dependent.LaplaceNoise(), 0.5, 0.03, relation=sf.ReplaceOne),
]


def concrete_classes() -> set[type[PrivacyLoss]]:
    """Every loss class that can be built."""
    return {found for found in PrivacyLoss.known.values() if not inspect.isabstract(found)}


def classes_with_examples() -> set[type[PrivacyLoss]]:
    """Classes of the examples, and of what they are made of."""
    return {type(loss) for loss in EXAMPLES} | {OneWay, Reversed}
