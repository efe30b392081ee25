"""The data owner's policy: whose data these are, what is public, how much one person may count. TOML, version 1."""

import datetime
import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import PolicyError
from sfumato.sql.domains import Domain, Kind, Scalar

if TYPE_CHECKING:  # what is made of tables knows them, not they it
    from sfumato.sql.stack import Branch

VERSION = 1
ROW = "row"  # each row is a person
EDGE = "edge"  # each pair of nodes is protected, however often and in which order it is listed
VIEWS = 16  # bounded tables that are kept, unless the policy says otherwise


@dataclass(frozen=True)
class Table:
    """One table: public, or a unit's, who adds to so many `groups` at most, and so many `rows` to each."""

    name: str
    columns: Mapping[str, Domain]
    public: bool = False
    unit: str = ROW
    groups: int = 1
    rows: int = 1
    owner: "Owner | None" = None  # where the unit is found, if it is not a column of this table
    branches: tuple["Branch", ...] = ()  # of UNION ALL: no table of the database, but rows of several
    edges: tuple[str, ...] = field(default=(), repr=False)  # two columns: each pair of their values is a unit


@dataclass(frozen=True)
class Owner:
    """The table whose rows say whose ours are: the row of it whose column `theirs` is our `mine`."""

    table: Table
    mine: str
    theirs: str


@dataclass(frozen=True)
class Limits:
    """What one question may take. Public, and above what any allowed question needs: whether one is met would tell."""

    response_quantum: float = 0.0  # seconds: answers leave 1, 2, 4, … of these after their charge; 0: at once
    timeout: float = 600.0  # seconds for one statement
    memory: int = 0  # MiB; 0: what the engine takes by itself
    spill: str = ""  # folder for what does not fit in it; "": beside the data
    views: int = VIEWS  # bounded tables that are kept for later questions


@dataclass(frozen=True)
class Policy:
    """All that is said in advance, and public."""

    epsilon: float
    delta: float
    question_delta: float
    tables: Mapping[str, Table]
    analysts: Mapping[str, float] = field(default_factory=dict)  # name → share of the budget
    limits: Limits = Limits()
    pure: bool = False  # the budget is one of pure ε

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
        """A table of the file with no other names than these: a misspelt bound must not pass for none."""
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
        self.only(data, "version", "budget", "analysts", "tables", "limits")
        if data.get("version") != VERSION:
            raise self.at("version").wrong(repr(data.get("version")), f"begin the file with version = {VERSION}")
        budget = self.at("budget").only(data.get("budget", {}), "epsilon", "delta", "question_delta", "kind")
        if budget.get("kind", "gaussian") not in ("gaussian", "pure"):
            raise self.at("budget.kind").wrong(repr(budget["kind"]), 'use "gaussian", or "pure" for pure ε')
        pure = budget.get("kind") == "pure"
        epsilon = self.at("budget").number(budget, "epsilon", None, 1e-6, 1e3)
        least = 0.0 if pure else 1e-30
        delta = self.at("budget").number(budget, "delta", 0.0 if pure else None, least, 0.1)
        tables = self.at("tables").only(data.get("tables", {}), *_names(data.get("tables")))
        if not tables:
            raise self.at("tables").wrong("none", "describe each table that may be asked: [tables.visits]")
        analysts = self.at("analysts").only(data.get("analysts", {}), *_names(data.get("analysts")))
        shares = {name: self.at("analysts").number(analysts, name, None, 0.0, 1.0) for name in analysts}
        if math.fsum(shares.values()) > 1:
            raise self.at("analysts").wrong(
                f"shares that sum to {math.fsum(shares.values()):g}", "let them sum to 1 at most"
            )
        described = {
            name.lower(): self.at(f"tables.{name}").table(name.lower(), table) for name, table in tables.items()
        }
        return Policy(
            epsilon,
            delta,
            self.at("budget").number(budget, "question_delta", delta / 1000, least, delta),
            {name: self.at(f"tables.{name}").owned(table, described) for name, table in described.items()},
            shares,
            self.at("limits").limits(data.get("limits", {})),
            pure,
        )

    def limits(self, data: object) -> Limits:
        found, usual = self.only(data, "response_quantum", "timeout", "memory", "spill", "views"), Limits()
        spill = found.get("spill", usual.spill)
        if not isinstance(spill, str) or "\0" in spill:
            raise self.at("spill").wrong(repr(spill), "name a folder")
        quantum = self.number(found, "response_quantum", usual.response_quantum, 0.0, 3600.0)
        if 0 < quantum < 1e-3:
            raise self.at("response_quantum").wrong(f"{quantum:g}", "give 0.001 at least, or 0 for none")
        return Limits(
            quantum,
            self.number(found, "timeout", usual.timeout, 1.0, 86400.0),
            self.whole(found, "memory", 10**8) if "memory" in found else usual.memory,
            spill,
            self.whole(found, "views", 1000, usual.views, least=0),
        )

    def table(self, name: str, data: object) -> Table:
        found = self.only(data, "public", "unit", "groups", "rows", "columns", "key", "parent_key", "edges")
        public, unit = found.get("public", False), found.get("unit", EDGE if "edges" in found else ROW)
        if not isinstance(public, bool) or not isinstance(unit, str):
            raise self.wrong("an odd public or unit", 'public is true or false; unit a column, or "row"')
        if not public and "unit" not in found and "edges" not in found:
            raise self.wrong(
                "no unit", 'say whose data these are: unit = "patient_id", or unit = "row", or public = true'
            )
        listed = self.at("columns").only(found.get("columns", {}), *_names(found.get("columns")))
        columns = {c.lower(): self.at(f"columns.{c}").column(d) for c, d in listed.items()}
        rows, groups = self.whole(found, "rows", 10**6), self.whole(found, "groups", 10**5)
        if unit == ROW and (rows, groups) != (1, 1):
            raise self.wrong("bounds on a person of one row", "leave rows and groups out: each row is a person")
        table = Table(name, columns, public, unit.lower(), groups, rows)
        if "edges" in found:
            return replace(table, edges=self.edges(found, table))
        mine = found.get("key")
        if ("." in unit) != (mine is not None):
            raise self.wrong(
                f"unit = {unit!r}{'' if mine is None else ' and a key'}",
                'to find the unit in another table: unit = "orders.customer_id" and key = "order_id"',
            )
        if mine is None:
            return table
        theirs = found.get("parent_key", mine)
        if not isinstance(mine, str) or not isinstance(theirs, str):
            raise self.at("key").wrong("no name of a column", 'key = "order_id", and parent_key = "id" if it differs')
        return replace(table, owner=Owner(Table(unit.lower().split(".")[0], {}), mine.lower(), theirs.lower()))

    def edges(self, found: Mapping[str, object], table: Table) -> tuple[str, ...]:
        """The two columns that name the nodes of an edge."""
        named = found["edges"]
        ends = tuple(str(name).lower() for name in named) if isinstance(named, list) else ()
        kinds = {table.columns[end].kind for end in ends if end in table.columns}
        if len(set(ends)) != 2 or len(ends) != 2 or not set(ends) <= set(table.columns):
            raise self.at("edges").wrong(repr(named), 'name two columns that are described here: edges = ["a", "b"]')
        if len(kinds) != 1 or not kinds <= {Kind.NUMBER, Kind.TEXT}:
            raise self.at("edges").wrong("columns of other or different types", "let both be text, or both numbers")
        if table.public or table.unit != EDGE or EDGE in table.columns or {"key", "parent_key"} & set(found):
            raise self.at("edges").wrong(
                "a unit, a key, public = true, or a column called edge", "leave them out: each edge is a unit here"
            )
        return ends

    def owned(self, table: Table, others: Mapping[str, Table], below: int = 0) -> Table:
        """The table with the one that its unit is found in, and so on along the chain."""
        if table.owner is None:
            return table
        name, unit = table.unit.split(".", 1)
        parent = others.get(name)
        if parent is None or parent.public or parent.unit == ROW or below > 5:
            raise self.at("unit").wrong(
                repr(table.unit), "name a private table that has a unit, without going in circles"
            )
        above = self.owned(parent, others, below + 1)
        if above.unit != unit or unit in table.columns:
            raise self.at("unit").wrong(
                f"{table.unit!r}, where the unit of {name} is {above.unit!r}",
                "use the name of the parent's unit, and describe no column of that name here",
            )
        return replace(table, unit=unit, owner=replace(table.owner, table=above))

    def column(self, data: object) -> Domain:
        found = self.only(data, "type", "low", "high", "step", "keys")
        kinds = {"number": Kind.NUMBER, "text": Kind.TEXT, "boolean": Kind.TRUTH, "date": Kind.DATE}
        kind = found.get("type", "number" if "low" in found or "high" in found else None)
        if kind not in kinds:
            raise self.at("type").wrong(repr(kind), f"use {', '.join(kinds)}")
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
        return Domain(Kind.NUMBER, low, high, step or None, exact)

    def keys(self, data: object, kind: Kind) -> tuple[Scalar, ...]:
        """Public keys: of the column's kind, and each once (noise drawn twice for one group would tell more)."""
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
        return found


def _names(data: object) -> list[str]:
    return [str(name) for name in data] if isinstance(data, dict) else []


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
