"""The faults, as data: where, the text that stands there, and what is put in its place."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from attrs import frozen

ROOT: Final = Path(__file__).parents[2]
_SRC: Final = "src/amqpgate"
_NUMBERS: Final = f"{_SRC}/gateway/session/confirm_numbers.py"
_DENIAL: Final = f"{_SRC}/gateway/session/publish_denial.py"
_ENDPOINT: Final = f"{_SRC}/datapath/endpoint.py"
_PASSAGE: Final = f"{_SRC}/datapath/passage.py"
_SETTLING: Final = f"{_SRC}/bridge/v0_10/deliveries.py"
_PUBLISHING_0_10: Final = f"{_SRC}/bridge/v0_10/broker_publishing.py"
_CONSUMING_0_10: Final = f"{_SRC}/bridge/v0_10/broker_consuming.py"


@frozen
class Mutation:
    """One fault."""

    name: str
    path: str
    before: str
    after: str
    #: What chaos plays it with.
    setup: str = "own"
    #: The version that the simulator's brokers speak.
    brokers: str = "0-9-1"

    def apply(self, text: str) -> str:
        """The text of its file with the fault. Raises `ValueError` unless ``before`` is there once."""
        if text.count(self.before) != 1:
            raise ValueError(f"{self.name}: {text.count(self.before)} times in {self.path}: {self.before}")
        return text.replace(self.before, self.after)


MUTATIONS: Final = (
    Mutation(
        "a confirm is numbered wrong",
        _NUMBERS,
        "return place + refused",
        "return place + refused + 1",
        setup="everything",
    ),
    Mutation(
        "a nack becomes an ack",
        _DENIAL,
        'amqp.BasicAck(confirm) if verdict.on_denied == "drop" else amqp.BasicNack(confirm)',
        "amqp.BasicAck(confirm)",
    ),
    Mutation(
        "a byte is lost behind a part of a send",
        _ENDPOINT,
        "self.out += memoryview(data)[sent:]",
        "self.out += memoryview(data)[sent + 1 :]",
    ),
    Mutation(
        "a return is lost",
        _DENIAL,
        "data = method_frame(number, back) + bytes(returning.frames)",
        'data = b""',
        setup="everything",
    ),
    Mutation(
        "a body of a return is lost",
        _DENIAL,
        "data = method_frame(number, back) + bytes(returning.frames)",
        "data = method_frame(number, back)",
        setup="everything",
    ),
    Mutation(
        "a denied publish is counted as passed",
        _DENIAL,
        "        channels.uncount(Side.CLIENT, number)\n        confirm",
        "        confirm",
        setup="everything",
    ),
    Mutation(
        "a denied publish passes",
        f"{_SRC}/gateway/session/publish.py",
        "        if not verdict.allowed or over is not None:\n",
        "        if over is not None:\n",
        setup="everything",
    ),
    Mutation(
        "heartbeats are not sent", _ENDPOINT, "        elif not self.out:\n", "        elif self.out:\n"
    ),
    Mutation(
        "what waited for the end of a delivery is lost",
        _DENIAL,
        "        if waiting:\n            self.relay.send(Side.CLIENT, waiting)",
        "        assert waiting is not None",
    ),
    Mutation(
        "a delivery comes on another channel",
        _PASSAGE,
        "                CHANNEL.pack_into(scratch, pos + 1, to)\n                pos = stop",
        "                CHANNEL.pack_into(scratch, pos + 1, to + (pos & 1))\n                pos = stop",
        setup="pooled",
    ),
    Mutation(
        "messages that a session left whole are lost",
        _ENDPOINT,
        "data, self.stage = whole_only(self.stage), bytearray()",
        'data, self.stage = b"", bytearray()',
    ),
    Mutation(
        "an ack is said twice",
        _PASSAGE,
        "                peer.put(data[first:last])\n",
        "                peer.put(data[first:last])\n"
        "                if last - first == 21:\n"
        "                    peer.put(data[first:last])\n",
    ),
    Mutation(
        "an ack in fifty is lost",
        _PASSAGE,
        "                peer.put(data[first:last])\n",
        "                if last - first != 21 or int(self._schedule.now * 1e6) % 50:\n"
        "                    peer.put(data[first:last])\n",
    ),
    Mutation(
        "a body that is cut into frames loses its last byte",
        f"{_SRC}/datapath/framing.py",
        "bytes(frame[7 : 7 + size])",
        "bytes(frame[7 : 6 + size])",
    ),
    Mutation(
        "half a message goes to a shared connection",
        _ENDPOINT,
        "data, self.stage = whole_only(self.stage), bytearray()",
        "data, self.stage = bytes(self.stage), bytearray()",
        setup="pooled",
    ),
    Mutation(
        "a body comes on the channel of another",
        _PASSAGE,
        "                CHANNEL.pack_into(scratch, pos + 1, to)\n                pos = stop",
        "                CHANNEL.pack_into(scratch, pos + 1, max(1, to - 1) if kind == 3 else to)\n"
        "                pos = stop",
    ),
    Mutation(
        "a silent peer is not found",
        f"{_SRC}/datapath/pump.py",
        "now - endpoint.last_received >= 2 * interval",
        "now - endpoint.last_received >= 2000 * interval",
    ),
    Mutation(
        "a window's credit does not come back",
        f"{_SRC}/bridge/v0_10/credit.py",
        "        self.used -= cost",
        "        self.used -= 0 * cost",
        setup="bridged-0-10",
    ),
    Mutation(
        "an accept covers one message more",
        _SETTLING,
        "self._main.send(amqp.BasicAck(tags[oldest - 1], multiple=True))",
        "self._main.send(amqp.BasicAck(tags[oldest - 1] + 1, multiple=True))",
        setup="bridged-0-10",
    ),
    Mutation(
        "what is released is rejected",
        _SETTLING,
        "return amqp.BasicNack(tag, requeue=True) if self._has_nacks "
        "else amqp.BasicReject(tag, requeue=True)",
        "return amqp.BasicReject(tag, requeue=False)",
        setup="bridged-0-10",
    ),
    Mutation(
        "old clients have no prefetch",
        f"{_SRC}/bridge/prefetch.py",
        "        return 0 if channel is None else channel.limit",
        "        return 0 if channel is None else 0 * channel.limit",
        setup="bridged-0-8",
    ),
    Mutation(
        "what a broker of 0-10 completes is confirmed by a wrong number",
        _PUBLISHING_0_10,
        "amqp.BasicAck(self._next_tag - 1, multiple=count > 1)",
        "amqp.BasicAck(self._next_tag, multiple=count > 1)",
        brokers="0-10",
    ),
    Mutation(
        "what a broker of 0-10 has not completed is confirmed",
        _PUBLISHING_0_10,
        "while waiting and waiting[0] in self._done:",
        "while waiting and (waiting[0] in self._done or len(waiting) > 1):",
        brokers="0-10",
    ),
    Mutation(
        "what a broker of 0-10 rejects does not come back",
        _PUBLISHING_0_10,
        "        self._mandatory.rejected(reject)",
        "        del reject",
        brokers="0-10",
    ),
    Mutation(
        "an accept to a broker of 0-10 is lost",
        _CONSUMING_0_10,
        "        for transfers in _sets(accepted):",
        "        for transfers in _sets(accepted[1:] if len(accepted) > 1 else accepted):",
        brokers="0-10",
    ),
    Mutation(
        "credit for a broker of 0-10 does not come back",
        _CONSUMING_0_10,
        "            if owed and consumer.limit is not None:",
        "            if owed > 1 and consumer.limit is not None:",
        brokers="0-10",
    ),
    Mutation(
        "what goes back to a broker of 0-10 is rejected",
        _CONSUMING_0_10,
        "                if requeue\n",
        "                if requeue and len(ids) > 1\n",
        brokers="0-10",
    ),
    Mutation(
        "a certificate that was replaced is shown",
        f"{_SRC}/gateway/transport/tls.py",
        "        if known is not None and known.stamp == _stamp(known.files):\n"
        "            return known.context\n"
        "        files: list",
        "        if known is not None:\n            return known.context\n        files: list",
        setup="everything",
    ),
)
