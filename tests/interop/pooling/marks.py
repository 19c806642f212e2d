"""What is measured, the marks, and what is printed of them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.interop.pooling import errands as errand
from tests.interop.pooling import idle as idlers
from tests.interop.pooling.ways import gateway
from tests.support.delay import RelayProcess
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Talker

#: Few enough at once that the client and the broker have time to spare on two cores.
ERRANDS, AT_ONCE, ROUND_TRIP = 1000, 4, 0.05
#: Seconds per client at the median.
AT_MOST = {"pooled": 0.060}
ABOVE = {"direct": 0.400}

IDLE, LINKS = 5000, 20

VHOST, QUEUE = "errands", "errands"

#: Lines of rabbitmq.conf: no limits of its own in the way.
BROKER = ("tcp_listen_options.backlog = 4096", "channel_max = 2047")


def errands(
    rabbitmq: RabbitMQ,
    folder: Path,
    ways: Sequence[str],
    *,
    clients: int = ERRANDS,
    at_once: int = AT_ONCE,
    round_trip: float = ROUND_TRIP,
    pika: int = 0,
) -> list[str]:
    """Measure and print; the marks that were missed."""
    rabbitmq.fresh_vhost(VHOST)
    with Talker.dial(rabbitmq.port) as client:
        client.open(vhost=VHOST)
        client.ask(amqp.QueueDeclare(queue=QUEUE), amqp.QueueDeclareOk, 1)
        client.bye()
    missed: list[str] = []

    def measure(name: str, port: int, count: int, *, real: bool = False) -> errand.Times | None:
        make = errand.with_pika if real else errand.raw
        times = errand.run(make(port, VHOST, QUEUE), count, at_once)
        print(f"{name:34} {times}", flush=True)
        if errand.arrived(rabbitmq.port, VHOST, QUEUE) != list(range(count)):
            missed.append(f"{name}: not every message arrived exactly once")
        return times

    print(f"{clients} clients, {at_once} at once, each: open, one confirmed message, close", flush=True)
    measure("direct, without delay", rabbitmq.port, clients)
    with contextlib.ExitStack() as stack:
        relay = RelayProcess(rabbitmq.port, round_trip, folder)
        stack.callback(relay.close)
        print(
            f"through the relay a question takes {errand.round_trip(relay.port, VHOST) * 1e3:.1f} ms,"
            f" without it {errand.round_trip(rabbitmq.port, VHOST) * 1e3:.1f} ms",
            flush=True,
        )
        for way in ways:
            with contextlib.ExitStack() as each:
                if way == "direct":
                    port = relay.port
                else:
                    port = each.enter_context(gateway(way, f"127.0.0.1:{relay.port}")).port
                # The first one finds no link.
                errand.run(errand.raw(port, VHOST, QUEUE), 1, 1)
                errand.arrived(rabbitmq.port, VHOST, QUEUE)
                median = measure(f"{way}, {round_trip * 1e3:.0f} ms more", port, clients).median
                if median > AT_MOST.get(way, median):
                    missed.append(f"{way}: {median * 1e3:.1f} ms, at most {AT_MOST[way] * 1e3:.0f} ms")
                if median <= ABOVE.get(way, 0):
                    missed.append(f"{way}: {median * 1e3:.1f} ms, not above {ABOVE[way] * 1e3:.0f} ms")
                if pika:
                    measure(f"{way}, {round_trip * 1e3:.0f} ms more, pika", port, pika, real=True)
    return missed


def idle(rabbitmq: RabbitMQ, ways: Sequence[str], clients: int = IDLE) -> list[str]:
    """Measure and print; the marks that were missed."""
    missed: list[str] = []
    fitting = idlers.room_for(clients)
    if fitting < clients:
        return [f"idle: the limit of open files leaves room for {fitting} clients only"]
    for way in ways:
        rabbitmq.fresh_vhost("idle")
        with gateway(way, rabbitmq.address) as it, contextlib.ExitStack() as stack:
            found = idlers.connect(it.port, "idle", clients)
            for client in found:
                stack.callback(client.close)
            rows = [row for row in rabbitmq.connections() if row["vhost"] == "idle"]
            took = idlers.ask_each(found)
            print(
                f"{way}: {len(found)} clients with a channel each on {len(rows)} connections of RabbitMQ's"
                f" list; each asked once in {took:.1f} s together",
                flush=True,
            )
            after = [row for row in rabbitmq.connections() if row["vhost"] == "idle"]
            if max(len(rows), len(after)) > LINKS:
                missed.append(f"{way}: {len(rows)} connections for {clients} clients, at most {LINKS}")
    return missed
