"""Routes on two real brokers: who ends up where, as whom, and what the client hears when it may not."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest

from amqpgate.protocol.sasl import amqplain_response, plain_response
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.interop.brokers import dials, value
from tests.interop.pair import GREEN, Pair, colour, make_pair, parameters, routed, where, write
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually
from tests.support.ports import free_port
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import CAPABILITIES, Gone, Talker


@pytest.fixture(scope="module")
def pair(rabbitmq: RabbitMQ) -> Iterator[Pair]:
    yield from make_pair(rabbitmq)


def test_by_vhost(pair: Pair, tmp_path: Path) -> None:
    with routed(pair, tmp_path, f"match: {{vhosts: [shop]}}, {GREEN}") as gateway:
        assert [where(gateway, vhost=vhost) for vhost in ("/", "shop", "/")] == ["blue", "green", "blue"]
        assert value(gateway, "amqpgate_route_choices_total", route="r0", upstream="green") == 1


def test_by_user(pair: Pair, tmp_path: Path) -> None:
    with routed(pair, tmp_path, f"match: {{user: 'bat*'}}, {GREEN}") as gateway:
        assert where(gateway) == "blue"
        assert where(gateway, user="batch", password="secret of batch", vhost="shop") == "green"


def test_by_client_property(pair: Pair, tmp_path: Path) -> None:
    with routed(pair, tmp_path, f"match: {{client: {{product: 'shop-*'}}}}, {GREEN}") as gateway:
        assert [where(gateway, product=product) for product in ("shop-1", "desk-1")] == ["green", "blue"]


def test_by_source_the_brokers_own_start_is_relayed(pair: Pair, tmp_path: Path) -> None:
    """Nothing has to be known of the client: nothing is answered for the broker."""
    with (
        routed(pair, tmp_path, f"match: {{sourceCIDR: [127.0.0.0/8]}}, {GREEN}") as gateway,
        Talker.dial(gateway.port) as client,
    ):
        client.raw(amqp.PROTOCOL_HEADER)
        start = client.expect(amqp.ConnectionStart)
        assert str(start.server_properties.get("cluster_name")).startswith(pair.green.node.partition("@")[0])
        assert where(gateway) == "green"


def test_what_is_offered_is_what_all_that_may_be_chosen_offer(pair: Pair, tmp_path: Path) -> None:
    with (
        routed(pair, tmp_path, f"match: {{vhosts: [shop]}}, {GREEN}") as gateway,
        Talker.dial(pair.blue.port) as direct,
        Talker.dial(gateway.port) as client,
    ):
        for talker in (direct, client):
            talker.raw(amqp.PROTOCOL_HEADER)
        theirs, ours = (talker.expect(amqp.ConnectionStart) for talker in (direct, client))
        assert sorted(ours.mechanisms.split()) == sorted(theirs.mechanisms.split()) == [b"AMQPLAIN", b"PLAIN"]
        assert ours.server_properties.get("capabilities") == theirs.server_properties.get("capabilities")
        assert ours.server_properties.get("product") == "RabbitMQ"
        assert "cluster_name" not in ours.server_properties


def test_amqplain_and_limits_of_ones_own(pair: Pair, tmp_path: Path) -> None:
    """Tune is agreed with the client before there is a broker; bodies are cut for each."""
    with (
        routed(pair, tmp_path, f"match: {{vhosts: [shop]}}, {GREEN}") as gateway,
        Talker.dial(gateway.port) as client,
    ):
        client.raw(amqp.PROTOCOL_HEADER)
        client.expect(amqp.ConnectionStart)
        login = amqp.ConnectionStartOk(CAPABILITIES, "AMQPLAIN", amqplain_response("guest", "guest"), "en_US")
        tune = client.ask(login, amqp.ConnectionTune)
        assert (tune.frame_max, tune.channel_max, tune.heartbeat) == (131072, 2047, 60)
        client.say(amqp.ConnectionTuneOk(7, 8192, 0))
        client.ask(amqp.ConnectionOpen("shop"), amqp.ConnectionOpenOk)
        client.frame_max = 8192
        client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, 1)
        queue = client.ask(amqp.QueueDeclare(exclusive=True), amqp.QueueDeclareOk, 1).queue
        body = bytes(range(256)) * 200
        client.publish(body, queue)
        client.say(amqp.BasicGet(queue=queue, no_ack=True), 1)
        message = client.expect_content(amqp.BasicGetOk)
        assert message.body == body
        assert message.largest <= 8192
        client.bye()


# -- rewriting


def test_vhost_user_and_password_are_rewritten(pair: Pair, tmp_path: Path) -> None:
    """Whoever says to be `nobody` is `batch` in `shop` there; the password is read at every login."""
    secret = tmp_path / "secret"
    secret.write_text("secret of batch\n")
    route = f"cluster: green, vhost: shop, user: batch, passwordFile: {secret}"
    with routed(pair, tmp_path, f"match: {{user: nobody}}, upstream: {{{route}}}") as gateway:
        nobody = parameters(gateway.port, user="nobody", password="x")
        with contextlib.closing(pika.BlockingConnection(nobody)) as connection:
            assert colour(connection) == "green"
            (row,) = [row for row in pair.green.connections() if row["user"] == "batch"]
            assert row["vhost"] == "shop"
        secret.write_text("another\n")
        assert "ACCESS_REFUSED" in refused(gateway, "nobody", "x", "/").reply_text
        secret.write_text("secret of batch")
        assert where(gateway, user="nobody", password="y") == "green"


@pytest.mark.parametrize("match", ["{user: guest}", "{listeners: [main]}"])
def test_a_password_that_cannot_be_read(pair: Pair, tmp_path: Path, match: str) -> None:
    """The client is not told where files are."""
    secret = tmp_path / "secret"
    secret.write_text("guest")
    route = f"match: {match}, upstream: {{cluster: green, user: guest, passwordFile: {secret}}}"
    with routed(pair, tmp_path, route) as gateway:
        assert where(gateway, password="is not looked at") == "green"
        secret.unlink()
        with pytest.raises(pika.exceptions.AMQPConnectionError) as refusal:
            where(gateway)
        assert "320" in str(refusal.value)
        assert str(tmp_path) not in str(refusal.value)
        secret.write_text("guest")
        assert where(gateway) == "green"


def test_what_is_only_for_show_is_counted(pair: Pair, tmp_path: Path) -> None:
    route = f"match: {{user: guest}}, {GREEN}"
    with routed(pair, tmp_path, route, more="mode: shadow") as gateway:
        assert where(gateway) == "blue"
        assert value(gateway, "amqpgate_route_choices_total", mode="shadow", upstream="green") == 1
        assert value(gateway, "amqpgate_route_choices_total", mode="enforce") == 0


# -- refusals


def refused(
    gateway: Gateway, user: str, password: str, vhost: str, *, properties: Table = CAPABILITIES
) -> amqp.ConnectionClose:
    """What a client hears in the place of open-ok."""
    with Talker.dial(gateway.port) as client:
        client.raw(amqp.PROTOCOL_HEADER)
        client.expect(amqp.ConnectionStart)
        login = amqp.ConnectionStartOk(properties, "PLAIN", plain_response(user, password), "en_US")
        tune = client.ask(login, amqp.ConnectionTune)
        client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0))
        close = client.ask(amqp.ConnectionOpen(vhost), amqp.ConnectionClose)
        client.say(amqp.ConnectionCloseOk())
        client.expect_end()
        return close


@pytest.mark.parametrize("told", [True, False])
def test_a_wrong_password(pair: Pair, tmp_path: Path, told: bool) -> None:
    """RabbitMQ's words, also for a client to which RabbitMQ itself would only hang up."""
    properties = CAPABILITIES if told else Table.of({"product": "old"})
    with routed(pair, tmp_path, f"match: {{vhosts: [shop]}}, {GREEN}") as gateway:
        close = refused(gateway, "guest", "wrong", "shop", properties=properties)
        assert (close.reply_code, close.reply_text) == (
            403,
            "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. "
            "For details see the broker logfile.",
        )
        assert dials(gateway, pair.green.address, "connected") == 1, "a refusal is not tried again"


def test_a_missing_vhost(pair: Pair, tmp_path: Path) -> None:
    with routed(pair, tmp_path, f"match: {{vhosts: [none]}}, {GREEN}") as gateway:
        close = refused(gateway, "guest", "guest", "none")
        assert (close.reply_code, close.class_id, close.method_id) == (530, 10, 40)
        assert close.reply_text == "NOT_ALLOWED - vhost none not found"


def test_a_mechanism_with_challenges(pair: Pair, tmp_path: Path) -> None:
    with (
        routed(pair, tmp_path, f"match: {{vhosts: [shop]}}, {GREEN}") as gateway,
        Talker.dial(gateway.port) as client,
    ):
        client.raw(amqp.PROTOCOL_HEADER)
        client.expect(amqp.ConnectionStart)
        login = amqp.ConnectionStartOk(CAPABILITIES, "RABBIT-CR-DEMO", b"guest", "en_US")
        # It was not offered: RabbitMQ hangs up without a word then. The log has the reason.
        client.say(login)
        with pytest.raises(Gone):
            client.hear()
        eventually(lambda: "use PLAIN or AMQPLAIN" in gateway.child.output())


# -- failover and reload


def test_a_broker_that_is_gone_is_passed_over(pair: Pair, tmp_path: Path) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    greens = f'{{address: "{nobody}"}}, {{address: "{pair.green.address}"}}'
    with routed(pair, tmp_path, f"match: {{vhosts: [shop]}}, {GREEN}", greens=greens) as gateway:
        assert where(gateway, vhost="shop") == "green"
        assert dials(gateway, nobody, "failed") == 1


def test_no_broker_at_all(pair: Pair, tmp_path: Path) -> None:
    greens = f'{{address: "127.0.0.1:{free_port()}"}}'
    with routed(pair, tmp_path, f"match: {{vhosts: [shop]}}, {GREEN}", greens=greens) as gateway:
        close = refused(gateway, "guest", "guest", "shop")
        assert close.reply_code == 320
        assert "cannot connect to upstream" in close.reply_text
        assert where(gateway) == "blue"


def test_new_routes_hold_for_new_connections(pair: Pair, tmp_path: Path) -> None:
    with routed(pair, tmp_path, f"match: {{vhosts: [none]}}, {GREEN}") as gateway:
        staying = pika.BlockingConnection(parameters(gateway.port))
        write(tmp_path / "policies", f"match: {{vhosts: [/]}}, {GREEN}")
        gateway.child.signal(signal.SIGHUP)
        eventually(lambda: value(gateway, "amqpgate_policy_reloads_total", outcome="done") == 1)
        assert where(gateway) == "green"
        assert colour(staying) == "blue"
        staying.close()
        # A route to where nothing is changes nothing.
        write(tmp_path / "policies", "match: {vhosts: [/]}, upstream: {cluster: red}")
        gateway.child.signal(signal.SIGHUP)
        eventually(lambda: value(gateway, "amqpgate_policy_reloads_total", outcome="refused") == 1)
        assert where(gateway) == "green"
