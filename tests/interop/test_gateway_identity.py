"""Who is judged where the broker is told another user: the client, in every combination."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import attrs
import pika
import pika.exceptions
import pytest

from tests.interop.brokers import running, value
from tests.support.audit import records, setting
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.rabbitmq import RabbitMQ

VHOST = "identity"
USERS = {"shop-web": "secret of shop-web", "mirror-u": "secret of mirror-u"}

#: Both upstreams are the same broker; `mirror` logs in as `mirror-u`.
CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}", upstream: {own}}}]
upstreams:
- {{name: main, url: "amqp://{address}"}}
- {{name: mirror, url: "amqp://{address}", user: mirror-u, password: secret of mirror-u}}
- {{name: lost, url: "amqp://127.0.0.1:1", connectTimeout: 1s}}
policies: {policies}
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
{more}
"""
SHOP = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: shop-web}
spec:
  subjects: [{user: shop-web}]
  onDeny: {publish: nack}
  rules:
  - {id: orders, effect: allow, operations: [basic.publish], exchange: {literal: amq.topic}}
  - {id: no-refunds, effect: deny, operations: [basic.publish], routingKey: {topic: "#.refunded"}}
---
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: shop-web}
spec:
  subjects: [{user: shop-web}]
  limits:
  - {id: together, concurrent: 60, per: [user], action: reject}
"""
ROUTE = """
---
apiVersion: amqpgate.io/v1alpha1
kind: RoutePolicy
metadata: {name: routes}
spec:
  routes:
  - {id: r, match: {MATCH}, upstream: {UPSTREAM}}
"""
WEIGHTED = "clusters: [{cluster: main, weight: 1}, {cluster: mirror, weight: 1}]"


@attrs.frozen
class Shop:
    """A broker with both users, and a folder for policies."""

    rabbitmq: RabbitMQ
    folder: Path

    @contextlib.contextmanager
    def gateway(
        self,
        upstream: str | None,
        *,
        match: str = "",
        own: str = "main",
        policies: str = SHOP,
        more: str = "",
    ) -> Iterator[Gateway]:
        """A gateway with one route; without ``upstream``, with none."""
        if upstream is not None:
            policies += ROUTE.replace("MATCH", match).replace("UPSTREAM", upstream)
        (self.folder / "policies.yaml").write_text(policies)
        config = CONFIG.format(address=self.rabbitmq.address, policies=self.folder, own=own, more=more)
        with running(config) as gateway:
            yield gateway


@pytest.fixture(scope="module")
def broker(rabbitmq: RabbitMQ) -> RabbitMQ:
    rabbitmq.fresh_vhost(VHOST)
    for user, password in USERS.items():
        rabbitmq.add_user(user, password, vhost=VHOST)
    return rabbitmq


@pytest.fixture
def shop(broker: RabbitMQ, tmp_path: Path) -> Shop:
    folder = tmp_path / "policies"
    folder.mkdir()
    return Shop(broker, folder)


@contextlib.contextmanager
def client(
    gateway: Gateway, user: str = "shop-web", password: str | None = None
) -> Iterator[pika.BlockingConnection]:
    login = pika.PlainCredentials(user, USERS.get(user, "x") if password is None else password)
    parameters = pika.ConnectionParameters("127.0.0.1", gateway.port, VHOST, login)
    with contextlib.closing(pika.BlockingConnection(parameters)) as connection:
        yield connection


def may_publish(connection: pika.BlockingConnection, key: str) -> bool:
    """Whether the message was taken. A policy says no by a nack, or by closing the channel."""
    channel = connection.channel()
    channel.confirm_delivery()
    try:
        channel.basic_publish("amq.topic", key, b"x")
    except (pika.exceptions.NackError, pika.exceptions.ChannelClosedByBroker):
        return False
    return True


def who(gateway: Gateway) -> list[tuple[str | None, str | None, str]]:
    """User, upstream user and upstream of each session."""
    rows = json.loads(gateway.get("/sessions")[1])["sessions"]
    return [(row["user"], row["upstream_user"], row["upstream"]) for row in rows]


def test_a_weighted_route_to_another_login_lets_no_refund_through(shop: Shop, tmp_path: Path) -> None:
    """Fifty connections of `shop-web`, half of them as `mirror-u`: fifty refunds denied."""
    audit = tmp_path / "audit"
    with shop.gateway(WEIGHTED, more=setting(audit, 0.2)) as gateway, contextlib.ExitStack() as open_:
        clients = [open_.enter_context(client(gateway)) for _ in range(50)]
        assert [may_publish(one, "eu.refunded") for one in clients] == [False] * 50
        assert [may_publish(one, "eu.created") for one in clients] == [True] * 50
        denied = value(gateway, "amqpgate_denials_total", policy="shop-web", rule="no-refunds")
        assert denied == 50
        found = who(gateway)
        assert len(found) == 50
        assert set(found) == {("shop-web", "shop-web", "main"), ("shop-web", "mirror-u", "mirror")}
        edges = json.loads(gateway.get("/graph")[1])["edges"]
        (edge,) = [edge for edge in edges if edge["kind"] == "publishes"]
        assert edge["source"]["name"] == "shop-web"
        assert edge["upstream_users"] == ["mirror-u"]
    usage = records(audit, "usage")
    assert {(one["user"], one["upstream_user"]) for one in usage} == {
        ("shop-web", "shop-web"),
        ("shop-web", "mirror-u"),
    }


def test_limits_count_the_client_whatever_its_login_is_there(shop: Shop) -> None:
    with (
        shop.gateway(WEIGHTED, policies=SHOP.replace("60", "5")) as gateway,
        contextlib.ExitStack() as open_,
    ):
        for _ in range(5):
            open_.enter_context(client(gateway))
        with pytest.raises(pika.exceptions.AMQPConnectionError, match="connection limit"):
            open_.enter_context(client(gateway))


@pytest.mark.parametrize("match", ["", "vhosts: [identity]"])
def test_a_name_that_nobody_confirms_is_nobodys(shop: Shop, match: str) -> None:
    """Where `mirror` is all there is, `main` is asked; who has the wrong password is not known."""
    with shop.gateway("cluster: mirror", match=match) as gateway:
        with client(gateway) as known:
            assert who(gateway) == [("shop-web", "mirror-u", "mirror")]
            assert may_publish(known, "eu.created")
            assert not may_publish(known, "eu.refunded")
        eventually(lambda: not who(gateway))
        for user in ("shop-web", "admin"):
            with client(gateway, user, "wrong") as unknown:
                assert who(gateway) == [(None, "mirror-u", "mirror")]
                # What any user is denied, it is; what a user by name may do, it may not.
                assert not may_publish(unknown, "eu.refunded")
                assert not may_publish(unknown, "eu.created")
            eventually(lambda: not who(gateway))


def test_who_has_been_confirmed_is_not_asked_about_again(shop: Shop) -> None:
    with shop.gateway("cluster: mirror") as gateway:
        for _ in range(3):
            with client(gateway):
                assert who(gateway) == [("shop-web", "mirror-u", "mirror")]
            eventually(lambda: not who(gateway))
        assert value(gateway, "amqpgate_upstream_dials_total", upstream="main", outcome="connected") == 1


def test_where_nobody_can_be_asked_the_name_is_not_known(shop: Shop) -> None:
    with shop.gateway("cluster: mirror", own="lost") as gateway, client(gateway) as unknown:
        assert who(gateway) == [(None, "mirror-u", "mirror")]
        assert not may_publish(unknown, "eu.created")


def test_a_client_that_proves_nothing_is_the_user_of_its_listeners_upstream(shop: Shop) -> None:
    """Whatever it says: a name of somebody else's opens and closes nothing."""
    policies = SHOP.replace("{user: shop-web}", "{user: mirror-u}")
    with shop.gateway(None, own="mirror", policies=policies) as gateway:
        for user in ("shop-web", "admin"):
            with client(gateway, user, "whatever") as connection:
                assert who(gateway) == [("mirror-u", "mirror-u", "mirror")]
                assert may_publish(connection, "eu.created")
                assert not may_publish(connection, "eu.refunded")
            eventually(lambda: not who(gateway))


def test_whom_no_policy_selects_may_do_nothing_where_the_default_is_to_deny(
    shop: Shop, tmp_path: Path
) -> None:
    audit = tmp_path / "audit"
    more = f"defaultAccess: deny\n{setting(audit, 0.2)}"
    with shop.gateway(None, more=more) as gateway:
        for _ in range(2):
            with pytest.raises(pika.exceptions.AMQPConnectionError, match=r"530.*access to vhost"):
                client(gateway, "mirror-u").__enter__()
        with client(gateway) as selected:
            assert may_publish(selected, "eu.created")
        assert value(gateway, "amqpgate_denials_total", policy="", rule="defaultAccess") == 2
        assert value(gateway, "amqpgate_unselected_sessions_total") == 2
        assert value(gateway, "amqpgate_policy_sessions_total", kind="AccessPolicy", policy="shop-web") == 1
        told = json.loads(gateway.get("/policies")[1])
        assert (told["default_access"], told["unselected"]["hits"]) == ("deny", 2)
        assert [policy["sessions"] for policy in told["policies"]] == [1, 1]
        (last, *_) = json.loads(gateway.get("/decisions")[1])["decisions"]
        assert (last["policy"], last["rule"]) == (None, "defaultAccess")
        assert "so users whom no access policy selects may do nothing" in gateway.child.output()
        assert "of 2 policies 2 select nobody seen so far" in gateway.child.output()
        gateway.child.signal(signal.SIGHUP)
        eventually(lambda: "2 in force, 0 of which select nobody seen so far" in gateway.child.output())
    denied = [one for one in records(audit, "events") if one["kind"] == "denied"]
    assert {(one["policy"], one["rule"], one["user"]) for one in denied} == {
        (None, "defaultAccess", "mirror-u")
    }


@pytest.mark.parametrize("own", ["main", "mirror"])
def test_shared_links(shop: Shop, own: str) -> None:
    """Pooled: the link is `mirror-u`'s, the client who it is."""
    route = WEIGHTED if own == "mirror" else "cluster: mirror"
    with (
        shop.gateway(f"{route}, connections: pooled", own=own) as gateway,
        contextlib.ExitStack() as open_,
    ):
        clients = [open_.enter_context(client(gateway)) for _ in range(10)]
        assert ("shop-web", "mirror-u", "mirror") in who(gateway)
        assert {user for user, _, _ in who(gateway)} == {"shop-web"}
        assert not any(may_publish(one, "eu.refunded") for one in clients)
        assert all(may_publish(one, "eu.created") for one in clients)
