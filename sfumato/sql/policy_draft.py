"""Drafts of policies from a schema, and checks of policies against one. Only names and types are read."""

import json
import re
import textwrap
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlglot.dialects.duckdb import DuckDB

from sfumato.sql.domains import LONGEST_TEXT, Domain, Kind
from sfumato.sql.plan import Table
from sfumato.sql.policy import Policy
from sfumato.sql.reserved_names import folds_everywhere, is_reserved
from sfumato.sql.schema_check import NAMES, Schema, is_whole, kind_of, misfits
from sfumato.sql.units import RowUnit
from sfumato.wording import plural

PEOPLE = ("patient", "person", "people", "user", "customer", "client", "member", "subject", "participant", "student",
          "employee", "citizen", "account", "household", "rider", "driver", "passenger", "visitor", "voter", "worker",
          "pupil", "teacher", "resident", "respondent", "subscriber", "donor", "player", "guest")  # fmt: skip

CALENDAR = {
    "month": (1, 12),
    "day": (1, 31),
    "dayofmonth": (1, 31),
    "hour": (0, 23),
    "minute": (0, 59),
    "quarter": (1, 4),
}

# ---- a draft --------------------------------------------------------------------------------------------------------


def draft_policy(schema: Schema, source: str, untyped: Collection[str] = (), delimiters: Mapping[str, str] = {}) -> str:
    """A policy in TOML for all tables, with TODO where only the owner knows; `untyped` are tables of CSV files, and
    `delimiters` what stands between the fields of those without commas."""
    parts = [
        f"""# A policy for {toml_string(source)}, drafted from its schema: no value was read.
# Everything in it is public. It works as it is where whose data the rows are could be guessed: check each `unit`, and
# the budget. Lines with TODO wait for you; then run: sfumato policy check
version = 1
draft = true           # TODO: remove this line when you have checked the others; nobody can ask before

[budget]               # the most that all answers together may reveal about one person
epsilon = 1.0          # an attacker's odds change by a factor of e^1 = 2.7 at most …
delta = 1e-6           # … but for this chance; keep it far below one over the number of people

# [analysts]           # who may ask, and for which share of the budget; the owner has what is left
# epidemiology = 0.5   # 0: only what costs nothing
# others = 0.1         # for everybody else together; if this is left out, nobody else may ask
"""
    ]
    parts += [draft_table(name, schema, name in untyped, delimiters.get(name)) for name in sorted(schema)]
    return "\n".join(parts)


def draft_table(name: str, schema: Schema, untyped: bool = False, delimiter: str | None = None) -> str:
    columns = schema[name]
    guesses = guess_units(name, columns)
    lines = [f"[tables.{toml_key(name)}]"]
    if delimiter is not None:
        lines.append(f"delimiter = {toml_string(delimiter)}  # as in the first line of the file")
    if len(guesses) == 1:
        lines.append(
            f"unit = {toml_string(guesses[0])}  # guessed from its name: all rows of one are one person's data"
        )
        lines.append("# most = 1000  # only if you know that nobody has more rows: intervals then hold for all data")
    else:
        which = f"; perhaps {' or '.join(map(toml_key, guesses))}" if guesses else ""
        lines.append(f'# unit = "…"  # TODO: the column that identifies people{which}. "row": each row is a person')
        lines += [f"# {line}" for line in guess_parents(name, schema)]
        lines.append("# public = true  # instead of a unit, if anybody may see the whole table")
    lines.append(f"[tables.{toml_key(name)}.columns]")
    if untyped:
        lines.append(UNTYPED)
    for column, kind in columns.items():
        found = kind_of(kind)
        if found is None or is_reserved(column) or not folds_everywhere(column):
            why = f"{kind} is of no use to questions" if found is None else "questions cannot have this name"
            lines.append(f"# {toml_key(column)}: {why}")
            continue
        listed = enum_values(kind)
        hint = "" if column in guesses or listed or untyped else HINTS.get(found, "")
        keys = f", keys = [{', '.join(map(toml_string, listed))}]" if listed else ""
        known = CALENDAR.get(plain_name(column)) if is_whole(kind) else None
        if known is not None:
            keys, hint = (
                f", low = {known[0]}, high = {known[1]}",
                "  # guessed from its name: values beyond are clamped",
            )
        lines.append(f'{toml_key(column)} = {{type = "{"integer" if is_whole(kind) else NAMES[found]}"{keys}}}{hint}')
    return "\n".join([*lines, ""])


UNTYPED = """\
# TODO: CSV files and folders such as year=2024 say no types, so columns from them are drafted as text. Better may be:
#   numbers     {low = 0, high = 100}, or {type = "number"} or {type = "integer"} to find bounds privately, for a price
#   categories  {keys = ["north", "south"]} if all know them; else groups are found, and rare ones vanish
#   dates       {type = "date"}
# A value that is not of the stated type counts as missing. Delete the columns that nobody may ask about."""
HINTS = {
    Kind.NUMBER: "  # low = …, high = … if it is known what is possible; else bounds are found, privately, for a price",
    Kind.TEXT: '  # keys = ["…"] if its values are known to all; else its groups are found, and rare ones vanish',
}


def enum_values(type_: str) -> list[str]:
    """The values of an ENUM, which its type lists."""
    if not type_.upper().startswith("ENUM("):
        return []
    found = [text.replace("''", "'") for text in re.findall(r"'((?:[^']|'')*)'", type_)]
    return found if all(0 < len(text) <= LONGEST_TEXT for text in found) and len({*found}) == len(found) else []


def guess_parents(name: str, schema: Schema) -> list[str]:
    """Lines that would find the unit in another table: one with a unit, which shares a column such as order_id."""
    found = []
    for other, columns in sorted(schema.items()):
        units = guess_units(other, columns)
        shared = [c for c in schema[name] if c.endswith("id") and c in columns and c not in units]
        if other != name and len(units) == 1 and len(shared) == 1:
            unit, key = toml_string(f"{other}.{units[0]}"), toml_string(shared[0])
            found.append(f"unit = {unit}, with key = {key}: if its rows belong to rows of {toml_string(other)}")
    return found


def guess_units(table: str, columns: Mapping[str, str]) -> list[str]:
    """Columns whose names suggest people; in a table of people, its id."""
    plain = {column: plain_name(column) for column in columns}
    named = [c for c in columns if any(plain[c] in (p, f"{p}id", f"{p}no", f"{p}number") for p in PEOPLE)]
    if not named and "id" in columns and any(table in (p, f"{p}s") for p in PEOPLE):
        return ["id"]
    return named


def plain_name(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def toml_key(name: str) -> str:
    """A name as TOML writes it."""
    plain = name.replace("_", "").replace("-", "")
    return name if plain.isalnum() and plain.isascii() else toml_string(name)


def toml_string(text: str) -> str:
    """A text as TOML writes it. JSON escapes the same characters but for DEL; its escapes of emoji are no TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


# ---- a check --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """The result of a check: what a policy promises, what is wrong with it, and what it leaves open."""

    promises: tuple[str, ...]
    wrong: tuple[str, ...]
    missing: tuple[str, ...]
    examples: tuple[str, ...] = ()  # questions that can be asked

    def __str__(self) -> str:
        parts = [("This policy says", self.promises), ("Wrong", self.wrong), ("Left open", self.missing)]
        listed = [f"{title}:\n" + "\n".join(map(bullet, lines)) for title, lines in parts if lines]
        if not self.wrong:
            listed.append("Questions can be asked. For example:\n" + "\n".join(f"  {one}" for one in self.examples))
        return "\n".join(listed).rstrip()


def bullet(line: str) -> str:
    return textwrap.fill(line, 80, initial_indent="  · ", subsequent_indent="    ")


def check_policy(policy: Policy, schema: Schema, untyped: Collection[str] = ()) -> Check:
    """A policy beside the database that it is for; `untyped` are tables of files that say no types."""
    promises = [f"all answers together keep (ε, δ) = ({policy.epsilon:g}, {policy.delta:g}) for each person"]
    promises += describe_shares(policy)
    wrong, missing = misfits(policy, schema, untyped), []
    if policy.draft:
        wrong.insert(0, "it is a draft: go through the lines with TODO, then remove draft = true")
    if policy.delta > 1e-4:
        missing.append(f"δ = {policy.delta:g} is a large chance: keep it far below one over the number of people")
    for name, table in policy.tables.items():
        promises.append(describe_table(table))
        missing += gaps(table, schema.get(name, {}))
    missing += [
        f"{name}: not in the policy, so nobody can ask about it" for name in sorted(set(schema) - {*policy.tables})
    ]
    examples = [one for table in policy.tables.values() for one in example_questions(table)]
    return Check(tuple(promises), tuple(wrong), tuple(missing), tuple(examples))


def example_questions(table: Table) -> list[str]:
    """Questions about a table that this policy allows: how many, by a key, and about a number."""
    if table.public:
        return []
    name, columns = sql_name(table.name), {c: d for c, d in table.columns.items() if c != table.unit_column}
    texts = [c for c, d in columns.items() if d.kind is Kind.TEXT]
    keys = [c for c, d in columns.items() if d.keys is not None] or texts
    numbers = [c for c, d in columns.items() if d.kind is Kind.NUMBER and c not in keys and c not in table.edges]
    found = [f"SELECT COUNT(*) FROM {name}"]
    found += [f"SELECT {sql_name(c)}, COUNT(*) FROM {name} GROUP BY {sql_name(c)}" for c in keys[:1]]
    return found + [f"SELECT AVG({sql_name(c)}) FROM {name}" for c in numbers[:1]]


def sql_name(name: str) -> str:
    """A name as SQL writes it."""
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name.upper() not in DuckDB.Tokenizer.KEYWORDS
    return name if plain else '"' + name.replace('"', '""') + '"'


def describe_shares(policy: Policy) -> list[str]:
    """The people who may ask, in words; it holds from the next opening of a curator on."""
    if not policy.analysts and policy.others is True:
        return []
    found = [
        f"{who} may use {100 * share:g} % of that" if share else f"{who} may ask only what costs nothing"
        for who, share in policy.analysts.items()
    ]
    if policy.others is True:
        return [*found, "everybody else draws on what is left, like the owner"]
    rest = ["the owner draws on what is left"] if "owner" not in policy.analysts else []
    if policy.others is False:
        return [*found, *rest, "nobody else may ask"]
    return [*found, *rest, f"all others together may use {100 * policy.others:g} % of that"]


def describe_table(table: Table) -> str:
    if table.public:
        return f"{table.name}: public, to be joined"
    if isinstance(table.unit, RowUnit):
        return f"{table.name}: each row is a person"
    if table.scaled and not table.edges:
        most = f"; nobody has more than {plural(table.most, 'row')}" if table.most else ""
        scaled = f"rows without one never count; what one adds is scaled as each question needs{most}"
        return f"{table.name}: a person is a {table.unit}; {scaled}"
    groups, rows = plural(table.groups, "group"), plural(table.rows, "row")
    if table.edges:
        pair = " and ".join(table.edges)
        return f"{table.name}: each pair of {pair} is protected; counts in {groups} of an answer, with {rows} in each"
    return f"{table.name}: a person is a {table.unit}; counts in {groups} of an answer, with {rows} in each"


def gaps(table: Table, columns: Mapping[str, str]) -> list[str]:
    """Descriptions of what cannot be asked because the policy does not say enough."""
    found, alike = [], dict[str, list[str]]()
    for name, kind in columns.items():
        domain = table.columns.get(name)
        if domain is None:
            if kind_of(kind) is not None and name != table.unit_column:
                found.append(f"{table.name}.{name}: not in the policy, so nobody can ask about it")
        elif not table.public and name != table.unit_column and (words := gap(domain)):
            alike.setdefault(words, []).append(f"{table.name}.{name}")
    return [*found, *(f"{', '.join(names)}: {words}" for words, names in alike.items())]


def gap(domain: Domain) -> str:
    if domain.kind is Kind.NUMBER and not domain.bounded and domain.keys is None:
        return "no low and high, so the first SUM or AVG buys bounds with a fifth of its price"
    if domain.kind is Kind.TEXT and domain.keys is None:
        return "no keys, so groups are found privately, and small ones vanish"
    return ""
