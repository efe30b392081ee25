"""Draw docs/figures/wards.png, the picture at the top of the README: an answer about the clinic, with its intervals.

The noise is fresh each time, so the picture differs each time; the table beside it is printed and belongs to it.
"""

import tempfile
from pathlib import Path

from matplotlib.figure import Figure

import sfumato as sf
from sfumato.teach.demo import clinic

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "wards.png"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data, policy = Path(folder) / "clinic.duckdb", Path(folder) / "clinic.toml"
        clinic.build(data)
        policy.write_text(clinic.POLICY, "utf-8")
        curator = sf.Curator.open(data, policy=policy)
        sql = "SELECT ward, COUNT(*) AS visits, AVG(stay) AS days FROM visits GROUP BY ward"
        answer = curator.ask(sql, epsilon=0.8)
        print(answer)
        print(curator.budget)
        figure = Figure(figsize=(7.2, 2.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        answer.plot(left, column="visits")
        answer.plot(right, column="days")
        figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
