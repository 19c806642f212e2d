"""A client of AMQP 0-10 on a blocking socket: sessions, commands and their completion, messages.

It is made of the project's own end of a connection, so it says nothing that is wrong; what a broken client
says is `talk_0_10`'s. Every wait ends after ``timeout`` seconds.
"""

from __future__ import annotations

import secrets
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Self, TypeVar

from attrs import define, evolve, field, frozen

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.methods import Role
from amqpgate.protocol.v0_10.connection import Tuning, offered
from amqpgate.protocol.v0_10.endpoint import SessionConnection
from amqpgate.protocol.v0_10.events import (
    CommandsCompleted,
    ConnectionClosed,
    ConnectionControl,
    ConnectionEvent,
    ConnectionFailed,
    IncomingBody,
    IncomingCommand,
    IncomingHeader,
    PeerHeader,
    SessionBegun,
    SessionEnded,
    SessionFailed,
)
from amqpgate.protocol.v0_10.session import AttachedSession
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.v0_10.codec import decode_struct32
from amqpgate.wire.v0_10.sequences import ids_of
from amqpgate.wire.v0_10.structs import Command, Control, Struct, Unknown
from amqpgate.wire.v0_10.types import EMPTY_ARRAY, Map, Value

from .dialled import dialled

C = TypeVar("C", bound=Control)

INFINITE = 0xFFFFFFFF
EXPLICIT, NONE = 0, 1
PRE_ACQUIRED = 0
CREDIT, WINDOW = 0, 1
MESSAGES, BYTES = 0, 1

#: Bytes of one read.
_READ = 256 * 1024


class Gone(Exception):
    """The peer hung up while something was expected of it."""


class Closed(Exception):
    """The peer has closed the connection; the code is as 0-9-1 has it."""

    def __init__(self, violation: ProtocolViolation) -> None:
        super().__init__(str(violation))
        self.code, self.text = violation.code, violation.text


class Refused(Exception):
    """A command has ended its session: execution.exception."""

    def __init__(self, exception: amqp.ExecutionException) -> None:
        super().__init__(str(exception))
        self.code = exception.error_code
        self.command_id = exception.command_id
        self.text = (exception.description or b"").decode()


@frozen
class Message:
    """A transfer that was received."""

    command_id: int
    transfer: amqp.MessageTransfer
    structs: tuple[Struct | Unknown, ...] = ()
    body: bytes = b""

    @property
    def delivery(self) -> amqp.DeliveryProperties:
        """Its delivery-properties."""
        return next(one for one in self.structs if isinstance(one, amqp.DeliveryProperties))

    @property
    def properties(self) -> amqp.MessageProperties | None:
        """Its message-properties."""
        return next((one for one in self.structs if isinstance(one, amqp.MessageProperties)), None)

    @property
    def headers(self) -> dict[str, object]:
        """Its application-headers, with the values alone."""
        if self.properties is None or self.properties.application_headers is None:
            return {}
        entries = self.properties.application_headers.entries
        return {name.decode(): value.value for name, value in entries}


def text(value: str) -> Value:
    """A value of a map."""
    return Value(TypeCode.STR16, value.encode())


def headers(**values: str) -> amqp.MessageProperties:
    """Message properties with application-headers that are text."""
    entries = tuple((name.encode(), text(value)) for name, value in values.items())
    return amqp.MessageProperties(application_headers=Map(entries))


def tune_ok(tune: amqp.ConnectionTune, heartbeat: int = 0) -> amqp.ConnectionTuneOk:
    """What is agreed to: all that is offered, but the heartbeat."""
    return Tuning(channel_max=offered(tune).channel_max, heartbeat=heartbeat).answer(tune)


@define(eq=False)
class ClientSession:
    """One session of a client."""

    client: Client010
    session: AttachedSession
    messages: deque[Message] = field(factory=deque)
    completed: set[int] = field(factory=set)
    results: dict[int, Struct | Unknown | None] = field(factory=dict)
    #: Its end, once it has come.
    exception: amqp.ExecutionException | None = None
    ended: int | None = None
    #: The message whose content comes.
    coming: Message | None = None

    # -- saying ------------------------------------------------------------------------------------

    def send(
        self,
        command: Command,
        structs: Sequence[Struct] | None = None,
        body: bytes = b"",
        *,
        sync: bool = False,
    ) -> int:
        """Send a command; its id. Raises `Refused` where the session has ended, `Closed` where the peer has
        closed the connection, with the last thing that it said, perhaps.
        """
        self.check()
        if self.client.closed is not None:
            raise Closed(self.client.closed)
        command_id = self.session.send(command, structs, body, sync=sync)
        self.client.flush()
        return command_id

    def ask(
        self, command: Command, structs: Sequence[Struct] | None = None, body: bytes = b""
    ) -> Struct | Unknown | None:
        """Send a command and wait until it is complete; its result. Raises `Refused`."""
        return self.wait(self.send(command, structs, body, sync=True))

    def wait(self, command_id: int) -> Struct | Unknown | None:
        """Wait until a command is complete that asked for it."""
        self.client.until(lambda: command_id in self.completed or self.is_over, f"command {command_id}")
        self.check()
        return self.results.get(command_id)

    def publish(
        self,
        body: bytes,
        key: str,
        *,
        exchange: str = "",
        properties: amqp.MessageProperties | None = None,
        sync: bool = True,
        accept_mode: int | None = NONE,
    ) -> int:
        """message.transfer; with ``sync`` wait until it is complete."""
        transfer = amqp.MessageTransfer(destination=exchange.encode(), accept_mode=accept_mode)
        structs: list[Struct] = [amqp.DeliveryProperties(routing_key=key.encode())]
        if properties is not None:
            structs.append(properties)
        command_id = self.send(transfer, structs, body, sync=sync)
        if sync:
            self.wait(command_id)
        return command_id

    def declare(self, queue: str, **options: object) -> None:
        """queue.declare."""
        self.ask(amqp.QueueDeclare(queue=queue.encode(), **options))  # type: ignore[arg-type]

    def subscribe(
        self,
        queue: str,
        destination: str = "d",
        *,
        accept_mode: int = EXPLICIT,
        credit: int = INFINITE,
        **options: object,
    ) -> None:
        """message.subscribe and credit."""
        self.ask(
            amqp.MessageSubscribe(
                queue=queue.encode(),
                destination=destination.encode(),
                accept_mode=accept_mode,
                acquire_mode=PRE_ACQUIRED,
                **options,  # type: ignore[arg-type]
            )
        )
        self.send(amqp.MessageSetFlowMode(destination=destination.encode(), flow_mode=CREDIT))
        self.send(amqp.MessageFlow(destination=destination.encode(), unit=BYTES, value=INFINITE))
        self.send(amqp.MessageFlow(destination=destination.encode(), unit=MESSAGES, value=credit))

    def accept(self, *messages: Message) -> None:
        """message.accept, and wait until it is complete."""
        ids = ids_of(message.command_id for message in messages)
        self.ask(amqp.MessageAccept(transfers=ids))

    def detach(self) -> None:
        """End it, and wait for the answer."""
        self.session.detach()
        self.client.flush()
        self.client.until(lambda: self.ended is not None, "detached")

    # -- hearing -----------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or is about to."""
        return self.ended is not None or self.exception is not None

    def check(self) -> None:
        """Raises `Refused` where an exception has come."""
        if self.exception is not None:
            raise Refused(self.exception)

    def get(self) -> Message:
        """The next message, waiting for it."""
        self.client.until(lambda: bool(self.messages) or self.is_over, "a message")
        if not self.messages:
            self.check()
            raise Gone("the session is over")
        return self.messages.popleft()

    def refused(self) -> Refused:
        """The exception that ends it, waiting for it and for the end."""
        self.client.until(lambda: self.ended is not None, "the end of the session")
        assert self.exception is not None
        return Refused(self.exception)

    def hear(self, event: ConnectionEvent) -> None:
        """Something of this session's."""
        match event:
            case CommandsCompleted(commands=commands):
                for lower, upper in commands.ranges:
                    self.completed.update(range(lower, upper + 1))
            case IncomingCommand(command=amqp.ExecutionResult(command_id=command_id, value=value)):
                assert command_id is not None
                self.results[command_id] = None if value is None else decode_struct32(value)
            case IncomingCommand(command=amqp.ExecutionException() as exception):
                self.exception = exception
            case IncomingCommand(command=amqp.MessageTransfer() as transfer):
                self.coming = Message(event.command_id, transfer)
                self._came(is_whole=not event.has_content)
            case IncomingHeader(structs=structs, has_body=has_body) if self.coming is not None:
                self.coming = evolve(self.coming, structs=structs)
                self._came(is_whole=not has_body)
            case IncomingBody(chunk=chunk, is_last=is_last) if self.coming is not None:
                self.coming = evolve(self.coming, body=self.coming.body + chunk)
                self._came(is_whole=is_last)
            case SessionEnded(code=code):
                self.ended = code

    def _came(self, *, is_whole: bool) -> None:
        if is_whole and self.coming is not None:
            self.session.finish(self.coming.command_id)
            self.messages.append(self.coming)
            self.coming = None


class Client010:
    """A connection. ``answers_closes`` off: it hears the peer's close or detach, and says nothing to it."""

    def __init__(self, sock: socket.socket, *, timeout: float = 20) -> None:
        self.sock = sock
        self.timeout = timeout
        self.connection = SessionConnection(Role.CLIENT)
        self.sessions: dict[int, ClientSession] = {}
        #: The connection's own controls, in their order.
        self.controls: deque[ConnectionControl] = deque()
        #: Why the peer has closed.
        self.closed: ProtocolViolation | None = None
        #: Whether anything may be said; what is not is dropped.
        self.is_mute = False

    @classmethod
    def dial(
        cls,
        port: int,
        *,
        timeout: float = 20,
        first: bytes = b"",
        tls: ssl.SSLContext | None = None,
        name: str = "localhost",
    ) -> Self:
        """As `dialled`; nothing of AMQP is said."""
        return cls(dialled(port, timeout=timeout, first=first, tls=tls, name=name), timeout=timeout)

    @classmethod
    def opened(cls, port: int, *, vhost: str = "", **options: object) -> Self:
        """A client that is logged in as guest; ``options`` are those of `log_in`."""
        client = cls.dial(port)
        try:
            client.log_in(vhost=vhost, **options)  # type: ignore[arg-type]
        except BaseException:
            client.close()
            raise
        return client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket without a word."""
        self.sock.close()

    # -- the connection ----------------------------------------------------------------------------

    def greet(self) -> amqp.ConnectionStart:
        """The protocol header; connection.start."""
        self.connection.send_header()
        return self.control(amqp.ConnectionStart)

    def log_in(
        self,
        *,
        user: str = "guest",
        password: str = "guest",
        mechanism: str = "PLAIN",
        response: bytes | None = None,
        answer: Callable[[bytes], bytes] | None = None,
        vhost: str = "",
        heartbeat: int = 0,
        properties: Mapping[str, str] | None = None,
    ) -> amqp.ConnectionStart:
        """From the protocol header to open-ok. ``answer`` makes secure-ok's of secure's."""
        start = self.greet()
        if response is None and mechanism == "PLAIN":
            response = f"\0{user}\0{password}".encode()
        said = Map(tuple((key.encode(), text(value)) for key, value in (properties or {}).items()))
        self.say(
            amqp.ConnectionStartOk(
                client_properties=said, mechanism=mechanism.encode(), response=response, locale=b"en_US"
            )
        )
        while True:
            control = self.next_control()
            if not isinstance(control, amqp.ConnectionSecure):
                break
            assert answer is not None, "who asks?"
            self.say(amqp.ConnectionSecureOk(response=answer(control.challenge or b"")))
        assert isinstance(control, amqp.ConnectionTune), control
        self.say(tune_ok(control, heartbeat))
        self.say(amqp.ConnectionOpen(virtual_host=vhost.encode(), capabilities=EMPTY_ARRAY))
        self.control(amqp.ConnectionOpenOk)
        return start

    def say(self, control: Control) -> None:
        """A control of the connection's."""
        self.connection.send(control)
        self.flush()

    def next_control(self) -> Control:
        """The next control of the connection's. Raises `Closed`."""
        self.until(lambda: bool(self.controls), "a control")
        return self.controls.popleft().control

    def control(self, kind: type[C]) -> C:
        """The next control, which is one of this kind."""
        control = self.next_control()
        assert isinstance(control, kind), control
        return control

    def session(self, channel: int = 0, name: str | None = None, *, force: bool = False) -> ClientSession:
        """A new session."""
        if self.closed is not None:
            raise Closed(self.closed)
        attached = self.connection.attach(channel, (name or secrets.token_hex(8)).encode(), force=force)
        session = self.sessions[channel] = ClientSession(self, attached)
        self.flush()
        return session

    def end(self) -> None:
        """connection.close, and wait for the answer and the end of the stream."""
        self.connection.close(200, "")
        self.flush()
        while not self.connection.is_over:
            if not self._read(time.monotonic() + self.timeout):
                raise Gone("closed; close-ok was waited for")

    def expect_close(self) -> ProtocolViolation:
        """What the peer's connection.close says; it is answered."""
        self.until(lambda: self.closed is not None, "connection.close")
        assert self.closed is not None
        return self.closed

    def expect_end(self) -> None:
        """The peer hangs up."""
        deadline = time.monotonic() + self.timeout
        try:
            while self._read(deadline):
                pass
        except (ConnectionError, ssl.SSLError):
            pass

    # -- bytes -------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Send what there is to send."""
        data = self.connection.take_output()
        if data and not self.is_mute:
            self.sock.sendall(data)

    def until(self, done: Callable[[], bool], what: str) -> None:
        """Read until something has happened."""
        deadline = time.monotonic() + self.timeout
        self.flush()
        while not done():
            if self.closed is not None:
                raise Closed(self.closed)
            if not self._read(deadline):
                raise Gone(f"closed; {what} was waited for")

    def rest(self, seconds: float) -> None:
        """Read for so long."""
        until = time.monotonic() + seconds
        try:
            while self._read(until):
                pass
        except TimeoutError:
            pass

    def _read(self, deadline: float) -> bool:
        """Read once; False at the end of the stream. Raises `TimeoutError`."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.sock.settimeout(left)
        data = self.sock.recv(_READ)
        self.sock.settimeout(self.timeout)
        for event in self.connection.receive(data):
            self._hear(event)
        self.flush()
        return bool(data)

    def _hear(self, event: ConnectionEvent) -> None:
        match event:
            case PeerHeader(is_accepted=is_accepted):
                assert is_accepted, event
            case ConnectionControl():
                self.controls.append(event)
            case ConnectionClosed(violation=violation):
                self.closed = violation
            case ConnectionFailed() | SessionFailed():
                raise AssertionError(event)
            case SessionBegun():
                pass
            case _:
                self.sessions[event.channel].hear(event)
