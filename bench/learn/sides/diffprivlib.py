"""The peer's scores of one cell: python -P diffprivlib.py ESTIMATOR DATA SPLITS, a JSON object on standard output.

For logistic regression the best of three regularisations is taken by the test score, which is generous.
"""

import json
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import numpy as np
from diffprivlib import models

from bench.learn import work


def score(estimator, name, epsilon, seed, choice):
    X, y = work.load(name, estimator)
    a, b, c, d = work.split(X, y, seed)
    columns, box = X.shape[1], {"bounds": (-1, 1)}
    if estimator == "linear":
        fitted = models.LinearRegression(epsilon=epsilon, bounds_X=(-1, 1), bounds_y=(-1, 1)).fit(a, b)
        return work.r2(d, fitted.predict(c))
    if estimator == "logistic":
        fitted = models.LogisticRegression(epsilon=epsilon, data_norm=columns**0.5, C=choice).fit(a, b)
    elif estimator == "naive_bayes":
        fitted = models.GaussianNB(epsilon=epsilon, **box).fit(a, b)
    elif estimator in ("tree", "forest"):
        kind = models.DecisionTreeClassifier if estimator == "tree" else models.RandomForestClassifier
        fitted = kind(epsilon=epsilon, classes=sorted(set(y.tolist())), **box).fit(a, b)
    elif estimator == "k_means":
        fitted = models.KMeans(n_clusters=work.CLUSTERS[name], epsilon=epsilon, **box).fit(a)
        return work.compactness(c, fitted.cluster_centers_)
    elif estimator == "pca":
        fitted = models.PCA(n_components=3, epsilon=epsilon, data_norm=columns**0.5, **box).fit(a)
        return work.captured(c, fitted.components_)
    else:
        fitted = models.StandardScaler(epsilon=epsilon, **box).fit(a)
        return work.closeness(a, fitted.mean_, np.sqrt(fitted.var_))
    return work.accuracy(d, fitted.predict(c))


def main():
    warnings.filterwarnings("ignore")
    estimator, name, splits = sys.argv[1], sys.argv[2], int(sys.argv[3])
    found = {}
    for epsilon in work.EPSILONS:
        choices = (0.01, 1.0, 100.0) if estimator == "logistic" else (None,)
        tried = [[score(estimator, name, epsilon, seed, choice) for seed in range(splits)] for choice in choices]
        found[str(epsilon)] = max(tried, key=np.mean)
    print(json.dumps(found))


main()
