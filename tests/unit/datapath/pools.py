"""Pooled sessions, on real socket pairs: what the tests of that share."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import attrs
import pytest

from amqpgate.datapath.build import make_link, make_pooled_relay
from amqpgate.datapath.engine import End, HandedOverSocket, PooledEndpoint
from amqpgate.datapath.link import Link
from amqpgate.datapath.scanner import FlowTable
from amqpgate.datapath.tables import LAST_HARMLESS, ScanResult, Side
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames

from .rig import Rig, Witness, set_up

HIGH, LOW = 64 * 1024, 16 * 1024
FRAME_MAX = 8192
WHOLE = 200_000
LIMIT = 500_000


@attrs.define(eq=False)
class PooledWitness(Witness):
    """The handler of a pooled session: it passes on what it is asked about, and remembers."""

    overflows: int = 0
    ends_overflow: bool = True
    #: Called before each upcall is dealt with; what it returns, unless None, is the upcall's answer.
    on_upcall: Callable[[Side, ScanResult, bytes], bool | None] | None = None
    on_end: Callable[[], None] | None = None

    @property
    def pooled(self) -> PooledEndpoint:
        pooled = self.relay.pooled
        assert pooled is not None
        return pooled

    def results(self) -> list[ScanResult]:
        return [result for _, result, _ in self.upcalls]

    def upcall(self, side: Side, result: ScanResult, frame: memoryview) -> bool:
        self.upcalls.append((side, result, bytes(frame)))
        self.relay.endpoints[side].lane.ready_at = 0.0
        if self.on_upcall is not None:
            answer = self.on_upcall(side, result, bytes(frame))
            if answer is not None:
                return answer
        if result > LAST_HARMLESS:
            self.relay.finish()
            return False
        if result is ScanResult.LARGE:
            self.relay.channels.discard(int.from_bytes(frame[1:3], "big"))
            return False
        if result in (ScanResult.MISS, ScanResult.APART):
            self.relay.channels.expect_header(side, frame[2], None)
        self.relay.send(side.other, bytes(frame))
        return False

    def overflowed(self) -> None:
        self.overflows += 1
        if self.ends_overflow:
            self.relay.finish()

    def ended(self, end: End, side: Side | None, error: Exception | None) -> None:
        super().ended(end, side, error)
        if self.on_end is not None:
            self.on_end()


@attrs.define(eq=False)
class LinkKeeper:
    """The handler of a link: it remembers."""

    link: Link = attrs.field(init=False)
    upcalls: list[tuple[ScanResult, bytes]] = attrs.field(factory=list)
    ends: list[tuple[End, Side | None]] = attrs.field(factory=list)
    on_upcall: Callable[[bytes], None] | None = None

    def upcall(self, side: Side, result: ScanResult, frame: memoryview) -> bool:
        assert side is Side.UPSTREAM
        self.upcalls.append((result, bytes(frame)))
        if self.on_upcall is not None:
            self.on_upcall(bytes(frame))
        return False

    def ended(self, end: End, side: Side | None, error: Exception | None) -> None:
        self.ends.append((end, side))

    def frames(self) -> list[bytes]:
        return [frame for _, frame in self.upcalls]


@attrs.define(eq=False)
class Pool(Rig):
    """With links and pooled sessions."""

    def link(
        self, *, heartbeat: float = 0, rest: bytes = b"", frame_max: int = FRAME_MAX
    ) -> tuple[socket.socket, LinkKeeper]:
        broker, near = self.pair()
        keeper = LinkKeeper()
        keeper.link = make_link(keeper, HandedOverSocket(near, frame_max, heartbeat, rest))
        self.pump.add(keeper.link)
        return broker, keeper

    def session(
        self,
        *,
        heartbeat: float = 0,
        rest: bytes = b"",
        flows: FlowTable | None = None,
        frame_max: int = FRAME_MAX,
        whole: int = WHOLE,
        limit: int = LIMIT,
    ) -> tuple[socket.socket, PooledWitness]:
        client, near = self.pair()
        handler = PooledWitness()
        handler.relay = make_pooled_relay(
            handler,
            HandedOverSocket(near, frame_max, heartbeat, rest),
            frame_max=FRAME_MAX,
            flows=flows,
            whole=whole,
            limit=limit,
        )
        self.pump.add(handler.relay)
        return client, handler

    def join(
        self, keeper: LinkKeeper, channels: dict[int, int] | None = None, **options: object
    ) -> tuple[socket.socket, PooledWitness]:
        """A session on that link; its channels to the link's."""
        client, handler = self.session(**options)  # type: ignore[arg-type]
        handler.pooled.attach(keeper.link)
        for number, to in (channels or {1: 7}).items():
            self.open(keeper, handler, number, to)
        return client, handler

    def open(self, keeper: LinkKeeper, handler: PooledWitness, number: int, to: int) -> None:
        handler.relay.channels.open(number, to)
        keeper.link.map_channel(to, handler.pooled, number)


def make_pool(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    return set_up(Pool, name, monkeypatch, high=HIGH, low=LOW, largest_frame=FRAME_MAX)


def publish(channel: int = 1, body: bytes = b"hello", frame_max: int = FRAME_MAX, key: str = "k") -> bytes:
    method = amqp.BasicPublish(exchange="x", routing_key=key)
    return content_frames(channel, method, amqp.BasicProperties(message_id="m"), body, frame_max)


def deliver(channel: int = 1, body: bytes = b"hello", frame_max: int = FRAME_MAX, tag: int = 1) -> bytes:
    method = amqp.BasicDeliver("c", tag, False, "x", "k")
    return content_frames(channel, method, amqp.BasicProperties(), body, frame_max)


def declare(channel: int) -> bytes:
    return method_frame(channel, amqp.QueueDeclare(queue="q"))


def frames_of(data: bytes) -> list[bytes]:
    """Whole frames; what is left of a broken one is an error."""
    found = []
    while data:
        size = int.from_bytes(data[3:7], "big") + 8
        assert len(data) >= size
        assert data[size - 1] == amqp.FRAME_END
        found.append(data[:size])
        data = data[size:]
    return found
