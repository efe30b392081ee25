"""What clients send, sorted: questions, questions about catalogues, settings, transactions, copies.

A text is split into statements and parameters are filled in by its tokens, so that quotes and comments stay what they
are, and a parameter is always one literal.
"""

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from sfumato.curator.answer import Cell
from sfumato.errors import QueryRefused
from sfumato.server.postgres import types
from sfumato.server.postgres.catalogue import is_about_catalogues
from sfumato.server.postgres.types import TYPES, Type
from sfumato.sql.parse.text import LONGEST, MOST_TOKENS, has_too_many_words, too_long

MOST_PARAMETERS = 1000
NAME = r'("(?:[^"]|"")+"|[^\s;"]+)'
SET = re.compile(r"SET\s+(?:SESSION\s+|LOCAL\s+)?(TIME\s+ZONE|[\w.]+)\s*(?:=|\s+TO\s+|\s+)\s*(.+)", re.I | re.S)
RESERVED = re.compile(
    r"\bAS\s+(select|update|insert|delete|table|user)\b(?=\s*(?:,|FROM\b))", re.I
)  # as names of columns
COPY = re.compile(r"COPY\s*\((.*)\)\s*TO\s+STDOUT\s*(.*)", re.I | re.S)
SAVEPOINT = re.compile(
    rf"(?:SAVEPOINT|RELEASE(?:\s+SAVEPOINT)?|(?:ROLLBACK|ABORT)(?:\s+WORK|\s+TRANSACTION)?\s+TO(?:\s+SAVEPOINT)?)\s+{NAME}",
    re.I,
)
DECLARE = re.compile(
    rf"DECLARE\s+{NAME}\s+(?:(?:BINARY|(?:A|IN)SENSITIVE|(?:NO\s+)?SCROLL)\s+)*CURSOR(?:\s+(WITH|WITHOUT)\s+HOLD)?\s+FOR\s+(.*)",
    re.I | re.S,
)
FETCH = re.compile(rf"FETCH\s+(?:FORWARD\b\s*)?(?:(NEXT|ALL|\d{{1,9}})\b\s*)?(?:(?:FROM|IN)\s+)?{NAME}", re.I)
PREPARE = re.compile(r'PREPARE\s+("(?:[^"]|"")+"|\w+)\s*(?:\([^()]*\)\s*|\s)AS\s+(.*)', re.I | re.S)
EXECUTE = re.compile(r'EXECUTE\s+("(?:[^"]|"")+"|\w+)\s*(?:\((.*)\))?', re.I | re.S)
FORGET = re.compile(rf"(?:CLOSE|DEALLOCATE(?:\s+PREPARE)?)\s+{NAME}", re.I)
FINISHED = {  # tags of commands, and what becomes of a transaction, of its savepoints, or of what a session keeps
    "BEGIN": "begin", "START": "begin", "COMMIT": "commit", "END": "commit", "ROLLBACK": "rollback",
    "ABORT": "rollback", "SAVEPOINT": "save", "RELEASE": "release", "DEALLOCATE": "deallocate", "CLOSE": "close",
    "LISTEN": "", "UNLISTEN": "",
}  # fmt: skip
STATEMENTS = {  # other words that begin a statement: refused by the curator, in its own words
    "SELECT", "WITH", "VALUES", "TABLE", "FROM", "EXPLAIN", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER",
    "TRUNCATE", "GRANT", "REVOKE", "CALL", "DO", "MERGE", "VACUUM", "ANALYZE", "LOCK", "COMMENT", "EXECUTE", "PREPARE",
    "DECLARE", "FETCH", "MOVE", "REFRESH", "REINDEX", "CLUSTER", "CHECKPOINT", "LOAD", "NOTIFY", "IMPORT", "SECURITY",
    "",
}  # fmt: skip
TAGS = {"START": "BEGIN", "END": "COMMIT", "ABORT": "ROLLBACK"}
LEFT_OPEN = exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.Between | exp.In | exp.Like | exp.ILike


class Kind(Enum):
    """What is to be done with a statement."""

    EMPTY = "empty"
    COMMAND = "command"  # nothing but a tag, and perhaps the end of a transaction
    SET = "set"
    RESET = "reset"  # back to what the connection began with
    SHOW = "show"
    COPY = "copy"
    DECLARE = "declare"  # a cursor
    FETCH = "fetch"
    PREPARE = "prepare"  # a statement, by SQL and not by a message
    EXECUTE = "execute"
    CATALOGUE = "catalogue"
    QUESTION = "question"


@dataclass(frozen=True)
class Statement:
    """One statement. `words`: its tag and effect, its setting, or its options."""

    kind: Kind
    text: str = ""
    words: tuple[str, ...] = ()
    tree: exp.Expr | None = field(default=None, repr=False)


def require_short(text: str) -> None:
    """Raises before anything costly is done with a text that no question or tool needs to be so long."""
    if len(text) > LONGEST or has_too_many_words(text):
        raise too_long()


def split(text: str) -> list[str]:
    """The statements of a text, without their semicolons."""
    require_short(text)
    try:
        tokens = sqlglot.tokenize(text, read="postgres")
    except (SqlglotError, ValueError):
        return [text]  # the parser will say what is wrong
    parts, start = [], 0
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            parts.append(text[start : token.start])
            start = token.end + 1
    return [part for part in [*parts, text[start:]] if part.strip()]


def sort(text: str) -> Statement:
    """What one statement asks for."""
    require_short(text)
    plain = without_comments(text)
    first = re.match(r"\w*", plain)
    word = first.group().upper() if first else ""
    if not plain:
        return Statement(Kind.EMPTY)
    if word in FINISHED:
        return command(word, plain)
    if (found := DECLARE.fullmatch(plain)) is not None:
        hold = (found.group(2) or "").upper() == "WITH"
        return Statement(Kind.DECLARE, found.group(3), (unquoted(found.group(1)), "hold" if hold else ""))
    if (found := FETCH.fullmatch(plain)) is not None:
        return Statement(Kind.FETCH, plain, (unquoted(found.group(2)), (found.group(1) or "1").upper()))
    if (found := PREPARE.fullmatch(plain)) is not None:
        return Statement(Kind.PREPARE, found.group(2), (unquoted(found.group(1)),))
    if (found := EXECUTE.fullmatch(plain)) is not None:
        return Statement(Kind.EXECUTE, found.group(2) or "", (unquoted(found.group(1)),))
    if word in ("RESET", "DISCARD"):
        name = plain[len(word) :].strip().lower()
        return Statement(Kind.RESET, plain, (word, "all" if word == "DISCARD" else name))
    if word == "SET":
        found = SET.fullmatch(plain)
        if found is None:
            return Statement(Kind.COMMAND, plain, ("SET", "", ""))  # SET TRANSACTION …, SET SESSION CHARACTERISTICS …
        name, value = found.groups()
        return Statement(Kind.SET, plain, (re.sub(r"\s+", "", name.lower()), value.strip().strip("'\"")))
    if word == "SHOW":
        return Statement(Kind.SHOW, plain, (re.sub(r"\s+", "", plain[4:].lower()),))
    if word == "EXPLAIN" and re.match(r"EXPLAIN\s+PRIVACY\b", plain, re.I) is None:
        raise QueryRefused(
            "the plan of an engine could depend on private rows.\n"
            "  do:     EXPLAIN PRIVACY SELECT … shows price, error and odds, for nothing"
        )
    if word == "COPY":
        copied = COPY.fullmatch(plain)
        if copied is None:
            raise QueryRefused("COPY works one way here.\n  do:     COPY (SELECT …) TO STDOUT")
        return Statement(Kind.COPY, copied.group(1), (copied.group(2),))
    if word in ("SELECT", "WITH", "VALUES", "TABLE", "") and (tree := catalogue_tree(plain)) is not None:
        return Statement(Kind.CATALOGUE, plain, (), tree)
    if word not in STATEMENTS:
        raise QueryRefused("this is not SQL.\n  do:     ask one SELECT statement")
    return Statement(Kind.QUESTION, text)


def command(word: str, plain: str) -> Statement:
    """A command with its tag, its effect, and the name of what it is about."""
    effect, tag = FINISHED[word], TAGS.get(word, word)
    pattern = SAVEPOINT if effect in ("save", "release", "rollback") else FORGET
    about = pattern.fullmatch(plain)
    if effect == "rollback" and about is not None:
        return Statement(Kind.COMMAND, plain, (tag, "back", unquoted(about.group(1))))
    return Statement(Kind.COMMAND, plain, (tag, effect, unquoted(about.group(1)) if about else ""))


def unquoted(name: str) -> str:
    """A name as PostgreSQL knows it: quoted to the letter, else in small letters."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def catalogue_tree(text: str) -> exp.Expr | None:
    """The parsed text if it is about catalogues or about nothing; None if it is a question, not SQL, or too long."""
    tree = parsed(RESERVED.sub(r'AS "\1"', text))
    return tree if tree is not None and is_about_catalogues(tree) else None


def parsed(text: str) -> exp.Expr | None:
    """The tree of one short statement; None if there is none, and the curator will say why."""
    try:
        if len(sqlglot.tokenize(text, read="postgres")) > MOST_TOKENS:
            return None
        return sqlglot.parse_one(text, read="postgres")
    except (SqlglotError, ValueError, RecursionError, AttributeError):
        return None


def aliases(text: str) -> frozenset[str]:
    """The names that a SELECT gives to its columns."""
    tree = parsed(text)
    listed = tree.selects if isinstance(tree, exp.Query) else []
    return frozenset(one.alias for one in listed if isinstance(one, exp.Alias))


def without_comments(text: str) -> str:
    """Without comments and spaces at the front, and spaces and semicolons at the end."""
    found = re.match(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", text, re.S)
    return text[found.end() if found else 0 :].rstrip("; \t\r\n")


# ---- parameters -----------------------------------------------------------------------------------------------------


def places(text: str) -> list[tuple[int, int, int]]:
    """Where parameters stand: number, first and last character. By the tokens that questions are parsed from."""
    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
    except (SqlglotError, ValueError):
        return []
    found = []
    for sign, number in pairwise(tokens):
        if sign.token_type is TokenType.PARAMETER and number.token_type is TokenType.NUMBER and number.text.isdigit():
            found.append((int(number.text), sign.start, number.end))
    if any(not 1 <= number <= MOST_PARAMETERS for number, _, _ in found):
        raise QueryRefused(f"parameters are numbered from $1 to ${MOST_PARAMETERS}.")
    return found


def fill(text: str, values: Sequence[Cell]) -> str:
    """The text with a literal in place of each parameter."""
    for number, first, last in reversed(places(text)):
        if number > len(values):
            raise QueryRefused(f"there is no value for ${number}.")
        text = text[:first] + literal(values[number - 1]) + text[last + 1 :]
    return text


def literal(value: Cell) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return f"({value!r})"
    quoted = str(value).replace("'", "''")
    return f"DATE '{quoted}'" if isinstance(value, datetime.date) else f"'{quoted}'"


def parameter_types(text: str, stated: Sequence[int], columns: Mapping[str, Type]) -> list[Type]:
    """The type of each parameter: as the client states it, or that of the column it is compared with."""
    require_short(text)
    count = max([len(stated), *(number for number, _, _ in places(text))])
    known = {place + 1: TYPES[oid] for place, oid in enumerate(stated) if oid in TYPES}
    guessed = guessed_types(text, columns) if len(known) < count else {}
    return [known.get(number) or guessed.get(number) or types.TEXT for number in range(1, count + 1)]


def guessed_types(text: str, columns: Mapping[str, Type]) -> dict[int, Type]:
    """Types by the columns that parameters are compared with, and whole numbers where a number of rows is meant."""
    tree = parsed(text)
    if tree is None:
        return {}
    found: dict[int, Type] = {}
    for node in tree.find_all(exp.Parameter):
        parent = node.parent
        if not node.name.isdigit():
            continue
        if isinstance(parent, exp.Cast):
            named = parent.to.sql("postgres").lower()
            found[int(node.name)] = next((one for one in TYPES.values() if one.name == named), types.TEXT)
        elif isinstance(parent, exp.Limit | exp.Offset):
            found[int(node.name)] = types.INT8
        elif isinstance(parent, LEFT_OPEN):
            beside = next((columns[one.name] for one in parent.find_all(exp.Column) if one.name in columns), None)
            if beside is not None:
                found[int(node.name)] = beside
    return found


def values_of(text: str, parameters: Sequence[Type]) -> list[Cell]:
    """The literals in the brackets of EXECUTE; a text is read as the type of its parameter."""
    tree = parsed(f"SELECT {text}") if text.strip() else exp.Select()
    plain = isinstance(tree, exp.Select) and not any(part for name, part in tree.args.items() if name != "expressions")
    given = tree.expressions if tree is not None and plain else None
    if given is None or len(given) != len(parameters):
        raise QueryRefused(f"this statement takes {len(parameters)} literals, separated by commas.")
    return [value_of(one, kind) for one, kind in zip(given, parameters, strict=True)]


def value_of(node: exp.Expr, kind: Type) -> Cell:
    match node:
        case exp.Cast(this=exp.Literal(is_string=True) as inner) | (exp.Literal(is_string=True) as inner):
            return kind.decode(inner.name.encode(), types.TEXT_FORMAT)
        case exp.Neg(this=exp.Literal() as inner) if not inner.is_string:
            return -number(inner.name)
        case exp.Literal():
            return number(node.name)
        case exp.Boolean():
            return bool(node.this)
        case exp.Null():
            return None
    raise QueryRefused("a parameter of EXECUTE is a literal, such as 40, 'surgery', DATE '2024-01-31', TRUE or NULL.")


def number(text: str) -> int | float:
    return int(text) if text.isdigit() and len(text) < 19 else float(text)
