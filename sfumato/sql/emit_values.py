"""Statements about single values: how many different ones a group has, and those around a rank.

A unit keeps at most `rows` values in a group, and at most `groups` groups, by keyed hashes of its own values: adding or
removing a unit changes nothing of any other.
"""

from collections.abc import Sequence

from sfumato.sql.domains import Kind
from sfumato.sql.emit import by, compiled, cut, row_wise
from sfumato.sql.expressions import Expression
from sfumato.sql.policy import ROW
from sfumato.sql.release import Release, Window


def distinct(release: Release, of: Expression, salt: int, dialect: str) -> str:
    """keys, and the number of different values of a group.

    One unit changes it by at most `rows`: that many values are its own, and others may have them as well.
    """
    names = listed(release)
    kept, of_unit = values(release, given(of), of, salt, dialect, once=True)
    return f"WITH {kept} SELECT {', '.join([*names, 'COUNT(DISTINCT v)'])} FROM {of_unit} {by(', '.join(names))}"


def around(
    release: Release, windows: Sequence[Window], limits: Sequence[tuple[int, int]], salt: int, dialect: str
) -> str:
    """keys, how many values there are, and in order: values, how many have each, how many have it or less; for all
    values whose score is below the cap. `windows` are of one expression and one lattice; `limits` are (shift, cap)."""
    names = ", ".join(listed(release))
    some = f"{names}, " if names else ""
    kept, of_unit = values(release, lattice(windows[0]), windows[0].of, salt, dialect, once=False)
    split = f"PARTITION BY {names}" if names else ""
    near = " OR ".join(
        f"({w.part.numerator} * n + ({shift}) - {w.part.denominator} * s < {cap}"
        f" AND {w.part.denominator} * (s - c) - {w.part.numerator} * n - ({shift}) < {cap})"
        for w, (shift, cap) in zip(windows, limits, strict=True)
    )
    return (
        f"WITH {kept}, f AS (SELECT {some}v, COUNT(*) AS c FROM {of_unit} GROUP BY {some}v),"
        f" w AS (SELECT {some}v, c, SUM(c) OVER ({split} ORDER BY v) AS s, SUM(c) OVER ({split}) AS n FROM f)"
        f" SELECT {some}CAST(MAX(n) AS BIGINT), LIST(v ORDER BY v), LIST(c ORDER BY v),"
        f" LIST(CAST(s AS BIGINT) ORDER BY v) FROM w WHERE {near} {by(names)}"
    )


def values(release: Release, value: str, of: Expression, salt: int, dialect: str, once: bool) -> tuple[str, str]:
    """Tables of WITH, and the name of that which has keys and v for each value that is kept; `once`: different ones.

    Equal values of a unit in a group are told apart by number o = 0, 1, …; as they are equal, it does not matter which
    is which. Hash, v and o order all that a unit has, so that exactly `rows` are kept.
    """
    rows = row_wise(release, {"x": compiled(of)}).sql(dialect)
    names = listed(release)
    some = "".join(f"{name}, " for name in names)
    if release.table.unit == ROW:
        return f"e AS (SELECT {some}v FROM (SELECT {some}{value} AS v FROM ({rows})) WHERE NOT v IS NULL)", "e"
    owner = ", ".join(["u", *names])
    found = f"r AS MATERIALIZED (SELECT {owner}, {value} AS v, COUNT(*) AS c FROM ({rows}) GROUP BY {owner}, {value})"
    source = "r"
    if names:
        hashed = f"CAST(HASH({owner}, {salt}) >> 1 AS BIGINT)"
        found += (
            f", p AS (SELECT {owner}, {hashed} AS h FROM r GROUP BY {owner}), {cut(release.groups)}, "
            f"g AS (SELECT r.* FROM r LEFT JOIN c USING (u) WHERE c.cut IS NULL OR {hashed} <= c.cut)"
        )
        source = "g"
    numbered = f"SELECT {owner}, v, {'0' if once else 'UNNEST(RANGE(c))'} AS o FROM {source} WHERE NOT v IS NULL"
    ordered = f"ROW_NUMBER() OVER (PARTITION BY {owner} ORDER BY HASH({owner}, v, o, {salt}), v, o) AS i"
    return f"{found}, e AS (SELECT {some}v FROM (SELECT *, {ordered} FROM ({numbered})) WHERE i <= {release.rows})", "e"


def listed(release: Release) -> list[str]:
    return [f"k{i}" for i in range(len(release.keys))]


def given(of: Expression) -> str:
    """x as it is, NaN as none."""
    return "CASE WHEN ISNAN(x) THEN NULL ELSE x END" if of.domain.kind is Kind.NUMBER else "x"


def lattice(window: Window) -> str:
    """x as the number of its step; clamped before it is cast, so that nothing can overflow."""
    low, high = window.of.domain.low, window.of.domain.high
    steps = f"FLOOR((LEAST(GREATEST(x, {low!r}), {high!r}) - ({window.origin!r})) * {2.0**-window.exponent!r} + 0.5)"
    whole = f"CAST(LEAST(GREATEST({steps}, 0), {window.points - 1}) AS BIGINT)"
    return f"CASE WHEN x IS NULL OR ISNAN(x) THEN NULL ELSE {whole} END"
