"""One connection of the PostgreSQL door: log in, then questions by the simple or the extended protocol.

No decision about privacy is taken here. Describe never spends: names and types of columns follow from the text and the
policy alone. What is not a question (settings, transactions, catalogues) costs nothing and reads no data. Texts are
read in threads, one text of a person at a time: a long one takes a tenth of a second, in which nobody else waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ParamSpec, Protocol, TypeVar, cast

from sqlglot import exp

from sfumato.curator.answer import Answer, Cell
from sfumato.errors import QueryRefused, SfumatoError
from sfumato.server.postgres import messages
from sfumato.server.postgres.copying import Options, copy_messages
from sfumato.server.postgres.messages import Fields, ProtocolError
from sfumato.server.postgres.presence import Presence, size_of
from sfumato.server.postgres.problems import NoSuchName, error_response, problem_response
from sfumato.server.postgres.results import Columns, Result, Shape, asked, describe_row, notices, spread
from sfumato.server.postgres.settings import Settings
from sfumato.server.postgres.statements import Kind, Statement, fill, parameter_types, sort, split, values_of
from sfumato.server.postgres.transaction import OUTSIDE, Transaction
from sfumato.server.postgres.types import Type

P = ParamSpec("P")
T = TypeVar("T")

MOST_PREPARED, MOST_PORTALS = 1000, 100
MOST_KEPT = 1 << 19  # characters of all texts that a connection keeps


class Asker(Protocol):
    """One person at one data set: everything that a session needs. Its methods may block."""

    @property
    def columns(self) -> Mapping[str, Type]: ...  # of all tables, for the types of parameters

    def describe(self, text: str) -> Shape: ...

    def ask(self, text: str, settings: Mapping[str, str]) -> Answer: ...

    def look_up(self, tree: exp.Expr, settings: Mapping[str, str]) -> tuple[Columns, list[tuple[Cell, ...]]]: ...


@dataclass(frozen=True)
class Prepared:
    """A statement whose parameters are still open."""

    text: str
    parameters: list[Type]


@dataclass
class Portal:
    """A statement with its parameters filled in; `result` once it was executed."""

    statement: Statement
    formats: Sequence[int]
    result: Result | None = None
    held: bool = False  # a cursor WITH HOLD: it outlives its transaction
    size: int = 0  # of rows that wait to be fetched


@dataclass(eq=False)
class Session:
    """Answers the messages of one client, after its login."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    asker: Asker
    blocking: Callable[..., Awaitable[object]]  # runs a function outside the event loop
    settings: Settings
    present: Presence = field(default_factory=Presence)  # this person, at all of their connections
    transaction: Transaction = field(default_factory=Transaction)
    prepared: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    skipping: bool = False  # after an error, until the next Sync
    text: str = ""  # of the statement under way, in which errors have a position
    running: "asyncio.Task[None] | None" = None  # what a cancel request stops

    async def run(self) -> None:
        """Until the client says good-bye."""
        handlers = {
            b"P": self.parse, b"B": self.bind, b"D": self.describe, b"E": self.execute, b"C": self.close,
        }  # fmt: skip
        while True:
            kind, fields = await messages.read_message(self.reader)
            if kind == b"X":
                return
            if kind == b"Q":
                self.skipping = False
                await self.simple(fields.text())
            elif kind == b"S":
                self.skipping = False
                if self.transaction.state == OUTSIDE:  # portals live as long as their transaction
                    self.end_portals()
                self.send(messages.ready(self.transaction.state))
            elif kind in handlers:
                if not self.skipping:
                    self.skipping = not await self.guarded(partial(handlers[kind], fields))
            elif kind not in (b"H", b"d", b"c", b"f"):  # Flush; data of a copy that was refused
                raise ProtocolError(f"a message of unknown kind {kind!r}")
            await self.writer.drain()

    def send(self, *parts: bytes) -> None:
        self.writer.write(b"".join(parts))

    async def read(self, function: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """What a function makes of a text."""
        async with self.present.reading:
            return cast(T, await self.blocking(function, *args, **named))

    async def guarded(self, work: Callable[[], Coroutine[object, object, None]]) -> bool:
        """Do this; an error is reported, and ends a transaction. Did it succeed?"""
        try:
            self.running = asyncio.ensure_future(work())
            await self.running
            return True
        except asyncio.CancelledError:
            if self.running is not None and self.running.cancelled() and not asyncio.current_task().cancelling():  # type: ignore[union-attr]
                self.send(error_response("57014", "cancelled; what was charged stays charged, and its answer is kept"))
            else:
                raise
        except ProtocolError:
            raise
        except SfumatoError as problem:
            self.send(problem_response(problem, text=self.text))
        except Exception:
            self.send(error_response("XX000", "this failed; details are in the operator's log"))
        finally:
            self.running = None
        self.transaction.fail()
        return False

    # ---- the simple protocol ------------------------------------------------------------------------------------

    async def simple(self, text: str) -> None:
        parts: list[str] = []
        if await self.guarded(partial(self.simple_parts, text, parts)):
            for part in parts:
                if not await self.guarded(partial(self.simple_text, part)):
                    break
                await self.writer.drain()
        self.send(messages.ready(self.transaction.state))

    async def simple_parts(self, text: str, parts: list[str]) -> None:
        self.text = text
        parts += await self.read(split, text)
        if not parts:
            self.send(messages.message(b"I"))

    async def simple_text(self, text: str) -> None:
        self.text = text
        await self.simple_statement(await self.read(sort, text))

    async def simple_statement(self, statement: Statement) -> None:
        if statement.kind is Kind.COPY:
            options = Options.of(statement.words[0])  # before anything is charged
            result = await self.result(await self.read(sort, statement.text))
            self.send(notices(result), *copy_messages(result.columns, result.rows, options))
            return
        result = await self.result(statement)
        formats = [0] * len(result.columns)
        self.send(notices(result))
        if result.columns:
            self.send(describe_row(result.columns, formats))
        self.send_rows(result, formats, 0)

    # ---- the extended protocol ----------------------------------------------------------------------------------

    async def parse(self, fields: Fields) -> None:
        name, text, stated = fields.text(), fields.text(), fields.int32s()
        self.text = text
        if len(await self.read(split, text)) > 1:
            raise QueryRefused("a prepared statement is one statement.")
        self.require_room(len(text), len(self.prepared) < MOST_PREPARED or name in self.prepared)
        parameters = await self.read(parameter_types, text, stated, self.asker.columns)
        self.prepared[name] = Prepared(text, parameters)
        self.send(messages.message(b"1"))

    async def bind(self, fields: Fields) -> None:
        portal, name = fields.text(), fields.text()
        prepared = self.known(name)
        formats, count = fields.int16s(), fields.count()
        values = [fields.value() for _ in range(count)]
        if count != len(prepared.parameters):
            raise ProtocolError("another number of parameters than was stated")
        how = spread(formats, count)
        cells = [kind.decode(raw, f) for kind, raw, f in zip(prepared.parameters, values, how, strict=True)]
        self.require_room(len(prepared.text), len(self.portals) < MOST_PORTALS or portal in self.portals)
        statement = await self.read(filled, prepared.text, cells)
        self.portals[portal] = Portal(statement, fields.int16s())
        self.send(messages.message(b"2"))

    async def describe(self, fields: Fields) -> None:
        kind, name = fields.take(1), fields.text()
        if kind == b"S":
            prepared = self.known(name)
            self.send(messages.parameter_description([one.oid for one in prepared.parameters]))
            statement = await self.read(filled, prepared.text, [None] * len(prepared.parameters))
            columns = await self.columns_of(statement)
            self.send(describe_row(columns, [0] * len(columns)) if columns else messages.message(b"n"))
            return
        portal = self.portal(name)
        columns = await self.columns_of(portal.statement)
        self.send(describe_row(columns, spread(portal.formats, len(columns))) if columns else messages.message(b"n"))

    async def execute(self, fields: Fields) -> None:
        portal, most = self.portal(fields.text()), fields.int32()
        if portal.statement.kind is Kind.COPY:
            await self.simple_statement(portal.statement)
            return
        if portal.statement.kind is Kind.EMPTY:
            self.send(messages.message(b"I"))
            return
        result = await self.result_of(portal)
        self.send_rows(result, spread(portal.formats, len(result.columns)), max(0, most))
        portal.size = size_of(result)

    async def close(self, fields: Fields) -> None:
        kind, name = fields.take(1), fields.text()
        (self.prepared if kind == b"S" else self.portals).pop(name, None)
        self.send(messages.message(b"3"))

    def require_room(self, more: int, few: bool) -> None:
        """Raises if this connection keeps too much already."""
        kept = sum(len(one.text) for one in self.prepared.values())
        kept += sum(len(one.statement.text) for one in self.portals.values())
        if not few or kept + more > MOST_KEPT:
            raise QueryRefused(
                "this connection keeps too many statements.\n"
                f"  found:  more than {MOST_PREPARED:,} prepared, {MOST_PORTALS} portals or {MOST_KEPT:,} characters\n"
                "  do:     close some (DEALLOCATE, or Sync)"
            )

    def known(self, name: str) -> Prepared:
        if name not in self.prepared:
            raise NoSuchName("26000", "there is no prepared statement of this name.")
        return self.prepared[name]

    def portal(self, name: str) -> Portal:
        if name not in self.portals:
            raise NoSuchName("34000", "there is no portal or cursor of this name.")
        return self.portals[name]

    async def result_of(self, portal: Portal) -> Result:
        """What a portal gave; at its first use it is asked for, and its notices are sent."""
        if portal.result is None:
            portal.result = await self.result(portal.statement)
            portal.size = size_of(portal.result)
            self.send(notices(portal.result))
        return portal.result

    def end_portals(self) -> None:
        """The end of a transaction, which cursors WITH HOLD outlive."""
        self.portals = {name: one for name, one in self.portals.items() if one.held}

    def unread(self) -> int:
        """Bytes of results that wait here."""
        waiting = self.writer.transport.get_write_buffer_size()
        return waiting + sum(one.size for one in self.portals.values())

    def send_rows(self, result: Result, formats: Sequence[int], most: int) -> None:
        """Rows, at most so many (0: all), and how it ended."""
        chunk = result.rows[result.sent : result.sent + most if most else None]
        kinds = [kind for _, kind in result.columns]
        for row in chunk:
            self.send(messages.data_row([k.encode(c, f) for k, c, f in zip(kinds, row, formats, strict=True)]))
        result.sent += len(chunk)
        rest = result.sent < len(result.rows)
        self.send(messages.message(b"s") if rest else messages.command_complete(result.tag))
        if not rest:
            result.rows, result.sent = (), 0  # a portal that lasts need not keep them

    # ---- what a statement gives ---------------------------------------------------------------------------------

    async def columns_of(self, statement: Statement) -> Columns:
        """Names and types, without running a question."""
        match statement.kind:
            case Kind.QUESTION:
                return (await self.shape_of(statement)).columns
            case Kind.CATALOGUE | Kind.SHOW:
                return (await self.result(statement)).columns
            case Kind.FETCH:
                return await self.columns_of(self.portal(statement.words[0]).statement)
            case Kind.EXECUTE:
                return await self.columns_of(await self.filled_by_name(statement.text, *statement.words))
        return []

    async def shape_of(self, question: Statement) -> Shape:
        """The columns of an answer, with intervals unless `SET sfumato.intervals = off`."""
        found = await self.read(self.asker.describe, question.text)
        return replace(found, shown=self.settings.shows_intervals)

    async def result(self, statement: Statement) -> Result:
        self.transaction.require_sound(statement.words[1] if statement.kind is Kind.COMMAND else "")
        match statement.kind:
            case Kind.COMMAND:
                return self.command(*statement.words)
            case Kind.SET:
                return self.settings.set(*statement.words)
            case Kind.RESET:
                return self.settings.reset(*statement.words)
            case Kind.SHOW:
                return self.settings.show(*statement.words)
            case Kind.DECLARE:
                return await self.declare(statement.text, *statement.words)
            case Kind.FETCH:
                return await self.fetch(*statement.words)
            case Kind.PREPARE:
                return await self.prepare(statement.text, *statement.words)
            case Kind.EXECUTE:
                return await self.result(await self.filled_by_name(statement.text, *statement.words))
            case Kind.CATALOGUE:
                found = await self.read(self.catalogue_result, statement)
            case Kind.QUESTION:
                shape = await self.shape_of(statement)
                answer = await self.blocking(self.asker.ask, statement.text, dict(self.settings.values))
                found = asked(shape, cast(Answer, answer))
            case _:
                return Result(tag="")
        self.present.require_room(found)
        return found

    def catalogue_result(self, statement: Statement) -> Result:
        assert statement.tree is not None
        columns, rows = self.asker.look_up(statement.tree, dict(self.settings.values))
        return Result(columns, rows, f"SELECT {len(rows)}")

    def command(self, tag: str, effect: str, name: str) -> Result:
        """What has no answer: the course of a transaction, and the end of a cursor or of a prepared statement."""
        if effect in ("close", "deallocate"):
            kept = self.portals if effect == "close" else self.prepared
            for one in list(kept) if name == "all" else [name]:
                kept.pop(one, None)
        if effect in ("commit", "rollback"):
            self.end_portals()
        return Result(tag=self.transaction.run(tag, effect, name))

    async def prepare(self, text: str, name: str) -> Result:
        """PREPARE name AS SELECT …: the same as a message that does it, under the same limits."""
        if name in self.prepared:
            raise NoSuchName("42P05", f"there is a prepared statement {name!r} already.\n  do:     DEALLOCATE it first")
        self.require_room(len(text), len(self.prepared) < MOST_PREPARED)
        parameters = await self.read(parameter_types, text, (), self.asker.columns)
        prepared = Prepared(text, parameters)
        statement = await self.read(filled, text, [None] * len(parameters))
        if statement.kind not in (Kind.QUESTION, Kind.CATALOGUE):
            raise QueryRefused("only a SELECT can be prepared.\n  do:     PREPARE name AS SELECT …")
        await self.columns_of(statement)
        self.prepared[name] = prepared
        return Result(tag="PREPARE")

    async def filled_by_name(self, words: str, name: str) -> Statement:
        """EXECUTE name (…): a prepared SELECT with these literals."""
        prepared = self.known(name)
        cells = await self.read(values_of, words, prepared.parameters)
        statement = await self.read(filled, prepared.text, cells)
        if statement.kind not in (Kind.QUESTION, Kind.CATALOGUE):
            raise QueryRefused("only a SELECT can be executed by name.")
        return statement

    async def declare(self, text: str, name: str, hold: str) -> Result:
        """A cursor: a portal with a name, asked at its first FETCH. What it gives is described here, and is free."""
        statement = await self.read(sort, text)
        if statement.kind not in (Kind.QUESTION, Kind.CATALOGUE):
            raise QueryRefused("a cursor is for one SELECT.\n  do:     DECLARE name CURSOR FOR SELECT …")
        await self.columns_of(statement)
        self.require_room(len(text), len(self.portals) < MOST_PORTALS)
        self.portals[name] = Portal(statement, [], held=bool(hold))
        return Result(tag="DECLARE CURSOR")

    async def fetch(self, name: str, count: str) -> Result:
        """The next rows of a cursor."""
        portal = self.portal(name)
        result = await self.result_of(portal)
        most = len(result.rows) if count == "ALL" else 1 if count == "NEXT" else int(count)
        rows = result.rows[result.sent : result.sent + most]
        result.sent += len(rows)
        if result.sent == len(result.rows):  # a cursor that lasts need not keep them
            result.rows, result.sent, portal.size = (), 0, 0
        return Result(result.columns, rows, f"FETCH {len(rows)}")


def filled(text: str, cells: Sequence[Cell]) -> Statement:
    """A prepared text with these parameters."""
    return sort(fill(text, cells))
