"""Logging in through the gateway: what the broker learns of the client, and the client of the broker."""

from __future__ import annotations

import contextlib
import functools
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from amqpgate.protocol.sasl import amqplain_response, plain_response
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.interop.conftest import Answers
from tests.support.gateway import Gateway
from tests.support.inprocess import eventually, serving
from tests.support.rabbitmq import RabbitMQ
from tests.support.routes import Route
from tests.support.talker import CAPABILITIES, Gone, Talker, Unexpected

SILENT = Table.of({"product": "talker"})


def seen(rabbitmq: RabbitMQ, mark: str) -> dict[str, object]:
    """The row of the connection whose client property `mark` is that."""
    rows = [row for row in rabbitmq.connections() if row["client_properties"].get("mark") == mark]  # type: ignore[attr-defined]
    assert len(rows) == 1
    return rows[0]


PROPERTIES = {
    "product": "talker",
    "version": "7.1",
    "platform": "naïve ☂",
    "number": 5_000_000_000,
    "small": -3,
    "yes": True,
    "nothing": None,
    "ratio": 0.5,
    "when": datetime(2024, 5, 6, tzinfo=UTC),
    "list": [1, "two", {"three": 3}],
    "capabilities": {"publisher_confirms": True, "authentication_failure_close": True},
    "connection_name": "name: 1",
}


def test_the_brokers_list_shows_who_it_is(rabbitmq: RabbitMQ, gateway: Gateway) -> None:
    rows = []
    for port in (rabbitmq.port, gateway.port):
        mark = secrets.token_hex(8)
        with Talker.dial(port) as client:
            client.open(properties=Table.of({**PROPERTIES, "mark": mark}))
            row = seen(rabbitmq, mark)
            properties = row["client_properties"]
            assert isinstance(properties, dict)
            assert properties.pop("mark") == mark
            entry = properties.pop("amqpgate", None)
            if port == gateway.port:
                host, own_port = client.sock.getsockname()
                assert entry["client_address"] == f"{host}:{own_port}"
                assert set(entry) == {"client_address", "session", "version"}
            client.bye()
        rows.append({key: row[key] for key in ("user", "vhost", "client_properties")})
    assert rows[0] == rows[1]


def test_the_server_and_its_offer_are_the_brokers_own(rabbitmq: RabbitMQ, gateway: Gateway) -> None:
    offers = []
    for port in (rabbitmq.port, gateway.port):
        with Talker.dial(port) as client:
            client.raw(amqp.PROTOCOL_HEADER)
            start = client.frame()
            client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US"))
            offers.append((start, client.frame()))
    assert offers[0] == offers[1]
    start = decode_method(offers[0][0].payload)
    assert isinstance(start, amqp.ConnectionStart)
    assert set(start.mechanisms.split()) >= {b"PLAIN", b"AMQPLAIN"}
    assert start.server_properties.get("product") == "RabbitMQ"


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN"])
def test_mechanisms(route: Route, mechanism: str) -> None:
    respond = plain_response if mechanism == "PLAIN" else amqplain_response
    with Talker.dial(route.port) as client:
        client.raw(amqp.PROTOCOL_HEADER)
        client.expect(amqp.ConnectionStart)
        client.say(amqp.ConnectionStartOk(CAPABILITIES, mechanism, respond("guest", "guest"), "en_US"))
        tune = client.expect(amqp.ConnectionTune)
        client.say(amqp.ConnectionTuneOk(tune.channel_max, tune.frame_max, tune.heartbeat))
        client.ask(amqp.ConnectionOpen("/"), amqp.ConnectionOpenOk)
        client.bye()


# -- refusals ------------------------------------------------------------------------------------------------

Opening = Callable[[Talker], None]


def opening(**options: object) -> Opening:
    return lambda client: client.open(**options) and None  # type: ignore[arg-type, func-returns-value]


def logging_in(mechanism: str, response: bytes) -> Opening:
    def play(client: Talker) -> None:
        client.raw(amqp.PROTOCOL_HEADER)
        client.expect(amqp.ConnectionStart)
        client.say(amqp.ConnectionStartOk(CAPABILITIES, mechanism, response, "en_US"))
        client.expect(amqp.ConnectionTune)

    return play


REFUSED: dict[str, Opening] = {
    "wrong password": opening(password="wrong"),
    "wrong password, and the client cannot be told": opening(password="wrong", properties=SILENT),
    "unknown user": opening(user="nobody"),
    "unknown vhost": opening(vhost="nowhere"),
    "unknown mechanism": logging_in("X-NEW", b""),
    "malformed PLAIN": logging_in("PLAIN", b"guest\0guest"),
    "malformed AMQPLAIN": logging_in("AMQPLAIN", b"\x05LOGIN"),
}


def refusal(port: int, play: Opening) -> list[Method | str]:
    """What a client hears after start instead of what it expects, and then."""
    told: list[Method | str] = []

    def listening(hear: Callable[[], tuple[int, Method]]) -> tuple[int, Method]:
        channel, method = hear()
        told.append(method)
        return channel, method

    with Talker.dial(port) as client:
        client.hear = functools.partial(listening, client.hear)  # type: ignore[method-assign]
        with contextlib.suppress(Gone, Unexpected):
            play(client)
            raise AssertionError("it was not refused")
        if isinstance(told[-1], amqp.ConnectionClose):
            client.say(amqp.ConnectionCloseOk())
        # RabbitMQ ends some of these with a reset.
        assert not list(client.all())
    return [*told[1:], "the end"]


@pytest.fixture(scope="module")
def refusals(rabbitmq: RabbitMQ, gateway: Gateway) -> dict[tuple[str, str], list[Method | str]]:
    """All at once, since RabbitMQ lets some wait for three seconds."""
    with ThreadPoolExecutor(2 * len(REFUSED)) as threads:
        asked = {
            (way, name): threads.submit(refusal, port, play)
            for way, port in (("direct", rabbitmq.port), ("gateway", gateway.port))
            for name, play in REFUSED.items()
        }
        return {key: future.result() for key, future in asked.items()}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_the_same_directly_and_through_the_gateway(
    refusals: dict[tuple[str, str], list[Method | str]], name: str
) -> None:
    direct = refusals["direct", name]
    codes = [method.reply_code for method in direct if isinstance(method, amqp.ConnectionClose)]
    assert codes == {"wrong password": [403], "unknown user": [403], "unknown vhost": [530]}.get(name, [])
    assert refusals["gateway", name] == direct


def test_a_vhost_without_access_and_one_that_is_down(rabbitmq: RabbitMQ, gateway: Gateway) -> None:
    rabbitmq.fresh_vhost("closed-to-all")
    rabbitmq.eval(
        'rabbit_auth_backend_internal:put_user(#{name => <<"stranger">>, password => <<"secret">>,'
        ' tags => <<>>}, <<"test">>).'
    )
    no_access = opening(vhost="closed-to-all", user="stranger", password="secret")
    codes = []
    for play in (no_access, opening(vhost="closed-to-all")):
        if play is not no_access:
            rabbitmq.eval('rabbit_vhost_sup_sup:stop_and_delete_vhost(<<"closed-to-all">>).')
        direct = refusal(rabbitmq.port, play)
        codes += [method.reply_code for method in direct if isinstance(method, amqp.ConnectionClose)]
        assert refusal(gateway.port, play) == direct
    assert codes == [530, 541]


def test_an_unreachable_upstream_is_told(rabbitmq: RabbitMQ) -> None:
    text = """
listeners: [{name: main, bind: "127.0.0.1:0"}]
upstreams: [{name: gone, host: 127.0.0.1, port: 1}]
"""
    with serving(text) as running, running.dial() as client:
        client.raw(amqp.PROTOCOL_HEADER)
        client.expect(amqp.ConnectionStart)
        said = amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US")
        close = client.ask(said, amqp.ConnectionClose)
        assert close.reply_code == 320
        assert close.reply_text.startswith("CONNECTION_FORCED - cannot connect to upstream 127.0.0.1:1: ")


# -- the gateway's own settings ------------------------------------------------------------------------------


def test_own_credentials_and_virtual_host(rabbitmq: RabbitMQ) -> None:
    rabbitmq.fresh_vhost("rewritten")
    text = f"""
listeners: [{{name: main, bind: "127.0.0.1:0"}}]
upstreams: [{{name: rabbit, url: "amqp://guest:guest@{rabbitmq.address}/rewritten"}}]
"""
    mark = secrets.token_hex(8)
    with serving(text) as running, running.dial() as client:
        client.open(
            user="whoever", password="whatever", vhost="wherever", properties=Table.of({"mark": mark})
        )
        row = seen(rabbitmq, mark)
        assert (row["user"], row["vhost"]) == ("guest", "rewritten")
        (session,) = running.gateway.sessions.values()
        assert (session.principal.user, session.principal.vhost) == ("guest", "rewritten")
        client.bye()


# -- while it is open ----------------------------------------------------------------------------------------


def test_update_secret(route: Route) -> None:
    with Talker.dial(route.port) as client:
        client.open()
        client.ask(amqp.ConnectionUpdateSecret(b"guest", "expired"), amqp.ConnectionUpdateSecretOk)
        client.publish(b"goes on", "nowhere", mandatory=True)
        assert client.expect_content(amqp.BasicReturn).body == b"goes on"
        client.bye()


def test_every_feature_that_needs_a_capability(route: Route, answers: Answers) -> None:
    """consumer_cancel_notify, basic.return, confirms and nacks, in one conversation."""
    told: list[object] = []
    with Talker.dial(route.port) as client:
        client.open()
        client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        queue = "features"
        arguments = Table.of({"x-max-length": 1, "x-overflow": "reject-publish"})
        client.ask(amqp.QueueDeclare(queue=queue, arguments=arguments), amqp.QueueDeclareOk, 1)
        client.publish(b"kept", queue)
        told.append(client.expect(amqp.BasicAck, 1))
        client.publish(b"too many", queue)
        told.append(client.expect(amqp.BasicNack, 1))
        client.publish(b"lost", "nowhere", mandatory=True)
        told.append(client.expect_content(amqp.BasicReturn))
        told.append(client.expect(amqp.BasicAck, 1))
        client.ask(amqp.BasicConsume(queue=queue, consumer_tag="c"), amqp.BasicConsumeOk, 1)
        told.append(client.expect_content(amqp.BasicDeliver))
        client.say(amqp.QueueDelete(queue=queue), 1)
        told.extend(sorted(str(client.hear()) for _ in range(2)))
        client.bye()
    answers.same("features", told, through_gateway=route.through_gateway)


def test_a_client_that_leaves_before_it_is_in_leaves_nothing(rabbitmq: RabbitMQ) -> None:
    text = f"""
listeners: [{{name: main, bind: "127.0.0.1:0"}}]
upstreams: [{{name: rabbit, host: 127.0.0.1, port: {rabbitmq.port}}}]
"""
    with serving(text) as running:
        for said in (b"", b"AMQP", amqp.PROTOCOL_HEADER):
            with running.dial() as client, contextlib.suppress(OSError):
                client.raw(said)
        eventually(running.idle)
