"""What a supervisor and its workers say to each other, over one socket pair per worker.

::

    supervisor                      worker
        │ ◀──────────────── started   │   its listeners accept
        │ metrics ────────────────▶   │
        │ ◀──────── metrics, the text │
        │ reload, or policies ────▶   │   read the policies again, or only say which hold
        │ ◀───────── the same, JSON   │
        │ routes, an order ───────▶   │   JSON; `null` where there is no such route
        │ ◀───── routes, their states │
        │ pools ──────────────────▶   │
        │ ◀───── the same, their states, JSON
        │ (end of stream) ────────▶   │   the supervisor is gone: drain

A message is four octets of length and a kind, one octet, followed by the text. Signals go by the
kernel's way. What a worker is told at birth is in one environment variable.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from enum import IntEnum

import attrs
import trio

from amqpgate.config import Address, Settings

VARIABLE = "AMQPGATE_WORKER"

_LENGTH = 4
#: A worker's metrics are some tens of KiB.
_LONGEST = 16 * 1024 * 1024


class Kind(IntEnum):
    """What a message is about."""

    STARTED = 1
    METRICS = 2
    RELOAD = 3
    POLICIES = 4
    #: An order about routes, or none; the answer is how they stand.
    ROUTES = 5
    #: Which sessions share which links.
    POOLS = 6


@attrs.frozen
class Birth:
    """Who a worker is."""

    #: The descriptor of its end of the socket pair.
    control: int
    number: int
    #: Where each listener is bound, by name: the supervisor has chosen the ports.
    binds: Mapping[str, tuple[str, int]]

    def as_variable(self) -> str:
        return json.dumps(attrs.asdict(self))

    @classmethod
    def from_environment(cls) -> Birth | None:
        """None where this process is no worker."""
        text = os.environ.pop(VARIABLE, None)
        if text is None:
            return None
        told = json.loads(text)
        binds = {name: (host, port) for name, (host, port) in told["binds"].items()}
        return cls(told["control"], told["number"], binds)

    def settle(self, settings: Settings) -> Settings:
        """The settings as they are for a worker: its supervisor has the admin interface."""
        listeners = tuple(
            attrs.evolve(listener, bind=Address(*self.binds[listener.name]))
            for listener in settings.listeners
        )
        return attrs.evolve(settings, listeners=listeners, admin=None)


class ControlClosedError(Exception):
    """The other end is gone."""


@attrs.define
class Control:
    """One end of the conversation."""

    stream: trio.abc.Stream
    _buffer: bytearray = attrs.field(factory=bytearray, init=False)

    async def send(self, kind: Kind, text: bytes = b"") -> None:
        """Raises ``ControlClosedError``."""
        try:
            await self.stream.send_all((1 + len(text)).to_bytes(_LENGTH, "big") + bytes([kind]) + text)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise ControlClosedError from error

    async def receive(self) -> tuple[Kind, bytes]:
        """Raises ``ControlClosedError``."""
        size = int.from_bytes(await self._take(_LENGTH), "big")
        if not 0 < size <= _LONGEST:
            raise ControlClosedError
        message = await self._take(size)
        return Kind(message[0]), message[1:]

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
