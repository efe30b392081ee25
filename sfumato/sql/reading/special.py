"""Spellings that are not simply a function and its arguments in order. A new one is one entry at the end."""

from collections.abc import Callable

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.aggregates import bucketed
from sfumato.sql.expressions import Constant, Expression
from sfumato.sql.functions.function import Spelling
from sfumato.sql.normal import call
from sfumato.sql.reading.nodes import numeral, small

Go = Callable[..., list[Expression]]
CASTS = {"DOUBLE": "number", "FLOAT": "number", "DECIMAL": "number", "INT": "whole", "BIGINT": "whole",
         "TEXT": "text", "VARCHAR": "text", "DATE": "date", "TIMESTAMP": "timestamp",
         "TIMESTAMPNTZ": "timestamp"}  # fmt: skip
PARTS = {"year": "year", "month": "month", "day": "day", "hour": "hour", "dow": "weekday"}
BEGINNINGS = ("year", "month", "day")


def literal(node: exp.Expression, go: Go) -> Expression:
    return Constant(node.this if node.is_string else numeral(node.this))


def swapped(name: str) -> Callable[[exp.Expression, Go], Expression]:
    return lambda node, go: call(name, *go(node.expression, node.this))


def is_(node: exp.Expression, go: Go) -> Expression:
    if not isinstance(node.expression, exp.Null):
        raise QueryRefused("IS is for NULL here.\n  do:     ask x IS NULL, or x IS NOT NULL")
    return call("is null", *go(node.this))


def between(node: exp.Expression, go: Go) -> Expression:
    value, low, high = go(node.this, node.args["low"], node.args["high"])
    return call("and", call("<=", low, value), call("<=", value, high))


def cased(node: exp.Expression, go: Go) -> Expression:
    """CASE WHEN …, and CASE x WHEN …, which compares."""
    parts, value = [], go(node.this)
    for one in node.args["ifs"]:
        condition, result = go(one.this, one.args["true"])
        parts += [call("=", *value, condition) if value else condition, result]
    return call("case", *parts, *(go(node.args.get("default")) or [Constant(None)]))


def if_(node: exp.Expression, go: Go) -> Expression:
    return call("case", *go(node.this, node.args["true"]), *(go(node.args.get("false")) or [Constant(None)]))


def nullif(node: exp.Expression, go: Go) -> Expression:
    first, second = go(node.this, node.expression)
    return call("case", call("=", first, second), Constant(None), first)


def cast(node: exp.Expression, go: Go) -> Expression:
    to = node.args["to"]
    name = to.this.name if isinstance(to.this, exp.DataType.Type) else ""
    if name not in CASTS:
        raise QueryRefused(f"CAST to {name or 'that'} is not allowed.\n  do:     use {', '.join(CASTS)}")
    if to.expressions and name == "DECIMAL":
        raise QueryRefused("numbers are doubles here.\n  do:     CAST to DOUBLE, and ROUND(…, digits)")
    if CASTS[name] == "whole":
        return call("round", call("number", *go(node.this)))
    return call(CASTS[name], *go(node.this))


def extract(node: exp.Expression, go: Go) -> Expression:
    name = node.this.name.lower()
    if name not in PARTS:
        raise QueryRefused(f"EXTRACT({name[:20]}) is not allowed.\n  do:     use {', '.join(PARTS)}")
    return call(PARTS[name], *go(node.expression))


def date_part(node: exp.Expression, go: Go) -> Expression:
    """DATE_PART('year', x): EXTRACT in other words."""
    if len(node.expressions) != 2:
        raise QueryRefused("DATE_PART takes the name of a part and a date.\n  do:     ask DATE_PART('year', x)")
    return extract(exp.Extract(this=node.expressions[0], expression=node.expressions[1]), go)


def truncated(node: exp.Expression, go: Go) -> Expression:
    unit = node.args["unit"].name.lower()
    if unit not in BEGINNINGS:
        raise QueryRefused(f"DATE_TRUNC to {unit[:20]} is not allowed.\n  do:     use {', '.join(BEGINNINGS)}")
    return call(f"start of {unit}", *go(node.this))


def width_bucket(node: exp.Expression, go: Go) -> Expression:
    return bucketed(*go(*(node.args[a] for a in ("this", "min_value", "max_value", "num_buckets"))))


def misplaced(node: exp.Expression, go: Go) -> Expression:
    raise QueryRefused(
        "HISTOGRAM stands by itself after SELECT, outermost.\n"
        "  do:     ask SELECT HISTOGRAM(x, 0, 60, 12) FROM …, or GROUP BY WIDTH_BUCKET(x, 0, 60, 12)"
    )


def rounded(node: exp.Expression, go: Go) -> Expression:
    if node.args.get("decimals") is None:
        return call("round", *go(node.this))
    return call("round to", *go(node.this), Constant(small(node.args["decimals"], "ROUND", 0, 12)))


def trimmed(node: exp.Expression, go: Go) -> Expression:
    side = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.args.get("position") or "", "trim")
    return call(side, *go(node.this, node.expression))


def substring(node: exp.Expression, go: Go) -> Expression:
    start = small(node.args.get("start"), "SUBSTR", 1, 10**6)
    length = small(node.args["length"], "SUBSTR", 0, 10**6) if node.args.get("length") else 10**6
    return call("substr", *go(node.this), Constant(start), Constant(length))


def replaced(node: exp.Expression, go: Go) -> Expression:
    old, new = node.expression, node.args.get("replacement")
    if not (isinstance(old, exp.Literal) and isinstance(new, exp.Literal)) or len(new.this) > len(old.this):
        raise QueryRefused(
            "REPLACE takes two texts in quotes, the second not longer than the first.\n"
            "  do:     so that no text can grow until the engine fails"
        )
    return call("replace", *go(node.this, old, new))


def concatenated(node: exp.Expression, go: Go) -> Expression:
    """CONCAT, which passes over NULL."""
    return call("||", *(call("coalesce", one, Constant("")) for one in go(*node.expressions)))


SPECIAL: dict[Spelling, Callable[[exp.Expression, Go], Expression]] = {
    exp.Literal: literal,
    exp.Boolean: lambda node, go: Constant(bool(node.this)),
    exp.Null: lambda node, go: Constant(None),
    exp.Paren: lambda node, go: go(node.this)[0],
    exp.GT: swapped("<"),
    exp.GTE: swapped("<="),
    exp.NEQ: lambda node, go: call("not", call("=", *go(node.this, node.expression))),
    exp.Is: is_,
    exp.Between: between,
    exp.Case: cased,
    exp.If: if_,
    exp.Nullif: nullif,
    exp.Cast: cast,
    exp.TryCast: cast,
    exp.Extract: extract,
    "date_part": date_part,
    exp.TimestampTrunc: truncated,
    exp.DateTrunc: truncated,
    exp.WidthBucket: width_bucket,
    "histogram": misplaced,
    exp.Round: rounded,
    exp.Trim: trimmed,
    exp.Substring: substring,
    exp.Replace: replaced,
    exp.Concat: concatenated,
}
