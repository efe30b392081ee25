"""The entries that a policy may have, with what each means: read by the parser of policies and by the documents."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Key:
    """One entry: the values it takes, what holds without it, and what it means."""

    takes: str
    default: str
    means: str


FILE: Mapping[str, Key] = {
    "version": Key("1", "required", "The version of the format."),
    "draft": Key("true or false", "false", "While true, nobody can ask. `policy init` sets it; the owner removes it."),
    "budget": Key("a table", "required", "The privacy budget: a limit for all answers together."),
    "analysts": Key("a table", "everybody may ask", "Who may ask, and for which share of the budget."),
    "tables": Key("a table", "required", "The tables that may be asked about, each with its unit and columns."),
    "limits": Key("a table", "see below", "Public limits on the resources of one question."),
}
BUDGET: Mapping[str, Key] = {
    "epsilon": Key("0.000001 to 1000", "required", "ε of all answers together, whoever asks."),
    "delta": Key("above 0, up to 0.1", "required; 0 if pure", "δ of all answers together."),
    "question_delta": Key("up to delta", "delta / 1000", "δ at which the ε of one question is stated."),
    "kind": Key('"gaussian" or "pure"', '"gaussian"', "How prices add up: as squares of μ, or as ε."),
}
ANALYSTS: Mapping[str, Key] = {
    "NAME": Key("0 to 1", "–", "The share of the budget of this person. 0: previews and stored answers only."),
    "others": Key(
        "0 to 1, true or false", "false if anybody is named, else true",
        "A share for all others together; true: they draw on what is left; false: they may not ask.",
    ),
}  # fmt: skip
TABLE: Mapping[str, Key] = {
    "public": Key("true or false", "false", "Anybody may see the whole table; it can be joined."),
    "unit": Key(
        'a column, "row", "TABLE.COLUMN" or {column = …}', "required unless public or edges",
        "Whose data a row is: all rows of one unit are protected together.",
    ),
    "groups": Key("1 to 100,000", "found by each question", "A unit counts in at most so many groups."),
    "rows": Key("1 to 1,000,000", "found by each question", "At most so many rows of a unit count in a group."),
    "most": Key(
        "1 to 10⁹", "not known",
        "No unit has more rows. Intervals then hold for all such data; a loose one makes them long.",
    ),
    "columns": Key("a table", "none", "The columns that questions may use."),
    "key": Key("a column", "–", 'With unit = "TABLE.COLUMN": the column that leads to the row of that table.'),
    "parent_key": Key("a column", "the name of key", "What `key` is called in the other table."),
    "edges": Key('["a", "b"]', "–", "The table is a graph; each edge is a unit."),
    "delimiter": Key("one character", '","', "Between the fields of a CSV file."),
}  # fmt: skip
COLUMN: Mapping[str, Key] = {
    "type": Key(
        '"number", "integer", "text", "boolean", "date"', "from the other entries",
        "What the column holds. Common names of databases (varchar, bigint, timestamp, …) are accepted.",
    ),
    "low": Key("a number", "found by a question, for a price", "No value counts as less. State it with `high`."),
    "high": Key("a number", "found by a question, for a price", "No value counts as more."),
    "step": Key("a power of two", "from the bounds; 1 for integers", "Values are rounded to multiples of it."),
    "keys": Key("a list of values", "groups are found privately", "Public groups: always shown, also if empty."),
}  # fmt: skip
LIMITS: Mapping[str, Key] = {
    "response_quantum": Key("0, or 0.001 to 3600 s", "0", "Answers leave 1, 2, 4, … of these after their charge."),
    "timeout": Key("1 to 86,400 s", "600", "For one statement."),
    "memory": Key("MiB", "what the engine takes", "For one statement."),
    "spill": Key("a folder", "beside the data", "For intermediate results that do not fit into memory."),
    "views": Key("0 to 1000", "16", "Bounded tables that are kept for later questions."),
    "worker": Key("true or false", "false", "DuckDB runs in a process of its own, which a time limit can end."),
}

PARTS: Mapping[str, Mapping[str, Key]] = {
    "the file": FILE,
    "[budget]": BUDGET,
    "[analysts]": ANALYSTS,
    "[tables.NAME]": TABLE,
    "[tables.NAME.columns], one entry for each column": COLUMN,
    "[limits]": LIMITS,
}
