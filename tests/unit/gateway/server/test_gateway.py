"""Listeners and limits, and the end of a gateway."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

import pytest

from amqpgate.protocol.proxy_header import PeerAddress
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually, serving
from tests.support.proxy_header import encode_v2
from tests.support.talker import CAPABILITIES, Gone, Talker
from tests.unit.gateway.conftest import Stage

MakeStage = Callable[..., Stage]

TWO = """
listeners:
- {{name: main, bind: 127.0.0.1:0}}
- {{name: second, bind: "[::1]:0"}}
- {{name: third, bind: 127.0.0.1:0, upstream: other}}
upstreams:
- {{name: broker, host: 127.0.0.1, port: {port}}}
- {{name: other, host: localhost, port: {port}, vhost: elsewhere}}
"""
TWO = TWO.replace("bind: 127.0.0.1:0}}", "bind: 127.0.0.1:0, upstream: broker}}").replace(
    '"[::1]:0"', '"[::1]:0", upstream: broker'
)


def test_several_listeners_and_upstreams(make_stage: MakeStage) -> None:
    stage = make_stage(text=TWO)
    host, port = stage.running.gateway.addresses["second"]
    assert host == "::1"
    with socket.create_connection((host, port)) as sock:
        sock.sendall(amqp.PROTOCOL_HEADER)
        stage.broker().greet()
        assert sock.recv(1) == b"\1"
    client, broker = stage.greeted(listener="third")
    client.say(amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0a\0b"))
    broker.say(amqp.ConnectionTune(2047, 131072, 0))
    client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(2047, 131072, 0))
    client.say(amqp.ConnectionOpen("here"))
    broker.expect(amqp.ConnectionStartOk)
    broker.expect(amqp.ConnectionTuneOk)
    assert broker.expect(amqp.ConnectionOpen).virtual_host == "elsewhere"


def test_a_port_that_is_taken_ends_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        text = f"""
listeners: [{{name: main, bind: "127.0.0.1:{taken.getsockname()[1]}"}}]
upstreams: [{{name: broker, host: 127.0.0.1}}]
"""
        with pytest.raises(BaseExceptionGroup) as caught, serving(text):
            raise AssertionError("it started")
    assert caught.group_contains(OSError, match="address already in use|in use")


# -- limits --------------------------------------------------------------------------------------------------


def begun(stage: Stage) -> tuple[Talker, Talker]:
    """A client that has said its start-ok, and the broker that has heard it: neither says more."""
    client, broker = stage.greeted()
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US"))
    broker.expect(amqp.ConnectionStartOk)
    return client, broker


@pytest.mark.parametrize("limits", ["maxHandshakes: 2", "handshakesPerAddress: 2"])
def test_who_logs_in_keeps_its_place_and_who_comes_then_finds_none(
    make_stage: MakeStage, limits: str
) -> None:
    stage = make_stage(limits=limits)
    first, broker = begun(stage)
    begun(stage)
    stage.client().expect_end()
    assert stage.running.outcomes() == {"over_limit": 1}
    broker.close()
    with pytest.raises(Gone):
        first.frame()
    eventually(lambda: len(stage.running.gateway.acceptor.context.pending) == 1)
    stage.opened()
    stage.opened()


@pytest.mark.parametrize("limits", ["maxHandshakes: 3", "handshakesPerAddress: 3"])
def test_the_oldest_silent_handshake_gives_way(make_stage: MakeStage, limits: str) -> None:
    stage = make_stage(limits=limits)
    begun(stage)
    greeted, _ = stage.greeted()
    silent = stage.client()
    eventually(lambda: len(stage.running.gateway.acceptor.context.pending) == 3)
    # It has said less than the other one, which is older.
    another, _ = stage.greeted()
    silent.expect_end()
    stage.opened()
    greeted.expect_end()
    assert stage.running.outcomes() == {"over_limit": 2}
    another.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US"))


@pytest.mark.parametrize("limits", ["maxHandshakes: 1", "handshakesPerAddress: 1"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "CRAM-MD5", None])
def test_to_say_a_name_and_nothing_more_keeps_nobody_out(
    make_stage: MakeStage, limits: str, mechanism: str | None
) -> None:
    stage = make_stage(limits=limits)
    if mechanism is None:
        # It is to answer a tune.
        silent, broker = begun(stage)
        broker.say(amqp.ConnectionTune(0, 131072, 0))
        silent.expect(amqp.ConnectionTune)
    else:
        # It has shown no password: one is asked for it by the gateway, the other by the broker.
        silent, broker = stage.greeted()
        silent.say(amqp.ConnectionStartOk(CAPABILITIES, mechanism, b"", "en_US"))
        if mechanism == "CRAM-MD5":
            broker.expect(amqp.ConnectionStartOk)
            broker.say(amqp.ConnectionSecure(b"what?"))
        silent.expect(amqp.ConnectionSecure)
    stage.opened()
    silent.expect_end()
    assert stage.running.outcomes() == {"over_limit": 1}


def test_silent_sockets_keep_nobody_out(make_stage: MakeStage) -> None:
    stage = make_stage(limits="maxHandshakes: 20")
    with contextlib.ExitStack() as crowd:
        for number in range(100):
            crowd.enter_context(stage.running.dial()).raw(amqp.PROTOCOL_HEADER[: number % 8])
        for _ in range(10):
            stage.opened()
    assert len(stage.running.gateway.sessions) == 10


def test_a_share_is_of_the_address_in_the_proxy_header(make_stage: MakeStage) -> None:
    stage = make_stage(listener="proxyProtocol: v2", limits="handshakesPerAddress: 1")
    here, net = PeerAddress("198.51.100.1", 5672), PeerAddress("2001:db8::1", 5672)
    mine = encode_v2(PeerAddress("2001:db8::7:1", 4), net)
    silent = stage.client(first=mine)
    eventually(lambda: len(stage.running.gateway.acceptor.context.pending._by_source) == 1)
    stranger = stage.client(first=encode_v2(PeerAddress("203.0.113.7", 4), here))
    # Of the same /64.
    stage.opened(first=encode_v2(PeerAddress("2001:db8::9:2", 4), net))
    silent.expect_end()
    stage.opened(first=mine)
    stranger.raw(amqp.PROTOCOL_HEADER)
    stranger.expect(amqp.ConnectionStart)


def test_a_header_alone_does_not_cost_a_connection_to_the_broker(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.opened()
    stage.door.sock.settimeout(0)
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    start = client.expect(amqp.ConnectionStart)
    with pytest.raises(BlockingIOError):
        stage.door.accept()
    stage.door.sock.settimeout(20)
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US"))
    broker = stage.broker()
    broker.greet()
    assert broker.expect(amqp.ConnectionStartOk).response == b"\0guest\0guest"
    # In the broker's own words.
    stage.forget()
    again = stage.client()
    again.raw(amqp.PROTOCOL_HEADER)
    stage.broker().greet()
    assert again.expect(amqp.ConnectionStart) == start


def test_many_that_come_at_once_make_one_dial(make_stage: MakeStage) -> None:
    stage = make_stage()
    clients = [stage.client() for _ in range(20)]
    for client in clients:
        client.raw(amqp.PROTOCOL_HEADER)
    stage.broker().greet()
    for client in clients:
        client.expect(amqp.ConnectionStart)
    stage.door.sock.settimeout(0)
    with pytest.raises(BlockingIOError):
        stage.door.accept()


def test_a_broker_that_went_away_meanwhile_is_told_after_start_ok(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.opened()
    stage.door.close()
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    client.expect(amqp.ConnectionStart)
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US"))
    close = client.expect(amqp.ConnectionClose)
    assert (close.reply_code, "cannot connect to upstream" in close.reply_text) == (320, True)


def test_a_broker_that_refuses_everybody_now_is_told_after_start_ok(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.opened()
    client = stage.client()
    client.raw(amqp.PROTOCOL_HEADER)
    client.expect(amqp.ConnectionStart)
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US"))
    broker = stage.broker()
    broker.exactly(8)
    broker.say(amqp.ConnectionClose(320, "CONNECTION_FORCED - not now"))
    assert client.expect(amqp.ConnectionClose).reply_text == "CONNECTION_FORCED - not now"
    client.say(amqp.ConnectionCloseOk())
    broker.expect(amqp.ConnectionCloseOk)


def test_too_many_connections_are_closed_at_accept(make_stage: MakeStage) -> None:
    stage = make_stage(limits="maxConnections: 2")
    client, broker = stage.opened()
    stage.opened()
    stage.client().expect_end()
    assert stage.running.outcomes() == {"over_limit": 1}
    client.close()
    broker.expect(amqp.ConnectionClose)
    broker.close()
    eventually(lambda: stage.running.gateway.acceptor.connections.count == 1)
    stage.opened()
