"""Parameters of a question: ? and $1, or $name, stand for values, which become literals of their type.

Texts are compared with trees, not glued together: the question with its literals must be the tree of the question with
each parameter replaced by that literal. So a value is a value, whatever quotes it has.
"""

import datetime
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from sfumato.errors import QueryRefused

Parameters = Sequence[object] | Mapping[str, object]
MOST = 1000


def with_parameters(sql: str, parameters: Parameters | None) -> str:
    """The question with the values of its parameters as literals; QueryRefused if they do not fit."""
    if parameters is None:
        return sql
    if not isinstance(sql, str):
        raise QueryRefused("a question is a text.")
    if isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence | Mapping) or len(parameters) > MOST:
        raise QueryRefused(f"parameters are a list, or values by name, at most {MOST}.")
    try:
        tokens = sqlglot.tokenize(sql, read="duckdb")
    except SqlglotError:
        return sql  # which is refused in words where it is read
    parts: list[str] = []
    used: set[object] = set()
    end = anonymous = 0
    for place, token in enumerate(tokens):
        if token.token_type is TokenType.PLACEHOLDER:
            name, last = str(anonymous := anonymous + 1), token.end
        elif token.token_type is TokenType.PARAMETER and place + 1 < len(tokens):
            name, last = tokens[place + 1].text, tokens[place + 1].end
        else:
            continue
        key, value = value_of(name, parameters)
        used.add(key)
        parts += [sql[end : token.start], literal(value, name)]
        end = last + 1
    if len(used) < len(parameters):
        raise QueryRefused(
            "there are more parameters than the question uses.\n"
            f"  found:  {len(parameters)} given, {len(used)} in the text\n  do:     write ? or $1 for each"
        )
    bound = "".join([*parts, sql[end:]])
    require_same_tree(sql, bound, parameters)
    return bound


def value_of(name: str, parameters: Parameters) -> tuple[object, object]:
    """(key, value) of the parameter of this name or number."""
    if isinstance(parameters, Mapping):
        if name in parameters:
            return name, parameters[name]
        listed = ", ".join(map(str, list(parameters)[:10]))
        raise QueryRefused(f"there is no parameter {name[:40]!r}.\n  found:  {listed}")
    if not name.isdecimal() or not 1 <= int(name) <= len(parameters):
        raise QueryRefused(f"there is no parameter {name[:40]}.\n  found:  {len(parameters)} given")
    return int(name), parameters[int(name) - 1]


def literal(value: object, name: str) -> str:
    """The SQL of a value."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case Integral() | Decimal() | Real():
            number = int(value) if isinstance(value, Integral) else float(value)
            if math.isfinite(number):
                return f"(-{-number!r})" if number < 0 else repr(number)
        case str():
            return f"'{value.replace(chr(39), chr(39) * 2)}'"
        case datetime.datetime() if value.tzinfo is None:
            return f"TIMESTAMP '{value.isoformat(' ')}'"
        case datetime.date() if not isinstance(value, datetime.datetime):
            return f"DATE '{value.isoformat()}'"
    raise QueryRefused(
        f"parameter {name[:40]} is a {type(value).__name__}.\n"
        "  do:     give None, a boolean, a finite number, a text, a date, or a datetime without time zone"
    )


def require_same_tree(sql: str, bound: str, parameters: Parameters) -> None:
    """The literals are where the parameters are, and nothing else has changed."""
    try:
        one, other = (sqlglot.parse(text, read="duckdb") for text in (sql, bound))
        trees = [[tree for tree in read if tree is not None] for read in (one, other)]
        count = 0
        for tree in trees[0]:
            for node in list(tree.find_all(exp.Placeholder, exp.Parameter, bfs=False)):
                name = str(count := count + 1) if node.name in ("", "?") else node.name
                _, value = value_of(name, parameters)
                made = sqlglot.parse_one(f"SELECT {literal(value, name)}", read="duckdb").expressions[0]
                node.replace(made)
        same = trees[0] == trees[1]
    except SqlglotError:
        return  # which is refused in words where it is read
    if not same:
        raise QueryRefused("parameters stand for values, not for names or parts of a question.")
