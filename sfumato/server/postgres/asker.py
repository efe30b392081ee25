"""One person at one data set: what a session of the PostgreSQL door asks for, as acts of the service."""

import datetime
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from sfumato.curator.answer import Answer, Cell
from sfumato.curator.expression_intervals import has_interval
from sfumato.curator.layout import is_plain_aggregate
from sfumato.curator.planner import Wanted
from sfumato.errors import InvalidParameter, UnboundedColumn
from sfumato.loss.describe import from_json
from sfumato.server.postgres import types
from sfumato.server.postgres.catalogue import Catalogue
from sfumato.server.postgres.results import Columns, Shape, postgres_name
from sfumato.server.postgres.shadow import Table
from sfumato.server.postgres.spelling import respell
from sfumato.server.postgres.statements import aliases
from sfumato.server.postgres.types import Type
from sfumato.server.rights import Person
from sfumato.server.service import Service
from sfumato.sql.domains import Domain
from sfumato.sql.domains import Kind as DomainKind
from sfumato.sql.expressions import Expression, Output
from sfumato.sql.question import Question

OUTER_TYPES = {"BOOLEAN": types.BOOL, "DOUBLE": types.FLOAT8, "FLOAT": types.FLOAT8, "HUGEINT": types.FLOAT8,
               "DATE": types.DATE, "TIMESTAMP": types.TIMESTAMP,
               **dict.fromkeys(("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UINTEGER"), types.INT8)}  # fmt: skip
OWN = {  # the schema sfumato: columns with their types in DuckDB
    "budget": {"epsilon": "DOUBLE", "delta": "DOUBLE", "spent": "DOUBLE", "left": "DOUBLE", "who": "VARCHAR",
               "odds": "VARCHAR", "largest": "DOUBLE", "question_delta": "DOUBLE"},
    "ledger": {"line": "BIGINT", "time": "TIMESTAMP", "who": "VARCHAR", "act": "VARCHAR", "epsilon": "DOUBLE",
               "question": "VARCHAR"},
    "catalogue": {"table": "VARCHAR", "column": "VARCHAR", "type": "VARCHAR", "low": "DOUBLE", "high": "DOUBLE"},
}  # fmt: skip
TYPE_OF = {DomainKind.TEXT: types.TEXT, DomainKind.TRUTH: types.BOOL, DomainKind.DATE: types.TIMESTAMP}


def type_of(domain: Domain) -> Type:
    """The type of a column. A policy does not tell days from moments, so all are moments."""
    return TYPE_OF.get(domain.kind, types.FLOAT8)


def shape_of(question: Question, named: Collection[str]) -> Shape:
    """The columns of an answer, from the text and the policy alone; `named` are names that the text gives."""
    outer = question.outer
    if outer is not None:
        kinds = [outer_type(kind) for _, kind in outer.columns]
        ends = [place in outer.with_interval for place in range(len(kinds))]
        names = [name for name, _ in outer.columns]
    else:
        kinds = [types.INT8 if is_count(question, e) else type_of(e.domain) for _, e in question.columns]
        ends = [shows_interval(question, e) for _, e in question.columns]
        names = [name for name, _ in question.columns]
    titles = [name if name in named else postgres_name(name) for name in names]
    return Shape(tuple(zip(titles, kinds, strict=True)), tuple(ends))


def shows_interval(question: Question, expression: Expression) -> bool:
    plain = isinstance(expression, Output) and is_plain_aggregate(question, expression)
    return plain or has_interval(question, expression)


def outer_type(kind: str) -> Type:
    """The type of a column of SQL over released values, which DuckDB names."""
    return OUTER_TYPES.get(kind, types.FLOAT8 if kind.startswith("DECIMAL") else types.TEXT)


def is_count(question: Question, expression: Expression) -> bool:
    place = expression.place - len(question.plan.keys) if isinstance(expression, Output) else -1
    return place >= 0 and question.aggregates[place].is_count


@dataclass(eq=False)
class PersonAtData:
    """One person at one data set: what a session asks for, as acts of the service."""

    service: Service
    person: Person
    data: str
    catalogue: Catalogue

    @cached_property
    def columns(self) -> Mapping[str, Type]:
        tables = self.service.data[self.data].curator.policy.tables.values()
        return {name: type_of(domain) for table in tables for name, domain in table.columns.items()}

    def respell(self, text: str) -> str:
        return respell(text, self.data, self.service.data[self.data].curator.policy.tables)

    def describe(self, text: str) -> Shape:
        """The columns of the answer. Reads no data, and charges nothing."""
        self.service.require(self.person, self.data, "catalogue")
        planner, text = self.service.data[self.data].curator.planner, self.respell(text)
        try:
            wanted = Wanted.of(text)
        except InvalidParameter:
            wanted = Wanted.of(text, 1.0)  # what it may cost does not change its columns
        if wanted.explained:
            return Shape((("privacy", types.TEXT),), (False,))
        while True:
            try:
                return shape_of(planner.plan(wanted), aliases(text))
            except UnboundedColumn as unbounded:  # bounds that will be found do not change its columns
                planner = planner.with_bounds(((unbounded.table, unbounded.column, 0.0, 1.0),))

    def ask(self, text: str, settings: Mapping[str, str]) -> Answer:
        text = self.respell(text)
        epsilon, error, relative = (number_of(settings, name) for name in ("epsilon", "error", "relative_error"))
        try:
            return self.service.ask(self.person, self.data, text, epsilon=epsilon, error=error, relative_error=relative)
        except InvalidParameter as problem:
            if (epsilon, error, relative) != (None, None, None):
                raise
            raise InvalidParameter(
                "say how much privacy this question may cost, or how exact it must be.\n"
                "  do:     SET sfumato.epsilon = 0.1; or SET sfumato.error = 5; or connect with\n"
                "          options='-c sfumato.epsilon=0.1'"
            ) from problem

    def look_up(self, tree: exp.Expr, settings: Mapping[str, str]) -> tuple[Columns, list[tuple[Cell, ...]]]:
        """What the catalogues say. Free, but one of so many calls that a person may make."""
        with self.service.looking(self.person, self.data):
            return self.catalogue.run(tree, self.own_tables(), self.person.name, settings)

    def own_tables(self) -> Mapping[str, Callable[[], Table]]:
        return {"budget": self.budget, "ledger": self.ledger, "catalogue": self.listed_columns}

    def budget(self) -> Table:
        standing = json.loads(self.service.budget(self.person, self.data).to_json())
        return OWN["budget"], [tuple(standing[name] for name in OWN["budget"])]

    def ledger(self) -> Table:
        delta = self.service.data[self.data].curator.policy.question_delta
        rows: list[tuple[Cell, ...]] = []
        for entry in self.service.history(self.person, self.data, most=10_000):
            time, who, act, question = (entry.content.get(name) for name in ("time", "who", "kind", "question"))
            paid = from_json(str(entry.content["loss"])).epsilon(delta).upper if act == "charged" else None
            moment = datetime.datetime.fromtimestamp(float(str(time)), datetime.UTC)
            asked = self.service.audit_log.asked(self.data, entry) or question
            words = [None if word is None else str(word) for word in (who, act, asked)]
            rows.append((entry.seq, str(moment.replace(tzinfo=None)), words[0], words[1], paid, words[2]))
        return OWN["ledger"], rows

    def listed_columns(self) -> Table:
        found = self.service.catalogue(self.person, self.data)
        return OWN["catalogue"], [
            (table.name, one.name, one.type, one.low, one.high) for table in found.tables for one in table.columns
        ]


def number_of(settings: Mapping[str, str], name: str) -> float | None:
    """A number that a client has set; None if it has not."""
    words = settings.get(f"sfumato.{name}", "")
    try:
        return float(words) if words else None
    except ValueError:
        raise InvalidParameter(f"sfumato.{name} must be a number.\n  do:     SET sfumato.{name} = 0.1") from None
