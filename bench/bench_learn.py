"""Estimators beside diffprivlib's at equal guarantee, and beside the trivial predictor and the one without noise.

Every cell is a mean over random splits with its standard error. The peer is pure ε; a pure guarantee is an (ε, δ) one
too, so our column with δ = 1e-5 stands beside the same numbers. Where the peer's noise is for add/remove neighbours, so
is ours; else both are about replacing a row.
"""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from sklearn import linear_model

import sfumato as sf
from bench.learn import real_data, work
from sfumato import learn

BENCH = Path(__file__).parent
PEER = BENCH / ".peers/learn-diffprivlib/bin/python"
PLAIN = {"linear", "logistic", "boosting"}
NEAR = {
    ("linear", "diabetes"),
    ("linear", "line-20000-10"),
    ("logistic", "breast_cancer"),
    ("logistic", "odds-20000-20"),
}


def our_score(estimator, name, epsilon, delta, seed):
    X, y = work.load(name, estimator)
    a, b, c, d = work.split(X, y, seed)
    relation = sf.AddRemove if estimator in work.ADD_REMOVE else sf.ReplaceOne
    common = {"epsilon": epsilon, "delta": delta, "relation": relation, "bounds": (-1, 1)}
    if estimator == "linear":
        return work.r2(d, learn.LinearRegression(y_bounds=(-1, 1), **common).fit(a, b).predict(c))
    if estimator == "boosting":
        return work.r2(d, learn.GradientBoostingRegressor(y_bounds=(-1, 1), **common).fit(a, b).predict(c))
    if estimator == "k_means":
        fitted = learn.KMeans(n_clusters=work.CLUSTERS[name], **common).fit(a)
        return work.compactness(c, fitted.cluster_centers_)
    if estimator == "pca":
        return work.captured(c, learn.PCA(n_components=3, **common).fit(a).components_)
    if estimator == "scaler":
        fitted = learn.StandardScaler(**common).fit(a)
        return work.closeness(a, fitted.mean_, fitted.scale_)
    kind = {
        "logistic": learn.LogisticRegression,
        "naive_bayes": learn.GaussianNB,
        "tree": learn.DecisionTreeClassifier,
        "forest": learn.RandomForestClassifier,
    }[estimator]
    return work.accuracy(d, kind(classes=sorted(set(y.tolist())), **common).fit(a, b).predict(c))


def without_noise(estimator, name, splits):
    """The score of the plain linear or logistic regression."""
    scores = []
    for seed in range(splits):
        a, b, c, d = work.split(*work.load(name, estimator), seed)
        if estimator in work.REGRESSIONS:
            scores.append(work.r2(d, linear_model.LinearRegression().fit(a, b).predict(c)))
        else:
            scores.append(work.accuracy(d, linear_model.LogisticRegression(max_iter=5000).fit(a, b).predict(c)))
    return float(np.mean(scores))


def write_real_data():
    """Tables of the peer's environment, for both sides; False where it is not installed."""
    if PEER.exists() and not real_data.FOLDER.exists():
        subprocess.run([PEER, "-P", BENCH / "learn/real_data.py", real_data.FOLDER], check=True)
    return real_data.FOLDER.exists()


def peer_scores(estimator, name, splits):
    if not PEER.exists() or estimator == "boosting":  # which the peer has not
        return {}
    side = BENCH / "learn/sides/diffprivlib.py"
    done = subprocess.run([PEER, "-P", side, estimator, name, str(splits)], capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr[-300:], file=sys.stderr)
        return {}
    return json.loads(done.stdout)


def summary(scores):
    """Mean and standard error; an R² below −1 counts as −1, or one wild fit would hide all others."""
    scores = np.maximum(scores, -1.0)
    return float(np.mean(scores)), float(np.std(scores, ddof=1) / math.sqrt(len(scores))) if len(scores) > 1 else 0.0


def verdict(ours, peer):
    """ahead, tied or behind: apart by two standard errors of the difference, or not."""
    gap, error = ours[0] - peer[0], math.hypot(ours[1], peer[1])
    return "ahead" if gap > 2 * error else "behind" if gap < -2 * error else "tied"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--only", nargs="+", metavar="ESTIMATOR")
    parser.add_argument("--held-out", action="store_true", help="data sets that no constant was chosen on")
    parser.add_argument("--data", nargs="+", metavar="NAME")
    parser.add_argument("--json", nargs="?", const=BENCH / "results/learn.json", type=Path, metavar="FILE")
    options = parser.parse_args()
    rows, failed, real = [], [], write_real_data()
    print(f"{'estimator':<12}{'data':<15}{'ε':>4}  {'pure ε':>15}  {'δ = 1e-5':>15}  {'diffprivlib':>17}")
    for estimator, names in (work.HELD_OUT if options.held_out else work.CELLS).items():
        names = [name for name in names if real or name not in real_data.TABLES]
        for name in names if not options.only or estimator in options.only else ():
            if options.data and name not in options.data:
                continue
            splits = options.splits if not name.startswith(("line-", "odds-")) else min(options.splits, 5)
            peer = peer_scores(estimator, name, splits)
            plain = without_noise(estimator, name, splits) if estimator in PLAIN else None
            least = work.trivial(estimator, name)
            for epsilon in work.EPSILONS:
                pure, approx = (
                    summary([our_score(estimator, name, epsilon, delta, seed) for seed in range(splits)])
                    for delta in (0.0, work.DELTA)
                )
                other = summary(peer[str(epsilon)]) if peer else None
                marks = [verdict(one, other) if other else "" for one in (pure, approx)]
                for column, one, mark in zip(("pure", "approx"), (pure, approx), marks, strict=True):
                    if mark == "behind":
                        failed.append(f"{estimator} {name} ε={epsilon} {column}: behind the peer")
                    if least is not None and one[0] < least - max(0.01, one[1]):
                        failed.append(
                            f"{estimator} {name} ε={epsilon} {column}: below the trivial predictor {least:.3f}"
                        )
                if (estimator, name) in NEAR and epsilon == 3 and plain is not None and approx[0] < plain - 0.05:
                    failed.append(f"{estimator} {name} ε=3: {approx[0]:.3f}, more than .05 below {plain:.3f}")
                shown = [f"{m:.3f}±{e:.3f} {v[:1]}" for (m, e), v in zip((pure, approx), marks, strict=True)]
                beside = f"{other[0]:.3g}±{other[1]:.2g}" if other else "not installed"
                note = f"  (no noise {plain:.3f})" if plain is not None else ""
                print(
                    f"{estimator:<12}{name:<15}{epsilon:>4}  {shown[0]:>15}  {shown[1]:>15}  {beside:>17}{note}",
                    flush=True,
                )
                rows.append({"estimator": estimator, "data": name, "epsilon": epsilon, "pure": pure, "approx": approx,
                             "peer": other, "plain": plain, "verdicts": marks})  # fmt: skip
    judged = [row["verdicts"][1] for row in rows if row["verdicts"][1]]
    if judged:
        print(f"(ε, δ) cells: {judged.count('ahead')} of {len(judged)} ahead; behind: {judged.count('behind')}")
    for line in failed:
        print(f"✗ {line}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"rows": rows, "failed": failed}, indent=1))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
