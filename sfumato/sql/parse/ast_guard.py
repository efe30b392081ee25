"""Guards on nodes of sqlglot: which parts of a node are supported, and literals in them."""

import math

from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from sfumato.errors import QueryRefused

USUAL = {"this", "expression", "expressions"}
MORE: dict[type[exp.Expression], set[str]] = {  # further parts of a node that are understood
    exp.Literal: {"is_string"}, exp.Column: {"table"}, exp.Between: {"low", "high", "symmetric"},
    exp.If: {"true", "false"}, exp.WidthBucket: {"min_value", "max_value", "num_buckets"},
    exp.Case: {"ifs", "default"}, exp.Cast: {"to"}, exp.TryCast: {"to", "safe"}, exp.Ordered: {"desc"},
    exp.Count: {"big_int"}, exp.Div: {"typed", "safe"}, exp.Table: {"alias", "db"}, exp.Subquery: {"alias"},
    exp.Join: {"kind", "on", "using", "side", "method"}, exp.CTE: {"alias"}, exp.Alias: {"alias"},
    exp.Identifier: {"quoted"},
    exp.Least: {"ignore_nulls"}, exp.Greatest: {"ignore_nulls"}, exp.Coalesce: {"is_nvl"}, exp.Round: {"decimals"},
    exp.Trunc: {"decimals"},
    exp.Trim: {"position"}, exp.Substring: {"start", "length"}, exp.Replace: {"replacement"}, exp.DPipe: {"safe"},
    exp.Concat: {"safe", "coalesce"}, exp.TimestampTrunc: {"unit"}, exp.DateTrunc: {"unit"},
    exp.Like: {"negate"}, exp.ILike: {"negate"}, exp.SplitPart: {"delimiter", "part_index"},
    exp.StrPosition: {"substr"}, exp.TimeToStr: {"format"}, exp.ToChar: {"format"},
    exp.DateDiff: {"unit", "date_part_boundary"},
    exp.Interval: {"unit"}, exp.DateBin: {"unit", "origin"}, exp.AtTimeZone: {"zone"}, exp.TimeToUnix: set(),
    exp.JSONExtract: {"only_json_types"}, exp.JSONExtractScalar: {"only_json_types", "scalar_only"},
    exp.Pad: {"is_left", "fill_pattern"}, exp.ConcatWs: {"safe", "coalesce"}, exp.RegexpFullMatch: set(),
    exp.RegexpExtract: {"group", "null_if_pos_overflow"},
    exp.RegexpReplace: {"replacement", "modifiers", "single_replace"},
    exp.Group: {"all"}, exp.Offset: set(), exp.Distinct: set(),
    exp.Union: {"with_", "with", "order"},  # the order of rows means nothing
}  # fmt: skip


def require_known_parts(node: exp.Expression) -> None:
    """Refuse a node with a part that is not supported: ignoring it would change the meaning of the question."""
    for part, value in node.args.items():
        if value and part not in USUAL and part not in MORE.get(type(node), ()):
            raise QueryRefused(f"{node_text(node)}: {part.strip('_').upper().replace('_', ' ')} is not allowed here.")


def node_text(node: exp.Expression) -> str:
    """The SQL text of a node for messages, shortened; sqlglot cannot write all that it parses, such as DATE()."""
    try:
        return node.sql("duckdb", unsupported_level=ErrorLevel.IGNORE)[:60]
    except SqlglotError:
        return f"{node.key.upper()}(…)"


def without_alias(node: exp.Expression) -> exp.Expression:
    """The node without its alias."""
    return node.this if isinstance(node, exp.Alias) else node


def alias(node: exp.Expression) -> str:
    """The name that a table or view goes by here."""
    found = node.args.get("alias")
    if isinstance(found, exp.TableAlias) and found.args.get("columns"):
        raise QueryRefused(
            f"{node_text(node)}: columns are not renamed in brackets here.\n  do:     write SELECT … AS name"
        )
    return (node.alias or node.name).lower()


def parse_number(text: str) -> float | int:
    """The value of a numeric literal: an int if it is whole and exact as a double, else a float."""
    try:
        found = int(text) if text.isdecimal() and len(text) < 16 else float(text)
    except ValueError:
        raise QueryRefused(f"{text[:20]!r} is not a number.") from None
    if not math.isfinite(found):
        raise QueryRefused(f"{text[:20]!r} is too large a number.")
    return found


def whole_number(node: object) -> int | None:
    """The value of a whole number literal; None for anything else."""
    value = parse_number(node.this) if isinstance(node, exp.Literal) and not node.is_string else None
    return value if isinstance(value, int) else None


def bounded_integer(node: exp.Expression | None, what: str, least: int, most: int) -> int:
    """The value of a whole number literal in this range."""
    value = whole_number(node)
    if value is None or not least <= value <= most:
        raise QueryRefused(f"{what} takes whole numbers from {least} to {most:,} there.")
    return value


def column_number(node: exp.Literal, what: str, most: int) -> int:
    """The number of a column, from 1: GROUP BY 2."""
    place = whole_number(node)
    if place is None or not 1 <= place <= most:
        raise QueryRefused(f"{what} {node.this[:20]} names no column.")
    return place
