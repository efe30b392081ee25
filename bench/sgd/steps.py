"""One training step, by each method: plain torch, plain torch with our noise, sfumato, Opacus."""

import numpy as np
import torch
from torch import nn

from sfumato.learn.torch.clipping import Flat
from sfumato.learn.torch.engine import Engine, Shape
from sfumato.learn.torch.noise import Independent, Session

CLIP, SIGMA, RATE = 1.0, 1.0, 0.1


def per_row(losses, count):
    """One loss for each example: words of a text are averaged."""
    return losses.view(count, -1).mean(1)


def plain(model, x, y, noise=False):
    """Without privacy; with `noise`, the same exact noise on the gradients as ours."""
    optimizer, criterion = torch.optim.SGD(model.parameters(), RATE), nn.CrossEntropyLoss()
    drawn = Independent(SIGMA)
    session, sizes = drawn.begin(), [p.numel() for p in model.parameters()]

    def step():
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        if noise:
            z = torch.from_numpy(session.release(np.zeros(sum(sizes), np.int64)))
            z = z.to(torch.float32).mul_(2.0**-drawn.bits / len(x)).split(sizes)
            for p, mine in zip(model.parameters(), z, strict=True):
                p.grad.add_(mine.view_as(p))
        optimizer.step()

    return step


class Silent(Session):
    def release(self, multiples):
        return multiples


def ours(model, x, y, noise=True, sums=None):
    engine = Engine(model, Flat(CLIP), Independent(SIGMA), Shape(len(x)), len(x), sums)
    optimizer, criterion = torch.optim.SGD(model.parameters(), RATE), nn.CrossEntropyLoss(reduction="none")
    mask = torch.ones(len(x), dtype=torch.bool)
    engine.probe(lambda seed, same: per_row(criterion(model(x), y), len(x)))
    if not noise:
        engine.session = Silent()

    def step():
        with engine.recording() as tape:
            engine.add(per_row(criterion(model(x), y), len(x)), tape, mask)
        engine.release()
        optimizer.step()

    step.error = engine.error
    return step


def opacus(model, x, y, noise=True, mode="ghost"):
    from opacus import PrivacyEngine

    optimizer, criterion = torch.optim.SGD(model.parameters(), RATE), nn.CrossEntropyLoss()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size=len(x))
    options = {"grad_sample_mode": mode, **({"criterion": criterion} if mode == "ghost" else {})}
    made = PrivacyEngine().make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=SIGMA if noise else 0.0,
        max_grad_norm=CLIP, poisson_sampling=False, **options,
    )  # fmt: skip
    model, optimizer = made[0], made[1]
    criterion = made[2] if mode == "ghost" else criterion

    def step():
        optimizer.zero_grad()
        out = model(x)
        texts = {"shape": (len(x), len(out) // len(x))} if mode == "ghost" and len(out) > len(x) else {}
        criterion(out, y, **texts).backward()
        optimizer.step()

    return step


METHODS = {
    "plain": plain,
    "plain + exact noise": lambda *a: plain(*a, noise=True),
    "sfumato": ours,
    "sfumato, no noise": lambda *a: ours(*a, noise=False),
    "sfumato, float64 sums": lambda *a: ours(*a, sums=torch.float64),
    "sfumato, float32 sums": lambda *a: ours(*a, sums=torch.float32),
    "sfumato, float32 sums, no noise": lambda *a: ours(*a, noise=False, sums=torch.float32),
    "Opacus ghost": opacus,
    "Opacus ghost, no noise": lambda *a: opacus(*a, noise=False),
    "Opacus hooks": lambda *a: opacus(*a, mode="hooks"),
}
