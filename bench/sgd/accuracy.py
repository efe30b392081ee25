"""Accuracy at ε = 3 on scikit-learn's digits and on a made-up set: Opacus, ours at its σ, ours at our σ."""

import numpy as np
import torch
from torch import nn

from sfumato.learn.torch import Trainer, calibrate
from sfumato.sampling import Poisson

EPSILON, DELTA, EPOCHS = 3.0, 1e-5, 30


def digits():
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return torch.tensor(x / 16.0, dtype=torch.float32), torch.tensor(y)


def made_up():
    """Ten classes of 28 × 28 pictures: blurred random patterns, shifted and noisy."""
    g = torch.Generator().manual_seed(1)
    patterns = nn.functional.avg_pool2d(torch.randn(10, 1, 32, 32, generator=g), 5, 1)
    y = torch.randint(0, 10, (6000,), generator=g)
    x = patterns[y, 0] * 3 + 0.8 * torch.randn(6000, 28, 28, generator=g)
    return x.flatten(1).float() / 4, y


def split(x, y, seed):
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    cut = int(0.8 * len(x))
    return (x[order[:cut]], y[order[:cut]]), (x[order[cut:]], y[order[cut:]])


def network(inputs, seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 10))


def score(model, test):
    with torch.no_grad():
        return float((model(test[0]).argmax(1) == test[1]).float().mean())


def ours(train, test, seed, size, sigma, steps):
    model = network(train[0].shape[1], seed)
    Trainer(
        model, nn.CrossEntropyLoss(), train, sampler=Poisson(size / len(train[0])), batch_size=size, steps=steps,
        noise=sigma, clip=1.0, budget=(1e3, DELTA), optimizer=torch.optim.SGD(model.parameters(), lr=2.0),
    ).fit(progress=False)  # fmt: skip
    return score(model, test)


def opacus(train, test, seed, size, sigma, epochs):
    from opacus import PrivacyEngine

    model = network(train[0].shape[1], seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*train), batch_size=size)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=sigma, max_grad_norm=1.0
    )
    criterion = nn.CrossEntropyLoss()
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            if len(x):
                criterion(model(x), y).backward()
                optimizer.step()
    return score(model._module, test)


def accuracies(runs):
    from opacus.accountants.utils import get_noise_multiplier

    for name, data, size in (("digits", digits(), 128), ("made-up pictures", made_up(), 256)):
        found = {"Opacus": [], "sfumato, σ of Opacus": [], "sfumato, own σ": []}
        for seed in range(runs):
            train, test = split(*data, seed)
            rate, batches = size / len(train[0]), -(-len(train[0]) // size)
            theirs = get_noise_multiplier(
                target_epsilon=EPSILON, target_delta=DELTA, sample_rate=1 / batches, epochs=EPOCHS, accountant="rdp"
            )
            steps = EPOCHS * batches
            own = calibrate(epsilon=EPSILON, delta=DELTA, sampler=Poisson(rate), steps=steps).upper
            found["Opacus"].append(opacus(train, test, seed, size, theirs, EPOCHS))
            found["sfumato, σ of Opacus"].append(ours(train, test, seed, size, theirs, steps))
            found["sfumato, own σ"].append(ours(train, test, seed, size, own, steps))
        yield {
            "data": name, "runs": runs, "σ of Opacus (rdp)": round(theirs, 4), "own σ": round(own, 4),
            **{who: f"{np.mean(a):.4f} ± {np.std(a, ddof=1) / runs**0.5:.4f}" for who, a in found.items()},
        }  # fmt: skip
