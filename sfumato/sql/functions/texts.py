"""Texts. None may grow until an engine fails: that would tell that such a text is there."""

import math

from sqlglot import exp

from sfumato.sql.domains import Kind, number
from sfumato.sql.functions.casts import as_text
from sfumato.sql.functions.function import Function, Sql, folded, named, of_type
from sfumato.sql.functions.ranges import text_of, truth

LONG = 10_000
WORDS, NUMBER = Kind.TEXT, Kind.NUMBER


def cut(a: Sql) -> Sql:
    """The first characters of a text, so that what is joined cannot outgrow what an engine holds."""
    return exp.Anonymous(this="left", expressions=[as_text(a), exp.Literal.number(str(LONG))])


def size_of(a: Sql) -> Sql:
    return exp.Cast(this=exp.Length(this=a), to=of_type("DOUBLE"))


def joined(*parts: Sql) -> Sql:
    return folded(exp.DPipe)(*map(cut, parts))


def slice_of(a: Sql, start: Sql, length: Sql) -> Sql:
    return exp.Anonymous(
        this="substring",
        expressions=[a, exp.Cast(this=start, to=of_type("BIGINT")), exp.Cast(this=length, to=of_type("BIGINT"))],
    )


def sliced(text: str, start: float, length: float) -> str:
    return text[int(start) - 1 : int(start) - 1 + int(length)]


def last(a: Sql, length: Sql) -> Sql:
    return exp.Anonymous(this="right", expressions=[a, exp.Cast(this=length, to=of_type("BIGINT"))])


def piece(a: Sql, between: Sql, place: Sql) -> Sql:
    return exp.Anonymous(this="split_part", expressions=[a, between, exp.Cast(this=place, to=of_type("BIGINT"))])


def piece_of(text: str, between: str, place: float) -> str:
    parts = text.split(between)
    return parts[int(place) - 1] if place <= len(parts) else ""


def place_in(a: Sql, b: Sql) -> Sql:
    return exp.Cast(this=exp.Anonymous(this="strpos", expressions=[a, b]), to=of_type("DOUBLE"))


FUNCTIONS: dict[str, Function] = {
    "lower": Function((WORDS,), text_of, named("LOWER"), str.lower, (exp.Lower,)),
    "upper": Function((WORDS,), text_of, named("UPPER"), str.upper, (exp.Upper,)),
    "trim": Function((WORDS,), text_of, named("TRIM"), lambda a: a.strip(" ")),
    "ltrim": Function((WORDS,), text_of, named("LTRIM"), lambda a: a.lstrip(" ")),
    "rtrim": Function((WORDS,), text_of, named("RTRIM"), lambda a: a.rstrip(" ")),
    "substr": Function((WORDS, NUMBER, NUMBER), text_of, slice_of, sliced),
    "right": Function((WORDS, NUMBER), text_of, last, lambda a, n: a[-int(n) :] if n else ""),
    "split_part": Function((WORDS, WORDS, NUMBER), text_of, piece, piece_of),
    "position": Function((WORDS, WORDS), lambda a, b: number(0, math.inf, 1.0), place_in,
                         lambda a, b: float(a.find(b) + 1)),
    "replace": Function((WORDS, WORDS, WORDS), text_of, named("REPLACE"), str.replace),
    "||": Function((WORDS,), text_of, joined, lambda *parts: "".join(part[:LONG] for part in parts), (exp.DPipe,),
                   more=True),
    "starts_with": Function((WORDS, WORDS), truth, named("STARTS_WITH"), str.startswith, (exp.StartsWith,)),
    "ends_with": Function((WORDS, WORDS), truth, named("ENDS_WITH"), str.endswith, (exp.EndsWith,)),
    "contains": Function((WORDS, WORDS), truth, named("CONTAINS"), str.__contains__, (exp.Contains,)),
    "length": Function((WORDS,), lambda a: number(0, math.inf, 1.0), size_of, len, (exp.Length,)),
}  # fmt: skip
