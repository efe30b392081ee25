"""The least measures that serve all aggregates of a question."""

from dataclasses import replace

from sfumato.sql.expressions import Expression
from sfumato.sql.plan import Measure, What, Window, exponent
from sfumato.sql.question import Aggregate, Question
from sfumato.sql.statistics import Mode, Statistic, Triangles, Trimmed
from sfumato.sql.union import pruned

Wanted = tuple[str, Expression | None] | Window | Statistic
WHAT = {"units": What.UNITS, "distinct": What.DISTINCT}


def measured(wanted: list[Wanted], private: bool) -> tuple[tuple[Measure, ...], tuple[Aggregate, ...]]:
    """The least measures that serve all aggregates: AVG(x) and SUM(x) share one sum, AVG and COUNT one count."""
    found: dict[Measure, None] = {Measure(What.UNITS): None} if private else {}
    pairs = [one for one in wanted if isinstance(one, tuple)]
    centred = {of for name, of in pairs if name in ("avg", "variance", "stddev")}

    def measure(one: Measure) -> int:
        found.setdefault(one)
        return list(found).index(one)

    aggregates, windows, statistics = [], 0, 0
    for one in wanted:
        if isinstance(one, Trimmed | Mode | Triangles):
            aggregates.append(Aggregate("statistic", (), statistic=statistics))
            statistics += 1
            continue
        if isinstance(one, Window):
            aggregates.append(Aggregate("quantile", (), window=windows))
            windows += 1
            continue
        name, of = one
        if of is None or name in ("count", "distinct"):
            what = WHAT.get(name, What.ROWS if of is None else What.VALUES)
            aggregates.append(Aggregate("count", (measure(Measure(what, of)),)))
            continue
        centre = (of.domain.low + of.domain.high) / 2 if of in centred else 0.0
        # the squares of one that is too fine would leave 64 bits
        spread = any(one in (("variance", of), ("stddev", of)) for one in wanted)
        e = exponent(of, name, 20) if spread else exponent(of, name)
        sum_ = measure(Measure(What.SUM, of, centre, e))
        parts = [sum_] if of not in centred else [sum_, measure(Measure(What.VALUES, of))]
        if name in ("variance", "stddev"):
            parts.append(measure(Measure(What.SQUARES, of, centre, 2 * e)))
        aggregates.append(Aggregate(name, tuple(parts), centre, e))
    return tuple(found), tuple(aggregates)


def canonical(question: Question) -> Question:
    """Measures, windows and statistics in one order, so that the order of columns does not make another plan."""
    plan = pruned(question.plan)
    order = sorted(range(len(plan.measures)), key=lambda j: repr(plan.measures[j]))
    ranks = sorted(range(len(plan.windows)), key=lambda j: repr(plan.windows[j]))
    others = sorted(range(len(plan.statistics)), key=lambda j: repr(plan.statistics[j]))
    aggregates = tuple(
        replace(
            a,
            measures=tuple(map(order.index, a.measures)),
            window=ranks.index(a.window) if ranks else 0,
            statistic=others.index(a.statistic) if others else 0,
        )
        for a in question.aggregates
    )
    plan = replace(
        plan,
        measures=tuple(plan.measures[j] for j in order),
        windows=tuple(plan.windows[j] for j in ranks),
        statistics=tuple(plan.statistics[j] for j in others),
    )
    return replace(question, plan=plan, aggregates=aggregates)
