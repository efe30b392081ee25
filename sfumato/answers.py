"""An answer: rows with intervals, its price, what is left, and what that means for one person."""

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

Cell = float | int | str | bool | None


@dataclass(frozen=True)
class Answer:
    """Column names, rows, and for each column that has one the half of an interval that holds the truth at 95 %."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    epsilon: float
    delta: float
    charged: bool
    left: str = field(repr=False)
    odds: str = field(repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[Cell]:
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def to_json(self) -> str:
        data = {"columns": self.columns, "rows": self.rows, "epsilon": self.epsilon, "delta": self.delta}
        return json.dumps({**data, "charged": self.charged, "left": self.left}, ensure_ascii=False)

    def to_pandas(self) -> "pandas.DataFrame":
        import pandas

        return pandas.DataFrame(list(self.rows), columns=list(self.columns))

    def __str__(self) -> str:
        price = f"ε = {self.epsilon:.3g} at δ = {self.delta:.2g}" if self.charged else "free: this was answered before"
        return f"{table(self.columns, self.rows)}\n{len(self.rows)} rows · {price} · {self.left}"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(shown(c))}</td>" for c in row) + "</tr>" for row in self.rows
        )
        return f"<table><tr>{head}</tr>{body}</table><p>{html.escape(str(self).splitlines()[-1])}</p>"


def table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Plain columns, numbers to the right."""
    cells = [list(columns), *([shown(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    right = [all(isinstance(row[i], int | float) or row[i] is None for row in rows) for i in range(len(columns))]
    lines = [
        "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)).rstrip()
        for row in cells
    ]
    return "\n".join([lines[0], "  ".join("─" * w for w in widths), *lines[1:]])


def shown(cell: Cell) -> str:
    if cell is None:
        return "NULL"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1e5 else f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)
