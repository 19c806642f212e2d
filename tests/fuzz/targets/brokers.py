"""A broker's bytes, in the handshake or behind it: the gateway goes on, the client gets whole frames, and
nobody else's session ends."""

from __future__ import annotations

from collections.abc import Iterator

from amqpgate.datapath.tables import Side
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import EMPTY_TABLE, Table
from tests.fuzz.choices import Choices
from tests.fuzz.frames import Writer
from tests.fuzz.stage.broker import Broker, Link
from tests.fuzz.stage.client import PASSWORD, Speaker
from tests.fuzz.stage.running import Stage, play
from tests.fuzz.targets.sessions import may_all
from tests.support.frames import content_frames

MOST = 300
TOKENS = (b"\0\0\0\0", b"\0\x06\0")
STEPS = 16
SAID: tuple[Method, ...] = (
    amqp.ConnectionStart(0, 9, EMPTY_TABLE, b"", b""),
    amqp.ConnectionStart(0, 10, Table.of({"product": "Qpid"}), b"EXTERNAL SCRAM-SHA-256", b"en_US"),
    amqp.ConnectionStart(8, 0, Table.of({"product": "RabbitMQ"}), b"PLAIN", b"en_US"),
    amqp.ConnectionSecure(b"challenge"),
    amqp.ConnectionTune(0, 0, 0),
    amqp.ConnectionTune(1, 100, 1),
    amqp.ConnectionTune(65535, 4294967295, 65535),
    amqp.ConnectionOpenOk(),
    amqp.ConnectionClose(403, "ACCESS_REFUSED - " + PASSWORD.decode()[:0] + "x" * 200),
    amqp.ConnectionClose(320, "CONNECTION_FORCED", 60, 40),
    amqp.ConnectionCloseOk(),
    amqp.ConnectionBlocked("memory"),
    amqp.ConnectionUnblocked(),
    amqp.ChannelOpenOk(),
    amqp.ChannelClose(404, "NOT_FOUND", 60, 40),
    amqp.ChannelCloseOk(),
    amqp.ChannelFlow(False),
    amqp.ChannelFlow(True),
    amqp.QueueDeclareOk("q" * 255, 0, 0),
    amqp.BasicConsumeOk("t"),
    amqp.BasicCancel("t", no_wait=True),
    amqp.BasicCancelOk("t"),
    amqp.BasicAck(1),
    amqp.BasicNack(7, True, False),
    amqp.BasicRecoverOk(),
    amqp.ConfirmSelectOk(),
    amqp.TxSelectOk(),
    amqp.BasicPublish(),
)


def seeds() -> Iterator[bytes]:
    """Each method at each stage."""
    for number in range(len(SAID)):
        yield bytes((0, 1, number, 0))
        yield bytes((0, 0, 0, 0, number, 1, 0, 0, number, 1)) * 3
    for step in range(16):
        yield bytes((1, 0)) + bytes((2, step, 1, 0, step, 2, 1)) * 6


class Teller:
    """Turns decisions into what a broker says."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.writer = Writer(choices)

    def some(self) -> bytes:
        """Frames, or what should be some."""
        choices = self.choices
        what = choices.below(8)
        channel = choices.pick((1, 1, 1, 2, 0, 3, 65535))
        if what < 3:
            return method_frame(channel, choices.pick(SAID))
        if what == 3:
            deliver = amqp.BasicDeliver("t", choices.byte(), choices.flag(), "x", "k")
            return content_frames(channel, deliver, amqp.BasicProperties(), choices.some(60), 4096)
        if what == 4:
            return choices.some(40)
        return self.writer.some(Side.UPSTREAM)


def check(data: bytes) -> None:
    """Play it."""
    choices = Choices(data)
    flags = choices.byte()
    teller = Teller(choices)
    # The last is said first, in the place of start, of tune and so on.
    broker = Broker(False, may_all, spoils=[], is_hostile=True)
    spoilt = choices.below(8)
    good = (
        method_frame(0, amqp.ConnectionStart(0, 9, Table.of({"product": "RabbitMQ"}), b"PLAIN", b"en_US")),
        method_frame(0, amqp.ConnectionTune(2047, 131072, 0)),
        method_frame(0, amqp.ConnectionOpenOk()),
    )
    if 0 < spoilt <= len(good):
        broker.spoils += [teller.some(), *reversed(good[: spoilt - 1])]
    more = ", connections: pooled" if flags & 1 else ", user: own, password: own" if flags & 2 else ""

    async def scenario(stage: Stage) -> None:
        client = stage.client()
        for piece in Speaker(Choices(b"")).handshake():
            client.send(piece)
            await stage.settle()
        speaker = Speaker(choices)
        for number in range(STEPS):
            if not choices:
                break
            links: list[Link] = [link for link in broker.links if link.is_open]
            if links and choices.below(3):
                links[-1].send(teller.some())
                if choices.rarely():
                    links[-1].close()
            else:
                client.send(speaker.some(number))
            if choices.flag():
                await stage.settle()
        await stage.settle()

    play(scenario, broker, more=more)
