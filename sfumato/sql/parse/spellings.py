"""Aggregates that are spellings of others: weighted means, and lists of quantiles."""

from sqlglot import exp

from sfumato.errors import QueryRefused

WEIGHTED = ("wavg", "weighted_avg")
QUANTILES = (exp.Quantile, exp.PercentileCont, exp.PercentileDisc)
MOST_QUANTILES = 20
REGRESSIONS = ("regrr2", "regrcount", "regravgx", "regravgy")


def expand_spellings(root: exp.Expression) -> exp.Expression:
    """WAVG(x, w) as SUM(x·w) / SUM(w) over rows that have both; QUANTILE(x, [a, b]) as [QUANTILE(x, a), …]."""
    for node in list(root.find_all(exp.Anonymous, *QUANTILES, exp.RegrR2, exp.RegrCount, exp.RegrAvgx, exp.RegrAvgy)):
        if isinstance(node, exp.Anonymous) and node.name.lower() in WEIGHTED and len(node.expressions) == 2:
            replace_call(node, weighted_mean(*node.expressions))
        elif isinstance(node, exp.Anonymous | exp.RegrR2 | exp.RegrCount | exp.RegrAvgx | exp.RegrAvgy) and (
            found := regression(node)
        ):
            replace_call(node, found)
        elif isinstance(node, QUANTILES) and isinstance(parts := node.args.get("quantile", node.expression), exp.Array):
            if len(parts.expressions) > MOST_QUANTILES:
                raise QueryRefused(f"a list has at most {MOST_QUANTILES} quantiles.")
            name = "quantile" if node.args.get("quantile") is not None else "expression"
            replace_call(node, exp.Array(expressions=[one_quantile(node, name, part) for part in parts.expressions]))
    return root


def regression(node: exp.Expression) -> exp.Expression | None:
    """REGR_R2(y, x) is the square of CORR; REGR_COUNT and the means are over rows that have both."""
    name = (node.name if isinstance(node, exp.Anonymous) else node.key).lower().replace("_", "")
    parts = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.expression]
    if len(parts) != 2 or None in parts or name not in REGRESSIONS:
        return None
    y, x = parts
    if name == "regrr2":
        return exp.Paren(
            this=exp.Pow(this=exp.Corr(this=y.copy(), expression=x.copy()), expression=exp.Literal.number("2"))
        )
    both = exp.And(this=there(y), expression=there(x))
    of = {"regrcount": exp.Literal.number("1"), "regravgx": x.copy(), "regravgy": y.copy()}[name]
    value = exp.Case(ifs=[exp.If(this=both, true=of)])
    return exp.Count(this=value) if name == "regrcount" else exp.Avg(this=value)


def there(value: exp.Expression) -> exp.Expression:
    return exp.Not(this=exp.Is(this=exp.paren(value.copy()), expression=exp.null()))


def weighted_mean(x: exp.Expression, w: exp.Expression) -> exp.Expression:
    product = exp.Mul(this=exp.paren(x.copy()), expression=exp.paren(w.copy()))
    there = exp.Not(this=exp.Is(this=exp.paren(x.copy()), expression=exp.null()))
    weights = exp.Sum(this=exp.Case(ifs=[exp.If(this=there, true=w.copy())]))
    return exp.Paren(this=exp.Div(this=exp.Sum(this=product), expression=weights, typed=False, safe=False))


def one_quantile(node: exp.Expression, name: str, part: exp.Expression) -> exp.Expression:
    found = node.copy()
    found.set(name, part.copy())
    return found


def replace_call(node: exp.Expression, found: exp.Expression) -> None:
    """Also of a call with FILTER, which goes to each aggregate inside."""
    parent = node.parent
    if isinstance(parent, exp.Filter):
        condition = parent.expression
        for one in list(found.find_all(exp.Sum, *QUANTILES)):
            copy = one.copy()
            one.replace(exp.Filter(this=copy, expression=condition.copy()))
        node = parent
    node.replace(found)
