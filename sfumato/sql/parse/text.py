"""SQL text to a question: limits checked before anything takes time, one SELECT, then an allow-list.

Texts come from strangers. Unsupported syntax is refused, never ignored.
"""

import re
from collections.abc import Sequence

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from sfumato.errors import QueryRefused, UnboundedColumn
from sfumato.sql.aggregate import Registry
from sfumato.sql.parse.from_where import MAIN
from sfumato.sql.parse.problems import with_places
from sfumato.sql.parse.released import split
from sfumato.sql.parse.select import parse_select
from sfumato.sql.parse.spellings import expand_spellings
from sfumato.sql.policy import Policy
from sfumato.sql.question import Question

LONGEST = 1 << 16  # bytes
MOST_TOKENS = 2000
DEEPEST = 24  # nested brackets
DEEPEST_TYPES = 3  # after the name of a type: the parser tries each of those twice
MOST_NODES = 1000  # of a text around private aggregations, which is read several times
DEEPEST_TREE = 60  # nested operators; a chain of AND or OR counts once

WORDS = re.compile(r"\w+|[^\w\s]")
OPEN = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
CLOSE = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
FIRST = {TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN, TokenType.FROM, TokenType.PIVOT}
TYPES = frozenset(DuckDB.Parser.TYPE_TOKENS)


def parse(text: str, policy: Policy, aggregates: Registry, schema: str = MAIN) -> Question:
    """The question that a text asks, about tables that the engine has in this schema."""
    try:
        return parse_query(aggregates.mark(expand_spellings(parse_statement(text))), policy, schema)
    except QueryRefused as problem:
        raise with_places(problem, text) from None
    except RecursionError:
        raise QueryRefused("this question is nested too deeply.") from None
    except ArithmeticError:
        raise QueryRefused("this question has numbers that are too large to compute with.") from None


def parse_query(root: exp.Expression, policy: Policy, schema: str) -> Question:
    """A SELECT whose post-processing is simple, or free SQL around private aggregations.

    The simple form is tried first: it needs no other process. If both are refused, the first refusal is told.
    """
    while isinstance(root, exp.Subquery) and not root.alias:
        root = root.this
    if not isinstance(root, exp.Query):
        raise QueryRefused("ask exactly one SELECT.\n  found:  a statement of another kind")
    if not isinstance(root, exp.Select):
        if sum(1 for _ in root.walk()) > MOST_NODES:
            raise too_long()
        found = split(root, policy, schema)
        if found is None:
            raise QueryRefused(
                "this question has no aggregate of private rows.\n  do:     ask COUNT(*), SUM(…) or AVG(…)"
            )
        return found
    try:
        return parse_select(root, policy, schema)
    except UnboundedColumn:
        raise
    except QueryRefused as refusal:
        if sum(1 for _ in root.walk()) > MOST_NODES:
            raise
        try:
            found = split(root, policy, schema)
        except UnboundedColumn:
            raise
        except QueryRefused:
            raise refusal from None
        if found is None:
            raise
        return found


def has_too_many_words(text: str) -> bool:
    """Does the text have too many words to be worth tokenising? Words in comments and quotes count as well."""
    return sum(1 for _ in WORDS.finditer(text)) > 4 * MOST_TOKENS


def parse_statement(text: str) -> exp.Expression:
    """The single statement of a text, within the limits."""
    if not isinstance(text, str):
        raise QueryRefused("a question is a text.")
    if len(text) > LONGEST or len(text.encode("utf-8", "replace")) > LONGEST:
        raise QueryRefused(f"this question is too long.\n  do:     ask in at most {LONGEST:,} bytes")
    if not text.strip():
        raise QueryRefused("this question is empty.\n  do:     ask one SELECT statement")
    if any((sign < " " and sign not in "\t\n\r") or "\ud800" <= sign <= "\udfff" for sign in text):
        raise QueryRefused("the question contains characters that cannot be printed.\n  do:     remove them")
    if has_too_many_words(text):
        raise too_long()
    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
        check_tokens(tokens)
        read = sqlglot.parse(select_from_pivot(text, tokens), read="duckdb")
        found = [one for one in read if one is not None and not isinstance(one, exp.Semicolon)]  # a comment after it
    except QueryRefused:  # which is a ValueError
        raise
    except SqlglotError as problem:
        place = getattr(problem, "errors", None) or [{}]
        line, column = place[0].get("line"), place[0].get("col")  # of the last character of a token
        first = max(1, (column or 1) - len(place[0].get("highlight") or "x") + 1)
        where = f" at line {line}, column {first}" if line else ""
        refusal = QueryRefused(f"this is not SQL{where}.\n  do:     ask one SELECT statement")
        if line:
            refusal.place = sum(len(one) + 1 for one in text.split("\n")[: line - 1]) + first - 1
        raise refusal from None
    except (RecursionError, ValueError, AttributeError, IndexError, KeyError, TypeError):
        raise QueryRefused("this is not SQL that can be read.\n  do:     ask one SELECT statement") from None
    if len(found) != 1:
        raise QueryRefused(f"ask exactly one SELECT.\n  found:  {len(found)} statements")
    root = found[0]
    if not isinstance(root, exp.Expression):
        raise QueryRefused("ask exactly one SELECT.")
    if tree_depth(root) > DEEPEST_TREE:
        raise QueryRefused(
            f"this question is nested too deeply.\n  found:  more than {DEEPEST_TREE} operators inside each other"
        )
    return root


def select_from_pivot(text: str, tokens: Sequence[Token]) -> str:
    """PIVOT t ON … USING … as SELECT * FROM (PIVOT t ON … USING …), of which the parser also reads ORDER BY."""
    depth, start, end, selects = 0, None, len(text), False
    for before, token in zip([None, *tokens], tokens, strict=False):
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        if depth:
            continue
        begins = before is None or (tokens[0].token_type is TokenType.WITH and not selects)
        selects = selects or token.token_type in (TokenType.SELECT, TokenType.FROM)
        if start is None and begins and token.token_type is TokenType.PIVOT:
            start = token.start
        elif start is not None and token.token_type in (TokenType.ORDER_BY, TokenType.LIMIT, TokenType.SEMICOLON):
            end = token.start
            break
    if start is None:
        return text
    return f"{text[:start]} SELECT * FROM ({text[start:end]}) {text[end:]}"


def check_tokens(tokens: list[Token]) -> None:
    """Check for one statement that begins like a question, few tokens, and few nested brackets."""
    if len(tokens) > MOST_TOKENS:
        raise too_long()
    ends = [place for place, token in enumerate(tokens) if token.token_type is TokenType.SEMICOLON]
    if ends and ends[0] + len(ends) < len(tokens):  # semicolons may end it
        raise QueryRefused("ask exactly one SELECT.\n  found:  more than one statement")
    if tokens and tokens[0].token_type not in FIRST:  # the parser would complain about commands in the log
        raise QueryRefused("ask exactly one SELECT.\n  found:  a statement of another kind")
    if any(token.token_type is TokenType.TILDE for token in tokens):  # the parser reads both meanings alike
        raise QueryRefused(
            "~ matches a whole text on DuckDB and a part of it on PostgreSQL.\n  do:     see docs/sql.md for patterns"
        )
    open_: list[bool] = []  # for each open bracket: does it follow the name of a type?
    before = None
    for token in tokens:
        if token.token_type in OPEN:
            open_.append(before in TYPES)
            if len(open_) > DEEPEST or sum(open_) > DEEPEST_TYPES:
                raise QueryRefused("this question is nested too deeply.\n  found:  many brackets inside each other")
        elif token.token_type in CLOSE and open_:
            open_.pop()
        before = token.token_type


def too_long() -> QueryRefused:
    return QueryRefused(f"this question is too long.\n  do:     ask in at most {MOST_TOKENS:,} words and signs")


def tree_depth(root: exp.Expression) -> int:
    """Depth of the tree; a chain of ANDs or ORs counts as one. Not recursive: the tree may be very deep."""
    deepest, waiting = 0, [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        for child in node.iter_expressions():
            chained = isinstance(node, exp.And | exp.Or) and type(child) is type(node)
            waiting.append((child, depth + (not chained and not isinstance(child, exp.Paren))))
    return deepest
