"""One connection of the PostgreSQL door: log in, then questions by the simple or the extended protocol.

No decision about privacy is taken here. Describe never spends: names and types of columns follow from the text and the
policy alone. What is not a question (settings, transactions, catalogues) costs nothing and reads no data. Texts are
read in threads, one text of a person at a time: a long one takes a tenth of a second, in which nobody else waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec, Protocol, TypeVar, cast

from sqlglot import exp

from sfumato.curator.answer import Answer, Cell
from sfumato.errors import QueryRefused, SfumatoError
from sfumato.server.postgres import messages, types
from sfumato.server.postgres.copying import copy_messages
from sfumato.server.postgres.messages import Fields, ProtocolError
from sfumato.server.postgres.problems import TransactionFailed, error_response, problem_response
from sfumato.server.postgres.results import Columns, Result, asked, describe_row, notices, spread
from sfumato.server.postgres.statements import Kind, Statement, fill, parameter_types, sort, split
from sfumato.server.postgres.types import Type

P = ParamSpec("P")
T = TypeVar("T")

MOST_PREPARED, MOST_PORTALS, MOST_SETTINGS = 1000, 100, 200
MOST_KEPT = 1 << 19  # characters of all texts that a connection keeps
LONGEST_SETTING = 1000
SETTINGS = {
    "server_version": "16.0", "server_encoding": "UTF8", "client_encoding": "UTF8", "datestyle": "ISO, MDY",
    "timezone": "UTC", "integer_datetimes": "on", "standard_conforming_strings": "on", "transaction_isolation":
    "serializable", "transactionisolationlevel": "serializable", "search_path": '"$user", public',
    "intervalstyle": "postgres", "is_superuser": "off", "default_transaction_read_only": "on",
    "in_hot_standby": "off", "application_name": "", "max_identifier_length": "63", "lc_collate": "C",
}  # fmt: skip
REPORTED = {
    "server_version": "server_version", "server_encoding": "server_encoding", "client_encoding": "client_encoding",
    "DateStyle": "datestyle", "TimeZone": "timezone", "integer_datetimes": "integer_datetimes",
    "standard_conforming_strings": "standard_conforming_strings", "IntervalStyle": "intervalstyle",
}  # fmt: skip


class Asker(Protocol):
    """One person at one data set: everything that a session needs. Its methods may block."""

    @property
    def columns(self) -> Mapping[str, Type]: ...  # of all tables, for the types of parameters

    def describe(self, text: str) -> Columns: ...

    def ask(self, text: str, settings: Mapping[str, str]) -> Answer: ...

    def look_up(self, tree: exp.Expr) -> tuple[Columns, list[tuple[Cell, ...]]]: ...


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
    columns: Columns | None = None


@dataclass(eq=False)
class Session:
    """Answers the messages of one client, after its login."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    asker: Asker
    blocking: Callable[..., Awaitable[object]]  # runs a function outside the event loop
    settings: dict[str, str]
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)  # of this person, at all of their connections
    state: bytes = b"I"
    prepared: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    skipping: bool = False  # after an error, until the next Sync
    text: str = ""  # of the statement under way, in which errors have a position
    running: "asyncio.Task[None] | None" = None  # what a cancel request stops
    first_settings: dict[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.first_settings = dict(self.settings)

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
                if self.state == b"I":  # portals live as long as their transaction
                    self.portals.clear()
                self.send(messages.ready(self.state))
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
        async with self.reading:
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
        self.state = b"E" if self.state != b"I" else self.state
        return False

    # ---- the simple protocol ------------------------------------------------------------------------------------

    async def simple(self, text: str) -> None:
        parts: list[str] = []
        if await self.guarded(partial(self.simple_parts, text, parts)):
            for part in parts:
                if not await self.guarded(partial(self.simple_text, part)):
                    break
                await self.writer.drain()
        self.send(messages.ready(self.state))

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
            result = await self.result(await self.read(sort, statement.text))
            self.send(notices(result), *copy_messages(result.columns, result.rows, statement.words[0]))
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
        portal.columns = columns
        self.send(describe_row(columns, spread(portal.formats, len(columns))) if columns else messages.message(b"n"))

    async def execute(self, fields: Fields) -> None:
        portal, most = self.portal(fields.text()), fields.int32()
        if portal.statement.kind is Kind.COPY:
            await self.simple_statement(portal.statement)
            return
        if portal.statement.kind is Kind.EMPTY:
            self.send(messages.message(b"I"))
            return
        if portal.result is None:
            portal.result = await self.result(portal.statement)
            self.send(notices(portal.result))
        self.send_rows(portal.result, spread(portal.formats, len(portal.result.columns)), max(0, most))

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
            raise QueryRefused("there is no prepared statement of this name.")
        return self.prepared[name]

    def portal(self, name: str) -> Portal:
        if name not in self.portals:
            raise QueryRefused("there is no portal of this name.")
        return self.portals[name]

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
                return await self.read(self.asker.describe, statement.text)
            case Kind.CATALOGUE | Kind.SHOW:
                return (await self.result(statement)).columns
        return []

    async def result(self, statement: Statement) -> Result:
        if self.state == b"E" and not (statement.kind is Kind.COMMAND and statement.words[1] == "end"):
            raise TransactionFailed("this transaction failed; commands are ignored until it ends.\n  do:     ROLLBACK")
        match statement.kind:
            case Kind.COMMAND:
                return self.command(*statement.words)
            case Kind.SET:
                return self.set(*statement.words)
            case Kind.RESET:
                return self.reset(*statement.words)
            case Kind.SHOW:
                (name,) = statement.words
                return Result([(name, types.TEXT)], [(self.settings.get(name, SETTINGS.get(name, "")),)], "SHOW")
            case Kind.CATALOGUE:
                return await self.read(self.catalogue_result, statement)
            case Kind.QUESTION:
                columns = await self.columns_of(statement)
                answer = await self.blocking(self.asker.ask, statement.text, dict(self.settings))
                return asked(columns, answer)  # type: ignore[arg-type]
        return Result(tag="")

    def catalogue_result(self, statement: Statement) -> Result:
        assert statement.tree is not None
        columns, rows = self.asker.look_up(statement.tree)
        return Result(columns, rows, f"SELECT {len(rows)}")

    def command(self, tag: str, effect: str) -> Result:
        if effect:
            self.state = b"T" if effect == "begin" else b"I"
            self.portals.clear()
        return Result(tag=tag)

    def set(self, name: str, value: str) -> Result:
        if len(name) + len(value) > LONGEST_SETTING or (
            name not in self.settings and len(self.settings) > MOST_SETTINGS
        ):
            raise QueryRefused(f"settings are short, and at most {MOST_SETTINGS}.")
        self.settings[name] = value
        return Result(tag="SET")

    def reset(self, tag: str, name: str) -> Result:
        """One setting, or all of them, as they were when the connection began: a pool gives it to somebody else."""
        if name == "all":
            self.settings = dict(self.first_settings)
        elif name in self.first_settings:
            self.settings[name] = self.first_settings[name]
        else:
            self.settings.pop(name, None)
        return Result(tag="DISCARD ALL" if tag == "DISCARD" else tag)


def filled(text: str, cells: Sequence[Cell]) -> Statement:
    """A prepared text with these parameters."""
    return sort(fill(text, cells))
