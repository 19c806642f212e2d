"""A token that is renewed by connection.update-secret: the same user's, and verified as at the login."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import Doorway, InProcess, eventually
from tests.support.talker import Talker
from tests.support.tokens import by_hand, claims, jwk, key_for, key_set, token
from tests.unit.gateway.handshake.token_gate import OWN, gate, logged_in, now_token, opened, principals

BY_SCOPE = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: writers}
spec:
  subjects: [{scopes: [write]}]
  rules: [{id: all, effect: allow, operations: ["basic.publish"], exchange: {literal: amq.topic}}]
---
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: readers}
spec:
  subjects: [{scopes: [read]}]
  rules: [{id: all, effect: allow, operations: ["queue.declare"], queue: {prefix: q}}]
"""
LONG = 1000


def renew(client: Talker, secret: bytes) -> None:
    client.say(amqp.ConnectionUpdateSecret(secret, "expires soon"))


def renewed(client: Talker, secret: bytes) -> None:
    renew(client, secret)
    client.expect(amqp.ConnectionUpdateSecretOk)


def ends(running: InProcess) -> list[float]:
    return running.call(
        lambda: [one.token.ends for one in running.gateway.sessions.values() if one.token is not None]
    )


@pytest.mark.parametrize("connections", ["own", "pooled"])
def test_the_gateway_answers_where_it_logs_in_itself(tmp_path: Path, connections: str) -> None:
    with (
        gate(tmp_path, upstream=f"{OWN}, connections: {connections}") as running,
        opened(running, now_token()) as client,
    ):
        (before,) = ends(running)
        renewed(client, now_token(exp=int(time.time()) + LONG))
        assert ends(running)[0] > before + LONG / 2
        # The session goes on, and shares its connection as before.
        client.ask(amqp.QueueDeclare(queue="q", durable=True), amqp.QueueDeclareOk, 1)
        assert running.call(
            lambda: [one.upstream.is_pooled for one in running.gateway.sessions.values()]
        ) == [connections == "pooled"]


def test_policies_judge_by_the_new_token(tmp_path: Path) -> None:
    with gate(tmp_path, BY_SCOPE) as running, opened(running, now_token(scope="write")) as client:
        client.publish(b"x", "k", exchange="amq.topic")
        renewed(client, now_token(scope="read", groups=["g"]))
        assert principals(running) == [("bob", ["g"], ["read"])]
        client.ask(amqp.QueueDeclare(queue="q"), amqp.QueueDeclareOk, 1)
        # The flow that passed has been judged anew.
        client.publish(b"x", "k", exchange="amq.topic")
        assert client.expect(amqp.ChannelClose, 1).reply_code == 403


def test_whose_virtual_host_is_not_open_any_more_is_told(tmp_path: Path) -> None:
    with (
        gate(tmp_path, BY_SCOPE, default="deny") as running,
        opened(running, now_token(scope="write")) as client,
    ):
        renew(client, now_token(scope="none"))
        close = client.expect(amqp.ConnectionClose)
        assert (close.reply_code, close.class_id, close.method_id) == (530, 10, 70)


@pytest.mark.parametrize("what", ["another user's", "expired", "by another key", "none", "no token", "empty"])
def test_what_is_no_right_token_ends_the_session(
    tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    """With 530, as RabbitMQ says it. Nothing of it is in a log."""
    caplog.set_level(logging.DEBUG)
    secret = {
        "another user's": now_token("eve"),
        "expired": now_token(exp=time.time() - 1),
        "by another key": token(claims(time.time()), algorithm="RS256"),
        "none": by_hand(b'{"alg":"none"}', b'{"sub":"bob"}', b"xxxxxxxxxxxxxxxxxx"),
        "no token": b"a password that is secret",
        "empty": b"",
    }[what]
    with gate(tmp_path) as running, opened(running, now_token()) as client:
        renew(client, secret)
        # What comes behind it is not looked at.
        client.publish(b"x", "k", exchange="amq.topic")
        close = client.expect(amqp.ConnectionClose)
        assert (close.reply_code, close.class_id, close.method_id) == (530, 10, 70)
        assert close.reply_text == "NOT_ALLOWED - New secret was refused by one of the backends"
    assert not secret or not any(part in caplog.text for part in secret.decode().split(".") if len(part) > 9)
    assert b"secret" not in secret or "password that" not in caplog.text


def test_methods_behind_it_wait_for_a_key_that_is_fetched(tmp_path: Path) -> None:
    """In their order: the broker sees none before it sees the new token."""
    door = Doorway()
    with gate(tmp_path, port=door.port, upstream="") as running:
        data = now_token()
        client = running.dial()
        client.raw(amqp.PROTOCOL_HEADER)
        broker = door.accept()
        broker.greet()
        client.expect(amqp.ConnectionStart)
        from amqpgate.protocol.sasl import plain_response
        from tests.support.talker import CAPABILITIES

        client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", plain_response("x", data), "en_US"))
        broker.expect(amqp.ConnectionStartOk)
        broker.say(amqp.ConnectionTune(2047, 131072, 0))
        client.expect(amqp.ConnectionTune)
        client.say(amqp.ConnectionTuneOk(2047, 131072, 0))
        client.say(amqp.ConnectionOpen(virtual_host="/"))
        broker.expect(amqp.ConnectionTuneOk)
        broker.expect(amqp.ConnectionOpen)
        broker.say(amqp.ConnectionOpenOk())
        client.expect(amqp.ConnectionOpenOk)
        eventually(lambda: [user for user, _, _ in principals(running)] == ["bob"])
        keys = (jwk(key_for("ES256"), "k"), jwk(key_for("EdDSA"), "new"))
        (tmp_path / "keys.json").write_bytes(key_set(*keys))
        new = token(claims(time.time()), algorithm="EdDSA", key_id="new")
        renew(client, new)
        client.say(amqp.ChannelOpen(), 1)
        said = broker.expect(amqp.ConnectionUpdateSecret)
        assert (said.new_secret, said.reason) == (new, "expires soon")
        broker.expect(amqp.ChannelOpen, 1)
        broker.say(amqp.ConnectionUpdateSecretOk())
        client.expect(amqp.ConnectionUpdateSecretOk)
        # The broker may still say no.
        renew(client, now_token())
        broker.expect(amqp.ConnectionUpdateSecret)
        broker.say(amqp.ConnectionClose(530, "NOT_ALLOWED - no", 10, 70))
        assert client.expect(amqp.ConnectionClose).reply_text == "NOT_ALLOWED - no"
        client.close()
        broker.close()
    door.close()


def test_who_has_no_token_says_what_it_likes(tmp_path: Path) -> None:
    """A session of a password: the broker decides, as ever."""
    with (
        gate(tmp_path, oauth=", require: false", upstream="") as running,
        opened(running, "guest", "guest") as client,
    ):
        renewed(client, b"whatever")
        assert ends(running) == []


def test_a_client_that_goes_meanwhile_is_forgotten(tmp_path: Path) -> None:
    with gate(tmp_path) as running:
        for _ in range(5):
            client = opened(running, now_token())
            renew(client, now_token())
            client.reset()
        eventually(lambda: not principals(running))
        with logged_in(running, now_token()) as client:
            client.expect(amqp.ConnectionTune)
