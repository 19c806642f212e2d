"""Clients of AMQP 0-10 whose broker speaks TLS: its mechanisms there, and EXTERNAL by a certificate."""

from __future__ import annotations

import pytest

from amqpgate.wire.generated import v0_10 as amqp
from tests.interop.clients_0_10 import queue
from tests.interop.test_gateway_tls import BY_VHOST, VERIFIED, Secure, offered, secure, settings
from tests.support.client_0_10 import Client010, Closed
from tests.support.inprocess import eventually, serving
from tests.support.talker import Talker

__all__ = ["queue", "secure"]

OWN = "tls: {ca: ca.pem, cert: gate.pem, key: gate.key}"
LISTENER = "tls: {cert: listener.pem, key: listener.key}"


def mechanisms(start: amqp.ConnectionStart) -> list[bytes]:
    assert start.mechanisms is not None
    return [item for item in start.mechanisms.items if isinstance(item, bytes)]


def test_the_mechanisms_are_those_of_the_broker(secure: Secure) -> None:
    """But for AMQPLAIN, whose response is a table of 0-9-1."""
    with Talker.dial(secure.tls_port, tls=secure.client_context()) as client:
        direct = offered(client)
    text = settings(secure.tls_port, listener=LISTENER, upstream=VERIFIED)
    with (
        serving(text, folder=secure.folder) as running,
        Client010.dial(running.port(), tls=secure.client_context()) as client_0_10,
    ):
        assert mechanisms(client_0_10.greet()) == [name for name in direct if name != b"AMQPLAIN"]
        assert b"EXTERNAL" in direct


@pytest.mark.parametrize("response", [None, b""])
@pytest.mark.parametrize("is_late", [False, True])
def test_external_by_the_gateways_certificate(
    secure: Secure, queue: str, response: bytes | None, is_late: bool
) -> None:
    """Python's and C++'s clients send no response, Java's an empty one. A large message passes both hops."""
    text = settings(secure.tls_port, listener=LISTENER, upstream=OWN)
    if is_late:
        policies = secure.folder / "late"
        policies.mkdir(exist_ok=True)
        (policies / "routes.yaml").write_text(BY_VHOST)
        text += "policies: late\n"
    with (
        serving(text, folder=secure.folder) as running,
        Client010.dial(running.port(), tls=secure.client_context()) as client,
    ):
        start = client.log_in(mechanism="EXTERNAL", response=response, vhost="/", user="")
        assert b"EXTERNAL" in mechanisms(start)
        # Those of the test before may not be gone yet.
        eventually(lambda: [row["user"] for row in secure.node.connections()] == ["gate"])
        # The user whom the certificate names may do nothing before that.
        secure.node.ctl("set_permissions", "gate", ".*", ".*", ".*")
        session = client.session()
        session.declare(queue, auto_delete=True)
        body = bytes(range(256)) * 4096
        session.publish(body, queue)
        session.subscribe(queue)
        message = session.get()
        assert message.body == body
        session.accept(message)
        client.end()


def test_external_is_offered_to_those_alone_who_may_be_the_gateway(secure: Secure) -> None:
    text = settings(secure.tls_port, listener="proxyProtocol: v1", upstream=OWN)
    with (
        serving(text, folder=secure.folder) as running,
        Client010.dial(running.port(), first=b"PROXY UNKNOWN\r\n") as client,
    ):
        assert b"EXTERNAL" not in mechanisms(client.greet())


def test_external_without_a_certificate_is_refused_by_the_broker(secure: Secure) -> None:
    text = settings(secure.tls_port, upstream=VERIFIED)
    with serving(text, folder=secure.folder) as running, Client010.dial(running.port()) as client:
        with pytest.raises(Closed, match="EXTERNAL") as told:
            client.log_in(mechanism="EXTERNAL")
        assert told.value.code == 403


@pytest.mark.parametrize("password", ["guest", "wrong"])
def test_a_challenge_and_its_response(secure: Secure, password: str) -> None:
    """RabbitMQ's mechanism that asks: what it asks, and what is answered, passes."""
    asked: list[bytes] = []

    def answer(challenge: bytes) -> bytes:
        asked.append(challenge)
        return f"My password is {password}".encode()

    text = settings(secure.tls_port, upstream=VERIFIED)
    with serving(text, folder=secure.folder) as running, Client010.dial(running.port()) as client:
        if password == "wrong":
            with pytest.raises(Closed) as told:
                client.log_in(mechanism="RABBIT-CR-DEMO", response=b"guest", answer=answer)
            assert told.value.code == 403
        else:
            client.log_in(mechanism="RABBIT-CR-DEMO", response=b"guest", answer=answer, vhost="/")
            # It is one when the client has heard of it already.
            eventually(lambda: bool(running.gateway.sessions))
            (session,) = running.gateway.sessions.values()
            assert session.principal.user == "guest"
            client.session().ask(amqp.ExecutionSync())
            client.end()
    assert asked == [b"Please tell me your password"]
