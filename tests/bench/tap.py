"""What a tap costs the relay: ``python -m tests.bench.tap [--messages 3000000] [--rounds 5]``.

In microseconds of the gateway's own CPU for each publish of 16 bytes, without confirms, on one connection to
a broker that only reads: without a tap; with one message in 100 shown and with every one, both up to the
ceiling of a second; and with a ceiling that is never reached, a twentieth of the messages. In turn, so that
what else the machine does falls on all alike.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from amqpgate.gateway.observers.tap.taps import CEILING, TapRequest
from amqpgate.policy.engine.taps import parse
from amqpgate.telemetry.events import EventSubscriber
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.frames import content_frames
from tests.support.inprocess import Doorway, InProcess, serving
from tests.support.talker import Talker

SETTINGS = """
listeners: [{{name: main, bind: 127.0.0.1:0}}]
upstreams: [{{name: broker, host: 127.0.0.1, port: {port}}}]
"""
BATCH = 500


class Drain(EventSubscriber):
    """Takes what it is given, as one who reads at once."""

    def put(self, item: object, worker: int = 0) -> bool:
        return True


@contextmanager
def tapped(running: InProcess, every: int, ceiling: int) -> Iterator[None]:
    """With one message in so many; 0: without a tap."""
    if not every:
        yield
        return
    tapping = running.gateway.observers.taps
    tapping.ceiling = ceiling
    tap = running.call(lambda: tapping.open(TapRequest(match=parse("exchange=orders"), every=every), Drain()))
    try:
        yield
    finally:
        running.call(lambda: tapping.close(tap))
    print(f"  {tap.matched} matched, {tap.shown} shown")


def open_session(running: InProcess, door: Doorway) -> tuple[Talker, Talker]:
    client = running.dial()
    client.raw(amqp.PROTOCOL_HEADER)
    broker = door.accept()
    broker.greet()
    client.expect(amqp.ConnectionStart)
    client.say(amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US"))
    broker.expect(amqp.ConnectionStartOk)
    broker.say(amqp.ConnectionTune(2047, 131072, 0))
    client.expect(amqp.ConnectionTune)
    client.say(amqp.ConnectionTuneOk(2047, 131072, 0))
    broker.expect(amqp.ConnectionTuneOk)
    client.say(amqp.ConnectionOpen("/"))
    broker.expect(amqp.ConnectionOpen)
    broker.say(amqp.ConnectionOpenOk())
    client.expect(amqp.ConnectionOpenOk)
    client.say(amqp.ChannelOpen(), 1)
    broker.expect(amqp.ChannelOpen, 1)
    broker.say(amqp.ChannelOpenOk(), 1)
    client.expect(amqp.ChannelOpenOk, 1)
    return client, broker


def cpu_of(running: InProcess) -> float:
    """Seconds that the gateway's thread has worked."""
    return running.call(time.thread_time)


def measure(running: InProcess, client: Talker, broker: Talker, messages: int) -> float:
    """Microseconds of the gateway's CPU for each message."""
    frames = content_frames(
        1, amqp.BasicPublish(exchange="orders", routing_key="k"), amqp.BasicProperties(), b"x" * 16, 131072
    )
    batch = frames * BATCH
    total = len(batch) * (messages // BATCH)

    def read() -> None:
        left = total
        while left:
            left -= len(broker.sock.recv(min(left, 1 << 20)))

    reader = threading.Thread(target=read)
    began = cpu_of(running)
    reader.start()
    for _ in range(messages // BATCH):
        client.raw(batch)
    reader.join()
    return (cpu_of(running) - began) / messages * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    cases = {
        "no tap": (0, 0),
        "1 in 100": (100, CEILING),
        "1 in 1": (1, CEILING),
        "1 in 1, no ceiling": (1, 10**9),
    }
    door = Doorway()
    took: dict[str, list[float]] = {name: [] for name in cases}
    with serving(SETTINGS.format(port=door.port)) as running:
        client, broker = open_session(running, door)
        for _ in range(options.rounds):
            for name, (every, ceiling) in cases.items():
                messages = options.messages // (20 if "no ceiling" in name else 1)
                with tapped(running, every, ceiling):
                    took[name].append(measure(running, client, broker, messages))
        client.close()
        broker.close()
    base = statistics.median(took["no tap"])
    for name, times in took.items():
        each = statistics.median(times)
        print(f"{name:20} {each:8.3f} us, {each / base:6.2f} x")


if __name__ == "__main__":
    main()
