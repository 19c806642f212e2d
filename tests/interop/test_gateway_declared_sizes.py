"""Content headers that declare what never comes, on real sockets before a real RabbitMQ, with audit on.

Nobody else waits for them, no sum and no shared limit is moved by them, and no process ends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.pooling.ways import pooled_by
from tests.interop.test_gateway_workers import sample
from tests.support.audit import records, setting, sums
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

pytestmark = pytest.mark.interop

MOST = 128 << 20
TOO_LARGE = [MOST + 1, 1 << 40, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: bytes}
spec:
  subjects: [{user: guest}]
  limits: [{id: all, per: [vhost], bytes: 10Mi/s, burst: 1s}]
"""
CONFIG = """
workers: %d
listeners: [{name: main, bind: "127.0.0.1:{port}"}]
upstreams: [{name: rabbit, url: "amqp://%s"%s}]
%s
admin: {bind: "127.0.0.1:{admin_port}"}
limits: {drainTimeout: 1s}
%s
"""


@pytest.fixture(params=["own", "pooled"])
def connections(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[1, 2])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def gateway(rabbitmq: RabbitMQ, tmp_path: Path, connections: str, workers: int) -> Iterator[Gateway]:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "rates.yaml").write_text(POLICY)
    pooled = pooled_by({"consumers": "shared"}) if connections == "pooled" else ""
    audit = setting(tmp_path / "audit", 1)
    gateway = Gateway(
        config=CONFIG % (workers, rabbitmq.address, pooled, f"policies: {tmp_path}/policies", audit)
    )
    gateway.start()
    eventually(lambda: sample(gateway, "amqpgate_ready") == workers)
    yield gateway
    if gateway._child is not None:
        gateway.stop()


def claim(channel: int, size: int) -> bytes:
    """A publish whose header declares so much, and no body."""
    header = encode_header(ContentHeader(60, size, amqp.BasicProperties()))
    method = method_frame(channel, amqp.BasicPublish(exchange="amq.topic", routing_key="claimed"))
    return method + encode_frame(2, channel, header)


def session(port: int, channels: int = 1) -> Talker:
    talker = Talker.dial(port)
    talker.open(channels=channels)
    return talker


def confirmed(talker: Talker, bodies: int) -> None:
    talker.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
    for number in range(1, bodies + 1):
        talker.publish(b"12345", "honest", exchange="amq.topic")
        assert talker.expect(amqp.BasicAck, 1).delivery_tag == number


@pytest.fixture
def honest(gateway: Gateway) -> Iterator[list[Talker]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(session(gateway.port)) for _ in range(4)]


def test_claims_move_nothing(gateway: Gateway, honest: list[Talker], tmp_path: Path) -> None:
    for size in TOO_LARGE:
        with session(gateway.port, 3) as hostile:
            hostile.raw(b"".join(claim(channel, size) for channel in (1, 2, 3)))
            for _ in range(3):
                # The broker may answer the closes of several channels in any order.
                channel, close = hostile.hear()
                assert isinstance(close, amqp.ChannelClose)
                assert (close.reply_code, close.class_id, close.method_id) == (406, 60, 40)
                text = f"message size {size} is larger than configured max size {MOST}"
                assert close.reply_text == f"PRECONDITION_FAILED - {text}"
                hostile.say(amqp.ChannelCloseOk(), channel)
            hostile.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
            hostile.publish(b"12345", "honest", exchange="amq.topic")
            hostile.ask(amqp.ChannelClose(), amqp.ChannelCloseOk, 1)
    # What may be said, and does not come: twelve seconds of the limit each.
    for _ in range(8):
        with session(gateway.port, 2) as hostile:
            hostile.raw(claim(1, MOST) + claim(2, MOST))
            hostile.raw(encode_frame(3, 1, b"x" * 1000))
            # The next method on another channel has been dealt with behind them.
            hostile.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 3)
    for one in honest:
        confirmed(one, 10)
    # Had any claim been taken from the limit, this would wait for it.
    one = honest[0]
    assert one.ask(amqp.QueueDeclare(exclusive=True), amqp.QueueDeclareOk, 1)
    expected = 4 * 10 + len(TOO_LARGE)
    labels = {"direction": "publish", "verdict": "allow"}
    assert sample(gateway, "amqpgate_messages_total", **labels) == expected
    assert sample(gateway, "amqpgate_message_bytes_total", **labels) == 5 * expected
    assert sample(gateway, "amqpgate_internal_errors_total") == 0
    for one in honest:
        one.close()
    eventually(lambda: sample(gateway, "amqpgate_sessions") == 0)
    assert gateway.stop().code == 0
    published = [row for row in records(tmp_path / "audit", "usage") if row["operation"] == "basic.publish"]
    # A shared link does not show the method of a publish that is too large.
    names = {("claimed", "deny"), (None, "deny")}
    sums_of = sums(published, "routing_key", "verdict")
    [refused] = names & set(sums_of)
    assert sums_of == {("honest", "allow"): (expected, 5 * expected), refused: (3 * len(TOO_LARGE), 0)}


def test_a_message_that_is_too_large_is_answered_as_rabbitmq_does() -> None:
    node = RabbitMQ(config=("max_message_size = 1000",))
    gateways: list[Gateway] = []
    try:
        node.start()
        for pooled in ("", pooled_by({"consumers": "shared"})):
            text = CONFIG % (1, node.address, pooled, "", "")
            text = text.replace("drainTimeout", "maxMessageBytes: 1000, drainTimeout")
            gateways.append(Gateway(config=text))
            gateways[-1].start()
        told = []
        for port in (node.port, *(gateway.port for gateway in gateways)):
            with session(port, 2) as talker:
                talker.publish(b"x" * 1001, "k", exchange="amq.topic")
                told.append(talker.expect(amqp.ChannelClose, 1))
                talker.say(amqp.ChannelCloseOk(), 1)
                talker.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
                talker.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 2)
                talker.publish(b"x" * 1000, "k", exchange="amq.topic", channel=2)
                talker.expect(amqp.BasicAck, 2)
        assert told == told[:1] * 3
        assert told[0].reply_text.endswith("message size 1001 is larger than configured max size 1000")
    finally:
        for gateway in gateways:
            gateway.stop()
        node.destroy()


def test_a_message_that_is_too_large_on_a_shared_link_is_its_clients_alone(
    rabbitmq: RabbitMQ, tmp_path: Path
) -> None:
    text = CONFIG % (1, rabbitmq.address, pooled_by({"maxLinks": 1}), "", setting(tmp_path / "audit", 1))
    gateway = Gateway(config=text.replace("drainTimeout", "maxMessageBytes: 1000, drainTimeout"))
    gateway.start()
    try:
        with session(gateway.port) as quiet, session(gateway.port, 2) as loud:
            assert sample(gateway, "amqpgate_pool_links", state="open") == 1
            confirmed(quiet, 1)
            loud.publish(b"x" * 1001, "k", exchange="amq.topic")
            close = loud.expect(amqp.ChannelClose, 1)
            assert (close.reply_code, close.class_id, close.method_id) == (406, 60, 40)
            loud.say(amqp.ChannelCloseOk(), 1)
            quiet.publish(b"12345", "honest", exchange="amq.topic")
            assert quiet.expect(amqp.BasicAck, 1).delivery_tag == 2
            loud.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 2)
            loud.publish(b"x" * 1000, "k", exchange="amq.topic", channel=2)
            loud.expect(amqp.BasicAck, 2)
            assert sample(gateway, "amqpgate_pool_links", state="open") == 1
            quiet.bye()
            loud.bye()
    finally:
        gateway.stop()
    [event] = [one for one in records(tmp_path / "audit", "events") if one["kind"] == "denied"]
    assert (event["operation"], event["rule"], event["body_size"]) == (
        "basic.publish",
        "maxMessageBytes",
        1001,
    )
    assert event["reply_code"] == 406
    # Its method has passed on the data path alone: where to is not known.
    assert (event["exchange"], event["routing_key"]) == (None, None)
