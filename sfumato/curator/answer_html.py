"""Answers, previews, budgets and curators as HTML for notebooks: no scripts, every text escaped."""

import html
from collections.abc import Mapping, Sequence

from sfumato.curator.answer import Answer
from sfumato.curator.picture import WIDTH, Interval, Picture

CELL = "text-align:{side};padding:2px 10px;white-space:nowrap"
SVG = (
    f'<svg viewBox="-6 0 {WIDTH + 12:g} 40" preserveAspectRatio="none" width="140" height="16"'
    ' role="img" aria-label="interval" style="vertical-align:middle;margin-right:8px">{shapes}</svg>'
)
SPAN = '<path d="M{low} 20H{high}" stroke="currentColor" stroke-opacity=".35" stroke-width="14"/>'
VALUE = '<path d="M{value} 2V38" stroke="currentColor" stroke-width="2" vector-effect="non-scaling-stroke"/>'


def answer_html(answer: Answer) -> str:
    """A table with each interval drawn beside its numbers, the price, and what it reveals about one person."""
    picture = Picture.of(answer)
    sides = ["right" if r else "left" for r in picture.right]
    head = "".join(cell("th", name, side) for name, side in zip(picture.names, sides, strict=True))
    body = "".join(row_html(row, drawn, sides) for row, drawn in zip(picture.rows, picture.drawn, strict=True))
    odds = html.escape(" ".join(answer.odds.split()))
    return (
        f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        f'<p style="opacity:.75">{html.escape(answer.footer)}<br>{note_html(answer)}</p>'
        f"<details><summary>What this question tells about one person</summary><p>{odds}</p></details>"
    )


def row_html(row: Sequence[str], drawn: Mapping[int, Interval], sides: Sequence[str]) -> str:
    cells = zip(row, sides, range(len(row)), strict=True)
    return f"<tr>{''.join(cell('td', text, side, interval_svg(drawn.get(i))) for text, side, i in cells)}</tr>"


def cell(tag: str, text: str, side: str, drawn: str = "") -> str:
    return f'<{tag} style="{CELL.format(side=side)}">{drawn}{html.escape(text)}</{tag}>'


def interval_svg(interval: Interval | None) -> str:
    if interval is None:
        return ""
    value = "" if interval.value is None else VALUE.format(value=interval.value)
    return SVG.format(shapes=SPAN.format(low=interval.low, high=interval.high) + value)


def note_html(answer: Answer) -> str:
    """The note on intervals; a warning stands out."""
    note, loud = html.escape(answer.note), html.escape(answer.left_out.warning if answer.left_out is not None else "")
    return note.replace(loud, f'<strong style="color:#b00020">{loud}</strong>') if loud else note


def meter_html(title: str, left: float, text: str) -> str:
    """A bar of what is left of a budget, over a text."""
    return (
        f'<div><strong>{html.escape(title)}</strong><br><progress max="1" value="{min(1.0, max(0.0, left)):.4f}"'
        f' style="width:280px"></progress>{text_html(text)}</div>'
    )


def text_html(text: str) -> str:
    return f'<pre style="white-space:pre-wrap;margin:.3em 0">{html.escape(text)}</pre>'


def tables_html(title: str, tables: Mapping[str, Sequence[str]]) -> str:
    """A list of tables, each with its columns."""
    rows = "".join(
        f"<tr>{cell('td', name, 'left')}{cell('td', ', '.join(columns), 'left')}</tr>"
        for name, columns in tables.items()
    )
    return f'<strong>{html.escape(title)}</strong><table style="border-collapse:collapse"><tbody>{rows}</tbody></table>'
