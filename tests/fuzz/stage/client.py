"""What a client says: a handshake, and then frames, each mostly as it should be."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from amqpgate.datapath.tables import Side
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.fuzz.choices import Choices
from tests.fuzz.frames import KEYS, PROPERTIES, Writer
from tests.fuzz.stage.running import CANARY
from tests.support.frames import content_frames

HEADERS = (
    amqp.PROTOCOL_HEADER,
    b"AMQP\x01\x01\x00\x09",
    b"AMQP\x01\x01\x08\x00",
    b"AMQP\x01\x01\x09\x01",
    b"GET / HT",
    b"AMQP\x00\x01\x00\x00",
)
PASSWORD = CANARY.encode()
#: Without the latter two a client has a connection of its own, whatever its route says.
CAPABILITIES = ("publisher_confirms", "basic.nack", "consumer_cancel_notify")
RESPONSES = (
    ("PLAIN", b"\0guest\0" + PASSWORD),
    ("PLAIN", b"\0gu\xffest\0" + PASSWORD + b"\0" + PASSWORD),
    ("PLAIN", PASSWORD),
    ("AMQPLAIN", b"\x05LOGINS\0\0\0\x05guest\x08PASSWORDS\0\0\0\x06" + PASSWORD),
    ("AMQPLAIN", b"\x05LOGINS\xff\0\0\x05guest\x08PASSWORDS\0\0\0\x06" + PASSWORD),
    ("EXTERNAL", b""),
    ("ANONYMOUS", PASSWORD),
    ("P" * 255, PASSWORD * 40),
)
TUNES = ((2047, 131072, 0), (0, 0, 0), (10, 4096, 60), (65535, 4294967295, 65535), (1, 100, 1))
#: Methods of a client beyond those of the data path; a server's, too.
ASKED: tuple[Method, ...] = (
    amqp.ChannelOpen(),
    amqp.ChannelOpen(),
    amqp.ChannelClose(200, "bye"),
    amqp.QueueDeclare(queue="q"),
    amqp.QueueDeclare(queue="", exclusive=True),
    amqp.QueueDeclare(queue="secret.q"),
    amqp.QueueDeclare(queue="q", no_wait=True),
    amqp.QueueBind(queue="q", exchange="x", routing_key="k"),
    amqp.QueueDelete(queue="q"),
    amqp.ExchangeDeclare(exchange="x"),
    amqp.ExchangeDeclare(exchange="secret.x"),
    amqp.BasicConsume(queue="q", consumer_tag="t"),
    amqp.BasicConsume(queue="q", consumer_tag="t", no_ack=True, no_wait=True),
    amqp.BasicConsume(queue="secret.q"),
    amqp.BasicCancel("t"),
    amqp.BasicGet(queue="q"),
    amqp.BasicGet(queue="q", no_ack=True),
    amqp.BasicQos(prefetch_count=3),
    amqp.BasicRecover(True),
    amqp.BasicRecoverAsync(True),
    amqp.ConfirmSelect(),
    amqp.ConfirmSelect(no_wait=True),
    amqp.TxSelect(),
    amqp.TxCommit(),
    amqp.TxRollback(),
    amqp.ChannelFlow(False),
    amqp.ChannelFlowOk(True),
    amqp.AccessRequest("/data"),
    amqp.ConnectionClose(200, "bye"),
    amqp.ConnectionCloseOk(),
    amqp.ConnectionUpdateSecret(PASSWORD, "because"),
    amqp.ConnectionOpen("/"),
    amqp.BasicDeliver("t", 1, False, "x", "k"),
    amqp.BasicCredit("t", 1, True),
)
#: What no policy of the targets lets pass.
SECRET = "secret"


@attrs.define
class Speaker:
    """Turns decisions into what a client says, piece by piece."""

    choices: Choices
    #: Well formed up to the last channel.open, for who is fuzzed behind the handshake.
    is_good: bool = False

    def handshake(self) -> Iterator[bytes]:
        """Protocol header to channel.open, each mostly good."""
        choices = self.choices
        odd = choices.byte()
        yield choices.pick(HEADERS) if odd & 3 == 3 else HEADERS[0]
        mechanism, response = choices.pick(RESPONSES) if odd >> 2 & 1 else RESPONSES[0]
        properties = Table.of({"product": "fuzz", "capabilities": dict.fromkeys(CAPABILITIES, True)})
        tune = choices.pick(TUNES) if odd >> 3 & 1 else TUNES[0]
        vhost = choices.pick(("/", "nowhere", "a" * 200, "")) if odd >> 4 & 1 else "/"
        for method in (
            amqp.ConnectionStartOk(properties, mechanism, response, "en_US"),
            amqp.ConnectionTuneOk(*tune),
            amqp.ConnectionOpen(vhost),
        ):
            yield self._changed(method_frame(0, method)) if odd >> 5 == 7 else method_frame(0, method)
        for number in (1, 2):
            yield method_frame(number, amqp.ChannelOpen())

    def _changed(self, frame: bytes) -> bytes:
        choices = self.choices
        what = choices.below(6)
        changed = bytearray(frame)
        at = choices.below(len(frame))
        if what == 0:
            changed[at] = choices.byte()
        elif what == 1:
            del changed[at : at + choices.below(8)]
        elif what == 2:
            # Bytes behind the arguments, within the frame.
            extra = choices.some(8)
            changed[-1:-1] = extra
            changed[3:7] = (len(changed) - 8).to_bytes(4, "big")
        elif what == 3:
            changed[-1] = choices.byte()
        return bytes(changed)

    def some(self, number: int) -> bytes:
        """The next frames; ``number`` makes each message another one."""
        choices = self.choices
        what = choices.below(16)
        channel = choices.pick((1, 1, 1, 2, 2, 3, 0, 2047, 2048))
        if what < 6:
            exchange = choices.pick(("x", "", "x", "yy", "secret"))
            key = choices.pick((*KEYS, "secret.key"))
            body = b"%d." % number + b"." * choices.pick((0, 1, 30, 5000))
            publish = amqp.BasicPublish(0, exchange, key, choices.rarely(), choices.rarely())
            properties = choices.pick(PROPERTIES)
            if choices.rarely():
                properties = amqp.BasicProperties(headers=Table.of({"CC": ["secret.key"]}))
            return content_frames(channel, publish, properties, body, choices.pick((4096, 131072, 64)))
        if what < 11:
            return method_frame(channel, choices.pick(ASKED))
        if what == 11:
            return self._changed(method_frame(channel, choices.pick(ASKED)))
        return Writer(choices).some(Side.CLIENT)
