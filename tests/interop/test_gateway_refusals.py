"""What a client hears at RabbitMQ's own limits, it hears at the gateway's: code, class, method and scope."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually, serving
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

USER, VHOST = "limited", "limits"
CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:0"}}]
upstreams: [{{name: rabbit, host: 127.0.0.1, port: {port}}}]
policies: policies
"""
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: p}
spec:
  subjects: [{user: %s}]
  limits: [{id: l, per: [user], %s, action: reject}]
"""


@pytest.fixture(scope="module")
def limited(rabbitmq: RabbitMQ) -> Iterator[RabbitMQ]:
    rabbitmq.fresh_vhost(VHOST)
    rabbitmq.ctl("add_user", USER, USER)
    rabbitmq.ctl("set_permissions", "-p", VHOST, USER, ".*", ".*", ".*")
    yield rabbitmq
    rabbitmq.ctl("delete_user", USER)
    rabbitmq.ctl("delete_vhost", VHOST)


def login(port: int) -> Talker:
    client = Talker.dial(port)
    client.open(user=USER, password=USER, vhost=VHOST, channels=0)
    return client


def over_connections(port: int) -> amqp.ConnectionClose:
    """The second of one."""
    with login(port), Talker.dial(port) as client:
        client.raw(amqp.PROTOCOL_HEADER)
        client.expect(amqp.ConnectionStart)
        response = f"\0{USER}\0{USER}".encode()
        client.say(amqp.ConnectionStartOk(mechanism="PLAIN", response=response, locale="en_US"))
        tune = client.expect(amqp.ConnectionTune)
        client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
        return client.ask(amqp.ConnectionOpen(VHOST), amqp.ConnectionClose)


def over_channels(port: int) -> amqp.ConnectionClose:
    with login(port) as client:
        client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
        client.say(amqp.ChannelOpen(), 2)
        return client.expect(amqp.ConnectionClose)


def over_queues(port: int) -> amqp.ChannelClose:
    with login(port) as client:
        client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
        client.ask(amqp.QueueDeclare(queue="one", exclusive=True), amqp.QueueDeclareOk, 1)
        return client.ask(amqp.QueueDeclare(queue="two", exclusive=True), amqp.ChannelClose, 1)


@pytest.mark.parametrize(
    ("command", "limit", "policy", "go_over"),
    [
        (["set_user_limits", USER], "max-connections", "concurrent: 1", over_connections),
        (["set_user_limits", USER], "max-channels", "channels: 1/h", over_channels),
        (["set_vhost_limits", "-p", VHOST], "max-queues", "queueDeclares: 1/h", over_queues),
    ],
)
def test_as_at_rabbitmqs_own_limits(
    limited: RabbitMQ, tmp_path: Path, command: list[str], limit: str, policy: str, go_over: object
) -> None:
    assert callable(go_over)
    limited.ctl(*command, json.dumps({limit: 1}))
    theirs = go_over(limited.port)
    limited.ctl(*command, json.dumps({limit: -1}))
    eventually(lambda: not limited.connections())
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "p.yaml").write_text(POLICY % (USER, policy))
    with serving(CONFIG.format(port=limited.port), folder=tmp_path) as running:
        ours = go_over(running.port())
    print(theirs.reply_text, "|", ours.reply_text)
    assert type(ours) is type(theirs)
    assert (ours.reply_code, ours.class_id, ours.method_id) == (
        theirs.reply_code,
        theirs.class_id,
        theirs.method_id,
    )
    assert ours.reply_text.partition(" - ")[0] == theirs.reply_text.partition(" - ")[0]
