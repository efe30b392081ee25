"""What clients of PostgreSQL spell in their own way, respelled by tokens: quoted texts stay as they are.

The catalogues say that tables are in the schema `public`, so tools write "public"."visits", or with the data set in
front of it. And they write moments as TO_TIMESTAMP('2024-01-01 00:00:00', 'YYYY-MM-DD HH24:MI:SS').
"""

import re
from collections.abc import Collection, Iterator
from itertools import islice

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

SCHEMA = "public"
EXPLAIN = re.compile(r"^\s*EXPLAIN\b", re.I)  # after which a tokenizer reads a single text
FORMATS = ("YYYY-MM-DD HH24:MI:SS.US", "YYYY-MM-DD HH24:MI:SS", "YYYY-MM-DD")


def respell(text: str, data: str, tables: Collection[str]) -> str:
    """The same question without the names of the schema and of the data set, and with literals for moments."""
    try:
        tokens = sqlglot.tokenize(EXPLAIN.sub(lambda found: " " * len(found[0]), text), read="duckdb")
    except (SqlglotError, ValueError):
        return text  # the parser will say what is wrong
    known = {name.lower() for name in tables}
    found = [*qualifiers(tokens, data, known), *moments(text, tokens)]
    for first, last, instead in sorted(found, reverse=True):
        text = text[:first] + instead.ljust(last + 1 - first) + text[last + 1 :]  # errors keep their position
    return text


def qualifiers(tokens: list[Token], data: str, tables: Collection[str]) -> Iterator[tuple[int, int, str]]:
    """Where `public.`, or `clinic.public.`, stands before the name of a table."""
    for place, token in enumerate(tokens):
        following = [one.text.lower() for one in islice(tokens, place, place + 5)]
        is_name = token.token_type in (TokenType.VAR, TokenType.IDENTIFIER) or token.text.lower() == SCHEMA
        if not is_name or (place and tokens[place - 1].token_type is TokenType.DOT):
            continue
        if following[:2] == [SCHEMA, "."] and len(following) > 2 and following[2] in tables:
            yield token.start, tokens[place + 2].start - 1, ""
        elif following[:4] == [data, ".", SCHEMA, "."] and len(following) > 4 and following[4] in tables:
            yield token.start, tokens[place + 4].start - 1, ""


def moments(text: str, tokens: list[Token]) -> Iterator[tuple[int, int, str]]:
    """Where TO_TIMESTAMP has two literals, of which the second is a usual format."""
    for place, token in enumerate(tokens):
        call = tokens[place : place + 6]
        kinds = [one.token_type for one in call[1:]]
        if token.text.upper() in ("TO_TIMESTAMP", "TO_DATE") and kinds == [
            TokenType.L_PAREN, TokenType.STRING, TokenType.COMMA, TokenType.STRING, TokenType.R_PAREN
        ]:  # fmt: skip
            literal = text[call[2].start : call[2].end + 1]
            if call[4].text in FORMATS and literal.startswith("'"):
                kind = "DATE" if call[4].text == FORMATS[-1] else "TIMESTAMP"
                yield token.start, call[5].end, f"{kind} {literal}"
