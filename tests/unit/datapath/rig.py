"""A pump on real socket pairs, with a clock of its own: what the tests of sessions and of links share."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TypeVar

import attrs
import pytest

from amqpgate.datapath import build, endpoint, relay, scanner
from amqpgate.datapath.captures import Captured
from amqpgate.datapath.pump import PlainPump
from amqpgate.datapath.tables import ScanResult, Side

try:
    from amqpgate.datapath import _pump as compiled_pump
    from amqpgate.datapath import _scan as compiled_scan
except ImportError:
    compiled_pump = None  # type: ignore[assignment]


@attrs.frozen
class Engine:
    """A pump, and where its endpoints are, and its scanner."""

    pump: type[PlainPump]
    endpoints: ModuleType
    scanner: ModuleType

    def endpoint(self, name: str) -> type:
        """Its class for one that the contract names."""
        found = getattr(self.endpoints, name, None) or getattr(self.endpoints, f"Plain{name}")
        assert isinstance(found, type)
        return found


#: The plain pump runs with whatever scanner there is.
ENGINES = {"plain": Engine(PlainPump, endpoint, scanner)}
if compiled_pump is not None:
    ENGINES["compiled"] = Engine(compiled_pump.Pump, compiled_pump, compiled_scan)


@attrs.define
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@attrs.define(eq=False)
class Witness:
    """What the handlers of sessions remember."""

    relay: relay.Relay = attrs.field(init=False)
    upcalls: list[tuple[Side, ScanResult, bytes]] = attrs.field(factory=list)
    ends: list[tuple[relay.End, Side | None]] = attrs.field(factory=list)
    #: Of what was captured, the beginnings of the bodies, and how many upcalls there had been.
    told: list[tuple[list[bytes], int]] = attrs.field(factory=list)
    on_captured: Callable[[], None] | None = None

    def captured(self, side: Side, messages: list[Captured]) -> None:
        self.told.append(([body for _, _, _, body, _ in messages], len(self.upcalls)))
        if self.on_captured is not None:
            self.on_captured()

    def ended(self, end: relay.End, side: Side | None, error: Exception | None) -> None:
        self.ends.append((end, side))


@attrs.define(eq=False)
class Rig:
    """A pump, and the far ends of its sockets."""

    clock: Clock
    pump: PlainPump
    scanner: ModuleType
    failures: list[Exception]
    sockets: list[socket.socket] = attrs.field(factory=list)

    def pair(self) -> tuple[socket.socket, socket.socket]:
        far, near = socket.socketpair()
        far.setblocking(False)
        near.setblocking(False)
        self.sockets += (far, near)
        return far, near

    def steps(self, count: int = 20) -> None:
        for _ in range(count):
            self.pump.step()

    def exchange(self, sender: socket.socket, receiver: socket.socket, data: bytes) -> bytes:
        """Send all of it while the other end reads; what arrived."""
        got = bytearray()
        rest = memoryview(data)
        quiet = 0
        while quiet < 5:
            moved = False
            if rest:
                with contextlib.suppress(BlockingIOError):
                    rest = rest[sender.send(rest) :]
                    moved = True
            self.pump.step()
            piece = received(receiver)
            got += piece
            quiet = 0 if moved or piece else quiet + 1
        assert not rest
        return bytes(got)


R = TypeVar("R", bound=Rig)


def set_up(
    kind: type[R], name: str, monkeypatch: pytest.MonkeyPatch, *, high: int, low: int, largest_frame: int
) -> Iterator[R]:
    """A rig with the engine of that name, of which sessions and links are then made, too."""
    made = ENGINES[name]
    for what in ("RelayEndpoint", "PooledEndpoint", "LinkEndpoint"):
        monkeypatch.setattr(build, what, made.endpoint(what))
    for what in ("Channels", "Lane"):
        monkeypatch.setattr(build, what, getattr(made.scanner, what))
    clock = Clock()
    failures: list[Exception] = []
    pump = made.pump(high=high, low=low, largest_frame=largest_frame, clock=clock, on_failure=failures.append)
    rig = kind(clock, pump, made.scanner, failures)
    yield rig
    pump.close()
    for sock in rig.sockets:
        sock.close()


def received(sock: socket.socket) -> bytes:
    got = bytearray()
    with contextlib.suppress(BlockingIOError):
        while piece := sock.recv(1 << 20):
            got += piece
    return bytes(got)
