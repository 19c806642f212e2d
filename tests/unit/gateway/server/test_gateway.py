"""Listeners, limits, and the graceful stop."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import socket
from collections.abc import Callable

import pytest
import trio

from amqpgate.app.wiring import build
from amqpgate.config import parse
from amqpgate.datapath import build as engines
from amqpgate.datapath import pump as plain_pump
from amqpgate.datapath.driver import run_hosted
from amqpgate.gateway.server import assembly
from amqpgate.gateway.transport import listener as listener_module
from amqpgate.gateway.transport.listener import accept
from amqpgate.protocol.proxy_header import PeerAddress
from amqpgate.telemetry.readings import DELIVERED, PUBLISHED, Traffic
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.inprocess import eventually, serving
from tests.support.ports import refuses
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


def test_silent_sockets_keep_nobody_out(make_stage: MakeStage) -> None:
    stage = make_stage(limits="maxHandshakes: 20")
    with contextlib.ExitStack() as crowd:
        for number in range(100):
            crowd.enter_context(stage.running.dial()).octets(amqp.PROTOCOL_HEADER[: number % 8])
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
    stranger.octets(amqp.PROTOCOL_HEADER)
    stranger.expect(amqp.ConnectionStart)


def test_a_header_alone_does_not_cost_a_connection_to_the_broker(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.opened()
    stage.door.sock.settimeout(0)
    client = stage.client()
    client.octets(amqp.PROTOCOL_HEADER)
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
    again.octets(amqp.PROTOCOL_HEADER)
    stage.broker().greet()
    assert again.expect(amqp.ConnectionStart) == start


def test_many_that_come_at_once_make_one_dial(make_stage: MakeStage) -> None:
    stage = make_stage()
    clients = [stage.client() for _ in range(20)]
    for client in clients:
        client.octets(amqp.PROTOCOL_HEADER)
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
    client.octets(amqp.PROTOCOL_HEADER)
    client.expect(amqp.ConnectionStart)
    client.say(amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", b"\0guest\0guest", "en_US"))
    close = client.expect(amqp.ConnectionClose)
    assert (close.reply_code, "cannot connect to upstream" in close.reply_text) == (320, True)


def test_a_broker_that_refuses_everybody_now_is_told_after_start_ok(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.opened()
    client = stage.client()
    client.octets(amqp.PROTOCOL_HEADER)
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


class Refusing:
    """A listening socket whose accept fails so often before it succeeds."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.near, self.far = socket.socketpair()

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        if self.codes:
            code = self.codes.pop(0)
            raise OSError(code, errno.errorcode[code])
        near = self.near
        # setsockopt(TCP_NODELAY) needs TCP.
        server = socket.create_server(("127.0.0.1", 0))
        with server, socket.create_connection(server.getsockname()):
            near.close()
            return server.accept()[0], ("127.0.0.1", 5)


@pytest.mark.parametrize(
    "code",
    [
        errno.ECONNABORTED,
        errno.EPROTO,
        errno.EPERM,
        errno.ENETDOWN,
        errno.EHOSTUNREACH,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOBUFS,
        errno.ENOMEM,
    ],
)
async def test_accept_outlives_what_happens_to_one_connection(
    code: int, autojump_clock: trio.testing.MockClock
) -> None:
    listening = Refusing(code, code)
    connection, address = await accept(listening)  # type: ignore[arg-type]
    assert address == "127.0.0.1:5"
    assert not connection.getblocking()
    connection.close()
    listening.far.close()
    # Where there was no room, it has waited for some.
    expected = 2 * listener_module._BREATH if code in listener_module._NO_ROOM else 0
    assert autojump_clock.current_time() == pytest.approx(expected, abs=1e-6)


async def test_accept_does_not_outlive_its_socket() -> None:
    listening = Refusing(errno.EBADF)
    with pytest.raises(OSError, match="EBADF"):
        await accept(listening)  # type: ignore[arg-type]
    listening.near.close()
    listening.far.close()


# -- drain ---------------------------------------------------------------------------------------------------


def draining(make_stage: MakeStage, limits: str) -> tuple[Stage, Talker, Talker]:
    """A gateway with one session that has been told to stop."""
    stage = make_stage(limits=limits)
    client, broker = stage.opened()
    stage.running.call(stage.running.gateway.drain)
    eventually(lambda: refuses(stage.running.port()))
    return stage, client, broker


def test_while_draining_sessions_go_on(make_stage: MakeStage) -> None:
    stage, client, broker = draining(make_stage, "drainTimeout: 60s")
    assert not stage.running.gateway.ready
    for number in range(3):
        client.publish(b"%d" % number, "k")
        assert broker.expect_content(amqp.BasicPublish).body == b"%d" % number
    client.say(amqp.ConnectionClose(200, "bye"))
    broker.expect(amqp.ConnectionClose)
    broker.say(amqp.ConnectionCloseOk())
    client.expect(amqp.ConnectionCloseOk)
    client.close()
    broker.close()
    stage.running.join()
    assert stage.running.outcomes()["closed"] == 1


def test_after_the_deadline_sessions_are_closed(make_stage: MakeStage) -> None:
    stage, client, broker = draining(make_stage, "drainTimeout: 100ms")
    for talker in (client, broker):
        close = talker.expect(amqp.ConnectionClose)
        assert close == amqp.ConnectionClose(320, "CONNECTION_FORCED - amqpgate is shutting down")
        talker.say(amqp.ConnectionCloseOk())
        talker.expect_end()
        talker.close()
    stage.running.join()
    assert stage.running.outcomes()["drained"] == 1


def test_after_the_deadline_nobody_logs_in(make_stage: MakeStage) -> None:
    stage = make_stage(limits="drainTimeout: 100ms")
    client, broker = stage.greeted()
    stage.running.call(stage.running.gateway.drain)
    for talker in (client, broker):
        with pytest.raises(Gone):
            talker.frame()
    stage.running.join()
    assert stage.running.outcomes()["drained"] == 1


def test_a_drain_without_sessions_is_over_at_once(stage: Stage) -> None:
    stage.running.call(stage.running.gateway.drain)
    stage.running.join()


def test_a_second_signal_ends_at_once(make_stage: MakeStage) -> None:
    stage, client, broker = draining(make_stage, "drainTimeout: 60s")
    stage.running.stop()
    for talker in (client, broker):
        with pytest.raises(Gone):
            talker.frame()
    assert stage.running.gateway.sessions == {}


@pytest.mark.parametrize(
    "pump", list(dict.fromkeys((engines.Pump, plain_pump.Pump))), ids=lambda pump: pump.__module__
)
def test_a_pump_with_a_host_is_there_as_long_as_its_host(
    monkeypatch: pytest.MonkeyPatch, pump: type[engines.Pump]
) -> None:
    """What ends after the gateway, such as the admin interface, still needs the host's loop."""
    monkeypatch.setattr(assembly, "Pump", pump)
    text = "listeners: [{name: main, bind: '127.0.0.1:0'}]\nupstreams: [{name: broker, host: 127.0.0.1}]\n"
    gateway = build(parse(text, {}))

    async def main() -> str:
        async with trio.open_nursery() as nursery:
            await nursery.start(functools.partial(gateway.run, hosted=True))
            gateway.drain()
        await trio.sleep(0.05)
        os.fstat(gateway.pump.fileno())
        return "over"

    try:
        assert run_hosted(gateway.pump, main) == "over"
    finally:
        gateway.pump.close()


def test_what_was_counted_can_be_read(stage: Stage) -> None:
    client, broker = stage.opened(2)
    client.publish(b"x" * 1000, "k")
    broker.expect_content(amqp.BasicPublish)
    for _ in range(2):
        broker.content(amqp.BasicDeliver("c"), b"y" * 10)
        client.expect_content(amqp.BasicDeliver)
    totals = stage.running.ask(stage.running.gateway.totals)
    assert totals.traffic[PUBLISHED] == Traffic(1, 1000)
    assert totals.traffic[DELIVERED] == Traffic(2, 20)
    assert (totals.sessions, totals.channels) == ({"": 1}, {"open": 2, "closing": 0})
    client.close()
    broker.expect(amqp.ConnectionClose)
    broker.close()
    stage.running.wait_idle()
    over = stage.running.ask(stage.running.gateway.totals)
    assert over.traffic == totals.traffic
    assert (over.sessions, over.channels) == ({"": 0}, {"open": 0, "closing": 0})
