"""Planning a run: the least noise, the most steps or the largest batches for (ε, δ), and a table of choices."""

from sfumato.learn.torch.charge import Funds, target
from sfumato.learn.torch.clipping import Clipping
from sfumato.learn.torch.noise import Independent, Move, Noise
from sfumato.loss.views.calibrate import calibrate
from sfumato.sampling.base import Sampling

ROOM = 1e-4  # of the sensitivity: float errors of common models, known once the model is


def calibrated(
    noise: Noise | None, sampler: Sampling, clipping: Clipping, steps: int, budget: Funds
) -> Noise:
    """Independent noise, the least that meets the budget."""
    epsilon, delta = target(budget)
    move = Move(1 + ROOM)
    found = calibrate(
        lambda sigma: Independent(sigma).loss(sampler, move, steps), epsilon=epsilon, delta=delta, tolerance=1e-4
    )
    return Independent(found.upper)
