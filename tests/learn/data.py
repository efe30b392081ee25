"""Made-up tables for tests of estimators."""

import numpy as np


def line(n=400, d=3, seed=1, noise=0.1):
    """y = x·w + noise, columns in [−1, 1]."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    w = np.linspace(0.5, -0.3, d)
    return X, np.clip(X @ w + noise * rng.standard_normal(n), -1, 1)


def blobs(n=400, d=3, classes=2, seed=1, spread=0.25):
    """Classes around corners, columns in [−1, 1]."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    centres = rng.choice([-0.5, 0.5], (classes, d))
    centres[0] = -centres[1]
    return np.clip(centres[labels] + spread * rng.standard_normal((n, d)), -1, 1), labels
