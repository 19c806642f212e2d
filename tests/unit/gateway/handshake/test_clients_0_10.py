"""Logins of clients of AMQP 0-10: what mechanisms ask passes, and what would encrypt is not offered."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

import pytest

from amqpgate.wire.generated import v0_9_1
from amqpgate.wire.generated import v0_10 as amqp
from tests.support.client_0_10 import Client010, Closed, tune_ok
from tests.support.inprocess import eventually
from tests.support.talk_0_10 import control
from tests.support.talker import Talker
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.memory import in_memory, uncollected
from tests.unit.gateway.papers import Papers

__all__ = ["uncollected"]

MakeStage = Callable[..., Stage]

SCRAM = [
    (b"n,,n=me,r=abc", b"r=abcdef,s=c2FsdA==,i=4096"),
    (b"c=biws,r=abcdef,p=cHJvb2Y=", b"v=c2lnbg=="),
    (b"", None),
]


def greeted(
    stage: Stage, mechanisms: bytes, **options: object
) -> tuple[Client010, amqp.ConnectionStart, Talker]:
    """A client that has heard start, and its broker, which offers these mechanisms."""
    stage.forget()
    client = stage.guests.enter_context(Client010.dial(stage.running.port(), **options))
    client.connection.send_header()
    client.flush()
    broker = stage.broker()
    broker.greet(mechanisms=mechanisms)
    return client, client.control(amqp.ConnectionStart), broker


def tuned(client: Client010, broker: Talker, heartbeat: int = 0, chosen: int = 0) -> None:
    """The login is accepted, and the connection opened."""
    broker.say(v0_9_1.ConnectionTune(2047, 131072, heartbeat))
    client.say(tune_ok(client.control(amqp.ConnectionTune), chosen))
    client.say(amqp.ConnectionOpen(virtual_host=b"shop"))
    assert broker.expect(v0_9_1.ConnectionTuneOk).channel_max == 2047
    assert broker.expect(v0_9_1.ConnectionOpen).virtual_host == "shop"
    broker.say(v0_9_1.ConnectionOpenOk())
    client.control(amqp.ConnectionOpenOk)


def test_mechanisms_that_install_security_layers_are_not_offered(stage: Stage) -> None:
    offered = b"GSSAPI DIGEST-MD5 KERBEROS_V4 SCRAM-SHA-1 CRAM-MD5 PLAIN ANONYMOUS EXTERNAL AMQPLAIN"
    _, start, _ = greeted(stage, offered)
    assert start.mechanisms is not None
    assert start.mechanisms.items == (b"SCRAM-SHA-1", b"CRAM-MD5", b"PLAIN", b"ANONYMOUS", b"EXTERNAL")


def test_cram_md5_passes(stage: Stage) -> None:
    client, _, broker = greeted(stage, b"CRAM-MD5")
    client.say(amqp.ConnectionStartOk(mechanism=b"CRAM-MD5", locale=b"en_US"))
    start_ok = broker.expect(v0_9_1.ConnectionStartOk)
    assert (start_ok.mechanism, start_ok.response) == ("CRAM-MD5", b"")
    challenge = b"<1896.697170952@postoffice>"
    broker.say(v0_9_1.ConnectionSecure(challenge))
    assert client.control(amqp.ConnectionSecure).challenge == challenge
    answer = b"me " + hmac.new(b"secret", challenge, hashlib.md5).hexdigest().encode()
    client.say(amqp.ConnectionSecureOk(response=answer))
    assert broker.expect(v0_9_1.ConnectionSecureOk).response == answer
    tuned(client, broker)


@pytest.mark.parametrize("refused", [False, True])
def test_scram_passes(stage: Stage, refused: bool) -> None:
    client, _, broker = greeted(stage, b"SCRAM-SHA-256 PLAIN")
    (first, challenge), *rest = SCRAM
    client.say(amqp.ConnectionStartOk(mechanism=b"SCRAM-SHA-256", response=first, locale=b"en_US"))
    assert broker.expect(v0_9_1.ConnectionStartOk).response == first
    for answer, following in rest:
        broker.say(v0_9_1.ConnectionSecure(challenge))
        assert client.control(amqp.ConnectionSecure).challenge == challenge
        client.say(amqp.ConnectionSecureOk(response=answer))
        assert broker.expect(v0_9_1.ConnectionSecureOk).response == answer
        challenge = following
    if not refused:
        tuned(client, broker)
        return
    broker.say(v0_9_1.ConnectionClose(403, "ACCESS_REFUSED - no", 0, 0))
    with pytest.raises(Closed, match="ACCESS_REFUSED - no"):
        client.next_control()


def test_a_broker_that_hangs_up_refuses_a_login(stage: Stage) -> None:
    """As to clients of 0-9-1: without a word."""
    client, _, broker = greeted(stage, b"PLAIN")
    client.say(amqp.ConnectionStartOk(mechanism=b"PLAIN", response=b"\0me\0wrong", locale=b"en_US"))
    broker.expect(v0_9_1.ConnectionStartOk)
    broker.close()
    client.expect_end()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"refused": 1}


def test_each_hop_has_its_heartbeat(stage: Stage) -> None:
    """The client's is its choice up to what the broker offers, and is told in its own words."""
    client, _, broker = greeted(stage, b"PLAIN")
    client.say(amqp.ConnectionStartOk(mechanism=b"PLAIN", response=b"\0me\0pw", locale=b"en_US"))
    broker.expect(v0_9_1.ConnectionStartOk)
    tuned(client, broker, heartbeat=60, chosen=1)
    assert client.sock.recv(100) == control(amqp.ConnectionHeartbeat())


def test_a_client_of_tls_that_shows_a_certificate_logs_in_by_it(
    make_stage: MakeStage, papers: Papers
) -> None:
    """EXTERNAL, where the upstream has a login of its own: who the client is, its certificate says."""
    papers.make("gateway", "localhost")
    papers.make("me", "me@example.org", common_name="me")
    stage = make_stage(
        listener="tls: {cert: gateway.pem, key: gateway.key, clientCa: ca.pem}",
        upstream="user: shared, password: pw",
    )
    client, start, broker = greeted(stage, b"PLAIN EXTERNAL", tls=papers.client_context("me"))
    assert start.mechanisms is not None
    assert b"EXTERNAL" in start.mechanisms.items
    client.say(amqp.ConnectionStartOk(mechanism=b"EXTERNAL", response=b"", locale=b"en_US"))
    assert broker.expect(v0_9_1.ConnectionStartOk).response == b"\0shared\0pw"
    tuned(client, broker)
    sessions = stage.running.gateway.sessions
    eventually(lambda: len(sessions) == 1)
    principal = stage.running.call(lambda: next(iter(sessions.values())).principal)
    assert principal.tls is not None
    assert principal.tls.common_name == "me"


@pytest.mark.usefixtures("uncollected")
def test_what_a_client_was_is_no_cycle(stage: Stage) -> None:
    """Python may not look for those for hours, and memory rises meanwhile."""
    kinds = ("TranslatedSocket", "ClientTranslator", "BridgedChannel", "BrokerLink", "PeerGoneError")
    before = in_memory()
    for _ in range(4):
        client, _, broker = greeted(stage, b"PLAIN")
        client.say(amqp.ConnectionStartOk(mechanism=b"PLAIN", response=b"\0me\0secret", locale=b"en_US"))
        broker.expect(v0_9_1.ConnectionStartOk)
        tuned(client, broker)
        client.session().send(amqp.QueueDeclare(queue=b"q"))
        broker.expect(v0_9_1.ChannelOpen, 1)
        Talker(client.sock).reset()
        broker.expect(v0_9_1.ConnectionClose)
        broker.say(v0_9_1.ConnectionCloseOk())
    stage.running.wait_idle()
    eventually(lambda: max(in_memory()[kind] - before[kind] for kind in kinds) < 2)
