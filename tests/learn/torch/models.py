"""Small models, one for each supported kind of layer, with data of fitting shapes; and the plain loop they are checked
against."""

import torch
from torch import nn

torch.set_num_threads(1)


class Attending(nn.Module):
    """Self-attention and attention to other keys, each with a layer of its own."""

    def __init__(self):
        super().__init__()
        self.own = nn.MultiheadAttention(8, 2, batch_first=True)
        self.other = nn.MultiheadAttention(8, 2, batch_first=True)
        self.sized = nn.MultiheadAttention(8, 2, batch_first=True, kdim=4, vdim=8)

    def forward(self, x):
        y = self.own(x, x, x, need_weights=False)[0]
        y = y + self.other(y, x.tanh(), x)[0]
        return self.sized(y, x[..., :4], x)[0].sum(1)


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.rnn = kind(5, 3, batch_first=True, **options)

    def forward(self, x):
        out, state = self.rnn(x)
        return (
            out.flatten(1).sum(1, keepdim=True) + (state[0] if isinstance(state, tuple) else state).sum((0, 2))[:, None]
        )


class Tied(nn.Module):
    """One weight for words in and words out."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(7, 4)
        self.out = nn.Linear(4, 7, bias=False)
        self.out.weight = self.words.weight

    def forward(self, index):
        return self.out(self.words(index).tanh()).flatten(1)


class Twice(nn.Module):
    """Modules that are called more than once."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(6, 6), nn.LayerNorm(6)
        self.conv = nn.Conv1d(1, 1, 3, padding=1)

    def forward(self, x):
        y = self.norm(self.linear(self.norm(self.linear(x)).tanh()))
        return self.conv(self.conv(y[:, None]).tanh()).flatten(1)


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 4, padding_idx=0)
        self.places = nn.Embedding(5, 4)
        self.out = nn.Linear(4, 3)

    def forward(self, index):
        place = torch.arange(5).expand(len(index), -1)
        return self.out(self.words(index) + self.places(place)).sum(1)


class Scaled(nn.Module):
    """A module without a rule: it has parameters that its forward uses by hand."""

    def __init__(self):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(3)), nn.Parameter(torch.zeros(1, 3))

    def forward(self, x):
        return x.tanh() * self.scale + self.shift


class Cells(nn.Module):
    """Modules without a rule, with several inputs and outputs."""

    def __init__(self):
        super().__init__()
        self.pair, self.cell = nn.Bilinear(3, 3, 4), nn.LSTMCell(3, 4)

    def forward(self, x):
        first = self.pair(x, x.tanh())
        return torch.cat(self.cell(x, (first, first)), 1)


def floats(*shape):
    return lambda n, g: torch.randn(n, *shape, generator=g)


def indices(most, *shape):
    return lambda n, g: torch.randint(0, most, (n, *shape), generator=g)


MODELS = {
    "linear": (lambda: nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3, bias=False)), floats(6)),
    "linear with places": (lambda: nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 2)), floats(5, 6)),
    "linear with two kinds of places": (lambda: nn.Linear(6, 4), floats(2, 3, 6)),
    "words": (Words, indices(9, 5)),
    "layer norm": (lambda: nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6), nn.Tanh(), nn.Linear(6, 2)), floats(6)),
    "layer norm of planes": (lambda: nn.Sequential(nn.Linear(6, 6), nn.LayerNorm((4, 6), bias=False)), floats(3, 4, 6)),
    "group norm": (lambda: nn.Sequential(nn.Conv1d(2, 4, 3), nn.GroupNorm(2, 4), nn.Tanh()), floats(2, 7)),
    "RMS norm": (lambda: nn.Sequential(nn.Linear(6, 6), nn.RMSNorm(6)), floats(3, 6)),
    "conv 1": (lambda: nn.Sequential(nn.Conv1d(2, 4, 3, stride=2), nn.Tanh(), nn.Conv1d(4, 2, 2)), floats(2, 9)),
    "conv 2": (
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.Tanh(), nn.Conv2d(4, 4, (2, 3), groups=2, dilation=2)),
        floats(2, 6, 7),
    ),
    "conv 2 same": (lambda: nn.Conv2d(1, 2, (3, 5), padding="same", bias=False), floats(1, 5, 5)),
    "conv 2 circular": (lambda: nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), floats(1, 5, 5)),
    "conv 3": (lambda: nn.Conv3d(2, 2, 2, padding=1), floats(2, 3, 4, 3)),
    "attention": (Attending, floats(5, 8)),
    "transformer": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=True),
        floats(5, 8),
    ),
    "LSTM": (lambda: Recurrent(nn.LSTM, num_layers=2, bidirectional=True), floats(4, 5)),
    "GRU": (lambda: Recurrent(nn.GRU), floats(4, 5)),
    "RNN": (lambda: Recurrent(nn.RNN, bias=False), floats(4, 5)),
    "own modules": (
        lambda: nn.Sequential(
            nn.Unflatten(1, (2, 3)),
            nn.PReLU(2),
            nn.ConvTranspose1d(2, 1, 2),
            nn.InstanceNorm1d(1, affine=True),
            nn.Flatten(),
            nn.Linear(4, 3),
            Scaled(),
        ),
        floats(6),
    ),
    "own cells": (Cells, floats(3)),
    "tied": (Tied, indices(7, 4)),
    "twice": (Twice, floats(6)),
}


def loss_of(output):
    """One number for each example, with gradients of different lengths."""
    return (output.flatten(1) ** 2).sum(1) + output.flatten(1).sum(1)


def each_gradient(model, x):
    """The gradients of all examples, by a loop over them."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    found = []
    for i in range(len(x)):
        grads = torch.autograd.grad(loss_of(model(x[i : i + 1])).sum(), parameters, allow_unused=True)
        found.append([torch.zeros_like(p) if g is None else g for p, g in zip(parameters, grads, strict=True)])
    return found


def clipped_sum(each, clip):
    """Σ ∇·min(1, clip/‖∇‖), in double precision."""
    total = [torch.zeros_like(g, dtype=torch.float64) for g in each[0]]
    for grads in each:
        norm = torch.sqrt(sum(g.double().square().sum() for g in grads))
        for t, g in zip(total, grads, strict=True):
            t += g.double() * min(1.0, clip / float(norm))
    return total
