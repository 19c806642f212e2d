"""One upstream connection that several sessions share: what is said on it that is no session's own.

A channel of the link belongs to a session, and then the data path hands its frames to that session; or to the
link itself, which opens channels ahead of need and closes those that sessions have left::

              open               open-ok            a session takes it
    free ─────────────▶ opening ───────────▶ spare ──────────────────▶ taken
      ▲                                                                  │ it has left
      └──────────────────────────── close-ok ◀──────────── closing ◀─────┘

Frames on a channel that closes are for nobody. A number is free when every close on it has been answered
(`link_closes`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs
import trio

from amqpgate.datapath import tables
from amqpgate.datapath.relay import End
from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.pool.channel_close import CloseStep, LinkChannelCloses, Unanswered
from amqpgate.gateway.pool.channel_numbers import NumberState
from amqpgate.gateway.pool.exclusive_queues import ExclusiveQueues
from amqpgate.gateway.session.violations import violation_of
from amqpgate.protocol.frames import FRAME_METHOD, method_frame
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.bridge import Interpreter
    from amqpgate.datapath.engine import PooledEndpoint
    from amqpgate.datapath.link import Link
    from amqpgate.gateway.pool.connection_state import PooledConnection
    from amqpgate.gateway.pool.pool import Pool
    from amqpgate.gateway.pool.pooled_session import PooledSession

log = logging.getLogger(__name__)

#: Is told open-ok, or the close that comes in its place.
OnOpen: TypeAlias = Callable[[amqp.ChannelOpenOk | amqp.ChannelClose], None]

#: How the gateway closes a channel that its client does not close itself, and one that nobody came to need.
LEFT: Final = amqp.ChannelClose(200, "the client has left", 0, 0)
_NOT_NEEDED: Final = amqp.ChannelClose(200, "not needed", 0, 0)
#: Seconds between looks whether a session's last words have gone.
_LOOK: Final = 0.001


@attrs.define(eq=False)
class SharedConnection:
    """The handler of one link."""

    pool: Pool
    entry: PooledConnection
    #: For operators.
    name: str
    address: str
    #: Octets of a frame.
    frame_max: int
    interpreter: Interpreter
    link: Link = attrs.field(init=False)
    #: Who rides on it.
    riders: set[PooledSession] = attrs.field(factory=set, init=False)
    exclusives: ExclusiveQueues = attrs.field(init=False)
    #: Queues that go with a session that is over, and wait for a channel.
    _orphans: list[amqp.QueueDeclare] = attrs.field(factory=list, init=False)
    #: What the broker has said last, of a memory or disk alarm.
    blocked: amqp.ConnectionBlocked | None = attrs.field(default=None, init=False)
    #: Why it is over, for logs and for those who rode on it.
    why: str = attrs.field(default="", init=False)
    #: How the broker has ended it.
    _end: amqp.ConnectionClose | None = attrs.field(default=None, init=False)
    closes: LinkChannelCloses = attrs.field(factory=LinkChannelCloses, init=False)
    #: Channels that nobody uses any more, and who is told when the number is free.
    _left: dict[int, Callable[[], None] | None] = attrs.field(factory=dict, init=False)
    #: Channels that sessions have taken before they were open, and who is told the broker's answer.
    _awaited: dict[int, OnOpen] = attrs.field(factory=dict, init=False)
    #: Spares that are to confirm, and have not been opened yet.
    _selecting: set[int] = attrs.field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self.exclusives = ExclusiveQueues(self.pool.identity.vhost)

    def send(self, channel: int, *methods: Method) -> None:
        """Queue methods on a channel of the link."""
        self.link.send(b"".join(method_frame(channel, method) for method in methods))

    @property
    def unanswered_opens(self) -> int:
        """Channels of sessions that the broker has not opened."""
        return len(self._awaited)

    # -- channels -----------------------------------------------------------------------------

    def open_spare(self, number: int, *, confirms: bool) -> None:
        """Open a channel ahead of need; in confirm mode, maybe."""
        if confirms:
            self._selecting.add(number)
            self.send(number, amqp.ChannelOpen(), amqp.ConfirmSelect())
        else:
            self.send(number, amqp.ChannelOpen())

    def await_open(self, number: int, on_open: OnOpen) -> None:
        """A session has taken a channel that is being opened. What comes on it before is nobody's."""
        self._awaited[number] = on_open

    def shut(self, number: int) -> None:
        """Close a channel that was opened ahead of a need that did not come."""
        self._left[number] = None
        if self.closes.step(number, CloseStep.CLOSE):
            self.send(number, _NOT_NEEDED)

    def leave(self, number: int, say: Callable[[Method], None]) -> None:
        """A session leaves a channel: ``say`` what is still to be said, behind its own words."""
        step = self.closes.leave(number)
        if step is not None:
            say(LEFT if step is CloseStep.CLOSE else amqp.ChannelCloseOk())

    def give_back(
        self, number: int, pooled: PooledEndpoint, on_free: Callable[[], None] | None = None
    ) -> None:
        """A session has left a channel; ``on_free`` is told when its number is free."""
        self._awaited.pop(number, None)
        self.link.unmap_channel(number)
        self.pool.left_open(self, number)
        self._left[number] = on_free
        if self.closes.at(number) is not Unanswered.CLOSED:
            return
        if pooled.is_staging:
            # The answer to the broker's close may be what waits.
            self.pool.pools.start(partial(self._await_last_words, number, pooled))
        else:
            self._free(number)

    async def _await_last_words(self, number: int, pooled: PooledEndpoint) -> None:
        while pooled.is_staging:  # noqa: ASYNC110
            await trio.sleep(_LOOK)
        self._free(number)

    def _free(self, number: int) -> None:
        self.closes.freed(number)
        self._selecting.discard(number)
        on_free = self._left.pop(number, None)
        self.pool.freed(self, number)
        if on_free is not None:
            on_free()

    # -- exclusive queues ---------------------------------------------------------------------

    def delete_queues_of(self, riding: PooledSession) -> None:
        """A session is over, and its exclusive queues with it."""
        self._orphans += self.exclusives.leave(riding)
        self.delete_orphans()

    def delete_orphans(self) -> None:
        """Delete what waits for that, each queue on a channel of its own."""
        while self._orphans and self.entry.room:
            declare = self._orphans.pop()
            taken = self.pool.take(self)
            opens = [amqp.ChannelOpen()] if taken.must_open else []
            delete = amqp.QueueDelete(queue=declare.queue)
            # Where the declare fails the broker drops what comes behind it, but for the close.
            self.send(taken.number, *opens, declare, delete, LEFT)
            self.closes.step(taken.number, CloseStep.CLOSE)
            self.pool.left_open(self, taken.number)
            self._left[taken.number] = None

    # -- the handler that the data path calls -------------------------------------------------

    def upcall(self, side: Side, result: tables.ScanResult, frame: memoryview) -> bool:
        try:
            if result > tables.LAST_HARMLESS:
                raise violation_of(result, frame, self.frame_max)
            if frame[0] != FRAME_METHOD:
                return False  # Content on a channel that closes.
            number = int.from_bytes(frame[1:3], "big")
            method = decode_method(frame[7:-1])
            if number:
                self._on_channel(number, method)
            else:
                self._on_connection(method)
        except ProtocolViolation as violation:
            self.why = f"upstream broke the protocol: {violation}"
            log.warning("%s: %s", self.name, self.why)
            self.link.finish()
        return False

    def ended(self, end: End, side: Side | None, error: Exception | None) -> None:
        if not self.why:
            self.why = {
                End.GONE: "upstream closed its connection",
                End.SILENT: "upstream sent no heartbeats",
                End.FAILED: "amqpgate failed; see its log",
            }.get(end, "amqpgate closed the link")
        if self._end is not None:
            self.pool.accuse(self, self._end)
        self.pool.lost(self)
        # There is nothing more to wait for.
        left, self._left = self._left, {}
        for on_free in left.values():
            if on_free is not None:
                on_free()

    def _on_channel(self, number: int, method: Method) -> None:
        if isinstance(method, amqp.ChannelCloseOk):
            self.closes.step(number, CloseStep.ANSWERED)
            self._look_whether_free(number)
        elif isinstance(method, amqp.ChannelClose):
            self._on_close(number, method)
        elif self.closes.at(number) is not Unanswered.NONE:
            return
        elif isinstance(method, amqp.ChannelOpenOk):
            if number in self._awaited:
                self._awaited.pop(number)(method)
            elif number not in self._selecting:
                self.pool.opened(self, number, confirms=False)
        elif isinstance(method, amqp.ConfirmSelectOk) and number in self._selecting:
            self._selecting.remove(number)
            self.pool.opened(self, number, confirms=True)
        elif self.entry.numbers.at(number) in (NumberState.SPARE, NumberState.SPARE_CONFIRMING):
            raise ProtocolViolation(504, f"'{method.NAME}' on channel {number}, which nobody uses")
        # Else it is late: RabbitMQ may deliver behind its own channel.close.

    def _on_close(self, number: int, method: amqp.ChannelClose) -> None:
        if not self.closes.step(number, CloseStep.CLOSED):
            return
        if number in self._awaited:
            self._awaited.pop(number)(method)
        elif self.entry.numbers.at(number) is not NumberState.TAKEN:
            if number not in self._left:
                # Nobody's yet: it will be another number.
                self._left[number] = None
            self.leave(number, partial(self.send, number))
            self._look_whether_free(number)
        # Else its session is over, and answers when it leaves the channel.

    def _look_whether_free(self, number: int) -> None:
        if number in self._left and self.closes.at(number) is Unanswered.CLOSED:
            self._free(number)

    def _on_connection(self, method: Method) -> None:
        if isinstance(method, amqp.ConnectionClose):
            self.send(0, amqp.ConnectionCloseOk())
            self.why = f"upstream closed the link: {method.reply_code} {method.reply_text}"
            log.warning("%s: %s", self.name, self.why)
            self._end = method
            if self.link.endpoint.owes():
                # What it said before waits for its sessions' turns.
                self.pool.pools.start(self._finish)
            else:
                self.link.finish()
        elif isinstance(method, amqp.ConnectionCloseOk):
            self.link.finish()
        elif isinstance(method, amqp.ConnectionBlocked | amqp.ConnectionUnblocked):
            self.blocked = method if isinstance(method, amqp.ConnectionBlocked) else None
            self.entry.is_blocked = self.blocked is not None
            for riding in list(self.riders):
                riding.tell(method)
            self.pool.news()
        else:
            raise ProtocolViolation(503, f"'{method.NAME}' on a link")

    async def _finish(self) -> None:
        with trio.move_on_after(self.pool.pools.close_timeout):
            while self.link.active and self.link.endpoint.owes():  # noqa: ASYNC110
                await trio.sleep(_LOOK)
        self.link.finish()

    def close(self, why: str) -> None:
        """Nobody rides on it any more: say so to the broker, whose answer ends it."""
        if not self.why:
            self.why = why
            self.send(0, amqp.ConnectionClose(200, why, 0, 0))
