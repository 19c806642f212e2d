"""TLS on both hops, and the mechanisms that a broker with TLS offers, on a RabbitMQ that has them."""

from __future__ import annotations

import contextlib
import os
import select
import ssl
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
import trustme

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames
from tests.support.inprocess import serving
from tests.support.missing import missing
from tests.support.ports import free_port
from tests.support.rabbitmq import RabbitMQ, script_folder
from tests.support.talker import CAPABILITIES, Talker


@attrs.frozen
class Secure:
    """A node with TLS, and the papers of everybody."""

    node: RabbitMQ
    tls_port: int
    folder: Path
    ca: trustme.CA

    def client_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.ca.configure_trust(context)
        return context


def papers(ca: trustme.CA, folder: Path, stem: str, name: str, common_name: str | None = None) -> str:
    issued = ca.issue_cert(name, common_name=common_name)
    (folder / f"{stem}.pem").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    (folder / f"{stem}.key").write_bytes(issued.private_key_pem.bytes())
    return f"cert: {stem}.pem, key: {stem}.key"


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    if script_folder() is None:
        missing("RabbitMQ is not installed (Debian: apt-get install rabbitmq-server)")
    folder = tmp_path_factory.mktemp("papers")
    ca = trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.pem")
    trustme.CA().cert_pem.write_to_path(folder / "stranger.pem")
    papers(ca, folder, "broker", "localhost")
    papers(ca, folder, "listener", "localhost")
    papers(ca, folder, "gate", "gate@example.org", common_name="gate")
    port = free_port()
    node = RabbitMQ(
        plugins=["rabbitmq_auth_mechanism_ssl"],
        config=[
            f"listeners.ssl.default = 127.0.0.1:{port}",
            f"ssl_options.cacertfile = {folder}/ca.pem",
            f"ssl_options.certfile = {folder}/broker.pem",
            f"ssl_options.keyfile = {folder}/broker.key",
            "ssl_options.verify = verify_peer",
            "ssl_options.fail_if_no_peer_cert = false",
            "ssl_cert_login_from = common_name",
            "auth_mechanisms.1 = PLAIN",
            "auth_mechanisms.2 = AMQPLAIN",
            "auth_mechanisms.3 = EXTERNAL",
            "auth_mechanisms.4 = RABBIT-CR-DEMO",
        ],
    )
    try:
        node.start()
        node.add_user("gate", "unused")
        yield Secure(node, port, folder, ca)
    finally:
        node.destroy()


def settings(port: int, *, listener: str = "", upstream: str = "") -> str:
    return f"""
listeners: [{{name: main, bind: "127.0.0.1:0"{listener and ", " + listener}}}]
upstreams: [{{name: rabbit, host: localhost, port: {port}{upstream and ", " + upstream}}}]
"""


VERIFIED = "tls: {ca: ca.pem}"
BY_VHOST = """
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: by-vhost}
spec:
  routes: [{id: all, match: {vhosts: ["/"]}, upstream: {cluster: rabbit}}]
"""


def send_while_hearing(client: Talker, data: bytes) -> None:
    """Send all of it, and keep what comes meanwhile. (Python's TLS sockets are not for two threads.)"""
    assert isinstance(client.sock, ssl.SSLSocket)
    patience = client.sock.gettimeout()
    client.sock.settimeout(0)
    rest = memoryview(data)
    while rest:
        with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
            rest = rest[client.sock.send(rest[:16384]) :]
            continue
        with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
            client.decoder.feed(client.sock.recv(1 << 18))
            continue
        select.select([client.sock], [client.sock], [], patience)
    client.sock.settimeout(patience)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_large_messages_both_ways_at_once_over_tls_on_both_hops(
    secure: Secure, version: ssl.TLSVersion
) -> None:
    text = settings(
        secure.tls_port, listener="tls: {cert: listener.pem, key: listener.key}", upstream=VERIFIED
    )
    context = secure.client_context()
    context.maximum_version = version
    with serving(text, folder=secure.folder) as running, running.dial(tls=context) as client:
        client.open()
        queue = client.ask(amqp.QueueDeclare(exclusive=True), amqp.QueueDeclareOk, 1).queue
        client.ask(amqp.BasicConsume(queue=queue, no_ack=True), amqp.BasicConsumeOk, 1)
        bodies = [
            os.urandom(size) for size in (0, 1, 16_383, 16_384, 16_385, 131_064, 1_000_000, 3 << 20)
        ] * 3

        publish = amqp.BasicPublish(routing_key=queue)
        send_while_hearing(
            client,
            b"".join(content_frames(1, publish, amqp.BasicProperties(), body, 131072) for body in bodies),
        )
        for body in bodies:
            assert client.expect_content(amqp.BasicDeliver).body == body
        client.bye()
        running.wait_idle()


def test_many_small_messages_over_tls(secure: Secure) -> None:
    """More frames than one TLS record, fewer than one read: what OpenSSL holds back must not be forgotten."""
    text = settings(
        secure.tls_port, listener="tls: {cert: listener.pem, key: listener.key}", upstream=VERIFIED
    )
    with serving(text, folder=secure.folder) as running, running.dial(tls=secure.client_context()) as client:
        client.open()
        queue = client.ask(amqp.QueueDeclare(exclusive=True), amqp.QueueDeclareOk, 1).queue
        client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        for round_ in range(1, 11):
            for _ in range(500):
                client.publish(b"x" * 100, queue)
            confirmed = 0
            while confirmed < 500 * round_:
                confirmed = client.expect(amqp.BasicAck, 1).delivery_tag
        client.ask(amqp.BasicConsume(queue=queue, no_ack=True), amqp.BasicConsumeOk, 1)
        for _ in range(5000):
            assert client.expect_content(amqp.BasicDeliver).body == b"x" * 100
        client.bye()


@pytest.mark.parametrize(
    ("upstream", "text"),
    [
        ("tls: {ca: stranger.pem}", "its certificate is not trusted: "),
        ("tls: {ca: ca.pem, serverName: broker.example.org}", "Hostname mismatch"),
    ],
)
def test_a_broker_that_cannot_be_trusted(secure: Secure, upstream: str, text: str) -> None:
    with (
        serving(settings(secure.tls_port, upstream=upstream), folder=secure.folder) as running,
        running.dial() as client,
    ):
        client.raw(amqp.PROTOCOL_HEADER)
        client.expect(amqp.ConnectionStart)
        close = client.ask(
            amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest"), amqp.ConnectionClose
        )
        assert close.reply_code == 320
        assert f"TLS with upstream localhost:{secure.tls_port} failed: " in close.reply_text
        assert text in close.reply_text


# -- mechanisms ----------------------------------------------------------------------------------------------


def offered(client: Talker) -> list[bytes]:
    client.raw(amqp.PROTOCOL_HEADER)
    return client.expect(amqp.ConnectionStart).mechanisms.split()


def finish(client: Talker, tune: amqp.ConnectionTune) -> None:
    client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, tune.heartbeat))
    client.ask(amqp.ConnectionOpen("/"), amqp.ConnectionOpenOk)
    client.bye()


def test_the_mechanisms_are_those_of_the_broker(secure: Secure) -> None:
    with serving(settings(secure.node.port)) as running:
        lists = []
        for port in (secure.node.port, running.port()):
            with Talker.dial(port) as client:
                lists.append(offered(client))
        assert lists[0] == lists[1]
        assert sorted(lists[0]) == [b"AMQPLAIN", b"PLAIN", b"RABBIT-CR-DEMO"]
    text = settings(secure.tls_port, upstream=VERIFIED)
    with serving(text, folder=secure.folder) as running, running.dial() as client:
        assert b"EXTERNAL" in offered(client), "which it offers where there is TLS"


@pytest.mark.parametrize("password", ["guest", "wrong"])
def test_a_challenge_and_its_response(secure: Secure, password: str) -> None:
    with serving(settings(secure.node.port)) as running:
        for port in (secure.node.port, running.port()):
            with Talker.dial(port) as client:
                offered(client)
                client.say(amqp.ConnectionStartOk(CAPABILITIES, "RABBIT-CR-DEMO", b"guest", "en_US"))
                challenge = client.expect(amqp.ConnectionSecure).challenge
                assert challenge == b"Please tell me your password"
                client.say(amqp.ConnectionSecureOk(f"My password is {password}".encode()))
                if password == "wrong":
                    close = client.expect(amqp.ConnectionClose)
                    assert close.reply_code == 403
                    continue
                tune = client.expect(amqp.ConnectionTune)
                if port == running.port():
                    client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, tune.heartbeat))
                    client.ask(amqp.ConnectionOpen("/"), amqp.ConnectionOpenOk)
                    client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
                    (session,) = running.gateway.sessions.values()
                    assert session.principal.user == "guest"
                    client.bye()
                else:
                    finish(client, tune)


def test_external_by_the_gateways_certificate(secure: Secure) -> None:
    """Only for clients of this machine, or with certificates: they are who the gateway is, to the broker."""
    upstream = "tls: {ca: ca.pem, cert: gate.pem, key: gate.key}"
    text = settings(secure.tls_port, upstream=upstream)
    with serving(text, folder=secure.folder) as running, running.dial() as client:
        assert b"EXTERNAL" in offered(client)
        client.say(amqp.ConnectionStartOk(CAPABILITIES, "EXTERNAL", b"", "en_US"))
        finish(client, client.expect(amqp.ConnectionTune))
    text = settings(secure.tls_port, listener="proxyProtocol: v1", upstream=upstream)
    header = b"PROXY UNKNOWN\r\n"
    with serving(text, folder=secure.folder) as running, running.dial(first=header) as client:
        assert b"EXTERNAL" not in offered(client)


def test_external_where_the_route_is_chosen_by_what_the_client_opens(secure: Secure) -> None:
    """The gateway offers what the cluster offers, and logs in by its certificate once the route is known."""
    policies = secure.folder / "routes"
    policies.mkdir()
    (policies / "routes.yaml").write_text(BY_VHOST)
    upstream = "tls: {ca: ca.pem, cert: gate.pem, key: gate.key}"
    text = settings(secure.tls_port, upstream=upstream) + "policies: routes\n"
    with serving(text, folder=secure.folder) as running, running.dial() as client:
        assert b"EXTERNAL" in offered(client)
        client.say(amqp.ConnectionStartOk(CAPABILITIES, "EXTERNAL", b"", "en_US"))
        tune = client.expect(amqp.ConnectionTune)
        client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, tune.heartbeat))
        client.ask(amqp.ConnectionOpen("/"), amqp.ConnectionOpenOk)
        client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
        # Connections of other tests may be there still; of this user there is no other.
        assert "gate" in secure.node.ctl("list_connections", "user").split()
        client.bye()
