"""Exact tables in, noisy ones out: the only lines where data and noise meet."""

import json
from collections.abc import Sequence

from sfumato.mechanisms.quantile import Ranked
from sfumato.offer import Offer
from sfumato.sql.emit import statement
from sfumato.sql.emit_values import around, distinct
from sfumato.sql.expressions import Expression
from sfumato.sql.release import What

Row = tuple[object, ...]


def statements(offer: Offer, salt: int, dialect: str) -> list[str]:
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
    data = {"keys": [[plain(part) for part in key] for key in listed], "noisy": noisy}
    if release.windows:
        data["chosen"] = chosen(offer, listed, dict(zip(ordered(offer), left, strict=True)))
    return json.dumps(data, ensure_ascii=False).encode()


def chosen(offer: Offer, listed: list[Row], tables: dict[Expression, Sequence[Row]]) -> list[list[list[int]]]:
    """(value, low, high) of each window, for each key that is shown."""
    width, nothing = len(offer.release.keys), Ranked.of(0, [], [], [])
    found = {of: {row[:width]: Ranked.of(*row[width:]) for row in rows if row[width]} for of, rows in tables.items()}  # type: ignore[arg-type]

    def one(j: int, key: Row) -> list[int]:
        return list(offer.choices[j].release(found[offer.release.windows[j].of].get(key, nothing)))

    return [[one(j, key) for j in range(len(offer.choices))] for key in listed]


def split(offer: Offer, rows: Sequence[Row]) -> list[tuple[Row, list[int]]]:
    """Keys, and integers."""
    width = len(offer.release.keys)
    return [(tuple(row[:width]), [int(x) if x is not None else 0 for x in row[width:]]) for row in rows]  # type: ignore[call-overload]


def plain(part: object) -> str | int | float | bool | None:
    return part if isinstance(part, str | int | float | bool | None) else str(part)
