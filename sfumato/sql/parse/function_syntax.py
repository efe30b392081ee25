"""Syntax that is not a function with its arguments in order: CASE, CAST, LIKE, BETWEEN, SUBSTR, … One entry each."""

from collections.abc import Callable

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import LONGEST_TEXT, Kind
from sfumato.sql.expressions import Call, Constant, Expression
from sfumato.sql.functions.function import Spelling
from sfumato.sql.parse import date_syntax
from sfumato.sql.parse.ast_guard import bounded_integer, node_text, parse_number
from sfumato.sql.simplify import call

MOST_BUCKETS = 10_000
Go = Callable[..., list[Expression]]
CASTS = {"DOUBLE": "number", "FLOAT": "number", "DECIMAL": "digits", "INT": "whole", "BIGINT": "whole",
         "SMALLINT": "whole", "TEXT": "text", "VARCHAR": "text", "DATE": "date", "TIMESTAMP": "timestamp",
         "TIMESTAMPNTZ": "timestamp", "FLOAT64": "number"}  # fmt: skip


def bucket_key(value: Expression, low: Expression, high: Expression, count: Expression) -> Expression:
    """WIDTH_BUCKET: a histogram's public keys, 0 … count + 1."""
    match low, high, count:
        case Constant(float() | int() as a), Constant(float() | int() as b), Constant(int() as n):
            if a < b and 1 <= n <= MOST_BUCKETS:
                return call("width_bucket", value, low, high, count)
    raise QueryRefused(
        f"WIDTH_BUCKET takes a column, two numbers, and how many buckets lie between them (up to {MOST_BUCKETS:,}).\n"
        "  do:     ask WIDTH_BUCKET(x, 0, 60, 12)"
    )


def literal(node: exp.Expression, go: Go) -> Expression:
    if node.is_string and len(node.this) > LONGEST_TEXT:
        raise QueryRefused(
            f"a text in this question is too long.\n  found:  {len(node.this):,} characters\n"
            f"  do:     write at most {LONGEST_TEXT:,}: all texts are cut there"
        )
    return Constant(node.this if node.is_string else parse_number(node.this))


def swap_operands(name: str) -> Callable[[exp.Expression, Go], Expression]:
    return lambda node, go: call(name, *go(node.expression, node.this))


def is_(node: exp.Expression, go: Go) -> Expression:
    """IS NULL, IS TRUE, IS FALSE: never NULL itself."""
    if isinstance(node.expression, exp.Null):
        return call("is null", *go(node.this))
    if isinstance(node.expression, exp.Boolean):
        (found,) = go(node.this)
        wanted = found if node.expression.this else call("not", found)
        return call("coalesce", wanted, Constant(False))
    raise QueryRefused("IS is for NULL, TRUE and FALSE.\n  do:     ask x IS NULL, or x IS NOT NULL")


def is_not_distinct(node: exp.Expression, go: Go) -> Expression:
    """IS NOT DISTINCT FROM: equal, or both NULL."""
    first, second = go(node.this, node.expression)
    both = call("and", call("is null", first), call("is null", second))
    return call("coalesce", call("=", first, second), both)


def like(node: exp.Expression, go: Go) -> Expression:
    if isinstance(node.expression, exp.Any | exp.All):
        return like_any(node, go)
    text, pattern = go(node.this, node.expression)
    if isinstance(node, exp.ILike):
        text, pattern = call("lower", text), call("lower", pattern)
    found = call("like", text, pattern)
    return call("not", found) if node.args.get("negate") else found


def like_any(node: exp.Expression, go: Go) -> Expression:
    """x LIKE ANY ('a%', 'b%'), x NOT LIKE ALL (…): of each pattern, joined by OR or AND."""
    inner = node.expression.this
    listed = inner.unnest() if isinstance(inner, exp.Expression) else inner
    patterns = listed.expressions if isinstance(listed, exp.Tuple | exp.Array) else [listed]
    parts = go(*(type(node)(this=node.this.copy(), expression=one.copy()) for one in patterns))
    if node.args.get("negate"):
        parts = [call("not", one) for one in parts]
    return call("or" if isinstance(node.expression, exp.Any) else "and", *parts)


def between(node: exp.Expression, go: Go) -> Expression:
    value, low, high = go(node.this, node.args["low"], node.args["high"])
    if node.args.get("symmetric"):
        low, high = between_ends(low, high)
    return call("and", call("<=", low, value), call("<=", value, high))


def between_ends(one: Expression, other: Expression) -> tuple[Expression, Expression]:
    """The lesser and the greater of two values; NULL if one of them is."""
    swapped = call("<", other, one)
    known = call("=", call("is null", call("=", one, other)), Constant(False))

    def chosen(a: Expression, b: Expression) -> Expression:
        return call("case", swapped, a, known, b, Constant(None))

    return chosen(other, one), chosen(one, other)


def case_when(node: exp.Expression, go: Go) -> Expression:
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
    name = str(to.args.get("kind")).upper() if name == "USERDEFINED" else name
    if name not in CASTS:
        raise QueryRefused(f"CAST to {name[:20] or 'that'} is not allowed.\n  do:     use {', '.join(CASTS)}")
    if name == "DECIMAL":
        return decimal(call("number", *go(node.this)), to.expressions)
    if CASTS[name] == "whole":
        (value,) = go(node.this)
        if value.domain.kind is Kind.TRUTH and value != Constant(None):
            return call("case", value, Constant(1), call("not", value), Constant(0), Constant(None))
        return call("round", call("number", value))
    return call(CASTS[name], *go(node.this))


def decimal(value: Expression, sizes: list[exp.Expression]) -> Expression:
    """DECIMAL(p, s): rounded to s digits, NULL from 10^(p − s) on. It remains a double."""
    digits, after = [bounded_integer(one.this, "DECIMAL", 0, 38) for one in sizes] if len(sizes) == 2 else (18, 3)
    if after > 12:
        raise QueryRefused(
            "numbers are doubles here, with 15 digits.\n  do:     CAST to DECIMAL with up to 12 after the point"
        )
    found = call("round to", value, Constant(after))
    return call("case", call("<", call("abs", found), Constant(10.0 ** (digits - after))), found, Constant(None))


def width_bucket(node: exp.Expression, go: Go) -> Expression:
    given = go(*(node.args.get(a) for a in ("this", "min_value", "max_value", "num_buckets")))
    return bucket_key(*given) if len(given) == 4 else bucket_key(*[Constant(None)] * 4)  # which is refused in words


def refuse_histogram(node: exp.Expression, go: Go) -> Expression:
    raise QueryRefused(
        "HISTOGRAM stands by itself after SELECT, outermost.\n"
        "  do:     ask SELECT HISTOGRAM(x, 0, 60, 12) FROM …, or GROUP BY WIDTH_BUCKET(x, 0, 60, 12)"
    )


def whole_quotient(node: exp.Expression, go: Go) -> Expression:
    """a // b of whole numbers, cut towards 0; of other numbers // means one thing here and another one there."""
    parts = go(node.this, node.expression)
    if not all(is_whole(one) for one in parts):
        why, do = REFUSED[exp.IntDiv]
        raise QueryRefused(f"{node_text(node)}: {why}\n  do:     {do}")
    quotient = call("/", *parts)
    return call("case", call("<", quotient, Constant(0)), call("ceil", quotient), call("floor", quotient))


def is_whole(one: Expression) -> bool:
    """Are all its values whole numbers?"""
    if isinstance(one, Constant):
        return isinstance(one.value, int) and not isinstance(one.value, bool)
    step = one.domain.step
    return one.domain.kind is Kind.NUMBER and step is not None and step >= 1 and step == int(step)


def pad(node: exp.Expression, go: Go) -> Expression:
    """LPAD(x, 3, '0'), RPAD(x, 3): a text of exactly that length."""
    fill = node.args.get("fill_pattern")
    if fill is not None and not (isinstance(fill, exp.Literal) and fill.is_string and 1 <= len(fill.this) <= 100):
        raise QueryRefused("LPAD and RPAD take a text in quotes to fill with.\n  do:     ask LPAD(x, 3, '0')")
    length = bounded_integer(node.expression, "LPAD", 0, LONGEST_TEXT)
    with_ = Constant(fill.this if fill is not None else " ")
    return call("lpad" if node.args.get("is_left") else "rpad", *go(node.this), Constant(length), with_)


def concat_with(node: exp.Expression, go: Go) -> Expression:
    """CONCAT_WS('-', a, b): NULLs are left out, with their separator."""
    if len(node.expressions) < 2:
        raise QueryRefused("CONCAT_WS takes what is put between, and values.\n  do:     ask CONCAT_WS('-', a, b)")
    between, *parts = go(*node.expressions)
    if not isinstance(between, Constant) or not isinstance(between.value, str):
        raise QueryRefused("CONCAT_WS takes a text in quotes to put between.")
    texts = [one if one.domain.kind is Kind.TEXT else call("text", one) for one in parts]
    after = [call("case", call("is null", one), Constant(""), call("||", between, one)) for one in texts]
    joined = call("||", *after) if len(after) > 1 else after[0]
    return call("substr", joined, Constant(1 + len(between.value)), Constant(10**6))


# ---- JSON and regular expressions ------------------------------------------------------------------------------------


def json_path(node: exp.Expression, go: Go) -> Expression:
    """x ->> '$.a.b', x -> 'a' ->> 'b', JSON_EXTRACT_STRING: a text, NULL where there is none."""
    steps: list[str] = []
    inner: exp.Expression = node
    while isinstance(inner, exp.JSONExtract | exp.JSONExtractScalar):
        steps = [*path_steps(inner.expression), *steps]
        inner = inner.this.unnest()
        if (
            isinstance(inner, exp.Cast)
            and isinstance(inner.to.this, exp.DataType.Type)
            and inner.to.this.name == "JSON"
        ):
            inner = inner.this
    return call("json_text", *go(inner), Constant("$" + "".join(steps)))


def path_steps(path: exp.Expr | None) -> list[str]:
    """The steps of a path as they are written: .a or [2]."""
    parts = path.expressions if isinstance(path, exp.JSONPath) else [None]
    found = []
    for one in parts:
        match one:
            case exp.JSONPathRoot():
                continue
            case exp.JSONPathKey(this=str() as name) if name and all(
                sign.isprintable() and sign not in '"*\\' for sign in name
            ):
                found.append(f'."{name}"')
            case exp.JSONPathSubscript(this=int() as place) if 0 <= place < 10**6:
                found.append(f"[{place}]")
            case _:
                raise QueryRefused(
                    "a path in JSON is a text in quotes, of names and places.\n"
                    "  do:     ask x ->> '$.name.first', or json_extract_string(x, '$.items[0]')"
                )
    return found


def extract_group(node: exp.Expression, go: Go) -> Expression:
    """REGEXP_EXTRACT(x, pattern, group): '' where nothing matches."""
    group = node.args.get("group")
    place = bounded_integer(group, "REGEXP_EXTRACT", 0, 9) if group is not None else 0
    refuse_flags(node)
    return call("regexp_extract", *go(node.this, node.expression), Constant(place))


def replace_matches(node: exp.Expression, go: Go) -> Expression:
    """REGEXP_REPLACE(x, pattern, text) of the first match."""
    new = node.args.get("replacement")
    if node.args.get("modifiers") is not None:
        raise QueryRefused(
            f"{node_text(node)}: options such as 'g' are not allowed: how often a pattern is found has no bound.\n"
            "  do:     replace the first match, or ask REPLACE(x, 'old', 'new') of all"
        )
    return call("regexp_replace", *go(node.this, node.expression), *(go(new) or [Constant("")]))


def refuse_flags(node: exp.Expression) -> None:
    for part in ("parameters", "position", "occurrence"):
        if node.args.get(part):
            raise QueryRefused(f"{node_text(node)}: {part} of a regular expression are not allowed here.")


def power(node: exp.Expression, go: Go) -> Expression:
    (base,) = go(node.this)
    if isinstance(node.expression, exp.Literal) and node.expression.this == "0.5":
        return call("sqrt", base)
    return call("power", base, Constant(bounded_integer(node.expression, "POWER", 1, 10)))


def logarithm(node: exp.Expression, go: Go) -> Expression:
    """LOG(x) is of base 10; LOG(2, x) and LOG(10, x) name it."""
    if node.expression is None:
        return call("log10", *go(node.this))
    base = node.this.this if isinstance(node.this, exp.Literal) else ""
    if base not in ("2", "10"):
        raise QueryRefused("LOG is of base 2 or 10.\n  do:     ask LN(x) / LN(base)")
    return call(f"log{base}", *go(node.expression))


def trunc(node: exp.Expression, go: Go) -> Expression:
    """TRUNC: towards 0."""
    if node.args.get("decimals"):
        digits = 10 ** bounded_integer(node.args["decimals"], "TRUNC", 0, 12)
        (value,) = go(node.this)
        moved = call("*", value, Constant(digits))
        return call(
            "/",
            call("case", call("<", moved, Constant(0)), call("ceil", moved), call("floor", moved)),
            Constant(digits),
        )
    (value,) = go(node.this)
    return call("case", call("<", value, Constant(0)), call("ceil", value), call("floor", value))


def round_(node: exp.Expression, go: Go) -> Expression:
    if node.args.get("decimals") is None:
        return call("round", *go(node.this))
    decimals = node.args["decimals"]
    if isinstance(decimals, exp.Neg):  # to tens, to hundreds
        unit = 10 ** bounded_integer(decimals.this, "ROUND", 0, 12)
        return call("*", call("round", call("/", *go(node.this), Constant(unit))), Constant(unit))
    return call("round to", *go(node.this), Constant(bounded_integer(decimals, "ROUND", 0, 12)))


def trim(node: exp.Expression, go: Go) -> Expression:
    side = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.args.get("position") or "", "trim")
    return call(side, *go(node.this, node.expression))


def substring(node: exp.Expression, go: Go) -> Expression:
    start = bounded_integer(node.args.get("start"), "SUBSTR", 1, 10**6)
    length = bounded_integer(node.args["length"], "SUBSTR", 0, 10**6) if node.args.get("length") else 10**6
    return call("substr", *go(node.this), Constant(start), Constant(length))


def left(node: exp.Expression, go: Go) -> Expression:
    return call("substr", *go(node.this), Constant(1), Constant(bounded_integer(node.expression, "LEFT", 0, 10**6)))


def right(node: exp.Expression, go: Go) -> Expression:
    return call("right", *go(node.this), Constant(bounded_integer(node.expression, "RIGHT", 0, 10**6)))


def split_part(node: exp.Expression, go: Go) -> Expression:
    between = node.args.get("delimiter")
    if not isinstance(between, exp.Literal) or not between.is_string or not between.this:
        raise QueryRefused("SPLIT_PART takes a text in quotes to split at.\n  do:     ask SPLIT_PART(x, '.', 1)")
    place = bounded_integer(node.args.get("part_index"), "SPLIT_PART", 1, 1000)
    return call("split_part", *go(node.this, between), Constant(place))


def replace_text(node: exp.Expression, go: Go) -> Expression:
    old, new = node.expression, node.args.get("replacement")
    if not (isinstance(old, exp.Literal) and isinstance(new, exp.Literal)) or len(new.this) > len(old.this):
        raise QueryRefused(
            "REPLACE takes two texts in quotes, the second not longer than the first:\n"
            "          texts must not grow, or an engine could run out of memory"
        )
    return call("replace", *go(node.this, old, new))


def listed(node: exp.Expression, go: Go) -> Expression:
    """A value among those of a series, which are public keys (parse/series.py)."""
    if len(node.expressions) < 2:
        raise QueryRefused(f"{node_text(node)}: a value, and those of a series.")
    of, *values = go(*node.expressions)
    if of.domain.kind is not Kind.DATE:
        return call("listed number", of, *values)
    texts = [one.arguments[0] for one in values if isinstance(one, Call) and one.name == "timestamp"]
    return call("listed date", of, *texts)


def concat(node: exp.Expression, go: Go) -> Expression:
    """CONCAT, which ignores NULL and takes values of any kind, as CAST(… AS TEXT) writes them."""
    parts = (one if one.domain.kind is Kind.TEXT else call("text", one) for one in go(*node.expressions))
    return call("||", *(call("coalesce", part, Constant("")) for part in parts))


SPECIAL: dict[Spelling, Callable[[exp.Expression, Go], Expression]] = {
    exp.Literal: literal,
    exp.Boolean: lambda node, go: Constant(bool(node.this)),
    exp.Null: lambda node, go: Constant(None),
    exp.Paren: lambda node, go: go(node.this)[0],
    exp.GT: swap_operands("<"),
    exp.GTE: swap_operands("<="),
    exp.NEQ: lambda node, go: call("not", call("=", *go(node.this, node.expression))),
    exp.Is: is_,
    exp.NullSafeEQ: is_not_distinct,
    exp.NullSafeNEQ: lambda node, go: call("not", is_not_distinct(node, go)),
    exp.Like: like,
    exp.ILike: like,
    exp.Between: between,
    exp.Case: case_when,
    exp.If: if_,
    exp.Nullif: nullif,
    exp.Cast: cast,
    exp.TryCast: cast,
    exp.WidthBucket: width_bucket,
    "histogram": refuse_histogram,
    exp.Round: round_,
    exp.Pow: power,
    exp.Log: logarithm,
    exp.Trunc: trunc,
    exp.Trim: trim,
    exp.Substring: substring,
    exp.Left: left,
    exp.Right: right,
    exp.SplitPart: split_part,
    exp.StrPosition: lambda node, go: call("position", *go(node.this, node.args.get("substr"))),
    exp.Replace: replace_text,
    exp.Concat: concat,
    exp.ConcatWs: concat_with,
    exp.IntDiv: whole_quotient,
    exp.Pad: pad,
    exp.JSONExtract: json_path,
    exp.JSONExtractScalar: json_path,
    exp.RegexpExtract: extract_group,
    exp.RegexpReplace: replace_matches,
    exp.RegexpFullMatch: lambda node, go: call("regexp_matches", *go(node.this), whole_pattern(*go(node.expression))),
    "sf_listed": listed,
    **date_syntax.SPECIAL,
}


def whole_pattern(pattern: Expression) -> Expression:
    """A pattern that matches a text as a whole."""
    match pattern:
        case Constant(str() as words):
            return Constant(f"^({words})$")
    return pattern


NO_PATTERN = (
    "only LIKE patterns are understood: an invalid pattern would raise in the engine.",
    "use LIKE, STARTS_WITH or CONTAINS where they say the same",
)
REFUSED: dict[Spelling, tuple[str, str]] = {  # (why, what to do), unless a function has this spelling
    exp.IntDiv: (
        "// truncates integers and divides other numbers.",
        "ask TRUNC(a / b), which cuts towards 0, or FLOOR(a / b), which cuts downwards",
    ),
    exp.IsNan: ("NaN counts as NULL here.", "ask x IS NULL"),
    exp.RegexpLike: NO_PATTERN,
    exp.RegexpILike: NO_PATTERN,
    exp.SimilarTo: NO_PATTERN,
}
