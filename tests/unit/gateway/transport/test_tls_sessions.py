"""TLS sessions that clients go on with."""

from __future__ import annotations

import contextlib
import datetime
import socket
import ssl
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import attrs
import pytest

from amqpgate.config import ListenerTls
from amqpgate.config.settings import NamedCertificate
from amqpgate.gateway.transport import tls as tls_module
from amqpgate.gateway.transport.tls import TlsContexts, identity
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually
from tests.unit.gateway.handshake.test_handshake import MakeStage
from tests.unit.gateway.papers import Papers

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@attrs.frozen
class Shaken:
    """A handshake that is over."""

    client: ssl.SSLObject
    server: ssl.SSLObject
    #: Bytes of the server behind its handshake.
    behind: int

    @property
    def session(self) -> ssl.SSLSession:
        assert self.client.session is not None
        return self.client.session


def shake(
    server: ssl.SSLContext,
    client: ssl.SSLContext,
    session: ssl.SSLSession | None = None,
    name: str = "localhost",
) -> Shaken:
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(back, there, server_hostname=name, session=session)
    theirs = server.wrap_bio(there, back, server_side=True)
    waiting = [ours, theirs]
    while waiting:
        for one in list(waiting):
            try:
                one.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(one)
    behind = back.pending
    # The tickets of TLS 1.3 come behind its handshake.
    theirs.write(b"hello")
    assert ours.read(5) == b"hello"
    return Shaken(ours, theirs, behind)


@pytest.fixture
def listener(papers: Papers) -> ListenerTls:
    papers.make("gate", "localhost")
    return ListenerTls(cert=papers.folder / "gate.pem", key=papers.folder / "gate.key")


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_a_client_goes_on_with_its_session(
    papers: Papers, listener: ListenerTls, version: ssl.TLSVersion
) -> None:
    client, contexts = papers.client_context(), TlsContexts()
    client.maximum_version = version
    first = shake(contexts.for_listener(listener), client)
    assert not first.server.session_reused
    second = shake(contexts.for_listener(listener), client, first.session)
    assert second.server.session_reused
    # And so on, with the newest.
    assert shake(contexts.for_listener(listener), client, second.session).server.session_reused


def test_one_ticket_is_given(papers: Papers, listener: ListenerTls) -> None:
    server, twice = TlsContexts().for_listener(listener), papers.server_context("gate")
    assert twice.num_tickets == 2
    client = papers.client_context()
    assert 0 < shake(server, client).behind < shake(twice, client).behind


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_a_session_ends_with_the_files_that_it_was_begun_under(
    papers: Papers, listener: ListenerTls, version: ssl.TLSVersion
) -> None:
    client, contexts = papers.client_context(), TlsContexts()
    client.maximum_version = version
    session = shake(contexts.for_listener(listener), client).session
    papers.make("gate", "localhost")
    assert not shake(contexts.for_listener(listener), client, session).server.session_reused


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_sessions_of_names(papers: Papers, listener: ListenerTls, version: ssl.TLSVersion) -> None:
    papers.make("one", "one.example.org")
    other = NamedCertificate(
        server_names=("one.example.org",), cert=papers.folder / "one.pem", key=papers.folder / "one.key"
    )
    server = TlsContexts().for_listener(attrs.evolve(listener, certificates=(other,)))
    client = papers.client_context()
    client.maximum_version = version
    session = shake(server, client, name="one.example.org").session
    assert shake(server, client, session, name="one.example.org").server.session_reused


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_who_shows_a_certificate_is_known_again_until_that_expires(
    papers: Papers, listener: ListenerTls, monkeypatch: pytest.MonkeyPatch, version: ssl.TLSVersion
) -> None:
    now = time.time()
    ends = datetime.datetime.fromtimestamp(int(now) + 1000, datetime.UTC)
    papers.write("alice", papers.ca.issue_cert("alice@example.org", common_name="alice", not_after=ends))
    authority = papers.folder / "authority.pem"
    papers.ca.cert_pem.write_to_path(str(authority))
    server = TlsContexts().for_listener(attrs.evolve(listener, client_ca=authority, require_client_cert=True))
    client = papers.client_context("alice")
    client.maximum_version = version

    def who(shaken: Shaken) -> str:
        found = identity(cast(ssl.SSLSocket, shaken.server))
        assert found is not None
        return found.common_name

    def at(later: float) -> Callable[[], float]:
        return lambda: now + later

    first = shake(server, client)
    assert who(first) == "alice"
    monkeypatch.setattr(tls_module, "time", SimpleNamespace(time=at(900)))
    second = shake(server, client, first.session)
    assert second.server.session_reused
    assert who(second) == "alice"
    # OpenSSL would go on for ever: each session that is gone on with comes with another ticket.
    monkeypatch.setattr(tls_module, "time", SimpleNamespace(time=at(1001)))
    third = shake(server, client, second.session)
    assert third.server.session_reused
    with pytest.raises(ssl.SSLCertVerificationError, match="has expired"):
        who(third)
    # In a full handshake OpenSSL judges, by the clock that it sees.
    assert who(shake(server, client)) == "alice"


def test_the_gateway_refuses_a_resumed_session_whose_certificate_has_expired(
    make_stage: MakeStage, papers: Papers, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = make_stage(listener=f"tls: {{{papers.make('gate', 'localhost')}, clientCa: ca.pem}}")
    ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
    papers.write("alice", papers.ca.issue_cert("alice@example.org", common_name="alice", not_after=ends))
    context = papers.client_context("alice")
    client, _ = stage.greeted(tls=context)
    assert isinstance(client.sock, ssl.SSLSocket)
    session = client.sock.session
    later = time.time() + 2 * 86400
    monkeypatch.setattr(tls_module, "time", SimpleNamespace(time=lambda: later))
    with (
        socket.create_connection(("127.0.0.1", stage.running.port("main")), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="localhost", session=session) as sock,
    ):
        assert sock.session_reused
        sock.sendall(amqp.PROTOCOL_HEADER)
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            assert sock.recv(1) == b""
    eventually(lambda: stage.running.outcomes() == {"handshake_failed": 1})
