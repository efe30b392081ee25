"""Statements about single values: how many different ones a group has, and those around a rank.

A unit keeps at most `rows` values in a group, and at most `groups` groups, by keyed hashes of its own values: adding or
removing a unit changes nothing of any other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.domains import Kind
from sfumato.sql.emit import by, cut, none, row_wise
from sfumato.sql.expressions import Column, Expression
from sfumato.sql.policy import ROW
from sfumato.sql.release import Release, Window


def distinct(release: Release, of: Expression, salt: int, dialect: str | Dialect) -> str:
    """keys, and the number of different values of a group.

    One unit changes it by at most `rows`: that many values are its own, and others may have them as well.
    """
    to, names = dialect_of(dialect).about(release), listed(release)
    kept, of_unit = values(release, given(of, to), of, salt, to, once=True)
    return f"WITH {kept} SELECT {', '.join([*names, 'COUNT(DISTINCT v) AS m0'])} FROM {of_unit} {by(', '.join(names))}"


def around(
    release: Release, windows: Sequence[Window], limits: Sequence[tuple[int, int]], salt: int, dialect: str | Dialect
) -> str:
    """keys, how many values there are, and in order: values, how many have each, how many have it or less; for all
    values whose score is below the cap. `windows` are of one expression and one lattice; `limits` are (shift, cap)."""
    return near(release, windows, limits, f"({ranks(release, windows[0], salt, dialect)})", dialect)


def ranks(release: Release, window: Window, salt: int, dialect: str | Dialect) -> str:
    """keys, and each value v with how many have it (c), how many have it or less (s), and how many there are (n)."""
    to, names = dialect_of(dialect).about(release), ", ".join(listed(release))
    some, split = (f"{names}, ", f"PARTITION BY {names}") if names else ("", "")
    return (
        f"WITH {frequencies(release, window, salt, to)}"
        f" SELECT {some}v, c, {to.total('c')} OVER ({split} ORDER BY v) AS s, {to.total('c')} OVER ({split}) AS n"
        " FROM f"
    )


@dataclass(frozen=True)
class Selection:
    """Statements about the values of a whole table where each row is a person, for an engine that selects by rank.

    `rows` has the values x as the policy reads them, `unread` has them as they are, if that is in the same order.
    """

    rows: str
    unread: str
    lattice: str
    to: Dialect

    @staticmethod
    def of(release: Release, window: Window, dialect: str | Dialect) -> "Selection":
        to, of = dialect_of(dialect).about(release), window.of
        read = to.compiled(of)
        key, unread = (to.key(of), to.unread(of)) if isinstance(of, Column) else (None, None)
        rows, plain = (row_wise(release, {"x": one or read}, to).sql(to.name) for one in (key, unread))
        return Selection(rows, plain, lattice(window, to), to)

    def selected(self, parts: Sequence[float]) -> str:
        """How many values there are, and those below which these parts of them lie."""
        return f"SELECT COUNT(x), {self.to.selected('x', parts)} FROM ({self.rows}) AS e"

    def between(self, low: float, high: float) -> str:
        """How many values are at most the higher end; and, from the lower one on: steps, and how many have each."""
        first = f"LIST(x) FILTER (WHERE x >= {self.number(low)}) AS l"
        found = f"SELECT COUNT(*) AS n, {first} FROM ({self.unread}) AS e WHERE x <= {self.number(high)}"
        each = f"SELECT n, CAST(UNNEST(l) AS DOUBLE) AS x FROM ({found}) AS f"
        steps = f"SELECT n, {self.lattice} AS v FROM ({each}) AS g"
        return f"SELECT n, v, COUNT(*) FROM ({steps}) AS h GROUP BY n, v ORDER BY v"

    def number(self, value: float) -> str:
        return self.to.number(float(value)).sql(self.to.name)


def frequencies(release: Release, window: Window, salt: int, to: Dialect, *more: str) -> str:
    """Tables of WITH, of which f has the keys, each value v, how many have it (c), and `more`."""
    some = "".join(f"{name}, " for name in listed(release))
    kept, of_unit = values(release, lattice(window, to), window.of, salt, to, once=False)
    return f"{kept}, f AS (SELECT {', '.join([f'{some}v', 'COUNT(*) AS c', *more])} FROM {of_unit} GROUP BY {some}v)"


def near(
    release: Release, windows: Sequence[Window], limits: Sequence[tuple[int, int]], ranked: str, dialect: str | Dialect
) -> str:
    """What `around` gives, from the table that `ranks` makes."""
    to, names = dialect_of(dialect).about(release), ", ".join(listed(release))
    some = f"{names}, " if names else ""
    near_one = " OR ".join(close(w.part, *limit) for w, limit in zip(windows, limits, strict=True))
    return (
        f"WITH z AS (SELECT {some}v, c, CAST(s AS BIGINT) AS s, CAST(n AS BIGINT) AS n"
        f" FROM {ranked} AS w WHERE {near_one})"
        f" SELECT {', '.join([*filter(None, [names]), 'MAX(n)', *to.lists('v', 'c', 's')])} FROM z {by(names)}"
    )


def close(part: Fraction, shift: int, cap: int) -> str:
    """Is one of the ranks s − c + 1 … s nearer than this to part·n? Counted in parts."""
    a, b = part.numerator, part.denominator
    return f"({a} * n + ({shift}) - {b} * s < {cap} AND {b} * (s - c) - {a} * n - ({shift}) < {cap})"


def values(release: Release, value: str, of: Expression, salt: int, to: Dialect, once: bool) -> tuple[str, str]:
    """Tables of WITH, and the name of that which has keys and v for each value that is kept; `once`: different ones.

    Equal values of a unit in a group are told apart by number o = 0, 1, …; as they are equal, it does not matter which
    is which. Hash and v order all that a unit has, so that exactly `rows` are kept.
    """
    rows = f"({row_wise(release, {'x': to.compiled(of)}, to).sql(to.name)}) AS y"
    names = listed(release)
    some = "".join(f"{name}, " for name in names)
    if release.table.unit == ROW:
        return f"e AS (SELECT {some}v FROM (SELECT {some}{value} AS v FROM {rows}) AS x WHERE NOT v IS NULL)", "e"
    owner = ", ".join(["u", *names])
    number = "0" if once else f"ROW_NUMBER() OVER (PARTITION BY {owner}, v ORDER BY v)"
    numbered = f"SELECT {owner}, v, {number} AS o FROM (SELECT {owner}, {value} AS v FROM {rows}) AS x"
    again = to.materialized if names else ""  # only then it is read twice
    found = f"r AS {again}({numbered}{f' GROUP BY {owner}, v' if once else ''})"
    source = "r"
    if names:
        hashed = hash_of(["u", *names], salt, to)
        if to.windowed(release.keys):
            place = f"DENSE_RANK() OVER (PARTITION BY u ORDER BY {hashed}, {', '.join(names)}) AS d"
            found += f", g AS (SELECT * FROM (SELECT r.*, {place} FROM r) AS q WHERE d <= {release.groups})"
        else:
            found += (
                f", p AS (SELECT {owner}, {hashed} AS h FROM r GROUP BY {owner}), {cut(release.groups)}, "
                f"g AS (SELECT r.* FROM r LEFT JOIN c USING (u) WHERE c.cut IS NULL OR {hashed} <= c.cut)"
            )
        source = "g"
    hashed = f"SELECT {owner}, v, {hash_of(['u', *names, 'v', 'o'], salt, to)} AS h FROM {source} WHERE NOT v IS NULL"
    ordered = f"SELECT n.*, ROW_NUMBER() OVER (PARTITION BY {owner} ORDER BY h, v) AS i FROM ({hashed}) AS n"
    return f"{found}, e AS (SELECT {some}v FROM ({ordered}) AS m WHERE i <= {release.rows})", "e"


def hash_of(names: Sequence[str], salt: int, to: Dialect) -> str:
    return to.hashed([exp.column(name) for name in names], salt).sql(to.name)


def listed(release: Release) -> list[str]:
    return [f"k{i}" for i in range(len(release.keys))]


def given(of: Expression, to: Dialect) -> str:
    """x as it is, NaN as none."""
    return f"CASE WHEN {none('x', to)} THEN NULL ELSE x END" if of.domain.kind is Kind.NUMBER else "x"


def lattice(window: Window, to: Dialect) -> str:
    """x as the number of its step; clamped before it is cast, so that nothing can overflow."""
    low, high = window.of.domain.low, window.of.domain.high
    value = f"(LEAST(GREATEST(x, {low!r}), {high!r}) - ({window.origin!r}))"
    steps = to.floor(f"{to.scaled(value, 2.0**-window.exponent)} + 0.5")
    whole = f"CAST(LEAST(GREATEST({steps}, 0), {window.points - 1}) AS BIGINT)"
    return f"CASE WHEN {none('x', to)} THEN NULL ELSE {whole} END"
