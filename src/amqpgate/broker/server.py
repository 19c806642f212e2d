"""The embedded broker's sockets, on trio.

::

    EmbeddedBroker.serve ── one task per client ─┬─ reads and answers
                                                 ├─ sends what is in the outbox
                                                 ├─ heartbeats
                                                 └─ AMQP 0-10: what the translator answers

Cancelling ``serve`` ends all of it: clients that are logged in get connection.close 320 if they take it
at once, and every socket is closed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import trio
from attrs import define, field

from amqpgate.broker.greeting import Greeting
from amqpgate.broker.outbox import Outbox
from amqpgate.broker.session import BrokerSession
from amqpgate.broker.state import BrokerState
from amqpgate.broker.translated import TranslatedStream
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.header import HEADER_0_10, HEADER_SIZE
from amqpgate.protocol.heartbeat import Heartbeat
from amqpgate.wire.dialects import HEADER_0_9_1

log = logging.getLogger(__name__)

DEFAULT_USERS: Final[Mapping[str, str]] = MappingProxyType({"guest": "guest"})

#: What the broker speaks, as settings name it.
VERSIONS: Final = ("0-9-1", "0-10")

#: Bytes of all messages together; more are refused.
MEMORY_LIMIT: Final = 256 * 1024 * 1024

_CHUNK: Final = 64 * 1024
#: Seconds until a client must have opened its connection (RabbitMQ's handshake_timeout).
_HANDSHAKE_TIMEOUT: Final = 10.0
#: Seconds to wait for the client's close-ok, and for it to take what is still to be sent.
_CLOSE_TIMEOUT: Final = 5.0
#: Seconds for the last frame to clients when the broker is stopped.
_FAREWELL_TIMEOUT: Final = 0.2


class EmbeddedBroker:
    """A broker of AMQP 0-9-1 and 0-10 in memory, for demonstrations and fast tests only.

    ``versions`` are those of `VERSIONS` that it speaks. It answers the header of another one with that of
    0-9-1, or of 0-10 where that is all, and hangs up. :class:`ValueError` for versions that it does not have,
    or none.

    ``users`` are names and passwords; every user may do everything in every virtual host of ``vhosts``.
    ``memory_limit`` is in bytes; publishes beyond it are refused with basic.nack on channels in confirm
    mode, and with channel.close 406 on others. ``frame_max`` (bytes), ``channel_max`` and ``heartbeat``
    (seconds) are offered in connection.tune.
    """

    def __init__(
        self,
        users: Mapping[str, str] = DEFAULT_USERS,
        vhosts: Iterable[str] = ("/",),
        *,
        versions: Sequence[str] = VERSIONS,
        memory_limit: int = MEMORY_LIMIT,
        frame_max: int = 131_072,
        channel_max: int = 2047,
        heartbeat: int = 60,
    ) -> None:
        unknown = [version for version in versions if version not in VERSIONS]
        if unknown or not versions:
            which = ", ".join(unknown) or "none"
            raise ValueError(f"they are some of {', '.join(VERSIONS)}, and not {which}")
        self._versions = tuple(versions)
        self._state = BrokerState.of(users, vhosts, memory_limit)
        self._greeting = Greeting(frame_max, channel_max, heartbeat)

    async def serve(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve clients until cancelled; the port (any free one for 0) is the status value.

        :class:`OSError` if the address cannot be bound. May run several times at once: the queues are
        those of the object, and stay when it ends.
        """
        listeners = await trio.open_tcp_listeners(port, host=host)
        bound: int = listeners[0].socket.getsockname()[1]
        log.warning(
            "embedded broker on %s port %d: in memory, for demonstrations and tests only; it keeps at most"
            " %d bytes of messages and loses them when it stops",
            host,
            bound,
            self._state.memory.limit,
        )
        task_status.started(bound)
        await trio.serve_listeners(self.serve_stream, listeners)

    async def serve_stream(self, stream: trio.abc.HalfCloseableStream) -> None:
        """Serve one client on a stream that is there already, and close it."""
        await _Client(stream, self._state, self._greeting, self._versions).serve()


@define(eq=False, repr=False)
class _Client:
    """One client's stream."""

    stream: trio.abc.HalfCloseableStream
    state: BrokerState
    greeting: Greeting
    versions: tuple[str, ...]
    session: BrokerSession = field(init=False)
    heartbeat: Heartbeat = field(init=False)
    _to_send: trio.Event = field(factory=trio.Event)
    #: Some bytes have gone out.
    _progress: trio.Event = field(factory=trio.Event)
    _tuned: trio.Event = field(factory=trio.Event)
    #: The writer is between two chunks, so that a frame of ours would arrive whole.
    _between_chunks: bool = True
    #: The stream of a client of AMQP 0-10.
    _translated: TranslatedStream | None = None
    #: Bounds the reading: the handshake, and the wait for a close-ok.
    _reading: trio.CancelScope = field(factory=trio.CancelScope)

    def __attrs_post_init__(self) -> None:
        self.session = BrokerSession(self.state, self.greeting, Outbox(self._wake))
        self.heartbeat = Heartbeat(0, trio.current_time())

    def _wake(self) -> None:
        self._to_send.set()

    async def serve(self) -> None:
        """Until either side is done with the other."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, nursery.cancel_scope)
                nursery.start_soon(self._keep_alive, nursery.cancel_scope)
                await self._read(nursery)
                self.session.close()
                if self.session.is_over:
                    await self._finish()
                nursery.cancel_scope.cancel()
        finally:
            if trio.current_effective_deadline() == -math.inf:
                await self._say_goodbye()
            self.session.close()
            await trio.aclose_forcefully(self.stream)

    async def _read(self, nursery: trio.Nursery) -> None:
        session = self.session
        self._reading.deadline = trio.current_time() + _HANDSHAKE_TIMEOUT
        with self._reading:
            try:
                data: bytes | bytearray = await self._begin(nursery)
                while data:
                    for _ in session.receive(data):
                        while session.outbox.is_congested:
                            await self._next_progress()
                    self._note_state()
                    if session.is_over:
                        return
                    data = await self.stream.receive_some(_CHUNK)
                    self._heard()
            except trio.BrokenResourceError:
                return
            except ProtocolViolation as violation:
                session.abandon(violation)

    async def _begin(self, nursery: trio.Nursery) -> bytes:
        """What the client sends first, of AMQP 0-9-1; nothing if it has no header, or none that is spoken."""
        data = b""
        while len(data) < HEADER_SIZE:
            more = bytes(await self.stream.receive_some(_CHUNK))
            if not more:
                return b""
            data += more
        if data.startswith(HEADER_0_10) and "0-10" in self.versions:
            # It takes a tenth of a second to import, which a client of 0-9-1 is spared.
            from amqpgate.broker.translating import translator_for

            translator = translator_for(self.session)
            self._translated = TranslatedStream(self.stream, translator, data[HEADER_SIZE:], self._heard)
            self.stream = self._translated
            nursery.start_soon(self._translated.send_answers)
            return HEADER_0_9_1
        if "0-9-1" not in self.versions:
            self.session.turn_away(HEADER_0_10)
            return b""
        return data

    def _heard(self) -> None:
        self.heartbeat.received(trio.current_time())

    async def _next_progress(self) -> None:
        self._progress = trio.Event()
        await self._progress.wait()

    def _note_state(self) -> None:
        connection = self.session.connection
        if connection.tune is not None and not self._tuned.is_set():
            self.heartbeat = Heartbeat(connection.tune.heartbeat, trio.current_time())
            self._tuned.set()
        if connection.is_open:
            self._reading.deadline = math.inf
        elif self._reading.deadline == math.inf:
            # We are closing and wait for the client to agree.
            self._reading.deadline = trio.current_time() + _CLOSE_TIMEOUT

    async def _write(self, client: trio.CancelScope) -> None:
        session = self.session
        while True:
            await self._to_send.wait()
            self._to_send = trio.Event()
            if session.failure is not None:
                session.give_up()
                self._note_state()
            data = session.outbox.take()
            if not data:
                continue
            self._between_chunks = False
            try:
                await self.stream.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                client.cancel()
                return
            self._between_chunks = True
            self.heartbeat.sent(trio.current_time())
            if session.outbox.sent(len(data)):
                session.resume()
            self._progress.set()

    async def _keep_alive(self, client: trio.CancelScope) -> None:
        await self._tuned.wait()
        while True:
            await trio.sleep_until(self.heartbeat.next_deadline)
            now = trio.current_time()
            if self.session.outbox.is_congested or (self._translated and self._translated.is_full):
                # We do not read from it now, so its silence means nothing.
                self.heartbeat.received(now)
            if self.heartbeat.is_expired(now):
                log.warning("a client has been silent for two heartbeats: closing its connection")
                client.cancel()
            elif self.heartbeat.is_due(now):
                if not self.session.connection.is_closed and not self.session.outbox.size:
                    self.session.outbox.put(self.session.connection.send_heartbeat())
                self.heartbeat.sent(now)

    async def _finish(self) -> None:
        """Let the last bytes arrive: a socket closed with unread input would take them back."""
        with trio.move_on_after(_CLOSE_TIMEOUT):
            while self.session.outbox.size:
                await self._next_progress()
            try:
                await self.stream.send_eof()
                while await self.stream.receive_some(_CHUNK):
                    pass
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return

    async def _say_goodbye(self) -> None:
        if not self._between_chunks:
            return
        self.session.shut_down()
        with trio.move_on_after(_FAREWELL_TIMEOUT) as farewell:
            farewell.shield = True
            try:
                await self.stream.send_all(self.session.outbox.take())
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return
