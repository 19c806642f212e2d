"""What a message of an AMQP 0-10 client costs: ``python -m tests.bench.translated [--seconds 2]``.

In microseconds of the gateway's own CPU, with 16 bytes of body, to a broker of 0-9-1 that only counts (the
sink). Each transfer has both its properties, as clients write them.

=========  ====================================================================================
plain      publishes of 0-9-1 in one write, with confirms: what all of it costs without a translator
pingpong91 one publish of 0-9-1, and the next one when it is confirmed
publish    transfers in one write, as many as ``--batch``; the last one asks for completion
pingpong   one transfer, and the next one when it is complete
deliver    transfers to the client, which accepts nothing
accept     the same; the client accepts and completes a batch at a time
=========  ====================================================================================

The client says prebuilt bytes, and looks for nothing but ids in what it hears.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import time
from collections.abc import Callable
from functools import partial

from amqpgate.wire.generated import v0_9_1 as amqp91
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_10 import PROTOCOL_HEADER
from amqpgate.wire.tables import Table
from amqpgate.wire.v0_10.sequences import SequenceSet
from amqpgate.wire.v0_10.types import Map, Value
from tests.support.frames import content_frames
from tests.support.gateway import Gateway
from tests.support.ports import free_port
from tests.support.talk_0_10 import ATTACH, POINT, command, control
from tests.support.talker import Talker

from .accounting import cpu_ns
from .build import build
from .tools import Sink

CONFIG = """
listeners: [{name: main, bind: "127.0.0.1:{port}"}]
upstreams: [{name: sink, host: 127.0.0.1, port: SINK}]
admin: {bind: "127.0.0.1:{admin_port}"}
"""
#: Of CPU for a message, in microseconds.
LIMIT = 40.0
INFINITE = 0xFFFF_FFFF
BODY = b"x" * 16
#: How a message.transfer begins: deliveries are counted by it.
MARK = b"\4\1\1\0"

START_OK = amqp.ConnectionStartOk(mechanism=b"PLAIN", response=b"\0guest\0guest", locale=b"en_US")
HEADERS = Map(((b"n", Value(0x21, 1)), (b"x-amqp-0-10.routing-key", Value(0x95, b"k"))))
PROPERTIES = (
    amqp.DeliveryProperties(routing_key=b"bench", delivery_mode=2),
    amqp.MessageProperties(content_type=b"text/plain", application_headers=HEADERS),
)


class Plain:
    """A client of 0-9-1 that publishes."""

    def __init__(self, port: int) -> None:
        self.talker = Talker.dial(port)
        self.talker.open()
        self.talker.ask(amqp91.ConfirmSelect(), amqp91.ConfirmSelectOk, 1)
        self.one = content_frames(
            1,
            amqp91.BasicPublish(exchange="amq.direct", routing_key="bench"),
            amqp91.BasicProperties("text/plain", headers=Table.of({"n": 1, "x": "k"}), delivery_mode=2),
            BODY,
        )

    def publish(self, batch: int, seconds: float) -> int:
        """How many there were."""
        end = time.monotonic() + seconds
        sent = confirmed = 0
        while time.monotonic() < end or confirmed < sent:
            if time.monotonic() < end:
                self.talker.octets(self.one * batch)
                sent += batch
            while confirmed < sent - (batch if batch > 1 and time.monotonic() < end else 0):
                ack = self.talker.expect(amqp91.BasicAck, 1)
                confirmed = ack.delivery_tag
        return sent


class Client:
    """A client that has one session."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = b""
        #: Commands that were sent, and those that are complete.
        self.sent = self.completed = 0
        self.sock.sendall(PROTOCOL_HEADER + control(START_OK))
        self.until(b"\1\5")
        self.sock.sendall(control(amqp.ConnectionTuneOk(channel_max=64)) + control(amqp.ConnectionOpen()))
        self.until(b"\1\x08")
        self._rest = b""
        self.sock.sendall(control(ATTACH) + control(POINT))

    def until(self, code: bytes) -> None:
        """Read up to a control."""
        while True:
            self._rest += self.sock.recv(1 << 16)
            at = 8
            while at + 12 <= len(self._rest):
                if self._rest[at + 12 : at + 14] == code:
                    self._rest = self._rest[:8]
                    return
                at += int.from_bytes(self._rest[at + 2 : at + 4])

    def say(self, data: bytes, commands: int) -> None:
        self.sock.sendall(data)
        self.sent += commands

    def wait(self, upto: int) -> None:
        """Until so many commands are complete."""
        while self.completed < upto:
            self._hear(self.sock.recv(1 << 16))

    def _hear(self, data: bytes) -> None:
        data = self._rest + data
        at = 0
        while at + 12 <= len(data):
            size = int.from_bytes(data[at + 2 : at + 4])
            if at + size > len(data):
                break
            # session.completed with a set of one range.
            if data[at + 1] == 0 and data[at + 12 : at + 14] == b"\2\x0a" and size >= 26:
                self.completed = int.from_bytes(data[at + 22 : at + 26]) + 1
            assert data[at + 12 : at + 14] != b"\3\3", "an exception"
            at += size
        self._rest = data[at:]


def publish(client: Client, batch: int, seconds: float) -> int:
    """How many transfers there were."""
    transfer = amqp.MessageTransfer(destination=b"amq.direct", accept_mode=1, acquire_mode=0)
    one = command(transfer, PROPERTIES, BODY)
    last = command(transfer, PROPERTIES, BODY, sync=True)
    data = one * (batch - 1) + last
    end = time.monotonic() + seconds
    first = client.sent
    while time.monotonic() < end:
        client.say(data, batch)
        # Two batches are under way at most.
        client.wait(client.sent - (batch if batch > 1 else 0))
    client.wait(client.sent)
    return client.sent - first


def deliver(client: Client, batch: int, seconds: float, *, accepts: bool) -> int:
    """How many transfers came."""
    client.say(subscribing(accepts=accepts), 3)
    end = time.monotonic() + seconds
    count = settled = 0
    tail = b""
    while time.monotonic() < end:
        data = client.sock.recv(1 << 16)
        # A mark that is cut is whole with the next read.
        count += (tail + data).count(MARK)
        tail = data[-(len(MARK) - 1) :] if not data.endswith(MARK) else b""
        if accepts and count - settled >= batch:
            ids = SequenceSet(((settled, count - 1),))
            said = control(amqp.SessionCompleted(commands=SequenceSet(((0, count - 1),))))
            client.say(said + command(amqp.MessageAccept(transfers=ids)), 1)
            settled = count
    return count


def subscribing(*, accepts: bool) -> bytes:
    subscribe = amqp.MessageSubscribe(
        queue=b"bench.deliver.16", destination=b"d", accept_mode=0 if accepts else 1, acquire_mode=0
    )
    said = command(subscribe)
    for unit in (1, 0):
        said += command(amqp.MessageFlow(destination=b"d", unit=unit, value=INFINITE))
    return said


def measure(gateway: Gateway, begin: Callable[[int], Callable[[float], int]], seconds: float) -> float:
    """Microseconds for a message."""
    play = begin(gateway.port)
    before = cpu_ns(gateway.child.pid)
    count = play(seconds)
    return (cpu_ns(gateway.child.pid) - before) / 1000 / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--cases", default="plain,publish,pingpong91,pingpong,deliver,accept")
    options = parser.parse_args()
    batch = options.batch
    cases: dict[str, Callable[[int], Callable[[float], int]]] = {
        "plain": lambda port: partial(Plain(port).publish, batch),
        "pingpong91": lambda port: partial(Plain(port).publish, 1),
        "publish": lambda port: partial(publish, Client(port), batch),
        "pingpong": lambda port: partial(publish, Client(port), 1),
        "deliver": lambda port: partial(deliver, Client(port), batch, accepts=False),
        "accept": lambda port: partial(deliver, Client(port), batch, accepts=True),
    }
    tools = build()
    took: dict[str, list[float]] = {name: [] for name in options.cases.split(",")}
    with Sink(tools.sink, free_port()) as sink:
        gateway = Gateway(config=CONFIG.replace("SINK", str(sink.port)))
        with gateway.serving():
            for _ in range(options.rounds):
                for name, costs in took.items():
                    costs.append(measure(gateway, cases[name], options.seconds))
    for name, costs in took.items():
        middle = statistics.median(costs)
        print(f"{name:10} {middle:7.1f} us {'' if middle <= LIMIT else f', above {LIMIT:g}'}")


if __name__ == "__main__":
    main()
