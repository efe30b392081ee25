"""Functions of texts. Lengths are capped: an out-of-memory failure or a slow row would reveal that such a value exists.

The length of a text is bounded by its domain, and the dialect truncates what could exceed LONGEST_TEXT.
"""

import math
import re
from collections.abc import Callable
from functools import cache

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import LONGEST_TEXT, Domain, Kind, number, text
from sfumato.sql.functions.costs import Argument, per_character, search
from sfumato.sql.functions.function import BOTH, Function, Sql, constant_text, emit_call, emit_chain, of_type
from sfumato.sql.functions.result_domains import first_part, joined_text, same_text, truth_domain

WORDS, NUMBER = Kind.TEXT, Kind.NUMBER
LAST = 0x1E943  # the last character that has a case
SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"


def emit_length(a: Sql) -> Sql:
    return exp.Cast(this=exp.Length(this=a), to=of_type("DOUBLE"))


def emit_substring(a: Sql, start: Sql, length: Sql) -> Sql:
    return exp.Anonymous(
        this="substring",
        expressions=[a, exp.Cast(this=start, to=of_type("BIGINT")), exp.Cast(this=length, to=of_type("BIGINT"))],
    )


def substring(text: str, start: float, length: float) -> str:
    return text[int(start) - 1 : int(start) - 1 + int(length)]


def emit_right(a: Sql, length: Sql) -> Sql:
    return exp.Anonymous(this="right", expressions=[a, exp.Cast(this=length, to=of_type("BIGINT"))])


def emit_split_part(a: Sql, between: Sql, place: Sql) -> Sql:
    return exp.Anonymous(this="split_part", expressions=[a, between, exp.Cast(this=place, to=of_type("BIGINT"))])


def split_part(text: str, between: str, place: float) -> str:
    parts = text.split(between)
    return parts[int(place) - 1] if place <= len(parts) else ""


def lower_text(text: str) -> str:
    """Letter by letter, as in every engine."""
    return "".join(map(lower, text))


def upper_text(text: str) -> str:
    return "".join(map(upper, text))


def emit_position(a: Sql, b: Sql) -> Sql:
    return exp.Cast(this=exp.Anonymous(this="strpos", expressions=[a, b]), to=of_type("DOUBLE"))


# ---- upper and lower case, letter by letter: engines that fold more (ß to SS, by locale) would not mean the same ----


def upper(letter: str) -> str:
    """The one letter that Unicode's simple mapping gives."""
    found = ("ẞ" if letter == "ß" else "", letter.upper(), letter.title(), letter)
    return next(one for one in found if len(one) == 1)


def lower(letter: str) -> str:
    return "i" if letter == "İ" else letter.lower()


@cache
def case_pairs(name: str) -> tuple[str, str]:
    """The letters beyond ASCII that change, and what they become; for TRANSLATE."""
    change, python = (upper, str.upper) if name == "upper" else (lower, str.lower)
    letters = [chr(n) for n in range(128, LAST + 1) if python(chr(n)) != chr(n)]
    pairs = [(letter, change(letter)) for letter in letters if change(letter) != letter]
    return "".join(a for a, _ in pairs), "".join(b for _, b in pairs)


# ---- padding and JSON ------------------------------------------------------------------------------------------------


def padded_text(a: Domain, length: Domain, fill: Domain) -> Domain:
    return text(min(length.high, LONGEST_TEXT))


def emit_pad(function: str) -> Callable[[Sql, Sql, Sql], Sql]:
    def emit(a: Sql, length: Sql, fill: Sql) -> Sql:
        return exp.Anonymous(this=function, expressions=[a, exp.Cast(this=length, to=of_type("INT")), fill])

    return emit


def padded(text: str, length: int, fill: str) -> str:
    """What is added to a text."""
    missing = max(0, length - len(text))
    return (fill * missing)[:missing]


STEP = re.compile(r'(?:\."[^"*\\]{1,100}"|\[\d{1,6}\])*')


def check_path(a: Argument, path: Argument) -> None:
    """Refuses a path that is not a constant of names and places: others could raise in the engine."""
    known = constant_text(path)
    if known is None or len(known) > 200 or not known.startswith("$") or not STEP.fullmatch(known[1:]):
        raise QueryRefused("a path in JSON is a text in quotes, such as '$.name.first' or '$.items[0]'.")


def emit_json_text(a: Sql, path: Sql) -> Sql:
    """The text of a value; NULL where there is none, or no JSON."""
    document = exp.TryCast(this=a, to=exp.DataType(this=exp.DataType.Type.JSON))
    return exp.Anonymous(this="json_extract_string", expressions=[document, path])


FUNCTIONS: dict[str, Function] = {
    "lower": Function((WORDS,), same_text, emit_call("LOWER"), lower_text, (exp.Lower,), cost=per_character(25)),
    "upper": Function((WORDS,), same_text, emit_call("UPPER"), upper_text, (exp.Upper,), cost=per_character(25)),
    "trim": Function((WORDS,), same_text, emit_call("TRIM"), lambda a: a.strip(SPACES), cost=per_character(15)),
    "ltrim": Function((WORDS,), same_text, emit_call("LTRIM"), lambda a: a.lstrip(SPACES), cost=per_character(15)),
    "rtrim": Function((WORDS,), same_text, emit_call("RTRIM"), lambda a: a.rstrip(SPACES), cost=per_character(15)),
    "substr": Function(
        (WORDS, NUMBER, NUMBER),
        first_part,
        emit_substring,
        substring,
        cost=per_character(4),
        constants=((LONGEST_TEXT // 2, LONGEST_TEXT), (1, LONGEST_TEXT)),
    ),
    "right": Function(
        (WORDS, NUMBER),
        first_part,
        emit_right,
        lambda a, n: a[-int(n) :] if n else "",
        cost=per_character(4),
        constants=((LONGEST_TEXT // 2,), (LONGEST_TEXT,)),
    ),
    "split_part": Function(
        (WORDS, WORDS, NUMBER),
        same_text,
        emit_split_part,
        split_part,
        cost=search(40),
        constants=(("a", 1000), ("a" * 100 + "b", 2), ("😀", 1000)),
    ),
    "position": Function(
        (WORDS, WORDS),
        lambda a, b: number(0, math.inf, 1.0),
        emit_position,
        lambda a, b: float(a.find(b) + 1),
        cost=search(20),
    ),
    "replace": Function(
        (WORDS, WORDS, WORDS),
        same_text,
        emit_call("REPLACE"),
        str.replace,
        cost=search(40),
        same_in=BOTH,
        constants=(
            ("a", "b"),
            ("a" * 100 + "b", ""),
            ("😀", "b"),
            ("b" + "a" * (LONGEST_TEXT // 2), ""),
            ("b" + "😀" * (LONGEST_TEXT // 2), ""),
        ),
    ),
    "||": Function(
        (WORDS,),
        joined_text,
        emit_chain(exp.DPipe),
        lambda *parts: "".join(parts),
        (exp.DPipe,),
        more=True,
        cost=per_character(3),
        same_in=BOTH,
    ),
    "starts_with": Function(
        (WORDS, WORDS),
        truth_domain,
        emit_call("STARTS_WITH"),
        str.startswith,
        (exp.StartsWith,),
        cost=per_character(2),
        same_in=("postgres",),
        sql_in={"spark": lambda a, b: f"STARTSWITH({a}, {b})"},
    ),
    "ends_with": Function(
        (WORDS, WORDS),
        truth_domain,
        emit_call("ENDS_WITH"),
        str.endswith,
        (exp.EndsWith,),
        cost=per_character(2),
        sql_in={"spark": lambda a, b: f"ENDSWITH({a}, {b})"},
    ),
    "contains": Function(
        (WORDS, WORDS),
        truth_domain,
        emit_call("CONTAINS"),
        str.__contains__,
        (exp.Contains,),
        cost=search(20),
        same_in=("spark",),
        sql_in={"postgres": lambda a, b: f"(STRPOS({a}, {b}) > 0)"},
    ),
    "lpad": Function(
        (WORDS, NUMBER, WORDS),
        padded_text,
        emit_pad("LPAD"),
        lambda a, n, fill: padded(a, int(n), fill) + a[: int(n)],
        cost=per_character(10),
        constants=((3, "0"), (LONGEST_TEXT, "😀"), (0, "x")),
    ),
    "rpad": Function(
        (WORDS, NUMBER, WORDS),
        padded_text,
        emit_pad("RPAD"),
        lambda a, n, fill: a[: int(n)] + padded(a, int(n), fill),
        cost=per_character(10),
        constants=((3, " "), (LONGEST_TEXT, "😀b")),
    ),
    "json_text": Function(
        (WORDS, WORDS),
        lambda a, path: same_text(a),
        emit_json_text,
        cost=per_character(50),
        check=check_path,
        constants=(('$."a"',), ('$."a"."b"[0]',)),
    ),
    "length": Function(
        (WORDS,),
        lambda a: number(0, math.inf, 1.0),
        emit_length,
        len,
        (exp.Length,),
        cost=per_character(2),
        same_in=BOTH,
    ),
}
