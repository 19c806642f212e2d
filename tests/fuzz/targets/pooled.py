"""A client's bytes to a shared link: what the broker gets is well formed to the last byte, and another client
on the same link is not disturbed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import trio

from amqpgate.protocol.frames import FrameDecoder, method_frame
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import EMPTY_TABLE
from tests.fuzz.choices import Choices
from tests.fuzz.known import tolerates
from tests.fuzz.stage.broker import Broker
from tests.fuzz.stage.client import PASSWORD
from tests.fuzz.stage.running import Client, Stage, play
from tests.fuzz.targets.sessions import POLICY, may_all, may_pass, policies, sent_by, speak
from tests.fuzz.targets.sessions import seeds as session_seeds

MOST = 300
TOKENS = (b"\0\0\0\0", b"\0\x06\0")
MORE = ", connections: pooled, pool: {consumers: %s, spareChannels: %d, maxLinks: 2}"


def seeds() -> Iterator[bytes]:
    """Those of sessions."""
    return session_seeds()


def check(data: bytes) -> None:
    """Play it."""
    choices = Choices(data)
    flags = choices.byte()
    is_judged = bool(flags & 1)
    broker = Broker(True, may_pass if is_judged else may_all)
    more = MORE % ("shared" if flags & 2 else "own", 16 if flags & 4 else 0)

    async def scenario(stage: Stage) -> None:
        quiet = await quiet_client(stage)
        client = stage.client()
        await speak(stage, client, choices)
        check_messages(stage, client)
        await check_quiet(stage, quiet, client)

    play(scenario, broker, more=more, policies=policies(POLICY) if is_judged else None)


async def quiet_client(stage: Stage) -> Client:
    """One with an open channel."""
    quiet = stage.client()
    quiet.send(amqp.PROTOCOL_HEADER)
    for number, method in (
        (0, amqp.ConnectionStartOk(EMPTY_TABLE, "PLAIN", b"\0guest\0" + PASSWORD, "en_US")),
        (0, amqp.ConnectionTuneOk(2047, 131072, 0)),
        (0, amqp.ConnectionOpen("/")),
        (1, amqp.ChannelOpen()),
    ):
        if isinstance(method, amqp.ConnectionOpen):
            # Nobody answers tune-ok.
            await stage.settle()
        else:
            await answer(stage, quiet)
        quiet.send(method_frame(number, method))
    await answer(stage, quiet)
    assert quiet.frames, "no answer to the quiet client"
    assert isinstance(decode_method(quiet.frames[-1].payload), amqp.ChannelOpenOk)
    return quiet


async def answer(stage: Stage, quiet: Client) -> None:
    """It has one more frame, or a second is over: what is reckoned in threads takes its time."""
    told = len(quiet.frames)
    for _ in range(100):
        await stage.settle()
        if len(quiet.frames) > told:
            return
        await trio.to_thread.run_sync(time.sleep, 0.01)


def check_messages(stage: Stage, client: Client) -> None:
    """What has come was sent, and no numbered message came twice."""
    sent = {
        (message.exchange, message.routing_key, message.body)
        for messages in sent_by(client).values()
        for message in messages
    }
    numbers: set[bytes] = set()
    for link in stage.broker.links:
        for _, message in link.messages:
            assert (message.exchange, message.routing_key, message.body) in sent, message
            number, dot, _ = message.body.partition(b".")
            if dot and number.isdigit():
                assert number not in numbers, f"{message} came twice"
                numbers.add(number)


async def check_quiet(stage: Stage, quiet: Client, client: Client) -> None:
    """It still has its channel, and gets its answers."""
    if tolerates("pooled-closes") and may_close(stage, client):
        return
    told = len(quiet.frames)
    quiet.send(method_frame(1, amqp.ExchangeDeclare(exchange="quiet", passive=True)))
    await answer(stage, quiet)
    answers = [decode_method(frame.payload) for frame in quiet.frames[told:]]
    assert answers == [amqp.ExchangeDeclareOk()], answers
    assert told == len(quiet.frames) - 1


def may_close(stage: Stage, client: Client) -> bool:
    """Whether the client, or the broker to it, has closed a channel."""
    if any(channel.is_closing for link in stage.broker.links for channel in link.channels.values()):
        return True
    decoder = FrameDecoder(0)
    decoder.feed(bytes(client.sent[8:]))
    try:
        while (frame := decoder.next()) is not None:
            if bytes(frame.payload[:4]) in (b"\0\x14\0\x28", b"\0\x14\0\x29"):
                return True
    except Exception:
        return True
    return any(frame.payload[:4] == b"\0\x14\0\x28" for frame in client.frames)
