"""Tokens of a real issuer, verified by the gateway and again by RabbitMQ's own OAuth 2 backend."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import attrs
import jwt
import pika
import pika.exceptions
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.audit import records, setting
from tests.support.client_0_10 import Client010, Closed
from tests.support.inprocess import InProcess, eventually, serving
from tests.support.oidc import AUDIENCE, OidcProvider, oidc_provider
from tests.support.rabbitmq import RabbitMQ
from tests.support.rabbitmq_root import root_of_4

SCOPES = " ".join(f"rabbitmq.{what}:*/*" for what in ("read", "write", "configure"))
SETTINGS = """
listeners:
- {{name: main, bind: "127.0.0.1:0", oauth: {oauth}}}
- {{name: unverified, bind: "127.0.0.1:0"}}
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}{upstream}}}]
policies: policies
watchPolicies: false
{more}
"""
BOB = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: bob}
spec:
  subjects: [{user: bob}]
  rules: [{id: own, effect: allow, operations: ["queue.*", "basic.*"], queue: {prefix: bob.}}]
---
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: billing}
spec:
  subjects: [{groups: [billing]}]
  rules: [{id: bills, effect: allow, operations: ["queue.*"], queue: {literal: bills}}]
"""


@attrs.frozen
class Site:
    """A broker that takes the tokens of an issuer, and a folder."""

    rabbitmq: RabbitMQ
    issuer: OidcProvider
    folder: Path

    @contextlib.contextmanager
    def gateway(
        self, policies: str = BOB, *, oauth: str = "", upstream: str = "", more: str = ""
    ) -> Iterator[InProcess]:
        (self.folder / "policies").mkdir(exist_ok=True)
        (self.folder / "policies" / "policies.yaml").write_text(policies)
        said = f"{{issuer: '{self.issuer.issuer}', audience: [{AUDIENCE}], clockSkew: 0s{oauth}}}"
        text = SETTINGS.format(oauth=said, port=self.rabbitmq.port, upstream=upstream, more=more)
        with serving(text, folder=self.folder) as running:
            yield running


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcProvider]:
    with oidc_provider(tmp_path_factory.mktemp("issuer")) as provider:
        provider.set_user("bob", {"scope": SCOPES, "groups": ["staff"]})
        provider.set_user("alice", {"scope": SCOPES, "groups": ["billing"]})
        yield provider


@contextlib.contextmanager
def broker_of(issuer: OidcProvider, folder: Path, root: Path | None) -> Iterator[RabbitMQ]:
    """A node whose passwords are the issuer's tokens."""
    keys = issuer.get("/jwks")["keys"]
    assert isinstance(keys, list)
    key = jwt.PyJWK(keys[0])
    pem = folder / "issuer.pem"
    pem.write_bytes(key.key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    folder.chmod(0o755)
    config = [
        "auth_backends.1 = rabbit_auth_backend_oauth2",
        "auth_backends.2 = internal",
        f"auth_oauth2.resource_server_id = {AUDIENCE}",
        f"auth_oauth2.default_key = {key.key_id}",
        f"auth_oauth2.signing_keys.{key.key_id} = {pem}",
    ]
    node = RabbitMQ(plugins=["rabbitmq_auth_backend_oauth2"], config=config, root=root)
    try:
        node.start()
        yield node
    finally:
        node.destroy()


@pytest.fixture(scope="module", params=["3", pytest.param("4", marks=pytest.mark.slow)])
def broker(
    request: pytest.FixtureRequest, issuer: OidcProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RabbitMQ]:
    root = root_of_4() if request.param == "4" else None
    with broker_of(issuer, tmp_path_factory.mktemp("broker"), root) as node:
        yield node


@pytest.fixture
def site(broker: RabbitMQ, issuer: OidcProvider, tmp_path: Path) -> Site:
    return Site(broker, issuer, tmp_path)


@contextlib.contextmanager
def client(
    running: InProcess, token: str, user: str = "admin", listener: str = "main"
) -> Iterator[pika.BlockingConnection]:
    login = pika.PlainCredentials(user, token)
    parameters = pika.ConnectionParameters("127.0.0.1", running.port(listener), "/", login)
    with contextlib.closing(pika.BlockingConnection(parameters)) as connection:
        yield connection
        if not connection.is_open:
            connection.close = lambda *_: None  # type: ignore[method-assign]  # it is over


def may_declare(connection: pika.BlockingConnection, queue: str) -> bool:
    """Whether the client may, by the gateway's policies and by the broker."""
    channel = connection.channel()
    try:
        channel.queue_declare(queue, durable=True)
    except pika.exceptions.ChannelClosedByBroker:
        return False
    channel.queue_delete(queue)
    channel.close()
    return True


def users(running: InProcess) -> list[str | None]:
    return running.call(lambda: [one.principal.user for one in running.gateway.sessions.values()])


@pytest.mark.parametrize("connections", ["own", "pooled"])
def test_the_token_says_who_it_is_to_both(site: Site, connections: str) -> None:
    with site.gateway(upstream=f", connections: {connections}") as running:
        with client(running, site.issuer.token("bob"), "alice") as connection:
            assert users(running) == ["bob"]
            # What the broker shows, whatever was said beside the token.
            (shown,) = {row["user"] for row in site.rabbitmq.connections()}
            assert shown == "bob"
            assert may_declare(connection, "bob.1")
            assert not may_declare(connection, "bills")
        with client(running, site.issuer.token("alice"), "bob") as connection:
            assert may_declare(connection, "bills")
            assert not may_declare(connection, "bob.1")


def test_where_nobody_verifies_it_any_name_will_do(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """The reason for all of this: RabbitMQ takes the token, and policies took the name beside it."""
    caplog.set_level(logging.WARNING)
    with (
        site.gateway() as running,
        client(running, site.issuer.token("alice"), "bob", "unverified") as connection,
    ):
        assert users(running) == ["bob"]
        assert may_declare(connection, "bob.1")
    assert caplog.text.count("there is no identity.oauth") == 1


def test_the_broker_judges_the_token_as_well(site: Site) -> None:
    """Whatever the gateway's policies allow: its scopes are RabbitMQ's permissions."""
    site.issuer.set_user("reader", {"scope": "rabbitmq.read:*/*"})
    with site.gateway() as running, client(running, site.issuer.token("reader")) as connection:
        assert not may_declare(connection, "anything")


def test_whom_neither_takes(site: Site) -> None:
    with site.gateway() as running:
        token = site.issuer.token("bob")
        forged = token[:-8] + ("AAAAAAA=" if token[-8:] != "AAAAAAA=" else "BBBBBBB=")[:8].replace("=", "A")
        for password in (forged, site.issuer.token("bob", "another"), "guest", ""):
            with pytest.raises(pika.exceptions.ProbableAuthenticationError), client(running, password):
                pass
        with client(running, token):
            assert users(running) == ["bob"]


def test_a_wrong_token_is_an_event(site: Site) -> None:
    """Whom it claims to be, and why not, and nothing of the token."""
    audit, token = site.folder / "audit", site.issuer.token("bob", "another")
    with (
        site.gateway(more=setting(audit, 0.2)) as running,
        pytest.raises(pika.exceptions.ProbableAuthenticationError),
        client(running, token, "eve"),
    ):
        pass
    (refused,) = [one for one in records(audit, "events") if one["kind"] == "session.refused"]
    assert (refused["user"], refused["listener"], refused["reply_code"]) == ("eve", "main", 403)
    assert "aud" in str(refused["reason"])
    assert not any(part in str(refused) for part in token.split("."))


@pytest.mark.parametrize("connections", ["own", "pooled"])
def test_a_token_is_renewed(site: Site, connections: str) -> None:
    """The broker hears of it, too, on a connection of the session's own."""
    with (
        site.gateway(upstream=f", connections: {connections}") as running,
        client(running, site.issuer.token("bob")) as connection,
    ):
        site.issuer.set_user("bob", {"scope": SCOPES, "groups": ["billing"]})
        try:
            assert not may_declare(connection, "bills")
            connection.update_secret(site.issuer.token("bob"), "expires")
            assert may_declare(connection, "bills")
            assert may_declare(connection, "bob.1")
        finally:
            site.issuer.set_user("bob", {"scope": SCOPES, "groups": ["staff"]})
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            connection.update_secret(site.issuer.token("alice"), "somebody else")
        assert closed.value.reply_code == 530


def test_its_end_ends_the_session(broker: RabbitMQ, issuer: OidcProvider, tmp_path: Path) -> None:
    """With its code, and at the time that it says; an own issuer, whose tokens hold for some seconds."""
    with oidc_provider(tmp_path, max_age=6) as short:
        short.set_user("bob", {"scope": SCOPES})
        site = Site(broker, short, tmp_path)
        # The broker does not know that issuer: the gateway logs in.
        with (
            site.gateway(upstream=", user: guest, password: guest") as running,
            client(running, short.token("bob")) as connection,
        ):
            assert may_declare(connection, "bob.1")
            connection.update_secret(short.token("bob"), "again")
            with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
                connection.process_data_events(time_limit=30)
            assert closed.value.reply_code == 320
            assert "credential expired" in closed.value.reply_text


def test_an_issuer_changes_its_keys(broker: RabbitMQ, tmp_path: Path) -> None:
    with oidc_provider(tmp_path) as provider:
        site = Site(broker, provider, tmp_path)
        with site.gateway(upstream=", user: guest, password: guest") as running:
            before = provider.token("bob")
            with client(running, before):
                assert users(running) == ["bob"]
            provider.stop()
            # The keys hold while the issuer is away.
            with client(running, before):
                pass
            provider.start()
            with client(running, provider.token("bob")):
                assert users(running) == ["bob"]
            with pytest.raises(pika.exceptions.ProbableAuthenticationError), client(running, before):
                pass


def test_clients_of_0_10(site: Site) -> None:
    with site.gateway() as running:
        token = site.issuer.token("bob")
        with Client010.opened(running.port(), vhost="/", user="admin", password=token) as connection:
            session = connection.session()
            eventually(lambda: users(running) == ["bob"])
            session.declare("bob.0-10", auto_delete=True)
            session.detach()
            connection.end()
        with pytest.raises(Closed, match="Login was refused"):
            Client010.opened(running.port(), vhost="/", user="bob", password=token + "A")


def test_what_operators_see(site: Site) -> None:
    """Who it is and until when, and no word of the token."""
    from amqpgate.operator.session_detail import session as detail

    with site.gateway() as running, client(running, site.issuer.token("alice"), "bob"):
        (name,) = running.call(lambda: list(running.gateway.sessions))
        shown = running.ask(lambda: detail(running.gateway, {"id": name}))
        assert isinstance(shown, dict)
        assert (shown["user"], shown["groups"]) == ("alice", ["billing"])
        token = shown["token"]
        assert isinstance(token, dict)
        assert (token["issuer"], token["scopes"]) == (site.issuer.issuer, sorted(SCOPES.split()))
        assert "eyJ" not in json.dumps(shown)
