"""The PostgreSQL door of a service: connections, TLS, log-in, and cancel requests."""

import asyncio
import hmac
import secrets
import ssl
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache, partial
from itertools import count

from sfumato.errors import NotAuthenticated, SfumatoError
from sfumato.server.configuration import Configuration, Listen
from sfumato.server.postgres import messages, scram
from sfumato.server.postgres.asker import OWN, PersonAtData, type_of
from sfumato.server.postgres.catalogue import Catalogue
from sfumato.server.postgres.messages import ProtocolError
from sfumato.server.postgres.presence import Presence
from sfumato.server.postgres.problems import error_response, problem_response
from sfumato.server.postgres.session import Session
from sfumato.server.postgres.settings import REPORTED, SETTINGS, Settings
from sfumato.server.postgres.types import Type
from sfumato.server.rights import Person
from sfumato.server.service import Service

DOOR = "postgres"
PAUSE = 0.05  # seconds between two looks whether statements have ended
LONGEST_LOGIN = 4096  # bytes of a message before the log-in
BUFFER = 1 << 14  # bytes that wait to be read, of each connection: anybody can fill it before the log-in
EACH = 10  # one person may have a tenth of all connections


class PostgresDoor:
    """Answers connections in PostgreSQL's protocol, version 3, until it is stopped."""

    def __init__(self, service: Service, configuration: Configuration, listen: Listen, tls: ssl.SSLContext | None):
        self.service, self.listen, self.tls = service, listen, tls
        self.limits = configuration.limits
        self.sessions: dict[int, tuple[bytes, Session]] = {}
        self.present: dict[str, Presence] = {}
        self.connections: set[asyncio.Task[None]] = set()
        self.numbers = count(1)
        self.server: asyncio.Server | None = None

    async def start(self) -> None:
        self.server = await asyncio.start_server(self.serve, self.listen.host, self.listen.port, limit=BUFFER)

    @property
    def port(self) -> int:
        """The port that it listens on, which the system chose if 0 was asked for."""
        assert self.server is not None
        return int(self.server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Statements under way are answered; then connections end."""
        assert self.server is not None
        self.server.close()
        while any(session.running is not None for _, session in self.sessions.values()):
            await asyncio.sleep(PAUSE)
        for task in self.connections:
            task.cancel()
        await asyncio.gather(*self.connections, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its first byte to its last. Whatever it sends, only it ends."""
        own = asyncio.current_task()
        assert own is not None
        self.connections.add(own)
        try:
            if len(self.connections) > self.limits.connections:
                writer.write(error_response("53300", "too many connections", severity="FATAL"))
                return
            await self.converse(reader, writer)
        except ProtocolError as problem:
            writer.write(problem_response(problem, "FATAL"))
        except asyncio.CancelledError:
            writer.write(error_response("57P01", "the service stops", severity="FATAL"))
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError, ssl.SSLError):
            pass
        finally:
            self.connections.discard(own)
            with suppress(Exception):
                await asyncio.wait_for(writer.drain(), 1.0)
            writer.close()

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(self.limits.patience):
            asked = await self.startup(reader, writer)
            if asked is None:
                return
            person = await self.log_in(reader, writer, asked)
        if person is None:
            return
        session = self.session(reader, writer, person, asked)
        here = session.present
        if len(here.open) >= max(1, self.limits.connections // EACH):
            writer.write(error_response("53300", "too many connections of one person", severity="FATAL"))
            return
        here.open.add(session)
        try:
            await self.answer(writer, session)
        finally:
            here.open.discard(session)
            if not here.open:
                self.present.pop(person.name, None)

    def session(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, person: Person, asked: Mapping[str, str]
    ) -> Session:
        """The conversation with somebody who has logged in."""
        data = asked["database"]
        asker = PersonAtData(self.service, person, data, self.catalogue(data))
        present = self.present.setdefault(person.name, Presence())
        return Session(reader, writer, asker, self.service.call, Settings.of(asked), present)

    async def answer(self, writer: asyncio.StreamWriter, session: Session) -> None:
        number, secret = next(self.numbers) & 0x7FFFFFFF, secrets.token_bytes(4)
        self.sessions[number] = secret, session
        try:
            writer.write(b"".join(messages.parameter_status(name, SETTINGS[own]) for name, own in REPORTED.items()))
            writer.write(messages.key_data(number, secret) + messages.ready(b"I"))
            await session.run()
        finally:
            del self.sessions[number]

    async def startup(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> dict[str, str] | None:
        """What a client says of itself; None if it only wanted to cancel."""
        secure = False
        while True:
            code, fields = await messages.read_startup(reader)
            context = self.tls
            if code in (messages.SSL_REQUEST, messages.GSS_REQUEST):
                accepted = code == messages.SSL_REQUEST and context is not None and not secure
                if getattr(reader, "_buffer", b""):  # bytes that were sent before TLS could be forged
                    raise ProtocolError("data before TLS began")
                writer.write(b"S" if accepted else b"N")
                await writer.drain()
                if accepted and context is not None:
                    await writer.start_tls(context)
                    secure = True
            elif code == messages.CANCEL_REQUEST:
                self.cancel(fields.int32(), fields.rest)
                return None
            elif code >> 16 == 3:
                if context is not None and not secure:
                    writer.write(
                        error_response("28000", "this service wants TLS", hint="sslmode=require", severity="FATAL")
                    )
                    return None
                return self.asked(fields, code, writer)
            else:
                raise ProtocolError("only version 3 of the protocol is spoken here")

    def asked(self, fields: messages.Fields, code: int, writer: asyncio.StreamWriter) -> dict[str, str]:
        found: dict[str, str] = {}
        while name := fields.text():
            found[name] = fields.text()
        unknown = [name for name in found if name.startswith("_pq_.")]
        if code != messages.PROTOCOL or unknown:  # NegotiateProtocolVersion
            writer.write(
                messages.message(b"v", messages.int32(0), messages.int32(len(unknown)), *map(messages.text, unknown))
            )
        if found.get("replication", "false").lower() not in ("false", "off", "no", "0"):
            raise ProtocolError("replication is not spoken here")
        found.setdefault("database", found.get("user", ""))
        return found

    async def log_in(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: Mapping[str, str]
    ) -> Person | None:
        """SCRAM-SHA-256 with a token as the password."""
        who, data = asked.get("user", ""), asked["database"]
        first = await self.service.call(self.service.sign_in.challenge, who, data)
        exchange = scram.Exchange(first.salt, first.iterations)
        writer.write(messages.authentication(10, messages.text(scram.NAME), b"\0"))
        fields = await self.password_message(reader)
        if fields.text() != scram.NAME:
            raise ProtocolError("this login needs SCRAM-SHA-256")
        writer.write(messages.authentication(11, exchange.challenge(fields.value() or b"")))
        signed, proof = exchange.proof((await self.password_message(reader)).rest)
        try:
            prove = partial(self.service.sign_in.prove, who, data, signed, proof, door=DOOR)
            person, signature = await self.service.call(prove)
        except NotAuthenticated:
            await asyncio.sleep(self.service.sign_in.delay(str(writer.get_extra_info("peername", ("?",))[0])))
            writer.write(error_response("28P01", "this name and token do not open this data set", severity="FATAL"))
            return None
        except SfumatoError as problem:
            writer.write(problem_response(problem, "FATAL"))
            return None
        writer.write(messages.authentication(12, scram.signed(signature)) + messages.authentication(0))
        return person

    async def password_message(self, reader: asyncio.StreamReader) -> messages.Fields:
        kind, fields = await messages.read_message(reader, LONGEST_LOGIN)
        if kind != b"p":
            raise ProtocolError("a login was expected")
        return fields

    def cancel(self, number: int, secret: bytes) -> None:
        """Stop waiting for a question. What was charged stays charged, and its answer is stored."""
        known, session = self.sessions.get(number, (b"", None))
        if session is not None and hmac.compare_digest(known, secret) and session.running is not None:
            session.running.cancel()

    def catalogue(self, data: str) -> Catalogue:
        """The catalogue of a data set under the policy in force."""
        tables = self.service.data[data].curator.policy.tables
        return catalogue_of(
            data, tuple((name, tuple((c, type_of(d)) for c, d in one.columns.items())) for name, one in tables.items())
        )


@lru_cache(8)
def catalogue_of(data: str, tables: tuple[tuple[str, tuple[tuple[str, Type], ...]], ...]) -> Catalogue:
    """Made once for each policy; all connections share it. Its process ends when nobody has it any more."""
    return Catalogue(data, {name: dict(columns) for name, columns in tables}, OWN)
