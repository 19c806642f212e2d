"""One gateway for one input, on a clock that stands still; and what it may not write to its log."""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import attrs
import trio
import trio.testing

from amqpgate.app import wiring
from amqpgate.config import parse
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.protocol.frames import Frame, FrameDecoder
from tests.fuzz.known import tolerates
from tests.fuzz.stage.broker import Broker

#: In every password: the log never has it.
CANARY = "cAnArY"
#: Rounds until both ends are quiet.
ROUNDS = 400
#: Quiet rounds that are enough, and seconds on the gateway's clock between two of them.
QUIET = 4
PAUSE = 0.01

SETTINGS = """
listeners: [{{name: main, bind: 127.0.0.1:0}}]
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}{more}}}]
"""


class Listening(logging.Handler):
    """Keeps what is written, however little it matters."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.faults: list[str] = []
        self.leaks: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = logging.Formatter().format(record)
        known = (tolerates("broker-acks-unknown-channel") and "KeyError" in text) or (
            tolerates("pooled-closes") and "MemoryError" in text
        )
        if record.exc_info is not None and record.levelno >= logging.ERROR and not known:
            self.faults.append(text)
        if CANARY in text or hex_of(CANARY) in text or numbers_of(CANARY) in text:
            self.leaks.append(text)


def hex_of(text: str) -> str:
    """As a dump has it."""
    return text.encode().hex()


def numbers_of(text: str) -> str:
    """As Erlang writes a binary."""
    return ",".join(map(str, text.encode()))


class Client:
    """One end of a connection to the gateway, never waiting."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setblocking(False)
        # Without it the kernel keeps small pieces until others are acknowledged.
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.decoder = FrameDecoder(0)
        self.frames: list[Frame] = []
        self.sent = bytearray()
        self.raw = bytearray()
        self.is_open = True

    def send(self, data: bytes) -> None:
        """As far as there is room."""
        if self.is_open and data:
            try:
                count = self.sock.send(data)
            except OSError:
                return
            self.sent += data[:count]

    def step(self) -> bool:
        """Take what has come; whether there was anything."""
        moved = False
        while self.is_open:
            try:
                data = self.sock.recv(1 << 18)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            moved = True
            if not data:
                self.close()
                break
            self.raw += data
            if self.raw[:4] == b"AMQP":
                # The answer to a header that is not spoken.
                continue
            self.decoder.feed(data)
            while (frame := self.decoder.next()) is not None:
                self.frames.append(frame)
        return moved

    def close(self) -> None:
        """Hang up."""
        self.is_open = False
        self.sock.close()


@attrs.define(eq=False)
class Stage:
    """The gateway, and who talks with it."""

    gateway: Gateway
    broker: Broker
    clock: trio.testing.MockClock
    clients: list[Client] = attrs.field(factory=list)

    def client(self) -> Client:
        """One more, connected and silent."""
        self.clients.append(Client(self.gateway.addresses["main"][1]))
        return self.clients[-1]

    def jump(self, seconds: float) -> None:
        """So much time goes by."""
        self.clock.jump(seconds)
        self.gateway.registry.fibers.look()

    async def settle(self) -> None:
        """Until nothing moves any more."""
        quiet = 0
        for _ in range(ROUNDS):
            await trio.testing.wait_all_tasks_blocked()
            moved = self.broker.step()
            for client in self.clients:
                moved |= client.step()
            quiet = 0 if moved else quiet + 1
            if quiet == QUIET:
                return
            if quiet:
                # Some of what waits does so by the clock.
                self.jump(PAUSE)
        raise AssertionError("the gateway does not come to rest")


def play(
    scenario: Callable[[Stage], Awaitable[None]],
    broker: Broker,
    *,
    more: str = "",
    text: str = SETTINGS,
    policies: Path | None = None,
    prepare: Callable[[Gateway], None] = lambda _: None,
) -> None:
    """Run it, and then see that nothing is left. ``prepare`` is called with the gateway before it runs."""
    listening = Listening()
    root = logging.getLogger()
    level = root.level
    root.addHandler(listening)
    root.setLevel(logging.DEBUG)
    shown = [(handler, handler.level) for handler in root.handlers if handler is not listening]
    for handler, _ in shown:
        handler.setLevel(logging.CRITICAL + 1)
    settings = text.format(port=broker.port, more=more)
    if policies is not None:
        settings += f"policies: {policies}\n"

    async def main() -> None:
        gateway = wiring.build(parse(settings, {}))
        prepare(gateway)
        async with trio.open_nursery() as nursery:
            await nursery.start(gateway.run)
            stage = Stage(gateway, broker, clock)
            try:
                await scenario(stage)
                for client in stage.clients:
                    client.close()
                await stage.settle()
                stage.jump(600)
                await stage.settle()
                for _ in range(500):
                    if not gateway.sessions and not gateway.acceptor.connections.count:
                        break
                    # What is reckoned or looked up in threads takes its time.
                    await trio.to_thread.run_sync(time.sleep, 0.01)
                    await stage.settle()
                assert not gateway.sessions, "a session is left"
                assert not gateway.acceptor.connections.count, "a connection is left"
            finally:
                for client in stage.clients:
                    client.close()
            nursery.cancel_scope.cancel()

    clock = trio.testing.MockClock()
    try:
        trio.run(main, clock=clock)
    finally:
        with contextlib.suppress(OSError):
            broker.close()
        root.removeHandler(listening)
        root.setLevel(level)
        for handler, old in shown:
            handler.setLevel(old)
    assert not listening.faults, "\n".join(listening.faults)
    assert not listening.leaks or tolerates("secrets-in-violations"), "\n".join(listening.leaks)
