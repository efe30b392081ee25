"""Private training of torch models (extra `torch`): DP-SGD, exact noise, priced by how batches are drawn."""

from sfumato.learn.torch.clipping import Adaptive, Automatic, Flat, PerLayer
from sfumato.learn.torch.noise import Banded, Independent, Tree
from sfumato.learn.torch.noisy_loss import NoisyLoss
from sfumato.learn.torch.planning import calibrate, plan
from sfumato.learn.torch.private import PrivateOptimizer, make_private
from sfumato.learn.torch.trainer import Step, Trainer

__all__ = [
    "Adaptive",
    "Automatic",
    "Banded",
    "Flat",
    "Independent",
    "NoisyLoss",
    "PerLayer",
    "PrivateOptimizer",
    "Step",
    "Trainer",
    "Tree",
    "calibrate",
    "make_private",
    "plan",
]
