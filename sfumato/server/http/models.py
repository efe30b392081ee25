"""The forms of requests and replies, as OpenAPI describes them. They state types and sizes; the curator decides."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

Text = Annotated[str, Field(min_length=1, max_length=65_536)]
Positive = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
DataName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,62}$")]
EXAMPLE: dict[str, JsonValue] = {"sql": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "epsilon": 0.1}


POLICY = """\
version = 1
[budget]
epsilon = 2.0
delta = 1e-6

[analysts]
ann = 0.25

[tables.visits]
unit = "patient_id"
[tables.visits.columns]
patient_id = {type = "number"}
ward = {type = "text", keys = ["north", "south"]}
stay = {low = 0, high = 30}
"""


def with_example(example: dict[str, JsonValue]) -> ConfigDict:
    """The same as for all requests, with one of them for the description."""
    return ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [example]})


class Strict(BaseModel):
    """No other fields than these, and no other types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Question(Strict):
    """A question, with its price (`epsilon`) or its accuracy (`error`, or `relative_error` up to a price)."""

    model_config = with_example(EXAMPLE)
    sql: Text
    data: DataName | None = Field(None, description="The data set; may be left out if the token opens one only.")
    epsilon: Positive | None = Field(None, description="The price in ε.")
    error: Positive | None = Field(None, description="The 95 % error (±) of counts and sums.")
    relative_error: Positive | None = Field(None, description="A share, such as 0.05; `epsilon` is then the limit.")


class Supposed(Strict):
    """Questions that might be asked: one like this, for this price, so many times."""

    model_config = with_example({**EXAMPLE, "count": 10})
    sql: Text
    epsilon: Positive
    count: Annotated[int, Field(ge=1, le=10_000)] = 1
    data: DataName | None = None


class BoundsWanted(Strict):
    """A column of numbers, such as visits.stay, and the price of bounds for it."""

    model_config = with_example({"column": "visits.stay", "epsilon": 0.1})
    column: Annotated[str, Field(min_length=3, max_length=200)]
    epsilon: Positive
    data: DataName | None = None


class PolicyText(Strict):
    """A policy in TOML."""

    model_config = with_example({"text": POLICY})
    text: Annotated[str, Field(min_length=1, max_length=120_000)]
    data: DataName | None = None


class ReviewedPolicy(PolicyText):
    """A policy, and the one in force with which it was compared: a hash that /v1/policy/check gave."""

    model_config = with_example({"text": POLICY, "based_on": 64 * "0"})
    based_on: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class NewToken(Strict):
    """Who gets a token, and for how long."""

    model_config = with_example({"who": "ann", "role": "analyst", "days": 30.0})
    who: Name
    role: Literal["owner", "steward", "analyst", "auditor"]
    days: Annotated[float, Field(gt=0, le=3650, allow_inf_nan=False)] = 90.0
    data: DataName | None = None


class AnswerReply(BaseModel):
    """Columns and rows: an aggregate `n` is followed by `n low` and `n high`, which hold the truth at 95 %."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"id": "0f3c…", "data": "clinic", "columns": ["ward", "n", "n low", "n high"],
                 "rows": [["north", 812, 770, 854]], "epsilon": 0.1, "delta": 1e-9, "charged": True}
            ]
        }
    )  # fmt: skip
    id: str
    data: str
    columns: list[str]
    rows: list[list[float | int | str | bool | None]]
    epsilon: float
    delta: float
    charged: bool
    left: str = ""
    odds: str = ""
    note: str = ""
    coverage: dict[str, float] = {}
    policy: list[Any] = []
    left_out: dict[str, Any] | None = None


class Later(BaseModel):
    """The answer is still being made; it will be at `answer`."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": 32 * "0", "answer": f"/v1/answers/{32 * '0'}",
                                                               "status": "running"}]})  # fmt: skip
    id: str
    answer: str
    status: Literal["running"] = "running"


class PreviewReply(BaseModel):
    """What a question would cost and how good its answer would be; nothing was charged, and no data were read."""

    epsilon: float
    delta: float
    free: bool
    fits: bool
    left: float
    after: float
    errors: dict[str, float | None]
    threshold: float | None
    lost: list[str]
    largest: float | None
    odds_before: str
    odds_after: str
    policy: list[Any]
    text: str


class BudgetReply(BaseModel):
    """Promised, spent and left."""

    model_config = ConfigDict(json_schema_extra={"examples": [
        {"epsilon": 2.0, "delta": 1e-6, "spent": 0.0706, "left": 0.99, "who": "ann", "largest": 1.095,
         "question_delta": 1e-9, "odds": "An attacker who sees every answer …"}
    ]})  # fmt: skip
    epsilon: float
    delta: float
    spent: float
    left: float
    who: str
    odds: str
    largest: float
    question_delta: float


class Problem(BaseModel):
    """RFC 9457. `code` is the name of an error of sfumato; `charged` says whether anything was."""

    model_config = ConfigDict(json_schema_extra={"examples": [
        {"type": "/v1/problems/QueryRefused", "title": "A question is refused because of its text, the policy or "
         "the ledger.", "status": 422, "detail": "SELECT * would show rows.\n  do:     ask for keys and aggregates",
         "code": "QueryRefused", "charged": False}
    ]})  # fmt: skip
    type: str
    title: str
    status: int
    detail: str
    code: str
    charged: bool = False
