"""Exact tables in, noisy ones out: the only lines where data and noise meet."""

import json
from collections.abc import Sequence
from dataclasses import replace

from sfumato.curator.bounded_cache import Wanted
from sfumato.curator.offer import Offer
from sfumato.curator.rank_fetch import Nearby
from sfumato.mechanisms.choice.quantile import Ranked
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.domains import Kind
from sfumato.sql.emit.sums import statement
from sfumato.sql.emit.values import Selection, distinct, listed, near, ranks
from sfumato.sql.expressions import Expression
from sfumato.sql.plan import Measure, Plan, What, Window
from sfumato.sql.postprocess import ranked as by_value
from sfumato.sql.reserved_names import KEPT
from sfumato.sql.units import RowUnit

Row = tuple[object, ...]


LARGEST = 2**21  # rows of a kept table of values, at most: a public bound


def statements(offer: Offer, salt: int, dialect: str | Dialect) -> list[str]:
    """All that an engine must be asked, if nothing was kept."""
    return [wanted.direct for wanted in tables(offer, salt, dialect)]


def tables(offer: Offer, salt: int, dialect: str | Dialect) -> list[Wanted]:
    """What an answer is made of: all sums at once, each distinct count, each column whose order counts, and each
    statistic."""
    plan = offer.plan
    found = [sums(plan, salt, dialect)] if any(m.what is not What.DISTINCT for m in plan.measures) else []
    for measure in plan.measures:
        if measure.what is What.DISTINCT and measure.of:
            sql = distinct(plan, measure.of, salt, dialect)
            found.append(Wanted(sql, tuple(listed(plan)), (sql,), lambda places, sql=sql: sql))  # type: ignore[misc]
    for of in ordered(offer):
        mine = [j for j, window in enumerate(plan.windows) if window.of == of]
        limits = [(offer.choices[j].shift, offer.choices[j].cap) for j in mine]
        found.append(windows(plan, [plan.windows[j] for j in mine], limits, salt, dialect))
    return found + [Wanted(way.statement(salt, dialect), tuple(listed(plan))) for way in offer.ways]


def sums(plan: Plan, salt: int, dialect: str | Dialect) -> Wanted:
    """All that is summed. A sum that is cut in proportion with its count is made beside it."""
    summed = [m for m in plan.measures if m.what is not What.DISTINCT]

    def made(places: Sequence[int]) -> str:
        chosen = [summed[j] for j in places]
        counts = [Measure(What.VALUES, m.of) for m in chosen]
        beside = [m for m in dict.fromkeys(counts) if m in summed and m not in chosen]
        return statement(replace(plan, measures=(*chosen, *beside), windows=()), salt, dialect)

    columns = tuple(made([j]) for j in range(len(summed)))
    return Wanted(statement(plan, salt, dialect), tuple(listed(plan)), columns, made)


def windows(
    plan: Plan, mine: Sequence[Window], limits: Sequence[tuple[int, int]], salt: int, dialect: str | Dialect
) -> Wanted:
    """Values around ranks of one column. All its values are kept if it is certain that there are not many."""
    sql = ranks(plan, mine[0], salt, dialect)
    direct, keys = near(plan, mine, limits, f"({sql})", dialect), tuple(listed(plan))
    alone = isinstance(plan.table.unit, RowUnit) and not keys and len(mine) == 1
    if alone and dialect_of(dialect).selected("x", [0.5]):
        return Wanted(direct, quick=Nearby(mine[0], *limits[0], direct, Selection.of(plan, mine[0], dialect)))
    if any(key.domain.keys is None for key in plan.keys) or plan.combinations * mine[0].points > LARGEST:
        return Wanted(direct, keys)
    return Wanted(direct, keys, (sql,), lambda places: sql, near(plan, mine, limits, KEPT, dialect))


def ordered(offer: Offer) -> list[Expression]:
    """The expressions whose order counts."""
    return list(dict.fromkeys(window.of for window in offer.plan.windows))


def released(offer: Offer, exact_tables: Sequence[Sequence[Row]]) -> bytes:
    """What is stored: keys, noisy parts and chosen values, in an order and with a length that tell nothing else."""
    plan, left = offer.plan, list(exact_tables)
    summed = [j for j, m in enumerate(plan.measures) if m.what is not What.DISTINCT]
    exact: dict[Row, list[int]] = {}
    for places in [*([summed] if summed else []), *([j] for j in range(len(plan.measures)) if j not in summed)]:
        for key, row in split(offer, left.pop(0)):
            found = exact.setdefault(key, [0] * len(plan.measures))
            for j, value in zip(places, row, strict=True):
                found[j] = value
    keys = plan.public
    listed = list(keys) if keys is not None else list(exact)
    noisy = offer.drawn([exact.get(key, [0] * len(plan.measures)) for key in listed]) if listed else []
    if offer.threshold is not None:
        kept = [i for i, row in enumerate(noisy) if row[offer.units] >= offer.threshold]
        kept.sort(key=lambda i: tuple(map(by_value, listed[i])))
        listed, noisy = [listed[i] for i in kept], [noisy[i] for i in kept]
    data = {"keys": shown(offer, listed), "noisy": noisy}
    if plan.windows:
        mine, left = left[: len(ordered(offer))], left[len(ordered(offer)) :]
        data["chosen"] = chosen(offer, listed, dict(zip(ordered(offer), mine, strict=True)))
    if plan.statistics:
        data["told"] = told(offer, listed, left)
    return json.dumps(data, ensure_ascii=False).encode()


def chosen(offer: Offer, listed: list[Row], tables: dict[Expression, Sequence[Row]]) -> list[list[list[int]]]:
    """(value, low, high) of each window, for each key that is shown."""
    width, nothing = len(offer.plan.keys), Ranked.of(0, [], [], [])
    found = {of: {key: ranked(rest) for key, rest in parted(rows, width) if rest[0]} for of, rows in tables.items()}

    def one(j: int, key: Row) -> list[int]:
        return list(offer.choices[j].release(found[offer.plan.windows[j].of].get(key, nothing)))

    return [[one(j, key) for j in range(len(offer.choices))] for key in listed]


def told(offer: Offer, listed: list[Row], tables: Sequence[Sequence[Row]]) -> list[list[list[object]]]:
    """What is stored of each statistic, for each key that is shown."""
    width, found = len(offer.plan.keys), []
    for way, rows in zip(offer.ways, tables, strict=True):
        groups: dict[Row, list[Row]] = {}
        for key, rest in parted(rows, width):
            groups.setdefault(key, []).append(rest)
        found.append([list[object](way.released(groups.get(key, []))) for key in listed])
    return [list(row) for row in zip(*found, strict=True)]


def split(offer: Offer, rows: Sequence[Row]) -> list[tuple[Row, list[int]]]:
    """Keys, and integers."""
    return [(key, [int(x or 0) for x in rest]) for key, rest in parted(rows, len(offer.plan.keys))]  # type: ignore[call-overload]


def parted(rows: Sequence[Row], width: int) -> list[tuple[Row, Row]]:
    """Keys, and the rest."""
    if not any(isinstance(part, float | int) for row in rows for part in row[:width]):
        return [(row[:width], row[width:]) for row in rows]
    return [(tuple(map(unsigned, row[:width])), row[width:]) for row in rows]


def ranked(row: Row) -> Ranked:
    return Ranked.of(*row)  # type: ignore[arg-type]


def unsigned(key: object) -> object:
    """A number as a double, and 0 for −0: they are one group, and which an engine shows could hang on one row."""
    return key + 0.0 if isinstance(key, float | int) and not isinstance(key, bool) else key


def shown(offer: Offer, keys: list[Row]) -> list[list[object]]:
    """Keys as they are stored; a date without its time at midnight."""
    dates = [j for j, by in enumerate(offer.plan.keys) if by.domain.kind is Kind.DATE]
    found = [list(key) for key in keys]
    for key in found if dates else []:
        for j in dates:
            key[j] = str(key[j]).removesuffix(" 00:00:00") if key[j] is not None else None
    return found
