"""The pump as host of trio: results, errors, threads, timers and signals go as under ``trio.run``."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator

import pytest
import trio

from amqpgate.datapath import driver
from amqpgate.datapath.build import Pump, make_relay
from amqpgate.datapath.driver import drive, run_hosted
from amqpgate.datapath.engine import End, HandedOverSocket
from amqpgate.datapath.relay import Relay
from amqpgate.datapath.tables import ScanResult, Side
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp


@pytest.fixture
def pump() -> Iterator[Pump]:
    pump = Pump(high=65536, low=1024, largest_frame=131072, on_failure=_raise)
    yield pump
    pump.close()


def _raise(error: Exception) -> None:
    raise error


class PassOn:
    """A handler that forwards what it is asked about."""

    relay: Relay

    def __init__(self) -> None:
        self.over = trio.Event()

    def upcall(self, side: Side, result: ScanResult, frame: memoryview) -> None:
        self.relay.send(side.other, bytes(frame))

    def ended(self, end: End, side: Side | None, error: Exception | None) -> None:
        self.over.set()


async def relay_one_frame(pump: Pump) -> bytes:
    """Put a session into the pump, send a frame through it, and end it."""
    client, near_client = socket.socketpair()
    broker, near_broker = socket.socketpair()
    for sock in (near_client, near_broker):
        sock.setblocking(False)
    handler = PassOn()
    handler.relay = make_relay(
        handler, HandedOverSocket(near_client, 4096, 0), HandedOverSocket(near_broker, 4096, 0), flows=None
    )
    pump.add(handler.relay)
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(broker))
    client.send(method_frame(1, amqp.ChannelOpen()))
    got = await stream.receive_some(100)
    client.close()
    await handler.over.wait()
    await stream.aclose()
    near_client.close()
    near_broker.close()
    return got


def test_a_session_is_relayed_while_trio_is_the_guest(pump: Pump) -> None:
    assert run_hosted(pump, relay_one_frame, pump) == method_frame(1, amqp.ChannelOpen())


async def test_a_session_is_relayed_by_a_task(pump: Pump, nursery: trio.Nursery) -> None:
    nursery.start_soon(drive, pump)
    assert await relay_one_frame(pump) == method_frame(1, amqp.ChannelOpen())


def test_errors_come_out(pump: Pump) -> None:
    async def fail() -> None:
        await trio.sleep(0.01)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_hosted(pump, fail)


def test_threads_and_timers_work(pump: Pump) -> None:
    async def work() -> int:
        total = 0
        for n in range(20):
            total += await trio.to_thread.run_sync(lambda n=n: n)
            await trio.sleep(0.001)
        return total

    assert run_hosted(pump, work) == 190


def test_signals_arrive(pump: Pump) -> None:
    async def wait_for_signal() -> int:
        with trio.open_signal_receiver(signal.SIGUSR1) as signals:
            os.kill(os.getpid(), signal.SIGUSR1)
            async for number in signals:
                return number
        raise AssertionError("unreachable")

    assert run_hosted(pump, wait_for_signal) == signal.SIGUSR1


def test_where_this_trio_is_another_one_it_waits_as_it_likes(
    pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "host", lambda tick, pump: None)

    async def work() -> int:
        await trio.sleep(0.01)
        return await trio.to_thread.run_sync(int, "7")

    assert run_hosted(pump, work) == 7
