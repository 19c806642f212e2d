"""What a supervisor and its workers say to each other, over one socket pair per worker.

::

    supervisor                      worker
        │ ◀──────────────── started   │   its listeners accept
        │ metrics ────────────────▶   │
        │ ◀──────── metrics, the text │
        │ call, name and arguments ─▶ │   of ``operator.queries``
        │ ◀───────── call, the answer │
        │ listen, a stream ───────▶   │
        │ ◀───────────── event, again and again
        │ unlisten ───────────────▶   │
        │ (end of stream) ────────▶   │   the supervisor is gone: drain

A message is four bytes of length, a kind, one byte, and a number, four bytes, followed by the text: JSON,
but for metrics. An answer has the number of its question; an answer without text says that the call failed,
or that there is more of it than `LONGEST`. An event that is longer is left out. Events have the number of the
``listen``. Signals go by the kernel's way. A worker's configuration is in one environment variable.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from enum import IntEnum

import attrs
import trio

from amqpgate.config import Address, Settings
from amqpgate.logs import RECURRING
from amqpgate.values import define, frozen

log = logging.getLogger(__name__)

VARIABLE = "AMQPGATE_WORKER"

_LENGTH = 4
_HEAD = 5
#: Bytes of a text. A worker's metrics are some tens of KiB, what it says of a thousand sessions is less than
#: one MiB; but clients choose names in it.
LONGEST = 16 * 1024 * 1024


class MessageKind(IntEnum):
    """What a message is about."""

    STARTED = 1
    METRICS = 2
    CALL = 3
    #: The worker is to say what happens, from now on.
    LISTEN = 4
    UNLISTEN = 5
    EVENT = 6
    #: Whether the worker is ready (number 1) or not (0): told when that changes.
    READY = 7
    #: As ``EVENT``, as text that the supervisor need not read (`telemetry.events.EventText`).
    EVENT_TEXT = 8


@frozen
class WorkerConfig:
    """What its supervisor tells a worker when it starts it."""

    #: The descriptor of its end of the socket pair.
    control: int
    number: int
    #: Where each listener is bound, by name: the supervisor has chosen the ports.
    binds: Mapping[str, tuple[str, int]]
    #: Takes no connections until it is told to.
    paused: bool = False
    #: The descriptor of what the workers share (`gateway.limits.shared_memory`), and how many they are.
    limits: int | None = None
    workers: int = 1

    def as_variable(self) -> str:
        return json.dumps(attrs.asdict(self))

    @classmethod
    def from_environment(cls) -> WorkerConfig | None:
        """None where this process is no worker."""
        text = os.environ.pop(VARIABLE, None)
        if text is None:
            return None
        told = json.loads(text)
        binds = {name: (host, port) for name, (host, port) in told["binds"].items()}
        return cls(told["control"], told["number"], binds, told["paused"], told["limits"], told["workers"])

    def settle(self, settings: Settings) -> Settings:
        """The settings as they are for a worker: its supervisor has the admin interface."""
        listeners = tuple(
            attrs.evolve(listener, bind=Address(*self.binds[listener.name]))
            for listener in settings.listeners
        )
        return attrs.evolve(settings, listeners=listeners, admin=None)


class ControlClosedError(Exception):
    """The other end is gone."""


@define
class WorkerControl:
    """One end of the conversation."""

    stream: trio.abc.Stream
    _buffer: bytearray = attrs.field(factory=bytearray, init=False)
    _sending: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _is_torn: bool = attrs.field(default=False, init=False)

    async def send(self, kind: MessageKind, text: bytes = b"", number: int = 0) -> None:
        """Raises ``ControlClosedError``."""
        if len(text) > LONGEST:
            # Where it came in, there would be no telling what comes behind it.
            log.warning("%d bytes are too many for the supervisor: %s", len(text), kind.name, extra=RECURRING)
            if kind in (MessageKind.EVENT, MessageKind.EVENT_TEXT):
                return
            text = b""
        head = (_HEAD + len(text)).to_bytes(_LENGTH, "big") + bytes([kind]) + number.to_bytes(4, "big")
        async with self._sending:
            if self._is_torn:
                raise ControlClosedError
            await trio.lowlevel.checkpoint_if_cancelled()
            # Cancelled from here on, it may have sent a part: nothing that follows would be understood.
            self._is_torn = True
            try:
                await self.stream.send_all(head + text)
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                raise ControlClosedError from error
            self._is_torn = False

    async def receive(self) -> tuple[MessageKind, int, bytes]:
        """Kind, number and text. Raises ``ControlClosedError``."""
        size = int.from_bytes(await self._take(_LENGTH), "big")
        if not _HEAD <= size <= _HEAD + LONGEST:
            raise ControlClosedError
        message = await self._take(size)
        return MessageKind(message[0]), int.from_bytes(message[1:_HEAD], "big"), message[_HEAD:]

    async def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            try:
                data = await self.stream.receive_some()
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                raise ControlClosedError from error
            if not data:
                raise ControlClosedError
            self._buffer += data
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken
