"""The four models of the table, and data of their shapes."""

import torch
from torch import nn
from torch.nn import functional


def mlp():
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.first(x)).chunk(3, 2))
        a = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.second(x))))


class Transformer(nn.Module):
    def __init__(self, d=128, layers=2, places=64, words=2000):
        super().__init__()
        self.words = nn.Embedding(words, d)
        self.blocks = nn.Sequential(*(Block(d, 4) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, words, bias=False)

    def forward(self, index):
        return self.head(self.norm(self.blocks(self.words(index)))).flatten(0, 1)


def small_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(32 * 4 * 4, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip


def six_convolutions():
    layers, before = [], 3
    for i, width in enumerate((32, 32, 64, 64, 128, 128)):
        layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU()]
        layers += [nn.MaxPool2d(2)] if i % 2 else []
        before = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 16, 128), nn.ReLU(), nn.Linear(128, 10))


def images(*shape):
    return lambda n: (torch.randn(n, *shape), torch.randint(0, 10, (n,)))


WORK = {
    "MLP 784-256-256-10": (mlp, images(784), 256),
    "transformer d128 L2 T64": (
        Transformer, lambda n: (torch.randint(0, 2000, (n, 64)), torch.randint(0, 2000, (n * 64,))), 32
    ),
    "CNN, MNIST-like": (small_cnn, images(1, 28, 28), 256),
    "CNN, six convolutions": (six_convolutions, images(3, 32, 32), 64),
}  # fmt: skip
