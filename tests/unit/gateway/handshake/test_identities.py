"""Logins by tokens: whom the token names is who it is, and nobody else gets in."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from amqpgate.protocol.sasl import amqplain_response, plain_response
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.inprocess import Doorway
from tests.support.talker import CAPABILITIES, Talker
from tests.support.tokens import by_hand, claims, token
from tests.support.versions import SPOKEN, ask_for, greet, log_in
from tests.unit.gateway.handshake.token_gate import (
    OWN,
    answer_to,
    counted,
    gate,
    logged_in,
    now_token,
    opened,
    principals,
)

ONLY_BOB = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: bob}
spec:
  subjects: [{user: bob, scopes: ["rabbitmq.write:*"], claims: {unit: books}, groups: [staff]}]
  rules: [{id: all, effect: allow, operations: ["*.*"]}]
"""
LATE = """
---
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: late}
spec:
  routes: [{id: r, match: {scopes: ["rabbitmq.*"]}, upstream: {cluster: broker}}]
"""
WAYS = {"early": "", "late": LATE}


def refused(client: Talker) -> bool:
    """Whether the client is told that its login is not right."""
    said = answer_to(client)
    return isinstance(said, amqp.ConnectionClose) and said.reply_code == 403


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("connections", ["own", "pooled"])
def test_whom_the_token_names_is_who_it_is(tmp_path: Path, way: str, connections: str) -> None:
    """Whatever name is said beside it; and the broker hears of the gateway's own login alone."""
    upstream = f"{OWN}, connections: {connections}"
    with gate(tmp_path, ONLY_BOB + WAYS[way], upstream=upstream, default="deny") as running:
        with opened(running, now_token(unit="books", groups=["staff"]), "admin"):
            assert principals(running) == [("bob", ["staff"], ["rabbitmq.read:*/*", "rabbitmq.write:*/*"])]
        # Each part of the subject counts.
        others: list[dict[str, object]] = [{"unit": "x"}, {"groups": []}, {"scope": ""}, {"sub": "eve"}]
        for more in others:
            said = {"unit": "books", "groups": ["staff"]} | more
            client = logged_in(running, now_token(str(said.pop("sub", "bob")), **said), "bob")
            with client:
                tune = client.expect(amqp.ConnectionTune)
                client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
                client.say(amqp.ConnectionOpen(virtual_host="/"))
                close = client.expect(amqp.ConnectionClose)
                assert close.reply_code == 530
        assert counted(running) == {"verified": 5}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("connections", ["own", "pooled"])
def test_so_it_is_where_the_client_logs_in_itself(tmp_path: Path, way: str, connections: str) -> None:
    """The broker takes the login as it was said; whom it means is the token's matter."""
    data = now_token()
    users = {"admin": data.decode()}
    upstream = f", connections: {connections}"
    with (
        gate(tmp_path, WAYS[way], upstream=upstream, users=users) as running,
        opened(running, data, "admin"),
    ):
        assert [user for user, _, _ in principals(running)] == ["bob"]


def bad_tokens() -> dict[str, bytes]:
    right = now_token()
    head, _, sign = right.split(b".")
    admin = token(claims(time.time()) | {"sub": "admin"}, key_id="k").split(b".")[1]
    return {
        "expired": now_token(exp=time.time() - 1),
        "not-yet-valid": now_token(nbf=time.time() + 100),
        "audience": now_token(aud="other"),
        "issuer": now_token(iss="other"),
        "signature": head + b"." + admin + b"." + sign,
        "key": token(claims(time.time()), key_id="other"),
        "algorithm": by_hand(b'{"alg":"none"}', b"{}"),
        "malformed": right + b".",
        "claims": now_token(exp=None),
        "missing": b"guest",
    }


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("require", [True, False])
def test_what_is_no_right_token_is_refused(
    tmp_path: Path, way: str, require: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """As RabbitMQ refuses it; no word of it is in a log, and no broker hears of it."""
    caplog.set_level(logging.DEBUG)
    oauth = f", require: {str(require).lower()}"
    tokens = bad_tokens()
    with gate(tmp_path, WAYS[way], oauth=oauth) as running:
        for outcome, data in tokens.items():
            if outcome == "missing" and not require:
                continue
            before = counted(running).get(outcome, 0)
            with logged_in(running, data) as client:
                assert refused(client), outcome
            assert counted(running).get(outcome, 0) == before + 1, outcome
            with logged_in(running, data, properties=Table.of({"product": "silent"})) as client:
                assert answer_to(client) is None
        assert not principals(running)
        running.wait_idle()
    for data in tokens.values():
        for part in data.split(b"."):
            assert len(part) < 12 or part.decode() not in caplog.text
    assert "token: " in caplog.text


def test_who_may_come_without_a_token(tmp_path: Path) -> None:
    """``require: false``: a password is a password, and fits no subject of tokens."""
    policies = ONLY_BOB.replace("user: bob, ", "")
    with (
        gate(tmp_path, policies, oauth=", require: false", default="deny") as running,
        logged_in(running, "guest", "bob") as client,
    ):
        tune = client.expect(amqp.ConnectionTune)
        client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
        client.say(amqp.ConnectionOpen(virtual_host="/"))
        assert client.expect(amqp.ConnectionClose).reply_code == 530
    with (
        gate(tmp_path, oauth=", require: false", upstream="") as running,
        opened(running, "guest", "guest"),
    ):
        assert principals(running) == [("guest", [], [])]


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN"])
@pytest.mark.parametrize("name", SPOKEN)
def test_every_version_and_mechanism(tmp_path: Path, name: str, mechanism: str) -> None:
    """Also where the client asks for a challenge first."""
    spoken, respond = SPOKEN[name], plain_response if mechanism == "PLAIN" else amqplain_response
    with gate(tmp_path) as running:
        for is_asked in (False, True):
            response = respond("admin", now_token())
            with running.dial() as client:
                greet(client, spoken)
                log_in(client, spoken, mechanism=mechanism, response=b"" if is_asked else response)
                if is_asked:
                    client.expect(spoken.words.ConnectionSecure)
                    client.say(spoken.words.ConnectionSecureOk(response))
                ask_for(client, spoken)
                client.expect(spoken.words.ConnectionOpenOk)
                assert principals(running)[0][0] == "bob"
            running.wait_idle()
            with running.dial() as client:
                greet(client, spoken)
                log_in(client, spoken, mechanism=mechanism, response=respond("bob", "guest"))
                said = answer_to(client)
                assert said is None or said.NAME == "connection.close"


def test_other_mechanisms_are_neither_offered_nor_taken(tmp_path: Path) -> None:
    door = Doorway()
    with gate(tmp_path, port=door.port, upstream="") as running:
        client = running.dial()
        client.raw(amqp.PROTOCOL_HEADER)
        broker = door.accept()
        broker.greet(mechanisms=b"PLAIN SCRAM-SHA-256 CRAM-MD5 EXTERNAL ANONYMOUS")
        start = client.expect(amqp.ConnectionStart)
        assert set(start.mechanisms.split()) == {b"PLAIN", b"AMQPLAIN", b"EXTERNAL"}
        for mechanism in ("ANONYMOUS", "EXTERNAL", "SCRAM-SHA-256"):
            client.say(amqp.ConnectionStartOk(CAPABILITIES, mechanism, b"bob", "en_US"))
            assert refused(client)
            client.close()
            client = running.dial()
            client.raw(amqp.PROTOCOL_HEADER)
            client.expect(amqp.ConnectionStart)
        client.close()
        broker.close()
    door.close()


def test_the_broker_gets_the_same_token(tmp_path: Path) -> None:
    """Where the client logs in itself."""
    door, data = Doorway(), now_token()
    with gate(tmp_path, port=door.port, upstream="") as running, running.dial() as client:
        client.raw(amqp.PROTOCOL_HEADER)
        broker = door.accept()
        broker.greet()
        client.expect(amqp.ConnectionStart)
        client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", plain_response("x", data), "en_US"))
        assert broker.expect(amqp.ConnectionStartOk).response == plain_response("x", data)
        broker.close()
    door.close()


def test_a_listener_without_an_issuer_tells_of_tokens_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with gate(tmp_path) as running:
        for _ in range(3):
            with opened(running, now_token(), "admin", listener="open"):
                # It has no login of its own at the broker, and nobody has checked the name.
                assert principals(running)[0][1:] == ([], [])
            running.wait_idle()
        assert counted(running, "amqpgate_unverified_tokens_total") == {"": 3}
    assert caplog.text.count("there is no identity.oauth") == 1


def test_logins_that_fail_count_as_logins(tmp_path: Path) -> None:
    limit = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: few}
spec:
  subjects: [{user: "*"}]
  limits: [{id: few, logins: 1/h, per: [sourceIP], action: reject}]
"""
    with gate(tmp_path, limit) as running:
        codes = []
        for _ in range(3):
            with logged_in(running, b"a.b") as client:
                said = answer_to(client)
                assert isinstance(said, amqp.ConnectionClose)
                codes.append(said.reply_code)
        assert codes == [403, 530, 530]
