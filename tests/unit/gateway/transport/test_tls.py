"""TLS on listeners and towards the broker."""

from __future__ import annotations

import os
import ssl
import threading

import pytest
import trustme

from amqpgate.config import ListenerTls, UpstreamTls
from amqpgate.errors import ConfigError
from amqpgate.gateway.transport.tls import TlsContexts
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.support.proxy_header import encode_v1
from tests.support.talker import CAPABILITIES, Gone, Talker, relayed
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.handshake.test_handshake import HERE, SOURCE, MakeStage, introduced
from tests.unit.gateway.papers import Papers
from tests.unit.gateway.upstream.test_own_login import opened

# -- towards clients -----------------------------------------------------------------------------------------


def test_a_tls_listener(make_stage: MakeStage, papers: Papers) -> None:
    stage = make_stage(listener=f"tls: {{{papers.make('gate', 'localhost')}}}")
    client, broker = stage.opened(tls=papers.client_context())
    body = os.urandom(3 << 20)
    # More than all buffers on the way: the broker must read while the client writes.
    sender = threading.Thread(target=client.publish, args=(body, "k"))
    sender.start()
    assert broker.expect_content(amqp.BasicPublish).body == body
    sender.join()
    sender = threading.Thread(target=broker.content, args=(amqp.BasicDeliver("c"), body))
    sender.start()
    assert client.expect_content(amqp.BasicDeliver).body == body
    sender.join()


def test_tls_behind_a_proxy_header(make_stage: MakeStage, papers: Papers) -> None:
    stage = make_stage(listener=f"proxyProtocol: v1, tls: {{{papers.make('gate', 'localhost')}}}")
    client, broker = stage.greeted(first=encode_v1(SOURCE, HERE), tls=papers.client_context())
    assert introduced(client, broker) == "203.0.113.7:51234"


@pytest.mark.parametrize("required", [True, False])
def test_client_certificates(make_stage: MakeStage, papers: Papers, required: bool) -> None:
    text = f"clientCa: ca.pem, requireClientCert: {str(required).lower()}"
    stage = make_stage(listener=f"tls: {{{papers.make('gate', 'localhost')}, {text}}}")
    papers.make("alice", "alice@example.org", common_name="alice")
    stage.greeted(tls=papers.client_context("alice"))
    stranger = Papers(trustme.CA(), papers.folder)
    stranger.make("mallory", "mallory@example.org")
    refusals: list[str | None] = ["mallory"]
    if required:
        refusals.append(None)
    else:
        stage.greeted(tls=papers.client_context())
    for stem in refusals:
        # TLS 1.3 tells a client only when it reads.
        with pytest.raises((Gone, ssl.SSLError, ConnectionError)):  # noqa: PT012
            client = stage.client(tls=papers.client_context(stem))
            client.raw(amqp.PROTOCOL_HEADER)
            client.frame()


def test_whom_the_certificate_names(make_stage: MakeStage, papers: Papers) -> None:
    """The user of SASL EXTERNAL, for policies: who logs in so is whom TLS has proven."""
    stage = make_stage(listener=f"tls: {{{papers.make('gate', 'localhost')}, clientCa: ca.pem}}")
    papers.make("alice", "alice@example.org", common_name="alice")
    client, broker = stage.greeted(tls=papers.client_context("alice"))
    client.say(amqp.ConnectionStartOk(mechanism="EXTERNAL", locale="en_US"))
    assert broker.expect(amqp.ConnectionStartOk).mechanism == "EXTERNAL"
    opened(client, broker, "own")
    eventually(lambda: bool(stage.running.gateway.sessions))
    (session,) = stage.running.gateway.sessions.values()
    assert (session.principal.user, session.principal.tls and session.principal.tls.common_name) == (
        "alice",
        "alice",
    )


CERTIFIED = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: alice}
spec:
  subjects: [{user: alice}]
  rules: [{id: own, effect: allow, operations: [queue.declare], queue: own}]
"""


@pytest.mark.parametrize(
    ("connections", "mechanism", "response"),
    [
        ("own", "EXTERNAL", b""),
        ("own", "PLAIN", b"\0mallory\0x"),
        ("pooled, pool: {spareChannels: 0}", "EXTERNAL", b""),
        ("pooled, pool: {spareChannels: 0}", "PLAIN", b"\0mallory\0x"),
    ],
    ids=["external", "plain", "pooled external", "pooled"],
)
def test_who_has_a_certificate_is_who_it_names_under_a_login_that_is_lent(
    make_stage: MakeStage, papers: Papers, connections: str, mechanism: str, response: bytes
) -> None:
    """Policies judge the certificate's name; the broker sees the lent login, and nothing else."""
    stage = make_stage(
        listener=f"tls: {{{papers.make('gate', 'localhost')}, clientCa: ca.pem}}",
        upstream=f"user: app, password: secret, connections: {connections}",
        policies=CERTIFIED,
    )
    papers.make("alice", "alice@example.org", common_name="alice")
    client = stage.client(tls=papers.client_context("alice"))
    client.raw(amqp.PROTOCOL_HEADER)
    broker = stage.broker()
    broker.greet(mechanisms=b"PLAIN EXTERNAL")
    assert mechanism.encode() in client.expect(amqp.ConnectionStart).mechanisms.split()
    client.say(amqp.ConnectionStartOk(CAPABILITIES, mechanism, response, "en_US"))
    if connections != "own":
        broker = stage.broker()
        broker.greet(mechanisms=b"PLAIN EXTERNAL")
    said = broker.expect(amqp.ConnectionStartOk)
    assert (said.mechanism, said.response) == ("PLAIN", b"\0app\0secret")
    opened(client, broker, "own")
    eventually(lambda: bool(stage.running.gateway.sessions))
    (session,) = stage.running.gateway.sessions.values()
    assert (session.principal.user, session.principal.upstream_user) == ("alice", "app")
    relayed(client, broker, amqp.ChannelOpen(), amqp.ChannelOpenOk(), 1)
    client.say(amqp.QueueDeclare(queue="own"), 1)
    assert broker.expect(amqp.QueueDeclare, 1).queue == "own"
    broker.say(amqp.QueueDeclareOk("own", 0, 0), 1)
    client.expect(amqp.QueueDeclareOk, 1)
    client.say(amqp.QueueDeclare(queue="other"), 1)
    broker.expect(amqp.ChannelClose, 1)
    broker.say(amqp.ChannelCloseOk(), 1)
    assert client.expect(amqp.ChannelClose, 1).reply_code == 403


def test_plain_talk_on_a_tls_port_ends(make_stage: MakeStage, papers: Papers) -> None:
    stage = make_stage(listener=f"tls: {{{papers.make('gate', 'localhost')}}}")
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    with pytest.raises(Gone):
        client.frame()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"handshake_failed": 1}


def test_a_tls_handshake_has_a_deadline(make_stage: MakeStage, papers: Papers) -> None:
    stage = make_stage(
        listener=f"tls: {{{papers.make('gate', 'localhost')}}}", limits="handshakeTimeout: 200ms"
    )
    client = stage.client()
    client.raw(b"\x16\x03\x01")
    with pytest.raises(Gone):
        client.frame()
    stage.running.wait_idle()
    assert stage.running.outcomes() == {"handshake_timeout": 1}


def test_a_replaced_certificate_is_used_from_the_next_connection_on(
    make_stage: MakeStage, papers: Papers, caplog: pytest.LogCaptureFixture
) -> None:
    stage = make_stage(listener=f"tls: {{{papers.make('gate', 'localhost')}}}")

    def serial() -> str:
        client = stage.client(tls=papers.client_context())
        assert isinstance(client.sock, ssl.SSLSocket)
        certificate = client.sock.getpeercert()
        assert certificate is not None
        return str(certificate["serialNumber"])

    client, broker = stage.opened(tls=papers.client_context())
    first = serial()
    assert serial() == first
    papers.make("gate", "localhost")
    second = serial()
    assert second != first
    # A broken one is reported once, and the one before stays.
    (papers.folder / "gate.key").write_text("nonsense")
    assert serial() == second
    assert serial() == second
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1
    assert "no private key in PEM is in" in errors[0].getMessage()
    assert "gate.key" in errors[0].getMessage()
    assert "stay in use" in errors[0].getMessage()
    papers.make("gate", "localhost")
    assert serial() not in (first, second)
    # The session from before has noticed nothing.
    client.publish(b"still here", "k")
    assert broker.expect_content(amqp.BasicPublish).body == b"still here"


def test_the_certificate_is_chosen_by_the_name_that_the_client_asks_for(
    make_stage: MakeStage, papers: Papers
) -> None:
    extra = ", ".join(
        f"{{serverNames: [{names}], {papers.make(stem, *issued)}}}"
        for stem, names, issued in (
            ("one", "One.example.org", ["one.example.org"]),
            ("stars", "'*.two.example.org', two.example.org", ["*.two.example.org", "two.example.org"]),
        )
    )
    stage = make_stage(listener=f"tls: {{{papers.make('gate', 'localhost')}, certificates: [{extra}]}}")

    def shown(name: str) -> str:
        client = stage.client(tls=papers.client_context(), name=name)
        assert isinstance(client.sock, ssl.SSLSocket)
        certificate = client.sock.getpeercert()
        assert certificate is not None
        return str(certificate["subjectAltName"][0][1])

    assert shown("localhost") == "localhost"
    assert shown("one.example.org") == "one.example.org"
    assert shown("a.two.example.org") == shown("two.example.org") == "*.two.example.org"
    for name in ("b.a.two.example.org", "elsewhere.example.org"):
        with pytest.raises(ssl.SSLCertVerificationError, match="not valid for"):
            shown(name)
    # All of them are read again when they change.
    papers.make("one", "one.example.org", "renewed.example.org")
    client = stage.client(tls=papers.client_context(), name="one.example.org")
    assert isinstance(client.sock, ssl.SSLSocket)
    certificate = client.sock.getpeercert()
    assert certificate is not None
    assert ("DNS", "renewed.example.org") in certificate["subjectAltName"]


def test_client_certificates_are_asked_for_whatever_the_name(make_stage: MakeStage, papers: Papers) -> None:
    extra = f"{{serverNames: [one.example.org], {papers.make('one', 'one.example.org')}}}"
    keys = papers.make("gate", "localhost")
    stage = make_stage(listener=f"tls: {{{keys}, clientCa: ca.pem, certificates: [{extra}]}}")
    papers.make("someone", "someone@example.org")
    known, unknown = papers.client_context(), papers.client_context()
    known.load_cert_chain(papers.folder / "someone.pem", papers.folder / "someone.key")
    # In TLS 1.3 the client only hears of it when it reads.
    unknown.maximum_version = ssl.TLSVersion.TLSv1_2
    for name in ("localhost", "one.example.org"):
        stage.client(tls=known, name=name)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            stage.client(tls=unknown, name=name)


def test_certificates_that_cannot_be_used_end_the_start(make_stage: MakeStage, papers: Papers) -> None:
    keys = papers.make("gate", "localhost")
    papers.make("other", "localhost")
    with pytest.raises(BaseExceptionGroup) as caught:
        make_stage(listener=f"tls: {{{keys.replace('gate.key', 'other.key')}}}")
    assert caught.group_contains(
        ConfigError, match=r"the private key is not that of the certificate .*other\.key"
    )


def test_contexts_are_made_once_per_file_version(papers: Papers) -> None:
    papers.make("gate", "localhost")
    names = {"cert": papers.folder / "gate.pem", "key": papers.folder / "gate.key"}
    contexts = TlsContexts()
    first = contexts.for_listener(ListenerTls(**names))
    assert contexts.for_listener(ListenerTls(**names)) is first
    assert contexts.for_listener(ListenerTls(**names, min_version="TLSv1.3")) is not first
    upstream = UpstreamTls(ca=papers.folder / "ca.pem")
    assert contexts.for_upstream(upstream) is contexts.for_upstream(UpstreamTls(ca=papers.folder / "ca.pem"))
    (papers.folder / "gate.pem").unlink()
    assert contexts.for_listener(ListenerTls(**names)) is first
    with pytest.raises(ConfigError, match=r"nothing\.pem"):
        contexts.for_upstream(UpstreamTls(ca=papers.folder / "nothing.pem"))


@pytest.mark.parametrize(("version", "accepted"), [("TLSv1.2", True), ("TLSv1.3", False)])
def test_the_oldest_version(make_stage: MakeStage, papers: Papers, version: str, accepted: bool) -> None:
    keys = papers.make("gate", "localhost")
    stage = make_stage(listener=f"tls: {{{keys}, minVersion: {version}}}")
    context = papers.client_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    if accepted:
        stage.client(tls=context)
    else:
        with pytest.raises(ssl.SSLError):
            stage.client(tls=context)


def behind_tls(stage: Stage, context: ssl.SSLContext) -> tuple[Talker, Talker]:
    """A client, and its broker, up to start."""
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    sock, _ = stage.door.sock.accept()
    broker = stage.guests.enter_context(
        Talker(context.wrap_socket(sock, server_side=True, suppress_ragged_eofs=False))
    )
    broker.greet()
    client.expect(amqp.ConnectionStart)
    return client, broker


# -- towards the broker --------------------------------------------------------------------------------------


def told(client: Talker) -> str:
    """The text of the 320 that a client hears instead of a broker."""
    client.expect(amqp.ConnectionStart)
    close = client.ask(amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0a\0b"), amqp.ConnectionClose)
    assert close.reply_code == 320
    client.say(amqp.ConnectionCloseOk())
    client.expect_end()
    return close.reply_text


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ("tls: {ca: ca.pem, serverName: broker.example.org}", "broker.example.org"),
        ("tls: {verify: false, serverName: other.example.org}", "other.example.org"),
        # An address is no name to ask for.
        ("tls: {verify: false}", None),
    ],
)
def test_a_broker_behind_tls(make_stage: MakeStage, papers: Papers, settings: str, name: str | None) -> None:
    papers.make("broker", "broker.example.org")
    stage = make_stage(upstream=settings)
    context = papers.server_context("broker")
    names: list[str | None] = []
    context.sni_callback = lambda _socket, asked, _context: names.append(asked)
    behind_tls(stage, context)
    assert names == [name]


def test_a_broker_that_asks_for_a_certificate(make_stage: MakeStage, papers: Papers) -> None:
    papers.make("broker", "broker.example.org")
    keys = papers.make("gate", "gate@example.org", common_name="gate")
    stage = make_stage(
        listener="allowAnonymous: true",
        upstream=f"tls: {{ca: ca.pem, serverName: broker.example.org, {keys}}}",
    )
    context = papers.server_context("broker")
    papers.ca.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    _, broker = behind_tls(stage, context)
    assert isinstance(broker.sock, ssl.SSLSocket)
    shown = broker.sock.getpeercert()
    assert shown is not None
    assert ((("commonName", "gate"),)) in shown["subject"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ("tls: {ca: ca.pem}", "IP address mismatch"),
        ("tls: {ca: ca.pem, serverName: other.example.org}", "Hostname mismatch"),
        ("tls: {ca: stranger.pem, serverName: broker.example.org}", "unable to get local issuer"),
    ],
)
def test_a_broker_that_is_not_trusted(
    make_stage: MakeStage, papers: Papers, settings: str, text: str
) -> None:
    papers.make("broker", "broker.example.org")
    trustme.CA().cert_pem.write_to_path(papers.folder / "stranger.pem")
    stage = make_stage(upstream=settings)
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    sock, _ = stage.door.sock.accept()
    with sock, pytest.raises(OSError):  # noqa: PT011 - the gateway drops it, one way or the other
        papers.server_context("broker").wrap_socket(sock, server_side=True)
    heard = told(client)
    assert heard.startswith(f"CONNECTION_FORCED - TLS with upstream 127.0.0.1:{stage.door.port} failed: ")
    assert text in heard


def test_a_broker_that_does_not_speak_tls(make_stage: MakeStage) -> None:
    stage = make_stage(upstream="tls: {verify: false}")
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    broker = stage.broker()
    broker.raw(amqp.PROTOCOL_HEADER)
    assert "TLS with upstream" in told(client)


def test_a_broker_that_hangs_within_the_tls_handshake(make_stage: MakeStage) -> None:
    stage = make_stage(upstream="tls: {verify: false}, connectTimeout: 200ms")
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    stage.broker()
    where = f"127.0.0.1:{stage.door.port}"
    assert told(client) == f"CONNECTION_FORCED - upstream {where} did not answer within 0.2 s"


def test_external_is_not_offered_where_it_would_lend_the_gateways_certificate(
    make_stage: MakeStage, papers: Papers
) -> None:
    papers.make("broker", "broker.example.org")
    keys = papers.make("gate", "gate@example.org")
    stage = make_stage(
        text="""
listeners: [{{name: main, bind: "127.0.0.1:0", proxyProtocol: v1}}]
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}, tls: {{verify: false, KEYS}}}}]
""".replace("KEYS", keys)
    )
    client = stage.client(first=encode_v1(SOURCE, HERE))
    client.raw(amqp.PROTOCOL_HEADER)
    sock, _ = stage.door.sock.accept()
    wrapped = papers.server_context("broker").wrap_socket(sock, server_side=True, suppress_ragged_eofs=False)
    broker = stage.guests.enter_context(Talker(wrapped))
    broker.greet(mechanisms=b"PLAIN EXTERNAL AMQPLAIN")
    assert client.expect(amqp.ConnectionStart).mechanisms == b"PLAIN AMQPLAIN"
    client.say(amqp.ConnectionStartOk(mechanism="EXTERNAL"))
    # As RabbitMQ does with what it has not offered.
    client.expect_end()
    client.close()
    with pytest.raises(Gone):
        broker.frame()
