"""Hostile clients: half frames, silence, floods, garbage. They may be told anything."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import FRAME_BODY, encode_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.simulation.client import Client, Session
from tests.simulation.connection import Line
from tests.simulation.entries import Lane
from tests.simulation.ledger import Violation
from tests.simulation.talk import Content, frames_of

_HEADER = b"AMQP\0\0\x09\x01"


class Hostile(Client):
    """One that does not keep to the protocol."""

    def make(self) -> HostileSession:
        return HostileSession(self)


class HostileSession(Session):
    """One connection of it."""

    #: It logs in, and is to be ended amid a message.
    breaks_off = False

    def dial(self) -> None:
        plan = self.client.plan
        self.breaks_off = bool(plan.weaves) and self.random.random() < plan.weaves
        network = self.world.network
        # Before a listener with TLS some say nothing of it.
        is_plain = network.tls_clients and self.random.random() < 0.3
        network.connect(self, plan.name, plan.source, self.world.listener, is_plain=is_plain)
        self.later(self.random.uniform(1, 90), self.abandon)

    def abandon(self) -> None:
        if self.connection is None:
            self.ended("left")
        elif self.random.random() < 0.5:
            self.connection.reset()
        else:
            self.leave()

    def connected(self, connection: Line) -> None:
        self.connection = connection
        if self.is_over:
            connection.close()
            return
        acts = (self._silent, self._half, self._garbage, self._login_then, self._login_then)
        self._login_then() if self.breaks_off else self.random.choice(acts)()

    def received(self, data: bytes) -> None:
        # What it is told to garbage may be no frame.
        with contextlib.suppress(Violation, ProtocolViolation):
            super().received(data)

    def _shout(self, data: bytes) -> None:
        if self.connection is not None:
            self.connection.send(data)

    def _silent(self) -> None:
        """Says nothing."""

    def _half(self) -> None:
        self._shout(_HEADER[: self.random.randrange(8)])

    def _garbage(self) -> None:
        self._shout((_HEADER if self.random.random() < 0.5 else b"") + self.random.randbytes(200))

    def _login_then(self) -> None:
        self._shout(_HEADER)
        self._wait(0, "the start", (amqp.ConnectionStart,), self._login)

    def oldest(self) -> tuple[float, str]:
        return float("inf"), ""

    def _dispatch(self, channel: int, method: Method, content: Content | None) -> None:
        wait = self.waits.get(channel)
        if wait is not None and isinstance(method, wait.answers):
            del self.waits[channel]
            wait.then(method)

    def begin(self) -> None:
        acts: list[Callable[[], None]] = [
            self._half_frame,
            self._half_message,
            self._flood,
            self._bad_ack,
            self._no_read,
        ]
        if self.breaks_off:
            acts = [self._amid]
        self.lanes[1] = self.ledger.lane(f"{self.name} channel 1")
        self.ask(1, amqp.ChannelOpen(), (amqp.ChannelOpenOk,), lambda _: self.random.choice(acts)())

    def _half_frame(self) -> None:
        self._shout(
            self.talk.method(1, amqp.QueueDeclare(queue="q0", durable=True))[: self.random.randrange(1, 20)]
        )

    def _half_message(self) -> None:
        frames = self._message()
        missing = self.random.randrange(2, len(frames))
        # Its heartbeats would end the message, and it would be whole.
        self._shout(frames[: -missing - (missing % len(self.talk.heartbeat) == 0)])

    def _amid(self) -> None:
        """A message's frames, and what no client may say, on another channel, among them."""
        self.lanes[2] = self.ledger.lane(f"{self.name} channel 2")
        self.ask(2, amqp.ChannelOpen(), (amqp.ChannelOpenOk,), lambda _: self._break_off())

    def _break_off(self) -> None:
        frames = frames_of(self._message(self.random.choice((3000, 30_000))))
        wrong = self.random.choice(
            (
                self.talk.method(2, amqp.QueueDeclareOk("nonsense", 0, 0)),
                self.talk.method(2, amqp.ChannelOpen()),
                encode_frame(FRAME_BODY, 2, b"of no message"),
            )
        )
        frames.insert(self.random.randrange(1, len(frames)), wrong)
        self._shout(b"".join(frames))

    def _message(self, size: int = 3000) -> bytes:
        content = Content(amqp.BasicProperties(message_id="half"), self.random.randbytes(size))
        return self.talk.content(1, amqp.BasicPublish(exchange="x", routing_key="open.q0"), content)

    def _flood(self) -> None:
        self._shout(self.talk.heartbeat * 5000)

    def _bad_ack(self) -> None:
        # Its own session's end: the broker that it reaches would say 406.
        self._shout(self.talk.method(1, amqp.QueueDeclareOk("nonsense", 0, 0)))

    def _no_read(self) -> None:
        """Consumes, and never reads again."""
        if self.connection is not None:
            self.connection.lose(inward=False, outward=True)

    def heard(self, channel: int, lane: Lane, method: Method, content: Content | None) -> None:
        """It does not listen."""
