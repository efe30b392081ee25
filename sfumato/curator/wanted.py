"""What an analyst wants: the text, and how much privacy or accuracy. What the text itself names goes before."""

from dataclasses import dataclass

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.sql.dp_syntax import parse_dp_syntax
from sfumato.sql.tighten import AS_STATED, QuestionBounds


@dataclass(frozen=True)
class Wanted:
    """A plain SELECT with either an ε or an error; with a relative error, ε is the most that it may cost."""

    text: str
    epsilon: float | None = None
    error: float | None = None
    relative_error: float | None = None
    unit: str | None = None  # whose unit the text takes for granted
    explained: bool = False  # EXPLAIN PRIVACY: only the preview is asked for
    bounds: QuestionBounds = AS_STATED  # tighter ones than those of the policy

    @staticmethod
    def of(
        sql: str, epsilon: float | None = None, error: float | None = None, relative_error: float | None = None,
        bounds: QuestionBounds = AS_STATED,
    ) -> "Wanted":  # fmt: skip
        """From a text and arguments; refuses numbers that make no sense."""
        if not isinstance(sql, str):
            raise QueryRefused("a question is a text.")
        text = parse_dp_syntax(sql)
        goal = text.relative_error if text.relative_error is not None else relative_error
        if goal is not None:
            require_share(goal, text.epsilon or epsilon, error)
        if text.epsilon is not None:
            epsilon, error = text.epsilon, None
        if (epsilon is None) == (error is None):
            raise InvalidParameter("say how much privacy or how much accuracy: epsilon=0.5, or error=5")
        for name, value in (("epsilon", epsilon), ("error", error)):
            if value is not None:
                require_positive(name, value)
        return Wanted(text.text, epsilon, error, goal, text.unit, text.explained, text.bounds or bounds)


def require_positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not (isinstance(value, int | float) and 1e-6 <= value <= 1e15):
        raise InvalidParameter(f"{name} is out of range.\n  found:  {value!r}\n  do:     give a positive number")


def require_share(goal: object, epsilon: float | None, error: float | None) -> None:
    """A relative error is a share, and ε limits its price."""
    share = not isinstance(goal, bool) and isinstance(goal, int | float) and 0 < goal < 1
    if epsilon is None or error is not None or not share:
        raise InvalidParameter(
            "a relative error is a share, and needs a limit to its price.\n"
            f"  found:  relative_error = {goal!r}, epsilon = {epsilon!r}, error = {error!r}\n"
            "  do:     give such as relative_error=0.05, epsilon=1.0"
        )
