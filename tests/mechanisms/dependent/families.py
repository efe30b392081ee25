"""One example of each family of noise, with a shift and a dilation that suit it, and independent densities."""

import json
from pathlib import Path

import mpmath as mp

from sfumato import dependent as dep

ORACLE = json.loads((Path(__file__).parents[2] / "golden" / "smooth_noise.json").read_text(encoding="utf-8"))

EVERY = [
    (dep.StudentNoise(6), 0.7, 0.2),
    (dep.StudentNoise(2.5), 0.05, 0.01),
    (dep.StudentNoise(50), 0.7, 0.02),
    (dep.CauchyNoise(), 1 / 6, 1 / 6),
    (dep.CauchyNoise(4.5), 0.3, 0.1),
    (dep.ArsinhNormalNoise(0.4), 1.0, 0.1),
    (dep.ArsinhNormalNoise(1.2), 0.1, 0.3),
    (dep.LaplaceLogNormalNoise(0.3), 0.4, 0.1),
    (dep.UniformLogNormalNoise(0.7), 0.3, 0.1),
    (dep.LaplaceNoise(), 0.5, 0.03),
    (dep.GaussianNoise(), 0.4, 0.02),
]


def density(noise, z):
    """p(z), z ≥ 0, written down apart from the package, at mpmath's precision."""
    z = mp.mpf(z)
    match noise:
        case dep.StudentNoise(d):
            d = mp.mpf(d)
            return mp.gamma((d + 1) / 2) / mp.gamma(d / 2) / mp.sqrt(d * mp.pi) * (1 + z * z / d) ** (-(d + 1) / 2)
        case dep.CauchyNoise(g):
            return mp.mpf(g) * mp.sin(mp.pi / g) / (2 * mp.pi) / (1 + z ** mp.mpf(g))
        case dep.ArsinhNormalNoise(s):
            s = mp.mpf(s)
            return mp.npdf(mp.asinh(s * z) / s) / mp.sqrt(1 + (s * z) ** 2)
        case dep.LaplaceLogNormalNoise(s):
            s = mp.mpf(s)
            return mp.quad(
                lambda y: mp.npdf(y) * mp.exp(-s * y - z * mp.exp(-s * y)) / 2, [-12, -6, 0, 6, 14], maxdegree=7
            )
        case dep.UniformLogNormalNoise(s):  # |Z| > z where e^{sY} > z: the rest is uniform on [0, e^{sY}]
            s = mp.mpf(s)
            start = max(mp.log(z) / s, mp.mpf(-15))
            return mp.quad(lambda y: mp.npdf(y) * mp.exp(-s * y) / 2, mp.linspace(start, max(start, 0) + 15, 8))
        case dep.LaplaceNoise():
            return mp.exp(-z) / 2
        case dep.GaussianNoise():
            return mp.npdf(z)
