"""SQL text to a question: one SELECT, of an allow-list; whatever is not on it is refused, in words."""

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.limits import parsed
from sfumato.sql.policy import Policy
from sfumato.sql.question import Question
from sfumato.sql.reading.select import selected


def read(text: str, policy: Policy) -> Question:
    """The question that a text asks."""
    try:
        root = parsed(text)
        if not isinstance(root, exp.Select):
            raise QueryRefused("ask exactly one SELECT.\n  found:  a statement of another kind")
        return selected(root, policy)
    except RecursionError:
        raise QueryRefused("this question is nested too deeply.") from None
