"""Real tables that no constant of an estimator was chosen on: surveys that come with statsmodels.

Run in the peer's environment, which has statsmodels: python -P real_data.py FOLDER writes one .npz for each table, and
every side reads these.
"""

import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[1] / ".peers/learn-data"
TABLES = {  # name: data set, target, and from which value on it is class 1
    "party-identification": ("anes96", "PID", None),
    "vote": ("anes96", "vote", 1),
    "affairs": ("fair", "affairs", 1e-9),
    "happy-marriage": ("fair", "rate_marriage", 5),
    "doctor-visits": ("randhie", "mdvis", None),
    "any-visit": ("randhie", "mdvis", 1),
}


def load(name: str):
    """Rows and target, as written."""
    with np.load(FOLDER / f"{name}.npz") as found:
        return found["X"], found["y"]


def write(folder: Path) -> None:
    from statsmodels import datasets

    folder.mkdir(parents=True, exist_ok=True)
    for name, (data, target, least) in TABLES.items():
        frame = getattr(datasets, data).load_pandas().data.astype(float)
        y = frame.pop(target).to_numpy()
        np.savez(folder / f"{name}.npz", X=frame.to_numpy(), y=y if least is None else (y >= least).astype(int))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
