"""Exact tables in, noisy ones out: the only lines where data and noise meet."""

import json
from collections.abc import Sequence

from sfumato.mechanisms.quantile import Ranked
from sfumato.offer import Offer
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.domains import Kind
from sfumato.sql.emit import statement
from sfumato.sql.emit_values import around, distinct
from sfumato.sql.expressions import Expression
from sfumato.sql.release import What

Row = tuple[object, ...]


def statements(offer: Offer, salt: int, dialect: str | Dialect) -> list[str]:
    """All that an engine must be asked: all sums at once, each distinct count, each column whose order counts."""
    release = offer.release
    found = [statement(release, salt, dialect)] if any(m.what is not What.DISTINCT for m in release.measures) else []
    found += [distinct(release, m.of, salt, dialect) for m in release.measures if m.what is What.DISTINCT and m.of]
    for of in ordered(offer):
        mine = [j for j, window in enumerate(release.windows) if window.of == of]
        limits = [(offer.choices[j].shift, offer.choices[j].cap) for j in mine]
        found.append(around(release, [release.windows[j] for j in mine], limits, salt, dialect))
    return found


def ordered(offer: Offer) -> list[Expression]:
    """The expressions whose order counts."""
    return list(dict.fromkeys(window.of for window in offer.release.windows))


def released(offer: Offer, tables: Sequence[Sequence[Row]]) -> bytes:
    """What is stored: keys, noisy measures and chosen values, in an order and with a length that tell nothing else."""
    release, left = offer.release, list(tables)
    summed = [j for j, m in enumerate(release.measures) if m.what is not What.DISTINCT]
    exact: dict[Row, list[int]] = {}
    for places in [*([summed] if summed else []), *([j] for j in range(len(release.measures)) if j not in summed)]:
        for key, row in split(offer, left.pop(0)):
            found = exact.setdefault(key, [0] * len(release.measures))
            for j, value in zip(places, row, strict=True):
                found[j] = value
    keys = release.public
    listed = list(keys) if keys is not None else list(exact)
    noisy = offer.drawn([exact.get(key, [0] * len(release.measures)) for key in listed]) if listed else []
    if offer.threshold is not None:
        units = [m.what for m in release.measures].index(What.UNITS)
        kept = [i for i, row in enumerate(noisy) if row[units] >= offer.threshold]
        kept.sort(key=lambda i: tuple(repr(part) for part in listed[i]))
        listed, noisy = [listed[i] for i in kept], [noisy[i] for i in kept]
    data = {"keys": [shown(offer, key) for key in listed], "noisy": noisy}
    if release.windows:
        data["chosen"] = chosen(offer, listed, dict(zip(ordered(offer), left, strict=True)))
    return json.dumps(data, ensure_ascii=False).encode()


def chosen(offer: Offer, listed: list[Row], tables: dict[Expression, Sequence[Row]]) -> list[list[list[int]]]:
    """(value, low, high) of each window, for each key that is shown."""
    width, nothing = len(offer.release.keys), Ranked.of(0, [], [], [])
    found = {of: {key: ranked(rest) for key, rest in parted(rows, width) if rest[0]} for of, rows in tables.items()}

    def one(j: int, key: Row) -> list[int]:
        return list(offer.choices[j].release(found[offer.release.windows[j].of].get(key, nothing)))

    return [[one(j, key) for j in range(len(offer.choices))] for key in listed]


def split(offer: Offer, rows: Sequence[Row]) -> list[tuple[Row, list[int]]]:
    """Keys, and integers."""
    return [(key, [int(x or 0) for x in rest]) for key, rest in parted(rows, len(offer.release.keys))]  # type: ignore[call-overload]


def parted(rows: Sequence[Row], width: int) -> list[tuple[Row, Row]]:
    """Keys, and the rest."""
    return [(tuple(map(unsigned, row[:width])), row[width:]) for row in rows]


def ranked(row: Row) -> Ranked:
    return Ranked.of(*row)  # type: ignore[arg-type]


def unsigned(key: object) -> object:
    """0 for −0: they are one group, and which of them an engine shows could hang on one row."""
    return key + 0.0 if isinstance(key, float) else key


def shown(offer: Offer, key: Row) -> list[object]:
    """A key as it is stored; a date without its time at midnight."""
    kinds = [by.domain.kind for by in offer.release.keys]
    return [
        str(part).removesuffix(" 00:00:00") if part is not None and kind is Kind.DATE else part
        for part, kind in zip(key, kinds, strict=True)
    ]
