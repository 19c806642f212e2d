"""Frames from the fuzzer's bytes: mostly good ones, in good order, of every kind that the data path knows."""

from __future__ import annotations

from typing import Final

import attrs

from amqpgate.datapath.tables import Side
from amqpgate.protocol.frames import HEARTBEAT, encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.fuzz.choices import Choices
from tests.support.frames import content_frames

KEYS: Final = ("a", "b", "aa", "ab", "ba", "bb", "aaa", "a longer key", "a loNGer key", "long" * 12)
CHANNELS: Final = (1, 1, 1, 1, 2, 2, 3, 4, 0, 258)
PROPERTIES: Final = (
    amqp.BasicProperties(content_type="text/plain"),
    amqp.BasicProperties(),
    amqp.BasicProperties(headers=Table.of({"CC": []})),
    amqp.BasicProperties(headers=Table.of({"C": 1})),
    amqp.BasicProperties(headers=Table.of({"BCC": ["a"], "x": "CC"})),
    amqp.BasicProperties(reply_to="q"),
    amqp.BasicProperties(delivery_mode=0, content_encoding="gzip"),
    amqp.BasicProperties(delivery_mode=2, content_type="a" * 99),
    amqp.BasicProperties(message_id="m" * 200, correlation_id="c" * 200),
)
SIZES: Final = (0, 1, 5, 4096, 1 << 32, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
TAGS: Final = (0, 1, 2, 3, 4, 5, 7, 500, 1025, 1 << 62, (1 << 64) - 1)
METHODS: Final[tuple[Method, ...]] = (
    amqp.ChannelOpen(),
    amqp.ChannelOpenOk(),
    amqp.ChannelClose(200, "bye"),
    amqp.ChannelCloseOk(),
    amqp.ConnectionClose(200, "bye"),
    amqp.ConnectionCloseOk(),
    amqp.QueueDeclare(queue="q"),
    amqp.QueueDeclareOk("q", 0, 0),
    amqp.BasicConsume(queue="q", consumer_tag="t"),
    amqp.BasicGet(queue="q"),
    amqp.BasicGetEmpty(),
    amqp.BasicQos(prefetch_count=3),
    amqp.BasicRecover(True),
    amqp.BasicRecoverOk(),
    amqp.ConfirmSelect(),
    amqp.ConfirmSelectOk(),
    amqp.TxSelect(),
    amqp.TxCommit(),
    amqp.ChannelFlow(False),
    amqp.ChannelFlowOk(False),
)
#: What frames fit: small ones, so that bodies are cut.
FRAME_MAX: Final = (4096, 64, 128)


@attrs.define
class Writer:
    """Turns decisions into bytes of one side. Delivery tags count up, as a broker's do."""

    choices: Choices
    tag: int = 0

    def method(self, side: Side) -> Method:
        """One that begins a message."""
        choices = self.choices
        key = choices.pick(KEYS)
        if side is Side.CLIENT:
            return amqp.BasicPublish(
                0, choices.pick(("x", "", "yy")), key, choices.rarely(), choices.rarely()
            )
        self.tag += 1
        tag = choices.pick(TAGS) if choices.rarely() else self.tag
        what = choices.below(5)
        if what < 3:
            return amqp.BasicDeliver(choices.pick(("a", "b", "")), tag, choices.flag(), "x", key)
        if what == 3:
            return amqp.BasicGetOk(tag, choices.flag(), "x", key, 7)
        return amqp.BasicReturn(312, "NO_ROUTE", "x", key)

    def settlement(self) -> Method:
        """An ack, a nack or a reject."""
        choices = self.choices
        tag, several = choices.pick(TAGS), choices.flag()
        what = choices.below(4)
        if what == 2:
            return amqp.BasicReject(tag, several)
        return amqp.BasicNack(tag, several, False) if what == 1 else amqp.BasicAck(tag, several)

    def some(self, side: Side) -> bytes:
        """Some frames, or a part of one."""
        choices = self.choices
        what = choices.below(16)
        channel = choices.pick(CHANNELS)
        if what < 5:
            body = choices.take(1) * choices.pick((0, 1, 5, 30, 31, 90, 200, 4500))
            properties = choices.pick(PROPERTIES)
            return content_frames(channel, self.method(side), properties, body, choices.pick(FRAME_MAX))
        if what == 5:
            return method_frame(channel, self.method(side))
        if what == 6:
            size = choices.pick(SIZES)
            header = ContentHeader(60, size, choices.pick(PROPERTIES))
            return encode_frame(2, channel, encode_header(header))
        if what == 7:
            return encode_frame(3, channel, choices.take(1) * choices.pick((0, 1, 5, 60, 4088)))
        if what in (8, 9):
            return method_frame(channel, self.settlement())
        if what in (10, 11):
            return method_frame(channel, choices.pick(METHODS))
        if what == 12:
            return HEARTBEAT
        if what == 13:
            return encode_frame(choices.below(10), channel, choices.some(40))
        if what == 14:
            return choices.some(40)
        return self._spoilt(method_frame(channel, self.method(side)))

    def _spoilt(self, frame: bytes) -> bytes:
        """With one byte another."""
        spoilt = bytearray(frame)
        spoilt[self.choices.below(len(frame))] = self.choices.byte()
        return bytes(spoilt)
