"""More messages than a limit lets pass: many clients that send all that they can, and a broker that counts.

Both are one thread with a selector, so that what is measured is the gateway, and cost little.
"""

from __future__ import annotations

import contextlib
import selectors
import threading
import time
from types import TracebackType
from typing import Self

import attrs

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames

from .inprocess import Doorway
from .talker import Talker

MESSAGE = content_frames(
    1, amqp.BasicPublish(exchange="x", routing_key="k"), amqp.BasicProperties(), b"0123456789abcdef", 131072
)
#: Seconds between sends.
TICK = 0.05


@attrs.define(eq=False)
class CountingBroker:
    """Opens every connection and its channel, and counts the bytes that come afterwards."""

    door: Doorway = attrs.field(factory=Doorway)
    byte_count: int = 0
    _selector: selectors.BaseSelector = attrs.field(factory=selectors.DefaultSelector)
    _over: threading.Event = attrs.field(factory=threading.Event)
    _threads: list[threading.Thread] = attrs.field(factory=list)
    _talkers: list[Talker] = attrs.field(factory=list)

    @property
    def messages(self) -> int:
        """How many have arrived."""
        return self.byte_count // len(MESSAGE)

    def __enter__(self) -> Self:
        for work in (self._accept, self._count):
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._over.set()
        self.door.sock.settimeout(0)
        self.door.close()
        for thread in self._threads:
            thread.join(30)
        for talker in self._talkers:
            talker.close()
        self._selector.close()

    def _accept(self) -> None:
        self.door.sock.settimeout(0.2)
        while not self._over.is_set():
            try:
                talker = self.door.accept()
            except (TimeoutError, OSError):
                continue
            talker.accept()
            talker.expect(amqp.ChannelOpen, 1)
            talker.say(amqp.ChannelOpenOk(), 1)
            self._talkers.append(talker)
            self._selector.register(talker.sock, selectors.EVENT_READ)

    def _count(self) -> None:
        while not self._over.is_set():
            for key, _ in self._selector.select(0.2):
                data = key.fileobj.recv(1 << 18)  # type: ignore[union-attr]
                if not data:
                    self._selector.unregister(key.fileobj)
                self.byte_count += len(data)


@attrs.define(eq=False)
class Flood:
    """Clients on these ports, `connections` together, that offer `rate` messages a second together."""

    ports: list[int]
    connections: int
    rate: float
    _talkers: list[Talker] = attrs.field(factory=list)
    _over: threading.Event = attrs.field(factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        for number in range(self.connections):
            talker = Talker.dial(self.ports[number % len(self.ports)])
            self._talkers.append(talker)
            talker.open()
            talker.sock.setblocking(False)
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._over.set()
        assert self._thread is not None
        self._thread.join(30)
        for talker in self._talkers:
            talker.close()

    def _send(self) -> None:
        """What a connection did not take is behind the next that it takes: whole messages, in order."""
        started = time.monotonic()
        unsent = dict.fromkeys(self._talkers, b"")
        offered = 0
        while not self._over.wait(TICK):
            due = int((time.monotonic() - started) * self.rate) - offered
            offered += due
            for number, talker in enumerate(self._talkers):
                share = due // self.connections + (number < due % self.connections)
                data = unsent[talker]
                if len(data) < 1 << 18:
                    data += MESSAGE * share
                with contextlib.suppress(BlockingIOError):
                    data = data[talker.sock.send(data) :]
                unsent[talker] = data
