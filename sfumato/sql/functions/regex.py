r"""REGEXP_MATCHES(text, 'pattern'): does a part of the text match a constant regular expression?

DuckDB matches with RE2, in time linear in the text, for every pattern and every text. PostgreSQL and Spark backtrack:
a short pattern can take exponential time there, so they refuse the function. Released values refuse it as well.

A pattern that RE2 cannot compile would raise in the engine, so only this grammar is allowed; it has no backreferences,
lookaround, options, named groups, word boundaries or lazy repetitions:

    pattern  := '^'? choice '$'?
    choice   := sequence ('|' sequence)*
    sequence := (atom ('*' | '+' | '?' | '{m}' | '{m,}' | '{m,n}')?)+        with m ≤ n ≤ 50, 1 ≤ n
    atom     := character | '.' | escape | '[' '^'? (member | member '-' member)+ ']' | '(' '?:'? choice ')'
    escape   := '\' and a sign of punctuation, or one of d D w W s S (of ASCII)

`.` matches any character but a line feed; `[^…]` also a line feed. Letters match in their own case only.
"""

import string

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import Domain, Kind
from sfumato.sql.domains import text as text_domain
from sfumato.sql.functions.costs import Argument
from sfumato.sql.functions.function import Function, Sql, constant_text, of_type
from sfumato.sql.functions.result_domains import same_text, truth_domain

LONGEST_PATTERN = 200  # characters
MOST_STATES = 100  # characters and ranges of a pattern, with repetitions written out: the states of its automaton
MOST_REPEATS, DEEPEST = 50, 10
# Nanoseconds for a character of the text. In the worst case each of its four bytes makes a new state of the automaton:
# 2,500 were measured for 32 states, and 5,400 for 90 (DuckDB 2.0, "😀.{15}c" and "😀.{44}c" on texts of two emoji).
PER_CHARACTER, PER_STATE = 3_000, 60
GROUPS_STATE = 50  # for a state and a byte, where groups are wanted
SIGNS = frozenset(r"\^$.|?*+()[]{}")  # characters that do not stand for themselves
CLASSES = {"d": 1, "w": 4, "s": 3, "D": 2, "W": 5, "S": 4}  # ranges of an escape, or of what is not in it


class InvalidPattern(ValueError):
    """Why a pattern is not allowed."""


class PatternReader:
    """Reads a pattern from left to right; each method returns how many states its part needs."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.place, self.depth, self.groups = pattern, 0, 0, 0

    def peek(self) -> str:
        """The next character; "" at the end."""
        return self.pattern[self.place : self.place + 1]

    def take(self, text: str) -> bool:
        """Skip this text if it is next."""
        found = self.pattern.startswith(text, self.place)
        self.place += len(text) * found
        return found

    def problem(self, what: str) -> InvalidPattern:
        return InvalidPattern(f"{what} at character {self.place + 1}")

    def read(self) -> int:
        self.take("^")
        size = self.choice()
        self.take("$")
        if self.peek():
            raise self.problem(f"{self.peek()!r}")
        return size

    def choice(self) -> int:
        size = self.sequence()
        while self.take("|"):
            size += self.sequence()
        return self.require_few_states(size)

    def sequence(self) -> int:
        size = self.repetition()
        while self.peek() not in ("", "|", ")", "$"):
            size += self.repetition()
        return self.require_few_states(size)

    def repetition(self) -> int:
        size = self.atom()
        times = self.times()
        if self.peek() and self.peek() in "*+?{":
            raise self.problem("a second repetition")
        return self.require_few_states(size * times)

    def require_few_states(self, size: int) -> int:
        if size > MOST_STATES:
            raise self.problem(f"more than {MOST_STATES} characters and ranges, with repetitions written out,")
        return size

    def times(self) -> int:
        """How many copies of what it repeats a repetition is made of."""
        if self.take("*") or self.take("+") or self.take("?"):
            return 1
        if not self.take("{"):
            return 1
        least = self.count()
        most = least
        if self.take(","):
            most = max(least, 1) if self.peek() == "}" else self.count()
        if not self.take("}") or not least <= most or most < 1:
            raise self.problem("a repetition that is not {m}, {m,} or {m,n}")
        return most

    def count(self) -> int:
        start = self.place
        while self.peek() and self.peek() in string.digits:
            self.place += 1
        digits = self.pattern[start : self.place]
        if not 1 <= len(digits) <= 3 or int(digits) > MOST_REPEATS:
            raise self.problem(f"no number up to {MOST_REPEATS}")
        return int(digits)

    def atom(self) -> int:
        if self.take("("):
            return self.group()
        if self.take("["):
            return self.members()
        if self.take("."):
            return 2
        if self.take("\\"):
            return self.escape()
        self.character(SIGNS)
        return 1

    def group(self) -> int:
        self.groups += not self.take("?:")
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.problem("many groups inside each other")
        size = self.choice()
        self.depth -= 1
        if not self.take(")"):
            raise self.problem("a group that is not closed")
        return size

    def members(self) -> int:
        """The ranges of [abc0-9]."""
        size = least = int(self.take("^"))
        while not self.take("]"):
            if self.take("\\"):
                if self.peek() in CLASSES:
                    size += self.escape()
                    continue
                first = self.punctuation()
            else:
                first = self.character(SIGNS | {"-"})
            if self.take("-"):
                last = self.punctuation() if self.take("\\") else self.character(SIGNS | {"-"})
                if last < first:
                    raise self.problem("a range that ends before it begins")
            size += 1
            self.require_few_states(size)
        if size == least:
            raise self.problem("an empty [ ]")
        return size

    def escape(self) -> int:
        if size := CLASSES.get(self.peek()):
            self.place += 1
            return size
        self.punctuation()
        return 1

    def punctuation(self) -> str:
        sign = self.peek()
        if not sign or sign not in string.punctuation:
            raise self.problem("an escape that is not allowed")
        self.place += 1
        return sign

    def character(self, signs: frozenset[str]) -> str:
        """One that stands for itself."""
        sign = self.peek()
        if not sign or sign in signs or not sign.isprintable():
            raise self.problem(f"{sign!r}" if sign else "nothing")
        self.place += 1
        return sign


def automaton_size(pattern: str) -> int:
    """How many states the automaton of this pattern has; raises InvalidPattern if it is not of the grammar."""
    if len(pattern) > LONGEST_PATTERN:
        raise InvalidPattern(f"{len(pattern):,} characters; {LONGEST_PATTERN} are allowed")
    return PatternReader(pattern).read()


def check_pattern(text: Argument, pattern: Argument) -> None:
    """Refuses a pattern that is not a constant of the question, or not of the grammar."""
    if getattr(pattern, "value", "") is None:
        return
    constant = constant_text(pattern)
    if constant is None:
        raise QueryRefused(
            "REGEXP_MATCHES takes a pattern in quotes.\n  found:  a pattern that is computed in each row\n"
            "  do:     if y is to be found as it is: CONTAINS(x, y), STARTS_WITH(x, y) or ENDS_WITH(x, y)"
        )
    try:
        automaton_size(constant)
    except InvalidPattern as problem:
        raise QueryRefused(
            f"this regular expression is not allowed.\n  found:  {problem}\n"
            r"  do:     use characters, ., [a-z], \d, \w, \s, groups, |, *, +, ?, {m,n}, ^ first and $ last"
        ) from None


def regex_cost(text: Argument, pattern: Argument) -> float:
    """In the worst case RE2 builds a new state of its automaton for each byte; of other patterns than constants, which
    are refused, the most that there is."""
    constant = constant_text(pattern)
    size = automaton_size(constant) if constant is not None else MOST_STATES
    return 50_000 + text.domain.longest * (PER_CHARACTER + PER_STATE * size)


def emit_regexp_matches(a: Sql, pattern: Sql) -> Sql:
    return exp.Anonymous(this="REGEXP_MATCHES", expressions=[a, pattern])


def emit_regexp_extract(a: Sql, pattern: Sql, group: Sql) -> Sql:
    place = exp.Cast(this=group, to=of_type("INT"))
    return exp.Anonymous(this="REGEXP_EXTRACT", expressions=[a, pattern, place])


def emit_regexp_replace(a: Sql, pattern: Sql, new: Sql) -> Sql:
    return exp.Anonymous(this="REGEXP_REPLACE", expressions=[a, pattern, new])


def check_group(text: Argument, pattern: Argument, group: Argument) -> None:
    """Refuses a group that the pattern does not have."""
    check_pattern(text, pattern)
    words, place = constant_text(pattern), getattr(group, "value", 0)
    if words is not None and isinstance(place, int | float):
        reader = PatternReader(words)
        reader.read()
        if place > reader.groups:
            raise QueryRefused(
                f"this regular expression has no group {place:g}.\n  found:  {reader.groups} in brackets"
            )


def check_replacement(text: Argument, pattern: Argument, new: Argument) -> None:
    """Refuses a replacement that refers to groups, or is computed."""
    check_pattern(text, pattern)
    words = constant_text(new)
    if words is None or "\\" in words:
        raise QueryRefused("REGEXP_REPLACE takes a text in quotes without backslashes as the replacement.")


def groups_cost(text: Argument, pattern: Argument, *more: Argument) -> float:
    """Where groups are wanted, a match is run once more: each state at each byte of it, in the worst case."""
    constant = constant_text(pattern)
    size = automaton_size(constant) if constant is not None else MOST_STATES
    return 2 * regex_cost(text, pattern) + text.domain.longest * 4 * GROUPS_STATE * size


def replaced_text(a: Domain, pattern: Domain, new: Domain) -> Domain:
    return text_domain(a.longest + new.longest)


FUNCTIONS: dict[str, Function] = {
    "regexp_matches": Function(
        (Kind.TEXT, Kind.TEXT),
        truth_domain,
        emit_regexp_matches,
        spelled=(exp.RegexpLike,),
        check=check_pattern,
        cost=regex_cost,
        constants=(
            ("😀.{15}c",),
            ("😀.{44}c",),
            ("a.{48}b",),
            ("[aA😀ßЖ]{19}b",),
            (r"1\W{15}x",),
            (r"(\w\w?){10}!",),
            ("[^x]{1,48}y",),
            ("(a|A|ß|😀){20}b$",),
            ("^[0-9]+$",),
        ),
    ),
    "regexp_extract": Function(
        (Kind.TEXT, Kind.TEXT, Kind.NUMBER),
        same_text,
        emit_regexp_extract,
        check=check_group,
        cost=groups_cost,
        constants=(("([a-z]+)@", 1), (r"\d+", 0)),
    ),
    "regexp_replace": Function(
        (Kind.TEXT, Kind.TEXT, Kind.TEXT),
        replaced_text,
        emit_regexp_replace,
        check=check_replacement,
        cost=groups_cost,
        constants=((r"\d+", "n"),),
    ),
}
