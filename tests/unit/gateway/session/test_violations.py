"""The data path's verdicts are answered as the protocol room answers the same bytes.

``measured`` holds what RabbitMQ was seen to answer; here it is played through a whole gateway, against a
broker that says nothing but open-ok.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.talker import Talker
from tests.unit.broker.amqp.playbook import line
from tests.unit.gateway.conftest import Stage
from tests.unit.protocol.measured import CASES, Case, unquoted

#: Where the gateway answers otherwise than the protocol room, and why.
OURS = {
    # The scanner does not say how much too long.
    "channel: body in one frame too long": (
        "0 connection.close 505 (60, 40) UNEXPECTED_FRAME - content body is longer than declared",
    ),
    # To the scanner it is too short to be a content header, whichever part is missing.
    "channel: header of twelve bytes": (
        "0 connection.close 501 (0, 0) FRAME_ERROR - type 2, 12 bytes: unknown_frame",
    ),
}

#: What the gateway passes on, and the broker refuses. The standard lets a client answer basic.cancel; the
#: weight is unused, and no part of a decision.
THE_BROKERS = {"channel: basic.cancel-ok", "channel: publish, header of weight 1"}


def expected(case: Case) -> tuple[str, ...]:
    ours = OURS.get(f"{case.stage}: {case.name}")
    return ours or (case.answer if case.ours is None else case.ours)


#: Those that a gateway answers by itself, with a close of the connection.
BROKEN = [
    case
    for case in CASES
    if case.stage in ("open", "channel")
    and f"{case.stage}: {case.name}" not in THE_BROKERS
    and len(expected(case)) == 1
    and expected(case)[0].startswith("0 connection.close ")
]


def answer(client: Talker, broker: Talker) -> str:
    method = client.expect(amqp.ConnectionClose)
    assert broker_hears(broker) == amqp.ConnectionClose(320, "CONNECTION_FORCED - client broke the protocol")
    return line(0, method)


def broker_hears(broker: Talker) -> amqp.ConnectionClose:
    for frame in broker.all():
        if frame.type == 1 and frame.channel == 0:
            method = decode_method(frame.payload)
            assert isinstance(method, amqp.ConnectionClose)
            return method
    raise AssertionError("no close")


@pytest.mark.parametrize("split", [False, True], ids=["whole", "data"])
@pytest.mark.parametrize("case", BROKEN, ids=lambda case: f"{case.stage}: {case.name}")
def test_a_violation(stage: Stage, case: Case, split: bool) -> None:
    client, broker = stage.opened(1 if case.stage == "channel" else 0)
    for data in [case.sent[at : at + 1] for at in range(len(case.sent))] if split else [case.sent]:
        client.raw(data)
    assert unquoted([answer(client, broker)]) == unquoted(expected(case))


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if f"{case.stage}: {case.name}" in THE_BROKERS],
    ids=lambda case: case.name,
)
def test_what_is_left_to_the_broker(stage: Stage, case: Case) -> None:
    client, broker = stage.opened()
    client.raw(case.sent)
    assert broker.exactly(len(case.sent)) == case.sent


def test_there_are_many() -> None:
    assert len(BROKEN) > 60
    assert {f"{case.stage}: {case.name}" for case in CASES} >= {*OURS, *THE_BROKERS}


def test_more_than_the_broker_takes_in_one_frame(make_stage: Callable[..., Stage]) -> None:
    """A content header cannot be cut; the broker would close for it, so it goes no further."""
    stage = make_stage(listener="frameMax: 131072", upstream="frameMax: 4096")
    client, broker = stage.opened()
    client.publish(b"x", "k", properties=amqp.BasicProperties(headers=amqp.Table.of({"h": "x" * 5000})))
    close = client.expect(amqp.ConnectionClose)
    assert close.reply_code == 501
    assert close.reply_text.endswith(" bytes: more than the broker takes in one frame, and cannot be split")
    # Its method had gone before; RabbitMQ takes a close in the middle of a message.
    broker.expect(amqp.BasicPublish, 1)
    assert broker_hears(broker).reply_code == 320
