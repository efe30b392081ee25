"""Charts of answers with their intervals, by matplotlib: made of released numbers alone."""

from typing import TYPE_CHECKING

from sfumato.curator.answer import Answer, format_cell, import_optional
from sfumato.curator.picture import aggregates, numbers, series
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOM = 0.32  # inches for a row


def plot_answer(answer: Answer, axes: "Axes | None" = None, column: str | None = None) -> "Axes":
    """The first aggregate of an answer, or that of this name, with its intervals."""
    places = [place for _, place in aggregates(answer)]
    if column is not None:
        places = [place for place in places if answer.columns[place] == column]
    if not places:
        raise InvalidParameter(
            f"there is nothing to draw.\n  found:  {'no' if column is None else 'another'} column with an interval\n"
            f"  do:     name one of {', '.join(answer.columns[place] for _, place in aggregates(answer)) or 'none'}"
        )
    if axes is None:
        pyplot = import_optional("matplotlib.pyplot")
        _, axes = pyplot.subplots(figsize=(6.4, min(12.0, 1.4 + ROOM * max(4, len(answer)))), layout="constrained")
    assert axes is not None
    ordered = series(answer)
    if ordered is not None and places[0] == 1:
        draw_line(axes, answer)
    else:
        draw_points(axes, answer, places[0])
    return axes


def draw_points(axes: "Axes", answer: Answer, place: int) -> None:
    """One line of the chart for each row: its key, its value and its interval."""
    first = aggregates_start(answer)
    labels = [" · ".join(format_cell(cell) for cell in row[:first]) for row in answer.rows]
    for at, row in enumerate(answer.rows):
        value, low, high = numbers(row[place : place + 3])
        if low is not None and high is not None:
            axes.plot([low, high], [at, at], color="C0", linewidth=5, alpha=0.35, solid_capstyle="butt")
        if value is not None:
            axes.plot([value], [at], color="C0", marker="|", markersize=14, markeredgewidth=2)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlabel(f"{answer.columns[place]}, with 95 % intervals")


def draw_line(axes: "Axes", answer: Answer) -> None:
    """A line with a band, by the day or the number in the first column."""
    rows = sorted((row for row in answer.rows if row[0] is not None), key=lambda row: row[0])  # type: ignore[arg-type,return-value]
    spans = [numbers(row[1:4]) for row in rows]
    keys = [row[0] for row in rows]
    nan = float("nan")
    value, low, high = ([nan if x is None else x for x in side] for side in zip(*spans, strict=True))
    axes.fill_between(keys, low, high, alpha=0.25, linewidth=0)  # type: ignore[arg-type]
    axes.plot(keys, value, linewidth=2)  # type: ignore[arg-type]
    axes.set_xlabel(answer.columns[0])
    axes.set_ylabel(f"{answer.columns[1]}, with 95 % intervals")


def aggregates_start(answer: Answer) -> int:
    """How many columns at the front are keys."""
    return next((place for _, place in aggregates(answer)), len(answer.columns))
