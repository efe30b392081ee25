"""Does a policy fit a database? Every table and column that it names is there, and of a type whose values it can mean.

Only names and types are read. A type fits a kind if each of its values is of that kind. A text is not a number, even if
some texts look like numbers: all others would silently count as missing. CSV files have texts only; there, and nowhere
else, a text may stand for any kind.
"""

import re
from collections.abc import Collection, Iterable, Mapping

from sfumato.errors import PolicyError
from sfumato.sql.domains import Domain, Kind
from sfumato.sql.plan import Table
from sfumato.sql.policy import Policy
from sfumato.sql.units import ColumnUnit, Unit

Schema = Mapping[str, Mapping[str, str]]  # table → column → type

SHOWN = 5  # misfits of one message
WHOLE = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT|INTEGER|UINTEGER|INT[248]|BIGNUM")
BROKEN = re.compile(r"DOUBLE|DOUBLE PRECISION|FLOAT[48]?|REAL|DECIMAL|NUMERIC")
TEXTS = re.compile(r"VARCHAR|TEXT|STRING|CHARACTER VARYING")
ANY_SPELLING = "any"
NO_KIND = ("STRUCT", "MAP", "UNION", "BLOB", "BIT", "INTERVAL", "ARRAY<", "BINARY", "VARIANT")
DOMAIN = "domain over "  # how an engine names a type that is another one with constraints
NAMES = {Kind.NUMBER: "number", Kind.TEXT: "text", Kind.TRUTH: "boolean", Kind.DATE: "date"}
FITTING = {
    Kind.NUMBER: (Kind.NUMBER, Kind.TRUTH), Kind.TRUTH: (Kind.TRUTH, Kind.NUMBER), Kind.DATE: (Kind.DATE,),
    Kind.TEXT: tuple(Kind),
}  # fmt: skip


def kind_of(type_: str) -> Kind | None:
    """The kind of a column of this type; None if questions cannot use it. Unknown types are read as texts."""
    name = base_type(type_)
    if "[" in name or name.startswith(NO_KIND):
        return None
    if name.startswith("BOOL"):
        return Kind.TRUTH
    if name.startswith(("DATE", "TIMESTAMP")):
        return Kind.DATE
    return Kind.NUMBER if WHOLE.fullmatch(name) or BROKEN.fullmatch(name) else Kind.TEXT


def is_whole(type_: str) -> bool:
    """Does a column of this type hold whole numbers only?"""
    return WHOLE.fullmatch(base_type(type_)) is not None


def base_type(type_: str) -> str:
    """The name of a type without its parameters; "DECIMAL(10,2)[]" keeps its brackets."""
    name = type_.removeprefix(DOMAIN).upper()
    return f"{name.split('(')[0].strip()}{'[]' if name.endswith(']') else ''}"


def require_fit(policy: Policy, schema: Schema, untyped: Collection[str] = ()) -> None:
    """Raises PolicyError, to the owner, if a question that the policy allows could not be run, or would mislead.

    `untyped` are tables whose columns are texts because their files say no types.
    """
    if policy.draft:
        raise PolicyError(
            "this policy is a draft.\n  found:  draft = true\n"
            "  do:     go through the lines with TODO, then remove draft = true"
        )
    found = misfits(policy, schema, untyped)
    if found:
        more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
        raise PolicyError(
            "the policy does not fit the database.\n"
            f"  found:  {join_lines([*found[:SHOWN], *more])}\n"
            "  do:     correct the policy; or give it a view that has the names and types that it says, such as"
            " CREATE VIEW … AS SELECT CAST(… AS DOUBLE) AS …"
        )


def join_lines(lines: Iterable[str]) -> str:
    return "\n          ".join(lines)


def misfits(policy: Policy, schema: Schema, untyped: Collection[str] = ()) -> list[str]:
    """Descriptions of what the policy names and the database does not have."""
    found = []
    for name, table in policy.tables.items():
        if name not in schema:
            found.append(f"{name}: there is no such table; there are {', '.join(sorted(schema)) or 'none'}")
        else:
            found += table_misfits(table, schema[name], name in untyped)
        if table.owner is not None and table.owner.theirs not in schema.get(table.owner.table.name, {}):
            found.append(f"{name}: its parent_key, {table.owner.theirs}, is not a column of {table.owner.table.name}")
    return found + unlike_units(policy, schema, untyped)


def unlike_units(policy: Policy, schema: Schema, untyped: Collection[str]) -> list[str]:
    """Descriptions of units, and of keys by which units are found, whose types differ between tables.

    They are compared as texts, so 1 in one table and 1.0 in another would be two people, who both count.
    """
    found: list[str] = []
    first: dict[Unit, tuple[str, str]] = {}  # column of units → (table, how it is written)
    for name, table in policy.tables.items():
        if table.public or not isinstance(table.unit, ColumnUnit):
            continue
        if table.owner is None:
            pairs = [(name, table.unit.name), first.setdefault(table.unit, (name, table.unit.name))]
        else:
            pairs = [(name, table.owner.mine), (table.owner.table.name, table.owner.theirs)]
        types = [schema.get(of, {}).get(column) for of, column in pairs]
        spelled = {spelling(type_, of in untyped) for (of, _), type_ in zip(pairs, types, strict=True) if type_}
        if len(spelled - {ANY_SPELLING}) > 1:
            mine, theirs = (f"{of}.{column} is {type_}" for (of, column), type_ in zip(pairs, types, strict=True))
            found.append(f"{mine}, {theirs}: one person could be written in two ways")
    return found


def spelling(type_: str, untyped: bool) -> str:
    """The family of types in which equal values have equal texts: whole numbers do, in texts too, and a file
    without types may hold anything."""
    text = TEXTS.fullmatch(base_type(type_)) is not None
    if text or is_whole(type_):
        return ANY_SPELLING if untyped else "text or whole number"
    return type_.removeprefix(DOMAIN).upper()


def table_misfits(table: Table, columns: Mapping[str, str], untyped: bool) -> list[str]:
    """Descriptions of mismatches in one table: they would make questions fail or mislead."""
    found = []
    if (both := table.unclear_unit(columns)) is not None:
        found.append(f"{table.name}: {both}")
    for role, name in named_columns(table):
        if name not in columns:
            found.append(f"{table.name}: its {role}, {name}, is not a column; there are {', '.join(columns)}")
    for name, domain in table.columns.items():
        if name not in columns:
            found.append(f"{table.name}.{name}: there is no such column")
        elif not (untyped and kind_of(columns[name]) is Kind.TEXT) and not type_fits(columns[name], domain.kind):
            found.append(f"{table.name}.{name} is {columns[name]} in the database; {describe_domain(domain)}")
    return found


def named_columns(table: Table) -> list[tuple[str, str]]:
    """(what it is for, name): the columns that a table must have beside those that questions may name."""
    if table.public:
        return []
    if table.owner is not None:
        return [("key", table.owner.mine)]
    return [("unit", table.unit.name)] if isinstance(table.unit, ColumnUnit) else []


def type_fits(type_: str, kind: Kind) -> bool:
    """Is each value of a column of this type one of this kind?"""
    found = kind_of(type_)
    return found is not None and found in FITTING[kind]


def describe_domain(domain: Domain) -> str:
    """The domain of a column as the policy states it, in words."""
    if domain.kind is Kind.NUMBER and domain.bounded:
        return "the policy gives it a range (number)"
    return f"the policy says {NAMES[domain.kind]}"
