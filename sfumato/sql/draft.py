"""A policy drafted from a schema, and what a policy says and leaves open. Only names and types are known here."""

import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.sql.domains import Domain, Kind
from sfumato.sql.policy import ROW, Policy, Table

Schema = Mapping[str, Mapping[str, str]]  # table → column → type

NUMBERS = ("INT", "DOUBLE", "FLOAT", "REAL", "DECIMAL", "NUMERIC")
PEOPLE = ("patient", "person", "people", "user", "customer", "client", "member", "subject", "participant", "student",
          "employee", "citizen", "account", "household")  # fmt: skip
TYPES = {Kind.NUMBER: "number", Kind.TEXT: "text", Kind.TRUTH: "boolean", Kind.DATE: "date"}
# What a column of the database may be, for each kind that the policy says of it.
FITTING = {
    Kind.NUMBER: (Kind.NUMBER, Kind.TEXT), Kind.DATE: (Kind.DATE, Kind.TEXT), Kind.TRUTH: (Kind.TRUTH, Kind.TEXT),
    Kind.TEXT: tuple(Kind),
}  # fmt: skip


def kind_of(kind: str) -> Kind | None:
    """The kind of a column of this type, if questions know one."""
    name = kind.upper().split("(")[0]
    if "[" in kind or name.startswith(("STRUCT", "MAP", "UNION", "BLOB", "BIT", "INTERVAL")):
        return None
    if name.startswith("BOOL"):
        return Kind.TRUTH
    if name.startswith(("DATE", "TIMESTAMP")):
        return Kind.DATE
    return Kind.NUMBER if any(part in name for part in NUMBERS) else Kind.TEXT


# ---- a draft --------------------------------------------------------------------------------------------------------


def drafted(schema: Schema, source: str) -> str:
    """A policy in TOML for all tables, with TODO where only the owner knows."""
    parts = [
        f"""# A policy for {json.dumps(source)}, drafted from its schema: no value was read.
# Everything in it is public. Lines with TODO wait for you; then run: sfumato policy check
version = 1

[budget]               # TODO: what may ever be told about one person, by all answers together
epsilon = 1.0          # an attacker's odds change by a factor of e^1 = 2.7 at most …
delta = 1e-6           # … but for this chance; keep it far below one over the number of people

# [analysts]           # shares of the budget; who is not named draws on what is left
# epidemiology = 0.5
"""
    ]
    parts += [table_drafted(name, columns) for name, columns in sorted(schema.items())]
    return "\n".join(parts)


def table_drafted(name: str, columns: Mapping[str, str]) -> str:
    guesses = units(name, columns)
    lines = [f"[tables.{key(name)}]"]
    if len(guesses) == 1:
        lines.append(f"unit = {json.dumps(guesses[0])}  # TODO: guessed from the name. Whose data is a row?")
    else:
        which = f"; perhaps {' or '.join(guesses)}" if guesses else ""
        lines.append(f'# unit = "…"  # TODO: the column that tells people apart{which}. "row": each row is a person')
    lines += [
        "# public = true  # instead of a unit, if anybody may see the whole table",
        "groups = 1  # TODO: the most groups of an answer that one person counts in; the rest is left out",
        "rows = 1    # TODO: the most rows that count for one person in one group; more noise, less left out",
        f"[tables.{key(name)}.columns]",
    ]
    for column, kind in columns.items():
        found = kind_of(kind)
        if found is None:
            lines.append(f"# {key(column)}: {kind} is of no use to questions")
            continue
        hint = "" if column in guesses else HINTS.get(found, "")
        lines.append(f'{key(column)} = {{type = "{TYPES[found]}"}}{hint}')
    return "\n".join([*lines, ""])


HINTS = {
    Kind.NUMBER: "  # TODO: low = …, high = … (what is possible, not what is there), or it cannot be summed",
    Kind.TEXT: '  # TODO: keys = ["…"] if its values are known to all, or rare groups vanish',
}


def units(table: str, columns: Mapping[str, str]) -> list[str]:
    """Columns whose names speak of people; in a table of people, its id."""
    named = [c for c in columns if any(c in (p, f"{p}_id", f"{p}id", f"{p}_no", f"{p}_number") for p in PEOPLE)]
    if not named and "id" in columns and any(table in (p, f"{p}s") for p in PEOPLE):
        return ["id"]
    return named


def key(name: str) -> str:
    """A name as TOML writes it."""
    plain = name.replace("_", "").replace("-", "")
    return name if plain.isalnum() and plain.isascii() else json.dumps(name)


# ---- a check --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """What a policy promises; what is wrong with it; and what it leaves open."""

    promises: tuple[str, ...]
    wrong: tuple[str, ...]
    missing: tuple[str, ...]

    def __str__(self) -> str:
        parts = [("This policy says", self.promises), ("Wrong", self.wrong), ("Left open", self.missing)]
        listed = [f"{title}:\n" + "\n".join(map(point, lines)) for title, lines in parts if lines]
        return "\n".join([*listed, "" if self.wrong else "Questions can be asked."]).rstrip()


def point(line: str) -> str:
    return textwrap.fill(line, 80, initial_indent="  · ", subsequent_indent="    ")


def checked(policy: Policy, schema: Schema) -> Check:
    """A policy beside the database that it is for."""
    promises = [f"all answers together keep (ε, δ) = ({policy.epsilon:g}, {policy.delta:g}) for each person"]
    promises += [f"{who} may use {100 * share:g} % of that" for who, share in policy.analysts.items()]
    wrong, missing = [], []
    if policy.delta > 1e-4:
        missing.append(f"δ = {policy.delta:g} is a large chance: keep it far below one over the number of people")
    for name, table in policy.tables.items():
        promises.append(in_words(table))
        if name not in schema:
            wrong.append(f"{name}: there is no such table; there are {', '.join(sorted(schema)) or 'none'}")
            continue
        wrong += misfits(table, schema[name])
        missing += gaps(table, schema[name])
    missing += [
        f"{name}: not in the policy, so nobody can ask about it" for name in sorted(set(schema) - {*policy.tables})
    ]
    return Check(tuple(promises), tuple(wrong), tuple(missing))


def in_words(table: Table) -> str:
    if table.public:
        return f"{table.name}: public, to be joined"
    if table.unit == ROW:
        return f"{table.name}: each row is a person"
    groups, rows = plural(table.groups, "group"), plural(table.rows, "row")
    if table.edges:
        pair = " and ".join(table.edges)
        return f"{table.name}: each pair of {pair} is protected; counts in {groups} of an answer, with {rows} in each"
    return f"{table.name}: a person is a {table.unit}; counts in {groups} of an answer, with {rows} in each"


def plural(number: int, name: str) -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def misfits(table: Table, columns: Mapping[str, str]) -> list[str]:
    """What would make questions fail, or answer nothing."""
    found = []
    if not table.public and not table.edges and table.unit not in (ROW, *columns):
        found.append(f"{table.name}: its unit, {table.unit}, is not a column; there are {', '.join(columns)}")
    for name, domain in table.columns.items():
        if name not in columns:
            found.append(f"{table.name}.{name}: there is no such column")
        elif (kind := kind_of(columns[name])) is None or kind not in FITTING[domain.kind]:
            found.append(f"{table.name}.{name}: a {TYPES[domain.kind]} in the policy, {columns[name]} in the database")
    return found


def gaps(table: Table, columns: Mapping[str, str]) -> list[str]:
    """What could be asked if the policy said more."""
    found = []
    for name, kind in columns.items():
        domain = table.columns.get(name)
        if domain is None:
            if kind_of(kind) is not None and name != table.unit:
                found.append(f"{table.name}.{name}: not in the policy, so nobody can ask about it")
        elif not table.public and name != table.unit and (words := gap(domain)):
            found.append(f"{table.name}.{name}: {words}")
    return found


def gap(domain: Domain) -> str:
    if domain.kind is Kind.NUMBER and not domain.bounded and domain.keys is None:
        return "no low and high, so SUM and AVG are refused unless the question clamps it"
    if domain.kind is Kind.TEXT and domain.keys is None:
        return "no keys, so its groups are found privately, and small ones vanish"
    return ""
