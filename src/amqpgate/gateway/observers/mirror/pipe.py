"""An open connection to a mirror at work: one task writes and one reads, while there is something to send.

Only the writer writes, so that no frame gets between two bytes of another.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable

import attrs
import trio

from amqpgate.errors import AmqpgateError, ProtocolViolation
from amqpgate.gateway.observers.mirror.line import MirrorFaultError, MirrorLine
from amqpgate.gateway.observers.mirror.queue import MirroredMessage, MirrorQueue
from amqpgate.gateway.transport.conversation import await_close_ok
from amqpgate.gateway.transport.method_stream import MethodStream, StreamClosedError
from amqpgate.protocol.heartbeat import MISSED_INTERVALS, Heartbeat
from amqpgate.wire.generated import v0_9_1 as amqp

#: Seconds without a message after which the connection is closed.
IDLE = 60.0
#: Bytes, and messages, that are put into frames between two turns of other tasks.
_CHUNK = 64 * 1024
_BATCH = 64
#: Bytes of answers that are read between two turns: some two hundred confirms.
_READ = 4096
#: Seconds for the answer to our close.
_CLOSE = 1.0


@attrs.define(eq=False)
class MirrorPipe:
    """``run`` once; ``stir`` when a message is there, or ``finishing`` has been set."""

    hop: MethodStream
    line: MirrorLine
    queue: MirrorQueue
    #: Seconds; 0 is none.
    heartbeat: float
    #: The gateway stops: end with the queue.
    finishing: trio.Event
    _stirred: trio.Event = attrs.field(factory=trio.Event, init=False)
    _fault: AmqpgateError | None = attrs.field(default=None, init=False)

    def stir(self) -> None:
        """The writer looks again."""
        self._stirred.set()

    async def run(self) -> AmqpgateError | None:
        """Why it ended; None where there was nothing to send any more. The socket is closed."""
        try:
            async with trio.open_nursery() as both:
                both.start_soon(self._until_it_ends, self._read, both.cancel_scope)
                both.start_soon(self._until_it_ends, self._write, both.cancel_scope)
            if self._fault is None:
                with trio.move_on_after(_CLOSE), contextlib.suppress(StreamClosedError):
                    await self.hop.send_method(amqp.ConnectionClose(200, "nothing to mirror"))
                    await await_close_ok(self.hop)
            return self._fault
        finally:
            self.hop.close()
            self.line.lost()

    async def _until_it_ends(self, job: Callable[[], Awaitable[None]], both: trio.CancelScope) -> None:
        try:
            await job()
        except (StreamClosedError, MirrorFaultError, ProtocolViolation) as error:
            self._fault = self._fault or error
        both.cancel()

    async def _read(self) -> None:
        # Two intervals of silence, as on every hop; none where no heartbeat was agreed.
        patience = self.heartbeat * MISSED_INTERVALS or float("inf")
        while True:
            with trio.move_on_after(patience) as waiting:
                data = await self.hop.receive(_READ)
            if waiting.cancelled_caught:
                raise MirrorFaultError("is silent")
            if not data:
                raise MirrorFaultError("closed the connection without a word")
            self.hop.decoder.feed(data)
            now = trio.current_time()
            while (frame := self.hop.decoder.next()) is not None:
                self.line.take(frame, now)
            self.stir()
            # What can be received at once is no turn for others.
            await trio.lowlevel.checkpoint()

    async def _write(self) -> None:
        used = trio.current_time()
        beat = Heartbeat(self.heartbeat, used)
        while True:
            now = trio.current_time()
            batch = self._take_batch()
            if batch:
                used = now
            elif beat.is_due(now):
                self.line.beat()
            if batch or self.line.control:
                await self._send(batch, now)
                beat.sent(trio.current_time())
                continue
            is_done = not self.queue and not self.line.in_flight
            if is_done and (self.finishing.is_set() or now >= used + IDLE):
                return
            self._stirred = trio.Event()
            with trio.move_on_at(min(beat.send_at, used + IDLE) if is_done else beat.send_at):
                await self._stirred.wait()

    def _take_batch(self) -> list[MirroredMessage]:
        batch: list[MirroredMessage] = []
        byte_count = 0
        while self.line.takes(len(batch)) and len(batch) < _BATCH and byte_count < _CHUNK:
            message = self.queue.take()
            if message is None:
                break
            batch.append(message)
            byte_count += message.body_size
        return batch

    async def _send(self, batch: list[MirroredMessage], now: float) -> None:
        """Their room is given back when they are out, or cannot be sent any more."""
        try:
            # What answers the broker must come before what is said after that.
            data = bytearray(self.line.take_control())
            for message in batch:
                data += self.line.encode(message, now)
            await self._put(data)
        finally:
            for message in batch:
                self.queue.release(message)

    async def _put(self, data: bytes | bytearray) -> None:
        for start in range(0, len(data), _CHUNK):
            await self.hop.send(bytes(data[start : start + _CHUNK]))
            await trio.lowlevel.checkpoint()
