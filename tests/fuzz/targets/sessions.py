"""A client's bytes through the whole gateway to a broker that checks them: what arrives is well formed and in
order, is allowed, and was sent; the log has no fault and no password."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import FrameDecoder
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.fuzz.choices import Choices
from tests.fuzz.stage.broker import Broker, Message
from tests.fuzz.stage.client import SECRET, Speaker
from tests.fuzz.stage.running import Client, Stage, play

MOST = 300
TOKENS = (b"\0\0\0\0", b"\0\x06\0")
STEPS = 24

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: fuzz}
spec:
  subjects: [{user: "*"}]
  rules:
  - {id: all, effect: allow, operations: ["*"]}
  - {id: queues, effect: deny, operations: ["queue.*", basic.consume, basic.get], queue: {prefix: secret}}
  - {id: exchanges, effect: deny, operations: ["exchange.*", basic.publish], exchange: {prefix: secret}}
  - {id: keys, effect: deny, operations: [basic.publish, queue.bind], routingKey: {prefix: secret}}
"""


def seeds() -> Iterator[bytes]:
    """A few of each kind of step."""
    for step in range(16):
        for flags in (0, 1):
            yield bytes((flags, 0, 0)) + bytes((step, 0, 0, 1, step, 0, 2, 3, 1)) * 6
    for odd in (3, 4, 8, 16, 0xE0, 0xFF):
        yield bytes((1, 0, odd, 1, 2, 3, 4, 5, 6)) * 4


@cache
def policies(text: str) -> Path:
    """A folder with the policies."""
    folder = Path(tempfile.mkdtemp(prefix="amqpgate-fuzz-"))
    (folder / "policy.yaml").write_text(text)
    return folder


def may_pass(method: Method, properties: amqp.BasicProperties | None) -> bool:
    """What the policy says, in short."""
    names = [getattr(method, name, "") for name in ("queue", "exchange", "destination", "source")]
    if isinstance(method, amqp.BasicPublish | amqp.QueueBind):
        names.append(method.routing_key)
    if properties is not None and properties.headers is not None:
        for name in ("CC", "BCC"):
            keys = properties.headers.get(name)
            names += [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []
    return not any(name.startswith(SECRET) for name in names)


def may_all(_method: Method, _properties: amqp.BasicProperties | None) -> bool:
    """Without a policy."""
    return True


def check(data: bytes) -> None:
    """Play it."""
    choices = Choices(data)
    flags = choices.byte()
    is_judged = bool(flags & 1)
    broker = Broker(False, may_pass if is_judged else may_all)
    more = ", user: own, password: own" if flags & 2 else ""

    async def scenario(stage: Stage) -> None:
        client = stage.client()
        await speak(stage, client, choices)
        arrived(stage, client)

    play(scenario, broker, more=more, policies=policies(POLICY) if is_judged else None)


async def speak(stage: Stage, client: Client, choices: Choices) -> None:
    """The whole of what the client says."""
    step = choices.byte()
    speaker = Speaker(choices)
    for piece in speaker.handshake():
        client.send(piece)
        if step & 1 == 0:
            await stage.settle()
    for number in range(STEPS):
        if not choices or not client.is_open:
            break
        piece = speaker.some(number)
        if choices.rarely():
            cut = choices.below(len(piece) + 1)
            client.send(piece[:cut])
            await stage.settle()
            piece = piece[cut:]
        client.send(piece)
        if step & 2 == 0 or choices.flag():
            await stage.settle()
    await stage.settle()


def sent_by(client: Client) -> dict[int, list[Message]]:
    """The messages that a client has sent whole, by channel, as far as its frames can be told."""
    decoder = FrameDecoder(0)
    decoder.feed(bytes(client.sent[8:]))
    under_way: dict[int, tuple[amqp.BasicPublish, int, bytes]] = {}
    whole: dict[int, list[Message]] = {}
    while True:
        try:
            frame = decoder.next()
            if frame is None:
                return whole
            number, payload = frame.channel, bytes(frame.payload)
            if frame.type == amqp.FRAME_METHOD:
                under_way.pop(number, None)
                if payload[:4] == b"\0\x3c\0\x28":
                    # On a channel that is closed already, nobody reads what does not decode.
                    with contextlib.suppress(ProtocolViolation):
                        method = decode_method(payload)
                        assert isinstance(method, amqp.BasicPublish)
                        under_way[number] = method, -1, b""
                    continue
            elif frame.type == amqp.FRAME_HEADER and number in under_way:
                method, _, body = under_way[number]
                under_way[number] = method, int.from_bytes(payload[4:12], "big"), body
            elif frame.type == amqp.FRAME_BODY and number in under_way:
                method, size, body = under_way[number]
                under_way[number] = method, size, body + payload
            if number in under_way and len(under_way[number][2]) == under_way[number][1]:
                method, _, body = under_way.pop(number)
                message = Message(method.exchange, method.routing_key, body, None)
                whole.setdefault(number, []).append(message)
        except Exception:
            return whole


def arrived(stage: Stage, client: Client) -> None:
    """Of each of its channels, the broker has what was sent, in that order; nothing twice, nothing else."""
    sent = sent_by(client)
    for link in stage.broker.links:
        for number in {number for number, _ in link.messages}:
            left = iter(sent.get(number, []))
            for of, message in link.messages:
                if of == number:
                    is_there = any(
                        (one.exchange, one.routing_key, one.body)
                        == (message.exchange, message.routing_key, message.body)
                        for one in left
                    )
                    assert is_there, f"{message} was not sent on {number}, or not in this order"
