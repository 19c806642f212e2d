"""What a message costs where AMQP 0-10 is spoken: ``python -m tests.bench.translated [--rounds 40]``.

In microseconds of the gateway's own CPU, with 16 bytes of body, to brokers that only count (the sinks). Each
message has properties of both kinds, as clients write them. Up to ``accept`` the broker speaks 0-9-1, from
``to10`` on 0-10.

============  =================================================================================
plain         publishes of 0-9-1 in one write, with confirms: what all of it costs without a translator
pingpong91    one publish of 0-9-1, and the next one when it is confirmed: what the system calls cost
publish       transfers in one write, as many as ``--batch``; the last one asks for completion
publish-new   the same, and no header comes twice
pingpong      one transfer, and the next one when it is complete
deliver       transfers to the client, which accepts nothing
accept        the same; the client accepts and completes a batch at a time
to10          publishes of 0-9-1 in one write, with confirms, to a broker of 0-10
from10        deliveries from it to a client of 0-9-1, which acknowledges each of them
native        as ``publish``, to a broker of 0-10: it passes as it came
native-read   the same, and a policy looks at headers; native-new: no header comes twice
native-ping   as ``pingpong``, to a broker of 0-10; native-deliver: as ``deliver``, from it
============  =================================================================================

Cases take turns, a quarter of a second each; what is told is the lower quartile of their turns, since a cache
that others have emptied costs CPU, too. Each case has a mark. Those with one message under way have it
relative to ``pingpong91`` of the same run. The clients say prebuilt bytes, and look for nothing but ids in
what they hear.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from attrs import evolve

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
POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: bench}
spec:
  subjects: [{user: guest}]
  rules:
  - {id: publish, effect: allow, operations: [basic.publish], exchange: {literal: amq.direct}}
"""
#: Of CPU for a message, in microseconds: alone, and beyond ``pingpong91``.
MARKS = {
    **dict.fromkeys(("publish", "publish-new", "deliver", "accept", "to10", "from10"), 40.0),
    **dict.fromkeys(("native", "native-read", "native-new", "native-deliver"), 15.0),
}
MARKS_BEYOND = {"pingpong": 40.0, "native-ping": 15.0}
INFINITE = 0xFFFF_FFFF
BODY = b"x" * 16
#: How a message.transfer begins: deliveries are counted by it.
MARK = b"\4\1\1\0"
#: The same in 0-9-1, with the consumer's tag.
MARK_91 = b"\0\x3c\0\x3c\1c"
#: A frame of basic.ack up to its delivery tag.
ACK = b"\1\0\1" + (13).to_bytes(4) + b"\0\x3c\0\x50"
#: Messages of which no two headers are alike: more than a gateway keeps anything of.
DIFFERENT = 5_000

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
                self.talker.raw(self.one * batch)
                sent += batch
            while confirmed < sent - (batch if batch > 1 and time.monotonic() < end else 0):
                ack = self.talker.expect(amqp91.BasicAck, 1)
                confirmed = ack.delivery_tag
        return sent


class Reader:
    """A client of 0-9-1 that consumes, and acknowledges each delivery by itself."""

    def __init__(self, port: int) -> None:
        self.talker = Talker.dial(port)
        self.talker.open()
        self.talker.ask(amqp91.BasicQos(prefetch_count=1000), amqp91.BasicQosOk, 1)

    def read(self, seconds: float) -> int:
        """How many there were."""
        self.talker.say(amqp91.BasicConsume(queue="bench.deliver.16", consumer_tag="c"), 1)
        sock, end = self.talker.sock, time.monotonic() + seconds
        count = settled = 0
        tail = b""
        while time.monotonic() < end:
            data = sock.recv(1 << 16)
            count += (tail + data).count(MARK_91)
            tail = data[-(len(MARK_91) - 1) :] if not data.endswith(MARK_91) else b""
            if count - settled >= 100:
                sock.sendall(
                    b"".join([ACK + tag.to_bytes(8) + b"\0\xce" for tag in range(settled + 1, count + 1)])
                )
                settled = count
        return count


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
            data = self.sock.recv(1 << 16)
            if not data:
                raise ConnectionError("the gateway has closed the connection")
            self._rest += data
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
        if not data:
            raise ConnectionError("the gateway has closed the connection")
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


TRANSFER = amqp.MessageTransfer(destination=b"amq.direct", accept_mode=1, acquire_mode=0)


def publish(client: Client, batch: int, seconds: float, *, is_new: bool = False) -> int:
    """How many transfers there were; ``is_new``: no header comes twice."""
    batches = (
        [same_batch(batch)] if not is_new else [new_batch(at, batch) for at in range(0, DIFFERENT, batch)]
    )
    end = time.monotonic() + seconds
    first = client.sent
    number = 0
    while time.monotonic() < end:
        client.say(batches[number % len(batches)], batch)
        number += 1
        # Two batches are under way at most.
        client.wait(client.sent - (batch if batch > 1 else 0))
    client.wait(client.sent)
    return client.sent - first


def same_batch(batch: int) -> bytes:
    one, last = (command(TRANSFER, PROPERTIES, BODY, sync=sync) for sync in (False, True))
    return one * (batch - 1) + last


def new_batch(first: int, batch: int) -> bytes:
    """Transfers with message-ids of their own."""
    delivery, message = PROPERTIES
    return b"".join(
        command(
            TRANSFER,
            (delivery, evolve(message, message_id=(first + number).to_bytes(16))),
            BODY,
            sync=number == batch - 1,
        )
        for number in range(batch)
    )


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


def cases(batch: int) -> dict[str, tuple[str, Callable[[int], Callable[[float], int]]]]:
    """By name, which gateway, and what is played there."""
    new = partial(publish, is_new=True)
    return {
        "plain": ("0-9-1", lambda port: partial(Plain(port).publish, batch)),
        "pingpong91": ("0-9-1", lambda port: partial(Plain(port).publish, 1)),
        "publish": ("0-9-1", lambda port: partial(publish, Client(port), batch)),
        "publish-new": ("0-9-1", lambda port: partial(new, Client(port), batch)),
        "pingpong": ("0-9-1", lambda port: partial(publish, Client(port), 1)),
        "deliver": ("0-9-1", lambda port: partial(deliver, Client(port), batch, accepts=False)),
        "accept": ("0-9-1", lambda port: partial(deliver, Client(port), batch, accepts=True)),
        "to10": ("0-10", lambda port: partial(Plain(port).publish, batch)),
        "from10": ("0-10", lambda port: Reader(port).read),
        "native": ("0-10", lambda port: partial(publish, Client(port), batch)),
        "native-read": ("judged", lambda port: partial(publish, Client(port), batch)),
        "native-new": ("judged", lambda port: partial(new, Client(port), batch)),
        "native-ping": ("0-10", lambda port: partial(publish, Client(port), 1)),
        "native-deliver": ("0-10", lambda port: partial(deliver, Client(port), batch, accepts=False)),
    }


@contextmanager
def sink_0_10() -> Iterator[int]:
    """A sink that speaks 0-10: its port."""
    port = free_port()
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bench.sink_0_10", str(port)], stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield port
        finally:
            process.kill()


@contextmanager
def gateways() -> Iterator[dict[str, Gateway]]:
    """By what is behind them."""
    with ExitStack() as stack:
        old = stack.enter_context(Sink(build().sink, free_port())).port
        new = stack.enter_context(sink_0_10())
        policies = stack.enter_context(tempfile.TemporaryDirectory())
        (Path(policies) / "bench.yaml").write_text(POLICY)
        judged = CONFIG + f"policies: {policies}\n"
        texts = {"0-9-1": (CONFIG, old), "0-10": (CONFIG, new), "judged": (judged, new)}
        found = {}
        for name, (text, port) in texts.items():
            found[name] = Gateway(config=text.replace("SINK", str(port)))
            stack.enter_context(found[name].serving())
        yield found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.25)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--batch", type=int, default=100)
    known = cases(100)
    parser.add_argument("--cases", default=",".join(known))
    options = parser.parse_args()
    known = cases(options.batch)
    took: dict[str, list[float]] = {name: [] for name in options.cases.split(",")}
    with gateways() as found:
        for _ in range(options.rounds):
            for name, costs in took.items():
                behind, begin = known[name]
                costs.append(measure(found[behind], begin, options.seconds))
    quiet = {name: statistics.quantiles(costs, n=4)[0] for name, costs in took.items()}
    for name, cost in quiet.items():
        print(f"{name:14} {cost:7.1f} us{remark(name, cost, quiet.get('pingpong91'))}")


def remark(name: str, cost: float, floor: float | None) -> str:
    """How far it is from its mark."""
    if name in MARKS:
        return "" if cost <= MARKS[name] else f", above {MARKS[name]:g}"
    if name not in MARKS_BEYOND or floor is None:
        return ""
    beyond, mark = cost - floor, MARKS_BEYOND[name]
    return f", {beyond:.1f} beyond pingpong91" + ("" if beyond <= mark else f", above {mark:g}")


if __name__ == "__main__":
    main()
