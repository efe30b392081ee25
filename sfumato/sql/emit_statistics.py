"""Statements for trimmed means, modes and triangles: counts of values, and the few values whose ranks matter."""

from fractions import Fraction

from sqlglot import exp

from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect, written_out
from sfumato.sql.domains import Kind
from sfumato.sql.emit import by, row_wise
from sfumato.sql.emit_values import close, frequencies, given, lattice, listed, values
from sfumato.sql.release import Release
from sfumato.sql.statistics import Mode, Triangles, Trimmed


def ends(release: Release, trimmed: Trimmed, reach: int, salt: int, dialect: str | Dialect) -> str:
    """keys, how many values there are, and in order: values, how many have each, how many have it or less, and the sum
    of these; for all values that are within `reach` ranks of either end of what is kept."""
    to, names = dialect_of(dialect).about(release), ", ".join(listed(release))
    some, split = (f"{names}, ", f"PARTITION BY {names}") if names else ("", "")
    upto = {"s": "c", "q": "t"}  # running totals
    running = ", ".join(f"{to.total(of)} OVER ({split} ORDER BY v) AS {name}" for name, of in upto.items())
    ranked = f"SELECT {some}v, c, {running}, {to.total('c')} OVER ({split}) AS n FROM f"
    part = trimmed.lattice.part
    near = " OR ".join(close(one, 0, reach * part.denominator) for one in (part, Fraction(1) - part))
    shown = [*listed(release), "CAST(MAX(n) AS BIGINT)", *to.lists("v", "c", "s", "q")]
    counted = frequencies(release, trimmed.lattice, salt, to, f"{to.total('v')} AS t")
    return f"WITH {counted} SELECT {', '.join(shown)} FROM ({ranked}) AS w WHERE {near} {by(names)}"


def votes(release: Release, mode: Mode, salt: int, dialect: str | Dialect) -> str:
    """keys, a value, and how many have it: of all public values; else of the two most common ones of each group."""
    to, names = dialect_of(dialect).about(release), ", ".join(listed(release))
    some, split = (f"{names}, ", f"PARTITION BY {names} ") if names else ("", "")
    kept, of_unit = values(release, told(mode, to), mode.of, salt, to, once=False)
    counted = f"SELECT {some}v, COUNT(*) AS c FROM {of_unit} GROUP BY {some}v"
    if mode.choices is not None:
        public = None if mode.lattice else mode.of.domain.keys
        only = f" WHERE v IN ({written_out(type(to), mode.of.domain.kind, public)})" if public is not None else ""
        return f"WITH {kept} SELECT {some}v, c FROM ({counted}) AS f{only}"
    first = f"ROW_NUMBER() OVER ({split}ORDER BY c DESC, v) AS i"
    return f"WITH {kept} SELECT {some}v, c FROM (SELECT f.*, {first} FROM ({counted}) AS f) AS w WHERE i <= 2"


def told(mode: Mode, to: Dialect) -> str:
    """A value as it is counted and shown."""
    if mode.lattice is not None:
        return lattice(mode.lattice, to)
    return to.date_text(exp.column("x")).sql(to.name) if mode.of.domain.kind is Kind.DATE else given(mode.of, to)


def triangles(release: Release, graph: Triangles, dialect: str | Dialect) -> str:
    """How many triangles there are, and the most nodes that two nodes are both joined to.

    Each pair of different nodes counts once, however often and in which order it is listed. Two nodes with a common
    neighbour are an open triangle; it is closed if they are an edge, and each triangle is met three times.
    """
    to = dialect_of(dialect).about(release)
    rows = row_wise(release, {"a": to.compiled(graph.ends[0]), "b": to.compiled(graph.ends[1])}, to).sql(to.name)
    pairs = f"SELECT LEAST(a, b) AS a, GREATEST(a, b) AS b FROM ({rows}) AS r WHERE a <> b GROUP BY 1, 2"
    return (
        f"WITH e AS {to.materialized}({pairs}),"
        " d AS (SELECT a, b FROM e UNION ALL SELECT b, a FROM e),"
        " w AS (SELECT x.b AS a, y.b AS b, COUNT(*) AS c FROM d AS x JOIN d AS y ON x.a = y.a AND x.b < y.b"
        " GROUP BY 1, 2),"
        " t AS (SELECT SUM(c) AS c FROM w JOIN e ON w.a = e.a AND w.b = e.b)"
        f" SELECT CAST(COALESCE({to.divided('(SELECT c FROM t)', '3')}, 0) AS BIGINT),"
        " CAST(COALESCE((SELECT MAX(c) FROM w), 0) AS BIGINT)"
    )
