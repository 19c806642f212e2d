"""One upstream connection that several sessions share: what is said on it that is no session's own.

A channel of it belongs to a session, and then the data path hands its frames to that session; or to the
connection itself (`connection_channels`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

import attrs
import trio

from amqpgate.datapath import tables
from amqpgate.datapath.build import make_link
from amqpgate.datapath.captures import Captured
from amqpgate.datapath.engine import End, HandedOverSocket
from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.pool.connection_channels import LEFT, ConnectionChannels
from amqpgate.gateway.pool.connection_state import PooledConnection
from amqpgate.gateway.pool.exclusive_queues import ExclusiveQueues
from amqpgate.gateway.pool.plan import AcquiredChannel
from amqpgate.gateway.session.queue_question import QueueQuestion
from amqpgate.gateway.session.violations import violation_of
from amqpgate.protocol.frames import FRAME_METHOD, method_frame
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.bridge import Interpreter
    from amqpgate.datapath.engine import PooledEndpoint, Pump
    from amqpgate.datapath.link import Link

log = logging.getLogger(__name__)

Blocking = amqp.ConnectionBlocked | amqp.ConnectionUnblocked


class ConnectionOwner(Protocol):
    """The pool, as its connections see it."""

    def start(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run it beside all else."""

    def acquire(self, connection: SharedConnection) -> AcquiredChannel:
        """A channel of a connection that has one."""

    def released(self, connection: SharedConnection, number: int) -> None:
        """A channel that was acquired closes."""

    def spare_opened(self, connection: SharedConnection, number: int, *, confirms: bool) -> None:
        """The broker has opened a channel ahead of need."""

    def freed(self, connection: SharedConnection, number: int) -> None:
        """A channel is closed for good."""

    def blocked(self, connection: SharedConnection, method: Blocking) -> None:
        """The broker blocks the connection, or does not any more."""

    def lost(self, connection: SharedConnection, close: amqp.ConnectionClose | None) -> None:
        """It has left the data path; ``close`` is the broker's, if that has ended it."""


@attrs.define(eq=False)
class SharedConnection:
    """The handler of one shared connection."""

    pool: ConnectionOwner
    entry: PooledConnection
    #: For operators.
    name: str
    address: str
    interpreter: Interpreter
    exclusives: ExclusiveQueues
    channels: ConnectionChannels = attrs.field(init=False)
    link: Link = attrs.field(init=False)
    #: What the broker has said last, of a memory or disk alarm.
    alarm: amqp.ConnectionBlocked | None = attrs.field(default=None, init=False)
    #: Why it is over, for logs and for the sessions that used it.
    why: str = attrs.field(default="", init=False)
    #: How the broker has ended it.
    _end: amqp.ConnectionClose | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.channels = ConnectionChannels(self.entry.numbers, self)

    def enter(self, hop: HandedOverSocket, pump: Pump, *, largest_frame: int) -> None:
        """Put the connection on the data path, over that socket."""
        self.link = make_link(self, hop, largest_frame=largest_frame)
        pump.add(self.link)

    def send(self, channel: int, *methods: Method) -> None:
        """Queue methods on a channel of the connection."""
        self.link.send(b"".join(method_frame(channel, method) for method in methods))

    def close(self, why: str) -> None:
        """No session uses it any more: say so to the broker, whose answer ends it."""
        if not self.why:
            self.why = why
            self.send(0, amqp.ConnectionClose(200, why, 0, 0))

    # -- channels -----------------------------------------------------------------------------

    def release(
        self, number: int, endpoint: PooledEndpoint, on_free: Callable[[], None] | None = None
    ) -> None:
        """A session has left a channel; ``on_free`` is told when its number is free."""
        self.link.unmap_channel(number)
        self.pool.released(self, number)
        if not self.channels.release(number, on_free):
            return
        # The answer to the broker's close may be what the data path still holds back.
        sent = trio.Event()
        endpoint.when_sent(sent.set)
        if sent.is_set():
            self.channels.free(number)
        else:
            self.pool.start(partial(self._free_after, sent, number))

    async def _free_after(self, sent: trio.Event, number: int) -> None:
        await sent.wait()
        self.channels.free(number)

    def spare_opened(self, number: int, *, confirms: bool) -> None:
        """The broker has opened a channel ahead of need."""
        self.pool.spare_opened(self, number, confirms=confirms)

    def freed(self, number: int) -> None:
        """A channel is closed for good."""
        self.pool.freed(self, number)

    # -- exclusive queues ---------------------------------------------------------------------

    def delete_queues_of(self, session: object) -> None:
        """A session is over, and its exclusive queues with it."""
        self.exclusives.abandon(session)
        self.delete_orphans()

    def delete_orphans(self) -> None:
        """Delete what waits for that, each queue on a channel of its own."""
        while self.entry.room and (declare := self.exclusives.next_orphan()) is not None:
            acquired = self.pool.acquire(self)
            opens = [amqp.ChannelOpen()] if acquired.must_open else []
            delete = amqp.QueueDelete(queue=declare.queue)
            # Where the declare fails the broker drops what comes behind it, but for the close.
            self.send(acquired.number, *opens, declare, delete, LEFT)
            self.channels.closing(acquired.number)
            self.pool.released(self, acquired.number)

    # -- questions ----------------------------------------------------------------------------

    def ask(self, question: QueueQuestion) -> bool:
        """Ask the broker something of a queue, on a channel that no session has; whether there is one."""
        if not self.entry.room:
            return False
        acquired = self.pool.acquire(self)
        opens = [amqp.ChannelOpen()] if acquired.must_open else []
        self.send(acquired.number, *opens, question.asked(), LEFT)
        self.channels.asking(acquired.number, question.told)
        self.pool.released(self, acquired.number)
        return True

    # -- the handler that the data path calls -------------------------------------------------

    def upcall(self, side: Side, result: tables.ScanResult, frame: memoryview) -> bool:
        try:
            if result > tables.LAST_HARMLESS:
                raise violation_of(result, frame, self.link.frame_max)
            if frame[0] != FRAME_METHOD:
                return False  # Content on a channel that closes.
            number = int.from_bytes(frame[1:3], "big")
            method = decode_method(frame[7:-1])
            if number:
                self.channels.hears(number, method)
            else:
                self._on_connection(method)
        except ProtocolViolation as violation:
            self._blame(violation)
            self.link.finish()
        return False

    def _blame(self, violation: ProtocolViolation) -> None:
        self.why = f"upstream broke the protocol: {violation}"
        log.warning("%s: %s", self.name, self.why)

    def captured(self, side: Side, messages: list[Captured]) -> None:
        """A link's messages are captured for the sessions that they are for."""

    def ended(self, end: End, side: Side | None, error: Exception | None) -> None:
        if isinstance(error, ProtocolViolation):
            self._blame(error)
        if not self.why:
            self.why = {
                End.GONE: "upstream closed its connection",
                End.SILENT: "upstream sent no heartbeats",
                End.FAILED: "amqpgate failed; see its log",
            }.get(end, "amqpgate closed the link")
        self.pool.lost(self, self._end)
        self.channels.ended()

    def _on_connection(self, method: Method) -> None:
        if isinstance(method, amqp.ConnectionClose):
            self.send(0, amqp.ConnectionCloseOk())
            self.why = f"upstream closed the link: {method.reply_code} {method.reply_text}"
            log.warning("%s: %s", self.name, self.why)
            self._end = method
            # What it said before may wait for its sessions' turns.
            self.link.finish_heard()
        elif isinstance(method, amqp.ConnectionCloseOk):
            self.link.finish()
        elif isinstance(method, Blocking):
            self.alarm = method if isinstance(method, amqp.ConnectionBlocked) else None
            self.entry.block(blocked=self.alarm is not None)
            self.pool.blocked(self, method)
        else:
            raise ProtocolViolation(503, f"'{method.NAME}' on a link")
