"""The data owner's policy: whose data these are, what is public, how much one person may count. TOML, version 1."""

import datetime
import math
import os
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from sfumato.errors import PolicyError
from sfumato.sql import policy_keys
from sfumato.sql.domains import LONGEST_TEXT, Domain, Kind, Scalar
from sfumato.sql.plan import Owner, Table
from sfumato.sql.reserved_names import PREFIX, folds_everywhere, is_reserved
from sfumato.sql.units import EDGE, ROW, ColumnUnit, EdgeUnit, RowUnit, Unit

VERSION = 1
OTHERS = "others"  # among the analysts: everybody who is not named
WHOLE = 1000  # whole numbers of a range that are public keys, at most
VIEWS = 16  # bounded tables that are kept, unless the policy says otherwise


@dataclass(frozen=True)
class Limits:
    """Resource limits of one question. They are public, and above what any allowed question needs: exceeding one would
    reveal something about the data."""

    response_quantum: float = 0.0  # seconds: answers leave 1, 2, 4, … of these after their charge; 0: at once
    timeout: float = 600.0  # seconds for one statement
    memory: int = 0  # MiB; 0: the engine's default
    spill: str = ""  # folder for what does not fit in it; "": beside the data
    views: int = VIEWS  # bounded tables that are kept for later questions
    worker: bool = False  # statements run in a process of their own, which is killed when its time is over


@dataclass(frozen=True)
class Policy:
    """Everything that is fixed in advance. It is public."""

    epsilon: float
    delta: float
    question_delta: float
    tables: Mapping[str, Table]
    analysts: Mapping[str, float] = field(default_factory=dict)  # name → share of the budget; 0: none of it
    limits: Limits = Limits()
    pure: bool = False  # the budget is one of pure ε
    others: float | bool = True  # people not named: a share for all together; False: may not ask; True: the common rest
    draft: bool = False  # its owner has not reviewed it yet: no curator opens under it
    delimiters: tuple[tuple[str, str], ...] = ()  # (table, character) of files without commas
    value_bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # of columns that questions compute

    @staticmethod
    def read(text: str) -> "Policy":
        """A policy from TOML."""
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            raise PolicyError(f"the policy is not TOML: {problem}") from problem
        return Reader("policy").policy(data)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Policy":
        try:
            return Policy.read(Path(path).read_text("utf-8"))
        except OSError as problem:
            raise PolicyError(
                f"the policy cannot be read.\n  found:  {Path(path).name}: {problem.strerror}"
            ) from problem


@dataclass(frozen=True)
class Reader:
    """Reads one part of the file; `where` is what error messages call it."""

    where: str

    def at(self, name: str) -> "Reader":
        return Reader(f"{self.where}.{name}" if self.where != "policy" else name)

    def wrong(self, what: str, do: str) -> PolicyError:
        return PolicyError(f"the policy is not clear about {self.where}.\n  found:  {what}\n  do:     {do}")

    def only(self, data: object, *names: str) -> dict[str, object]:
        """A table of the file. Other names than these are refused, so that a misspelt bound is never ignored."""
        if not isinstance(data, dict):
            raise self.wrong(f"a {type(data).__name__}", f"write it as a table: [{self.where}]")
        for name in data:
            if name not in names:
                raise self.wrong(f"an entry {name!r}", f"use {', '.join(names)}")
        return data

    def number(self, data: Mapping[str, object], name: str, default: float | None, low: float, high: float) -> float:
        value = data.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            found = "nothing" if value is None else repr(value)
            raise self.at(name).wrong(found, f"give a number from {low:g} to {high:g}")
        return float(value)

    def whole(self, data: Mapping[str, object], name: str, most: int, default: int = 1, least: int = 1) -> int:
        value = data.get(name, default)
        if type(value) is not int or not least <= value <= most:
            raise self.at(name).wrong(repr(value), f"give a whole number from {least} to {most:,}")
        return value

    def policy(self, data: dict[str, object]) -> Policy:
        self.only(data, *policy_keys.FILE)
        if data.get("version") != VERSION:
            raise self.at("version").wrong(repr(data.get("version")), f"begin the file with version = {VERSION}")
        draft = data.get("draft", False)
        if not isinstance(draft, bool):
            raise self.at("draft").wrong(repr(draft), "draft is true or false")
        budget = self.at("budget").only(data.get("budget", {}), *policy_keys.BUDGET)
        if budget.get("kind", "gaussian") not in ("gaussian", "pure"):
            raise self.at("budget.kind").wrong(repr(budget["kind"]), 'use "gaussian", or "pure" for pure ε')
        pure = budget.get("kind") == "pure"
        epsilon = self.at("budget").number(budget, "epsilon", None, 1e-6, 1e3)
        least = 0.0 if pure else 1e-30
        delta = self.at("budget").number(budget, "delta", 0.0 if pure else None, least, 0.1)
        tables = self.at("tables").only(data.get("tables", {}), *_names(data.get("tables")))
        if not tables:
            raise self.at("tables").wrong("none", "describe each table that may be asked: [tables.visits]")
        analysts, others = self.at("analysts").shares(data.get("analysts", {}))
        described = {
            lower: self.at(f"tables.{name}").table(lower, tables[name])
            for name, lower in self.at("tables").names(tables).items()
        }
        if len({table.columns[table.edges[0]].kind for table in described.values() if table.edges}) > 1:
            raise self.at("tables").wrong(  # 1–2 and '1'–'2' would be two units
                "edges between numbers in one table, between texts in another", "describe all nodes as text"
            )
        return Policy(
            epsilon,
            delta,
            self.at("budget").number(budget, "question_delta", delta / 1000, least, delta),
            {name: self.at(f"tables.{name}").with_parent(table, described) for name, table in described.items()},
            analysts,
            self.at("limits").limits(data.get("limits", {})),
            pure,
            others,
            draft,
            tuple(
                (lower, self.at(f"tables.{name}").delimiter(tables[name]["delimiter"]))  # type: ignore[index]
                for name, lower in self.at("tables").names(tables).items()
                if "delimiter" in tables[name]  # type: ignore[operator]
            ),
        )

    def delimiter(self, said: object) -> str:
        """The character between the fields of a text file."""
        if not isinstance(said, str) or len(said) != 1 or said in '"\r\n\0' or not said.isascii():
            raise self.at("delimiter").wrong(repr(said), 'give one character, such as ";" or "\\t"')
        return said

    def shares(self, data: object) -> tuple[dict[str, float], float | bool]:
        """(name → share, what all others have): who may ask, and how much of the budget is theirs.

        Where nobody is named everybody may ask; where somebody is, others may only if the policy says so.
        """
        found = self.only(data, *_names(data))
        named = {who: self.number(found, self.person(who), None, 0.0, 1.0) for who in found if who != OTHERS}
        if len({confusable_form(who) for who in named}) < len(named):
            raise self.wrong("names that differ in case, spaces or hidden characters alone", "name each person once")
        others = found.get(OTHERS, not named)
        if not isinstance(others, bool):
            others = self.number(found, OTHERS, None, 0.0, 1.0)
        parts = [*named.values(), float(others) if not isinstance(others, bool) else 0.0]
        if sum(Fraction(str(part)) for part in parts) > 1:
            raise self.wrong(f"shares that sum to {math.fsum(parts):g}", "let them sum to 1 at most")
        return named, others

    def person(self, name: str) -> str:
        if not 0 < len(name) <= 200 or name != name.strip() or not name.isprintable():
            raise self.wrong(f"the name {name!r}", "give 1 to 200 printed characters, without spaces around them")
        return name

    def limits(self, data: object) -> Limits:
        found, usual = self.only(data, *policy_keys.LIMITS), Limits()
        spill = found.get("spill", usual.spill)
        if not isinstance(spill, str) or "\0" in spill:
            raise self.at("spill").wrong(repr(spill), "name a folder")
        worker = found.get("worker", usual.worker)
        if not isinstance(worker, bool):
            raise self.at("worker").wrong(repr(worker), "worker is true or false")
        quantum = self.number(found, "response_quantum", usual.response_quantum, 0.0, 3600.0)
        if 0 < quantum < 1e-3:
            raise self.at("response_quantum").wrong(f"{quantum:g}", "give 0.001 at least, or 0 for none")
        return Limits(
            quantum,
            self.number(found, "timeout", usual.timeout, 1.0, 86400.0),
            self.whole(found, "memory", 10**8) if "memory" in found else usual.memory,
            spill,
            self.whole(found, "views", 1000, usual.views, least=0),
            worker,
        )

    def table(self, name: str, data: object) -> Table:
        found = self.only(data, *policy_keys.TABLE)
        public = found.get("public", False)
        if not isinstance(public, bool):
            raise self.at("public").wrong(repr(public), "public is true or false")
        if not public and "unit" not in found and "edges" not in found:
            raise self.wrong(
                "no unit", 'say whose data these are: unit = "patient_id", or unit = "row", or public = true'
            )
        listed = self.at("columns").only(found.get("columns", {}), *_names(found.get("columns")))
        columns = {
            lower: self.at(f"columns.{c}").column(listed[c]) for c, lower in self.at("columns").names(listed).items()
        }
        unit, parent = self.unit(found)
        rows, groups = self.whole(found, "rows", 10**6), self.whole(found, "groups", 10**5)
        if isinstance(unit, RowUnit) and (rows, groups) != (1, 1):
            raise self.wrong("bounds on a person of one row", "leave rows and groups out: each row is a person")
        table = Table(name, columns, public, unit, groups, rows, bare_word=isinstance(found.get("unit"), str))
        if not public and not isinstance(unit, RowUnit) and not {"rows", "groups"} & set(found):
            table = table.scale()
        if "most" in found:
            table = table.scale(self.most_rows(found, table))
        if (both := table.unclear_unit(columns)) is not None:
            raise self.at("unit").wrong("a column of that name", both)
        if "edges" in found:
            return replace(table, edges=self.edges(found, table))
        if (parent is None) != ("key" not in found):
            raise self.wrong(
                f"unit = {found.get('unit')!r}{'' if parent else ' and a key'}",
                'to find the unit in another table: unit = "orders.customer_id" and key = "order_id"',
            )
        return table if parent is None else replace(table, owner=self.owner(found, parent))

    def most_rows(self, found: Mapping[str, object], table: Table) -> int:
        """The owner's upper bound on the rows of a unit; intervals then hold for all data within it."""
        if not table.scaled:
            raise self.at("most").wrong("it beside rows or groups, or where no unit owns rows", "leave it out")
        return self.whole(found, "most", 10**9)

    def unit(self, found: Mapping[str, object]) -> tuple[Unit, str | None]:
        """The unit, and the table that it is found in if it is another one: "row", "patient_id", "orders.customer_id".

        Or, whatever columns are called, {each = "row"}, {column = "row"}, {column = "customer_id", table = "orders"}.
        """
        said = found.get("unit", {"each": EDGE if "edges" in found else ROW})
        here = self.at("unit")
        if isinstance(said, str):
            if said.lower() == ROW or (said.lower() == EDGE and "edges" in found):
                return (RowUnit() if said.lower() == ROW else EdgeUnit()), None
            above, dot, name = said.partition(".")
            said = {"table": above, "column": name} if dot else {"column": said}
        if not isinstance(said, dict) or not all(isinstance(one, str) for one in said.values()):
            raise here.wrong(repr(said), 'name a column, or write unit = "row" where each row is a person')
        match here.only(said, "each", "column", "table"):
            case {"each": "row", **rest} if not rest:
                return RowUnit(), None
            case {"each": "edge", **rest} if not rest and "edges" in found:
                return EdgeUnit(), None
            case {"column": str(name), **rest} if "each" not in rest:
                (column,) = here.names([name]).values()
                return ColumnUnit(column), str(rest["table"]).lower() if "table" in rest else None
        raise here.wrong(
            repr(said), 'write {each = "row"}, {column = "patient_id"} or {column = "customer_id", table = "orders"}'
        )

    def owner(self, found: Mapping[str, object], parent: str) -> Owner:
        """Where the unit is found: the table is looked up when all are known."""
        mine = found["key"]
        theirs = found.get("parent_key", mine)
        if not isinstance(mine, str) or not isinstance(theirs, str):
            raise self.at("key").wrong("no name of a column", 'key = "order_id", and parent_key = "id" if it differs')
        mine, theirs = (next(iter(self.at("key").names([one]).values())) for one in (mine, theirs))
        return Owner(Table(parent, {}), mine, theirs)

    def names(self, given: Iterable[str]) -> dict[str, str]:
        """Names of the database in lower case, as in questions: each once, and none that is reserved."""
        found: dict[str, str] = {}
        for name in given:
            if not name or is_reserved(name):
                raise self.wrong(
                    f"the name {name!r}", f"names that begin with {PREFIX} are our own: make a view with another name"
                )
            if not folds_everywhere(name):
                raise self.wrong(
                    f"the name {name!r}", "make a view with another name: engines do not fold capitals such as Ä to ä"
                )
            if name.lower() in found.values():
                raise self.wrong(f"{name.lower()!r} twice", "describe each once: upper and lower case are one name")
            found[name] = name.lower()
        return found

    def edges(self, found: Mapping[str, object], table: Table) -> tuple[str, ...]:
        """The two columns that name the nodes of an edge."""
        named = found["edges"]
        ends = tuple(str(name).lower() for name in named) if isinstance(named, list) else ()
        kinds = {table.columns[end].kind for end in ends if end in table.columns}
        if len(set(ends)) != 2 or len(ends) != 2 or not set(ends) <= set(table.columns):
            raise self.at("edges").wrong(repr(named), 'name two columns that are described here: edges = ["a", "b"]')
        if len(kinds) != 1 or not kinds <= {Kind.NUMBER, Kind.TEXT}:
            raise self.at("edges").wrong("columns of other or different types", "let both be text, or both numbers")
        other = not isinstance(table.unit, EdgeUnit) or EDGE in table.columns
        if table.public or other or {"key", "parent_key"} & set(found):
            raise self.at("edges").wrong(
                "a unit, a key, public = true, or a column called edge", "leave them out: each edge is a unit here"
            )
        return ends

    def with_parent(self, table: Table, others: Mapping[str, Table], below: int = 0) -> Table:
        """The table with its parent table, in which its unit is found, and so on along the chain."""
        if table.owner is None:
            return table
        name, unit = table.owner.table.name, table.unit_column
        parent = others.get(name)
        if parent is None or parent.public or isinstance(parent.unit, RowUnit) or below > 5:
            raise self.at("unit").wrong(
                repr(f"{name}.{unit}"), "name a private table that has a unit, without going in circles"
            )
        above = self.with_parent(parent, others, below + 1)
        if above.unit_column != unit or unit in table.columns:
            raise self.at("unit").wrong(
                f"{f'{name}.{unit}'!r}, where the unit of {name} is {str(above.unit)!r}",
                "use the name of the parent's unit, and describe no column of that name here",
            )
        return replace(table, unit=above.unit, owner=replace(table.owner, table=above))

    def column(self, data: object) -> Domain:
        found = self.only(data, *policy_keys.COLUMN)
        kinds = {"number": Kind.NUMBER, "integer": Kind.NUMBER, "text": Kind.TEXT, "boolean": Kind.TRUTH,
                 "date": Kind.DATE}  # fmt: skip
        kind = found.get("type", _implied_type(found))
        kind = TYPE_SPELLINGS.get(kind.lower(), kind) if isinstance(kind, str) else kind
        if kind not in kinds:
            raise self.at("type").wrong("nothing" if kind is None else repr(kind), f"use {', '.join(kinds)}")
        exact = self.keys(found["keys"], kinds[str(kind)]) if "keys" in found else None
        if kinds[str(kind)] is not Kind.NUMBER:
            if {"low", "high", "step"} & set(found):
                raise self.wrong(f"bounds on a {kind}", "bound numbers only")
            return Domain(kinds[str(kind)], keys=(False, True) if kind == "boolean" else exact)
        low, high = -math.inf, math.inf
        if "low" in found or "high" in found:
            low, high = (self.number(found, name, None, -1e15, 1e15) for name in ("low", "high"))
            if low >= high:
                raise self.wrong(f"low = {low:g}, high = {high:g}", "let low be less than high")
        step = self.number(found, "step", 0.0, 0.0, 1e15)
        if step and math.frexp(step)[0] != 0.5:
            raise self.at("step").wrong(f"{step:g}", "give a power of two, such as 1, 0.5 or 0.0078125")
        if kind == "integer":
            if step not in (0.0, 1.0):
                raise self.at("step").wrong(f"{step:g}", 'leave it out: the step of an integer is 1, of a "number" any')
            return Domain(Kind.NUMBER, low, high, 1.0, exact or whole_numbers(low, high))
        return Domain(Kind.NUMBER, low, high, step or None, exact)

    def keys(self, data: object, kind: Kind) -> tuple[Scalar, ...]:
        """Public keys: of the column's kind, and each once (noise drawn twice for one group would reveal more)."""
        if not isinstance(data, list) or not data:
            raise self.at("keys").wrong("no list of values", 'list the public values: keys = ["north", "south"]')
        try:
            found = tuple(_key(one, kind) for one in data)
        except (TypeError, ValueError, OverflowError):
            raise self.at("keys").wrong(
                f"a value that is no {kind.value}", f"list values of type {kind.value}"
            ) from None
        if len(set(found)) < len(found):
            raise self.at("keys").wrong("a key twice", "list each once")
        if any(isinstance(one, str) and len(one) > LONGEST_TEXT for one in found):
            raise self.at("keys").wrong(
                "a very long text", f"list texts of at most {LONGEST_TEXT:,} characters: longer ones are cut"
            )
        return found


def names_unit(word: str | None, table: Table) -> bool:
    """Is this the unit of the table? True if a question names none (None)."""
    if word is None or not isinstance(table.unit, RowUnit):
        return word in (None, table.unit_column)
    return word == ROW and ROW not in table.columns


def confusable_form(name: str) -> str:
    """One text for all names that look alike: without case, width, spaces and hidden characters."""
    plain = "".join(c for c in unicodedata.normalize("NFKC", name) if unicodedata.category(c) not in ("Cf", "Cc"))
    return " ".join(unicodedata.normalize("NFKC", plain.casefold()).split())


def whole_numbers(low: float, high: float) -> tuple[Scalar, ...] | None:
    """The integers from low to high, if there are few: public keys, since the range is public."""
    if not high - low < WHOLE:
        return None
    return tuple(float(n) for n in range(math.ceil(low), math.floor(high) + 1)) or None


def _names(data: object) -> list[str]:
    return [str(name) for name in data] if isinstance(data, dict) else []


# What databases and data frames call these types. A date may have a time of day.
TYPE_SPELLINGS = {
    "timestamp": "date", "datetime": "date", "varchar": "text", "string": "text", "str": "text", "bool": "boolean",
    "int": "integer", "bigint": "integer", "float": "number", "double": "number",
}  # fmt: skip


def _implied_type(found: Mapping[str, object]) -> str | None:
    """The type of a column that states none: a range or keys of one type imply it."""
    if "low" in found or "high" in found:
        return "number"
    keys = found.get("keys")
    types = {type(key) for key in keys} if isinstance(keys, list) else set()
    if types and types <= {int, float}:
        return "number"
    return {str: "text", bool: "boolean", datetime.date: "date"}.get(types.pop()) if len(types) == 1 else None


def _key(value: object, kind: Kind) -> Scalar:
    """A key as the engine gives it: numbers as doubles, dates as the engine writes them."""
    match value:
        case bool() if kind is Kind.TRUTH:
            return value
        case int() | float() if kind is Kind.NUMBER and not isinstance(value, bool) and math.isfinite(value):
            return float(value) + 0.0
        case str() if kind is Kind.TEXT:
            return value
        case str() | datetime.date() if kind is Kind.DATE:
            return str(datetime.datetime.fromisoformat(str(value)))
    raise TypeError
