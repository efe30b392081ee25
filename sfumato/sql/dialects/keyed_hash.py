"""The keyed hash by which is decided what is kept of a unit that has too much: one number on every engine.

Whole numbers are hashed by arithmetic, everything else by MD5 of a canonical text. Both need what all engines have with
one meaning: products below 2⁶³, remainders that are truncated towards 0, and MD5 of UTF-8. Nothing rests on the hash
being hard to invert: what is kept is a function of the unit's own rows and the salt, whatever the function.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from sqlglot import exp

from sfumato.sql.domains import Kind
from sfumato.sql.functions.function import Sql

BYTES = 6  # of a digest that are used: 2⁴⁸ values, so that two keys of one unit hardly ever tie
PRIMES = (2147483647, 2147483629, 2147483587, 2147483579, 2147483563)
FACTOR = 2**28  # above all factors: FACTOR · 2³¹ · MOST_WHOLE < 2⁶³
MOST_WHOLE = 12
NO_NUMBER = -(2**61) - 1  # stands for NULL among whole numbers
BETWEEN, NO_TEXT = "|", "||"  # stand between texts, and for NULL
FRACTION, LARGE = 2.0**60, 2.0**62


class Speaker(Protocol):
    """The part of a dialect that writing a hash needs."""

    @property
    def name(self) -> str: ...

    @property
    def text_type(self) -> str: ...

    def text(self, value: str) -> Sql: ...

    def joined(self, texts: Sequence[str], between: str) -> str: ...

    def digest(self, text: str) -> str: ...

    def date_text(self, moment: Sql) -> Sql: ...

    def double(self, integer: str) -> str: ...

    def floor(self, value: str) -> str: ...


class Form(Enum):
    """How a value is hashed."""

    WHOLE = auto()  # of an integer type of at most 64 bits
    NUMBER = auto()  # a double, not NaN
    TEXT = auto()
    TRUTH = auto()
    DATE = auto()  # a timestamp without time zone


FORMS = {Kind.NUMBER: Form.NUMBER, Kind.TEXT: Form.TEXT, Kind.TRUTH: Form.TRUTH, Kind.DATE: Form.DATE}


@dataclass(frozen=True)
class Hashed:
    """A value that is hashed; `known`: it is never NULL."""

    sql: str
    form: Form
    known: bool = False


def keyed_hash(listed: Sequence[Hashed], salt: int, to: Speaker) -> str:
    """A whole number from 0 to 2⁴⁸ − 1, the same on all engines."""
    if listed and len(listed) <= MOST_WHOLE and all(one.form is Form.WHOLE for one in listed):
        return hash_of_integers(listed, salt)
    texts = [canonical_text(one, to) for one in listed]
    return to.digest(to.joined([*texts, to.text(str(salt)).sql(to.name)], BETWEEN))


def hash_of_integers(listed: Sequence[Hashed], salt: int) -> str:
    """(L₁·L₂ mod p₄)·L₃ mod p₅ of three sums Lᵢ = |cᵢ + Σ fᵢⱼ·(xⱼ mod pᵢ)| mod pᵢ, whose factors hang on the salt.

    Each x is read three times and nothing else is repeated. Of three sums every key, and every pair of keys, is kept
    equally often, also if units and keys are numbered (tests/sql/dialects/test_keyed_hash.py); of two they are not.
    """
    sums = []
    for i, prime in enumerate(PRIMES[:3]):
        parts = [str(constant(salt, f"{i} start", prime))]
        for j, one in enumerate(listed):
            value = one.sql if one.known else f"COALESCE({one.sql}, {NO_NUMBER})"
            parts.append(f"{constant(salt, f'{i} {j}', FACTOR)} * (CAST({value} AS BIGINT) % {prime})")
        sums.append(f"ABS({' + '.join(parts)}) % {prime}")
    return f"({sums[0]}) * ({sums[1]}) % {PRIMES[3]} * ({sums[2]}) % {PRIMES[4]}"


def constant(salt: int, name: str, below: int) -> int:
    """A constant of the hash, at least 1, derived from the salt."""
    digest = hashlib.sha256(f"{salt} {name}".encode()).digest()
    return 1 + int.from_bytes(digest[:8], "big") % (below - 1)


def canonical_text(one: Hashed, to: Speaker) -> str:
    """One text for equal values, on all engines; NULL too has one, as an engine's CONCAT may pass over it."""
    match one.form:
        case Form.WHOLE:
            text = whole_text(one.sql, to)
        case Form.NUMBER:
            text = number_text(one.sql, to)
        case Form.TRUTH:
            truth = f"CAST({one.sql} AS BOOLEAN)"  # of a SELECT, PostgreSQL takes NULL for a text
            text = f"CASE WHEN {truth} THEN 't' WHEN NOT {truth} THEN 'f' END"
        case Form.DATE:
            text = to.date_text(exp.Var(this=one.sql)).sql(to.name)
        case Form.TEXT:
            text = one.sql
    return text if one.known else f"COALESCE({text}, {to.text(NO_TEXT).sql(to.name)})"


def whole_text(whole: str, to: Speaker) -> str:
    return f"CAST(CAST({whole} AS BIGINT) AS {to.text_type})"


def number_text(value: str, to: Speaker) -> str:
    """A double by its whole part and what is left in 2⁻⁶⁰; a whole number as integers are written. Engines write
    fractions in different ways, and their arithmetic is the same. Numbers that are not told apart here are large
    (2⁶²) or very close to each other: they tie, and ties are broken by the values themselves."""
    large, whole = to.double(repr(LARGE)), to.floor(value)
    part = whole_text(to.floor(f"({value} - {whole}) * {to.double(repr(FRACTION))}"), to)
    both = to.joined([whole_text(whole, to), part], ".")
    small = f"CASE WHEN {value} = {whole} THEN {whole_text(whole, to)} ELSE {both} END"
    sign = f"CASE WHEN {value} < 0 THEN '-' ELSE '+' END"
    return f"CASE WHEN ABS({value}) < {large} THEN {small} WHEN NOT {value} IS NULL THEN {sign} END"
