"""What a delivery costs that a transform may change: ``python -m tests.bench.delivered [--rounds 5]``.

In microseconds of the gateway's own CPU for each delivery of 256 bytes with six properties and four
headers. A gateway and a broker for each case, all of them at once; they are measured in turn, so that what
else the machine does falls on all alike.

=======  ============================================================================================
none     no transform: each is a hit
names    exchanges and queues have other names at the broker
headers  likewise, and each has such a name in its headers (``CC``): it is shown
=======  ============================================================================================
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import socket
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from amqpgate.protocol.frames import FRAME_METHOD
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.frames import content_frames
from tests.support.gateway import Gateway
from tests.support.talker import Gone, Talker

from .accounting import cpu_ns
from .instructions import ALL
from .looked import HEAD, PROPERTIES, SETTINGS

NAMES = HEAD.format(kind="TransformPolicy") + "  names: {both: {prefix: a.}}\n"
CASES: Mapping[str, tuple[str, ...]] = {"none": (ALL,), "names": (ALL, NAMES), "headers": (ALL, NAMES)}


def deliveries(count: int, exchange: str, key: str | None) -> bytes:
    """``key``: what is in ``CC``, if anything."""
    properties = PROPERTIES
    if key is not None:
        assert PROPERTIES.headers is not None
        headers = Table((*PROPERTIES.headers, *Table.of({"CC": [key]})))
        properties = attrs.evolve(PROPERTIES, headers=headers)
    methods = [
        amqp.BasicDeliver("t", tag, exchange=exchange, routing_key=f"k.{tag % 10}")
        for tag in range(1, count + 1)
    ]
    return b"".join(content_frames(1, one, properties, b"x" * 256, 131072) for one in methods)


def serve(listener: socket.socket, sent: bytes) -> None:
    """A broker for one client after another, which sends all of it to each consumer."""
    while True:
        with contextlib.suppress(Gone, OSError), Talker(listener.accept()[0], timeout=600) as client:
            client.accept()
            for frame in client.all():
                method = decode_method(frame.payload) if frame.type == FRAME_METHOD else None
                if isinstance(method, amqp.ChannelOpen):
                    client.say(amqp.ChannelOpenOk(), frame.channel)
                elif isinstance(method, amqp.BasicCancel):
                    client.say(amqp.BasicCancelOk("t"), frame.channel)
                elif isinstance(method, amqp.BasicConsume):
                    client.say(amqp.BasicConsumeOk("t"), frame.channel)
                    client.raw(sent)


@attrs.frozen
class Consumer:
    """A client of a gateway, and how many bytes it gets."""

    gateway: Gateway
    talker: Talker
    size: int

    def consume(self) -> int:
        """Nanoseconds of the gateway's."""
        before = cpu_ns(self.gateway.child.pid)
        self.talker.ask(amqp.BasicConsume(queue="q", consumer_tag="t"), amqp.BasicConsumeOk, 1)
        self.talker.exactly(self.size)
        self.talker.ask(amqp.BasicCancel("t"), amqp.BasicCancelOk, 1)
        return cpu_ns(self.gateway.child.pid) - before


@contextlib.contextmanager
def consuming(case: str, count: int) -> Iterator[Consumer]:
    with contextlib.ExitStack() as stack:
        has_keys = case == "headers"
        sent = deliveries(count, "a.bench", "a.other" if has_keys else None)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        broker = multiprocessing.get_context("fork").Process(target=serve, args=(listener, sent), daemon=True)
        broker.start()
        stack.callback(broker.kill)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="amqpgate-bench-")))
        (folder / "policies").mkdir()
        for number, document in enumerate(CASES[case]):
            (folder / "policies" / f"{number}.yaml").write_text(document)
        settings = SETTINGS.replace("SINK", str(listener.getsockname()[1])).replace("FOLDER", str(folder))
        gateway = Gateway(config=settings)
        stack.enter_context(gateway.serving())
        talker = Talker.dial(gateway.port, timeout=600)
        talker.open()
        # CC keeps its names where the exchange has one.
        comes = deliveries(count, "a.bench" if case == "none" else "bench", "a.other" if has_keys else None)
        yield Consumer(gateway, talker, len(comes))
        talker.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=10_000)
    options = parser.parse_args()
    took: dict[str, list[float]] = {name: [] for name in CASES}
    with contextlib.ExitStack() as stack:
        consumers = {name: stack.enter_context(consuming(name, options.messages)) for name in CASES}
        for one in consumers.values():
            one.consume()
        for _ in range(options.rounds):
            for name, one in consumers.items():
                took[name].append(one.consume() / 1000 / options.messages)
    for name, costs in took.items():
        print(f"{name:8} {statistics.median(costs):7.2f} us  ({min(costs):.2f} to {max(costs):.2f})")


if __name__ == "__main__":
    main()
