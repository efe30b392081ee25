"""SQL text to a question: one SELECT, of an allow-list; whatever is not on it is refused, in words."""

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.aggregate import Registry
from sfumato.sql.parse.from_where import MAIN
from sfumato.sql.parse.limits import parsed
from sfumato.sql.parse.select import selected
from sfumato.sql.policy import Policy
from sfumato.sql.question import Question


def parse(text: str, policy: Policy, aggregates: Registry, schema: str = MAIN) -> Question:
    """The question that a text asks, of tables that the engine has in this schema."""
    try:
        root = aggregates.mark(parsed(text))
        if isinstance(root, exp.SetOperation):
            raise QueryRefused(
                "ask one SELECT with aggregates.\n  found:  SELECTs under each other\n"
                "  do:     put rows under each other, and aggregate them: SELECT part, COUNT(*) FROM (\n"
                "            SELECT 'one' AS part FROM … UNION ALL SELECT 'two' FROM …) GROUP BY part"
            )
        if not isinstance(root, exp.Select):
            raise QueryRefused("ask exactly one SELECT.\n  found:  a statement of another kind")
        return selected(root, policy, schema)
    except RecursionError:
        raise QueryRefused("this question is nested too deeply.") from None
    except ArithmeticError:
        raise QueryRefused("this question has numbers that cannot be reckoned with.") from None
