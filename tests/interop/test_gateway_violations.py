"""Each violation is answered through the gateway as RabbitMQ answers it directly, or a reason is given.

The cases are those of ``tests.unit.protocol.measured``; the words are compared with what this RabbitMQ says,
but for the frames that it quotes.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from amqpgate.protocol.frames import FrameDecoder
from amqpgate.protocol.header import HEADER_0_10
from amqpgate.wire.codec import decode_method
from tests.support.gateway import Gateway
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Gone, Talker
from tests.unit.broker.amqp.playbook import CHANNEL_OPEN, MISSING, STAGES, TUNE_OK, line, m
from tests.unit.protocol.measured import CASES, Case, unquoted

#: RabbitMQ would wait for more, or for ever; the gateway knows enough.
SOONER = "the gateway answers as soon as it can tell"
#: RabbitMQ's process dies of it, and its client sees a reset or a bare 541.
CRASHES = "RabbitMQ crashes of it; the standard has a code for it"
ALLOWED = "the standard allows it, and other brokers do"
#: Where the gateway says otherwise, and why.
DIFFERENCES: dict[str, str] = {
    "start: connection.close": ALLOWED,
    "tuned: connection.close": ALLOWED,
    "tune: tune-ok, channel_max = 0": "0 means that the client has no limit of its own; old clients send it",
    "open: publish on a closed channel, and no header yet": SOONER,
    "channel: body in one frame too long": SOONER,
    "tune: a third channel where two were agreed": SOONER,
    "channel: header of twelve bytes": CRASHES,
    "open: no such method on 0": CRASHES,
    "open: no such method on 1": CRASHES,
}

#: What RabbitMQ answers to these is a matter of timing, between its reader and the channel's process.
LUCK = {
    "channel: close, and a declare behind it",
    "channel: 404, then close, close, close-ok, open",
    "channel: 404, then close (they cross), close-ok, open",
    "channel: 404, then close (they cross), no close-ok, open",
}

#: What RabbitMQ refuses, and the gateway speaks: AMQP 0-10.
SPOKEN = {f"new: protocol header {HEADER_0_10!r}"}

#: How long RabbitMQ may be silent, in seconds, before it counts as having nothing to say: before tune-ok it
#: waits for three before it hangs up, and all cases at once keep a small machine busy.
_QUIET = 10.0

#: How long either side waits for a handshake here: well over ``_QUIET``, or silence would end in a race.
_HANDSHAKE = 60

CONFIG = f"""
listeners: [{{name: clients, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: rabbitmq, url: "amqp://%s"}}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{handshakeTimeout: {_HANDSHAKE}, drainTimeout: 1}}
"""


def heard(data: bytes) -> list[str]:
    if data.startswith(b"AMQP"):
        return [f"header {data[4:8].hex(' ')}", *heard(data[8:])]
    decoder = FrameDecoder(0)
    decoder.feed(data)
    told = []
    while frame := decoder.next():
        told.append(line(frame.channel, decode_method(frame.payload)) if frame.type == 1 else str(frame))
    assert not decoder.take_rest()
    return told


def play(case: Case, port: int) -> list[str]:
    """What the client of the case hears, and whether its connection is still there then."""
    with Talker.dial(port) as client:
        for raw in STAGES[case.stage]:
            client.raw(raw)
            if raw != m(0, TUNE_OK):
                client.frame()
        told: list[str] = []
        sent = case.sent
        for first in (m(1, MISSING), m(1, CHANNEL_OPEN)):
            if case.stage == "channel" and sent.startswith(first):
                # The rest is what a client says after it has heard of the close.
                client.raw(first)
                told += heard_frame(client)
                sent = sent.removeprefix(first)
        client.raw(sent)
        client.sock.settimeout(_QUIET)
        got = bytearray(client.decoder.take_rest())
        try:
            while data := client.receive():
                got += data
            end = "the end"
        except Gone:
            end = "the end"
        except TimeoutError:
            end = "open"
    told += heard(bytes(got))
    if told and told[-1].startswith("0 connection.close"):
        end = "the end"
    return [*told, end]


def heard_frame(client: Talker) -> list[str]:
    frame = client.frame()
    return [line(frame.channel, decode_method(frame.payload))]


def name_of(case: Case) -> str:
    return f"{case.stage}: {case.name}"


COMPARED = [case for case in CASES if name_of(case) not in LUCK | SPOKEN]


@pytest.fixture(scope="module")
def patient(rabbitmq: RabbitMQ) -> Iterator[Gateway]:
    """A gateway that waits long for a handshake, before a RabbitMQ that does so for as long."""
    setting = "application:set_env(rabbit, handshake_timeout, {})."
    before = rabbitmq.eval("{ok, Time} = application:get_env(rabbit, handshake_timeout), Time.")
    rabbitmq.eval(setting.format(_HANDSHAKE * 1000))
    gateway = Gateway(config=CONFIG % rabbitmq.address)
    try:
        gateway.start()
        yield gateway
        gateway.stop()
    finally:
        rabbitmq.eval(setting.format(before))


@pytest.fixture(scope="module")
def heard_both_ways(rabbitmq: RabbitMQ, patient: Gateway) -> dict[tuple[str, str], list[str]]:
    """All cases at once, one connection each: RabbitMQ's pauses take up most of the time."""
    with ThreadPoolExecutor(2 * len(COMPARED)) as threads:
        asked = {
            (way, name_of(case)): threads.submit(play, case, port)
            for way, port in (("direct", rabbitmq.port), ("gateway", patient.port))
            for case in COMPARED
        }
        return {key: future.result() for key, future in asked.items()}


@pytest.mark.parametrize("name", [name_of(case) for case in COMPARED])
def test_the_answer_is_the_same(heard_both_ways: dict[tuple[str, str], list[str]], name: str) -> None:
    direct, through = heard_both_ways["direct", name], heard_both_ways["gateway", name]
    if name in DIFFERENCES:
        assert through != direct, "not a difference any more"
    else:
        assert unquoted(through) == unquoted(direct)


def test_every_difference_is_a_case() -> None:
    assert {name_of(case) for case in CASES} >= {*DIFFERENCES, *LUCK, *SPOKEN}
