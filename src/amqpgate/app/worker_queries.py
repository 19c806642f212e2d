"""A worker's side of what its supervisor asks (`worker_rpc` has the messages): calls, metrics, events."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
from collections.abc import Awaitable

import attrs
import trio

from amqpgate.app.worker_rpc import ControlClosedError, MessageKind, WorkerConfig, WorkerControl
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.logs import log_failure
from amqpgate.operator.queries import STREAMS, begin
from amqpgate.telemetry.answers import JSON, encoded
from amqpgate.telemetry.events import EventSubscriber, EventText
from amqpgate.values import define

log = logging.getLogger(__name__)


async def answer_supervisor(worker: WorkerConfig, gateway: Gateway) -> None:
    """Until it is gone: then the gateway drains."""
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(socket.socket(fileno=worker.control)))
    async with trio.open_nursery() as nursery:
        try:
            await _WorkerQueries(gateway, WorkerControl(stream), nursery).run()
        except ControlClosedError:
            log.warning("the supervisor is gone: draining")
            gateway.drain()
            nursery.cancel_scope.cancel()


@define(eq=False)
class _WorkerQueries:
    gateway: Gateway
    control: WorkerControl
    nursery: trio.Nursery
    #: By the number of the ``listen``.
    _streams: dict[int, trio.CancelScope] = attrs.field(factory=dict)

    async def run(self) -> None:
        await self.control.send(MessageKind.STARTED)
        self.nursery.start_soon(self._tell_ready)
        while True:
            kind, number, text = await self.control.receive()
            try:
                await self._heed(kind, number, text)
            except ControlClosedError:
                raise
            except Exception:
                # Who asks hears nothing, and goes on without. So does what relays.
                log_failure(log, "what the supervisor asked for failed")

    async def _heed(self, kind: MessageKind, number: int, text: bytes) -> None:
        if kind is MessageKind.METRICS:
            said = await self.gateway.metrics_text() + self.gateway.metrics.exemplars.lines()
            await self.control.send(kind, said, number)
        elif kind is MessageKind.CALL:
            await self._begin(number, text)
        elif kind is MessageKind.LISTEN and number not in self._streams:
            # Known from now on, so that an ``unlisten`` which comes at once finds it.
            self._streams[number] = trio.CancelScope()
            self.nursery.start_soon(self._tell_events, number, text)
        elif kind is MessageKind.UNLISTEN and number in self._streams:
            self._streams[number].cancel()

    async def _begin(self, number: int, text: bytes) -> None:
        asked = json.loads(text)
        try:
            answer = begin(self.gateway, asked["call"], asked["args"])
        except Exception:
            log.exception("the call %r failed", asked["call"])
            await self.control.send(MessageKind.CALL, b"", number)
            return
        self.nursery.start_soon(self._answer, number, asked["call"], answer)

    async def _answer(self, number: int, call: str, answer: JSON | Awaitable[JSON]) -> None:
        said = b""
        try:
            said = await encoded(await answer if isinstance(answer, Awaitable) else answer)
        except Exception:
            log.exception("the call %r failed", call)
        await self._send(MessageKind.CALL, said, number)

    async def _tell_ready(self) -> None:
        told, readiness = 1, self.gateway.lifecycle.readiness
        while True:
            changed, stands = readiness.changed, readiness.ready + 2 * readiness.impairments
            if stands != told:
                told = stands
                await self._send(MessageKind.READY, b"", stands)
            else:
                await changed.wait()

    async def _tell_events(self, number: int, text: bytes) -> None:
        asked = json.loads(text)
        subscriber = EventSubscriber()
        try:
            with self._streams[number], STREAMS[asked["stream"]](self.gateway, asked["args"], subscriber):
                async for _, item in subscriber:
                    if isinstance(item, EventText):
                        await self._send(MessageKind.EVENT_TEXT, item.packed, number)
                    else:
                        await self._send(MessageKind.EVENT, await encoded(item), number)
        except Exception:
            log.exception("the stream %r failed", asked["stream"])
        finally:
            del self._streams[number]

    async def _send(self, kind: MessageKind, text: bytes, number: int) -> None:
        """Whole, even if nobody wants to hear it any more. That the supervisor is gone, ``run`` finds."""
        with trio.CancelScope(shield=True), contextlib.suppress(ControlClosedError):
            await self.control.send(kind, text, number)
