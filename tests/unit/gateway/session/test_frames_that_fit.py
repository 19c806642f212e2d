"""Frames that the gateway makes or passes on, and that just fit the broker's hop; and those a byte longer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpgate.protocol.frames import encode_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.observers.mirror.test_line import Stand
from tests.unit.gateway.session.test_rewriter import NAMES

MakeStage = Callable[..., Stage]

#: Headers are looked at, so that content passes by way of the control plane.
SHOWN = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: sizes}
spec:
  subjects: [{user: guest}]
  rules:
  - id: small
    effect: allow
    operations: [basic.publish]
    properties: {headers: {values: {h: {prefix: "x"}}}}
"""


def filled(size: int, *, reply_to: str | None = None) -> amqp.BasicProperties:
    """Properties whose content header is a frame of so many bytes."""

    def of(length: int) -> amqp.BasicProperties:
        return amqp.BasicProperties(reply_to=reply_to, headers=Table.of({"h": "x" * length}))

    empty = len(encode_frame(2, 1, encode_header(ContentHeader(60, 0, of(0)))))
    return of(size - empty)


@pytest.mark.parametrize("limit", [4096, 5000])
def test_a_header_that_grows(make_stage: MakeStage, limit: int) -> None:
    """By the two bytes of the prefix before the name of the queue for replies."""
    stage = make_stage(policies=NAMES % "p.", upstream=f"frameMax: {limit}")
    client, broker = stage.opened()
    client.publish(b"b", "k", exchange="e", properties=filled(limit - 2, reply_to="q"))
    assert broker.expect_content(amqp.BasicPublish).largest == limit
    client.publish(b"b", "k", exchange="e", properties=filled(limit - 1, reply_to="q"))
    close = client.expect(amqp.ConnectionClose)
    assert close.reply_code == 501
    assert f"a frame of {limit + 1} " in close.reply_text


@pytest.mark.parametrize("policies", [None, SHOWN], ids=["passed", "shown"])
def test_a_body_that_is_cut(make_stage: MakeStage, policies: str | None) -> None:
    stage = make_stage(policies=policies, listener="frameMax: 8192", upstream="frameMax: 4096")
    client, broker = stage.opened()
    client.frame_max = 8192
    for size, frames in ((4088, [4088]), (4089, [4088, 1]), (4096, [4088, 8]), (8176, [4088, 4088])):
        client.publish(bytes(size), "k", properties=filled(100))
        broker.expect(amqp.BasicPublish, 1)
        assert broker.frame().type == 2
        assert [len(broker.frame().payload) for _ in frames] == frames


@pytest.mark.parametrize("over", range(1, 9))
@pytest.mark.parametrize("policies", [None, SHOWN], ids=["passed", "shown"])
def test_a_header_that_cannot_be_cut(make_stage: MakeStage, policies: str | None, over: int) -> None:
    stage = make_stage(policies=policies, listener="frameMax: 8192", upstream="frameMax: 4096")
    client, broker = stage.opened()
    client.publish(b"b", "k", properties=filled(4096))
    assert broker.expect_content(amqp.BasicPublish).largest == 4096
    client.publish(b"b", "k", properties=filled(4096 + over))
    assert client.expect(amqp.ConnectionClose).reply_code == 501


@pytest.mark.parametrize("key", ["k", "k" * 100], ids=["header", "method"])
def test_a_message_for_a_mirror_that_just_fits(key: str) -> None:
    properties = amqp.BasicProperties(message_id="x")
    header = encode_frame(2, 1, encode_header(ContentHeader(60, 0, properties)))
    method = encode_frame(1, 1, amqp.BasicPublish(exchange="e", routing_key=key).encode())
    assert (len(method) > len(header)) is (len(key) > 1)
    largest = max(len(method), len(header))
    for frame_max, passes in ((largest, True), (largest - 1, False)):
        stand = Stand(frame_max=frame_max)
        assert bool(stand.publish(key=key)) is passes
        assert stand.count("dropped_messages_total", reason="too_large") == (not passes)
