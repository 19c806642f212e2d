"""Delayed messages for a while, and kills amid: what is lost, what comes twice, how late.

    python -m tests.interop.delayed_messages --seconds 3600 --rate 100 --kill-every 60

starts a RabbitMQ 4 of its own and a gateway before it, and kills one or the other (SIGKILL). What was
not confirmed when its connection ended is published again, as another copy. Each copy has a name.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import random
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import pika
import pika.exceptions

from tests.support.gateway import Gateway
from tests.support.rabbitmq import RabbitMQ
from tests.support.rabbitmq_root import root_of_4

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: CompatibilityPolicy
metadata: {name: three}
spec:
  subjects: [{}]
  as: rabbitmq-3.13
  delayedExchanges: [{exchange: later}]
"""

EXCHANGE = "later"
QUEUE = "due"

#: What a quorum queue adds to what it delivers again.
COUNTS = ("x-acquired-count", "x-delivery-count")

#: What a client may meet while others are killed.
GONE = (pika.exceptions.AMQPError, OSError)


@attrs.define(eq=False)
class Course:
    """What is shared by the threads of a run. Each of the tables is written by one kind of thread alone."""

    seconds: float
    rate: float
    shortest: float
    longest: float
    publishers: int
    node: RabbitMQ
    policies: Path
    gateway: Gateway = attrs.field(init=False)
    #: By copy: when it was published, its delay in ms, when it was confirmed.
    confirmed: dict[str, tuple[float, int, float]] = attrs.field(factory=dict)
    #: By copy: when it came, and whether as redelivered.
    came: dict[str, list[tuple[float, bool]]] = attrs.field(factory=lambda: defaultdict(list))
    #: Copies that did not come as the plugin shows them.
    odd: list[str] = attrs.field(factory=list)
    #: From when to when something was down.
    outages: list[tuple[float, float, str]] = attrs.field(factory=list)
    publishing: threading.Event = attrs.field(factory=threading.Event)
    running: threading.Event = attrs.field(factory=threading.Event)

    def start_gateway(self) -> None:
        gateway = Gateway(f"amqp://{self.node.address}", policies=self.policies)
        gateway.start()
        self.gateway = gateway

    def connect(self) -> pika.BlockingConnection:
        return pika.BlockingConnection(
            pika.ConnectionParameters(
                "127.0.0.1", self.gateway.port, heartbeat=30, blocked_connection_timeout=60
            )
        )

    # -- clients -----------------------------------------------------------------------------

    def declare(self) -> None:
        with self.connect() as connection:
            channel = connection.channel()
            channel.exchange_declare(
                EXCHANGE, "x-delayed-message", durable=True, arguments={"x-delayed-type": "topic"}
            )
            channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "quorum"})
            channel.queue_bind(QUEUE, EXCHANGE, "job.*")

    def publish(self, lane: int, most: int | None = None) -> None:
        """One publisher: each message until it is confirmed, as many copies as that takes."""
        dice = random.Random(lane)
        copies = itertools.count()
        number, due = 0, time.monotonic()
        while self.publishing.is_set() and (most is None or number < most):
            try:
                connection = self.connect()
            except GONE:
                time.sleep(0.2)
                continue
            try:
                channel = connection.channel()
                channel.confirm_delivery()
                while self.publishing.is_set() and (most is None or number < most):
                    if self.rate:
                        due = max(due + self.publishers / self.rate, time.monotonic() - 1)
                        connection.sleep(max(0.0, due - time.monotonic()))
                    copy = f"{lane}.{number}.{next(copies)}"
                    delay = round(1000 * self.shortest * (self.longest / self.shortest) ** dice.random())
                    sent = time.time()
                    channel.basic_publish(
                        EXCHANGE,
                        "job.x",
                        copy.encode(),
                        pika.BasicProperties(headers={"x-delay": delay, "copy": copy}, delivery_mode=2),
                    )
                    self.confirmed[copy] = (sent, delay, time.time())
                    number += 1
                connection.close()
            except GONE:
                continue

    def consume(self) -> None:
        while self.running.is_set():
            try:
                connection = self.connect()
                channel = connection.channel()
                channel.basic_qos(prefetch_count=200)
                for method, properties, body in channel.consume(QUEUE, inactivity_timeout=0.5):
                    if method is not None:
                        self.take(method, properties, body.decode())
                        channel.basic_ack(method.delivery_tag)
                    if not self.running.is_set():
                        break
                connection.close()
            except GONE:
                time.sleep(0.2)

    def take(self, method: object, properties: pika.BasicProperties, copy: str) -> None:
        assert isinstance(method, pika.spec.Basic.Deliver)
        self.came[copy].append((time.time(), method.redelivered))
        headers = {name: value for name, value in (properties.headers or {}).items() if name not in COUNTS}
        names = (method.exchange, method.routing_key, sorted(headers))
        if names != (EXCHANGE, "job.x", ["copy", "x-delay"]) or headers["x-delay"] >= 0:
            self.odd.append(f"{names} {headers}")

    def publish_many(self, lane: int, count: int) -> None:
        """A publisher without a pause, which waits at the end of each transaction alone."""
        dice = random.Random(lane)
        with self.connect() as connection:
            channel = connection.channel()
            channel.tx_select()
            for first in range(0, count, 500):
                copies = {}
                for number in range(first, min(first + 500, count)):
                    copy = f"{lane}.{number}"
                    delay = round(1000 * dice.uniform(self.shortest, self.longest))
                    copies[copy] = (time.time(), delay, 0.0)
                    channel.basic_publish(
                        EXCHANGE,
                        "job.x",
                        copy.encode(),
                        pika.BasicProperties(headers={"x-delay": delay, "copy": copy}, delivery_mode=2),
                    )
                channel.tx_commit()
                self.confirmed |= copies

    def finish(self, consumer: threading.Thread, patience: float) -> None:
        """Wait until all have come, as long as any comes, and a little for those that come twice."""
        last, known = time.monotonic() + patience, 0
        while set(self.confirmed) - set(self.came) and time.monotonic() < last:
            time.sleep(0.5)
            if len(self.came) > known:
                known, last = len(self.came), time.monotonic() + patience
        time.sleep(2)
        self.running.clear()
        consumer.join()

    # -- what happens to them ----------------------------------------------------------------

    def kill(self, what: str) -> None:
        begin = time.time()
        if what == "gateway":
            self.gateway.kill()
            self.start_gateway()
        else:
            self.node.kill()
            self.node.start()
        self.outages.append((begin, time.time(), what))

    def kills(self, every: float) -> Iterator[str]:
        """Kill one or the other until it is time; what was killed."""
        end = time.monotonic() + self.seconds
        victims = itertools.cycle(("broker", "gateway"))
        while (left := end - time.monotonic()) > 0:
            if not every or left < every:
                time.sleep(left)
                return
            time.sleep(every)
            victim = next(victims)
            self.kill(victim)
            yield victim


@attrs.frozen
class Report:
    """What came of it."""

    confirmed: int
    deliveries: int
    lost: list[str]
    #: Copies that came more than once; those of them of which the broker, or the gateway, said so not.
    twice: int
    unmarked: list[str]
    odd: list[str]
    outages: int
    late: dict[str, float]

    def text(self) -> str:
        return json.dumps({**attrs.asdict(self), "odd": self.odd[:3], "lost": self.lost[:5]}, indent=1)


def report(course: Course) -> Report:
    came = course.came
    twice = [copy for copy, deliveries in came.items() if len(deliveries) > 1]
    unmarked = [copy for copy in twice if not all(is_again for _, is_again in came[copy][1:])]
    lateness = []
    for copy, (sent, delay, _) in course.confirmed.items():
        if copy in came:
            arrived, is_again = came[copy][0]
            down = any(sent < end + 10 and begin < arrived for begin, end, _ in course.outages)
            if not down and not is_again:
                lateness.append((arrived - sent - delay / 1000, delay / 1000))
    every = [
        came[copy][0][0] - sent - delay / 1000
        for copy, (sent, delay, _) in course.confirmed.items()
        if copy in came
    ]
    within = [late <= 1 + delay / 100 for late, delay in lateness]
    lates = sorted(late for late, _ in lateness)
    late = {"counted": float(len(lates)), "latest of all s": max(every, default=0.0)}
    late["over a minute late"] = float(sum(one > 60 for one in every))
    if lates:
        late |= {
            "earliest s": lates[0],
            "median s": lates[len(lates) // 2],
            "99 % s": lates[len(lates) * 99 // 100],
            "latest s": lates[-1],
            "within 1 s + 1 %": sum(within) / len(within),
        }
    return Report(
        len(course.confirmed),
        sum(map(len, came.values())),
        sorted(set(course.confirmed) - set(came)),
        len(twice),
        unmarked,
        course.odd,
        len(course.outages),
        {name: round(value, 4) for name, value in late.items()},
    )


@contextlib.contextmanager
def course(
    *,
    seconds: float = 0,
    rate: float,
    shortest: float,
    longest: float,
    publishers: int,
    dead_letters: int = 0,
) -> Iterator[Course]:
    """A broker, a gateway, and the exchange."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "three.yaml").write_text(POLICY)
        node = RabbitMQ(root=root_of_4())
        made = Course(seconds, rate, shortest, longest, publishers, node, Path(folder))
        try:
            node.start()
            if dead_letters:
                # As the documents advise; it holds until the node is started again.
                node.eval(
                    f"application:set_env(rabbit, dead_letter_worker_consumer_prefetch, {dead_letters})."
                )
            made.start_gateway()
            made.declare()
            made.publishing.set()
            made.running.set()
            yield made
        finally:
            made.publishing.clear()
            made.running.clear()
            made.gateway.kill()
            node.destroy()


def run(
    *,
    seconds: float,
    rate: float = 100,
    kill_every: float = 0,
    shortest: float = 0.1,
    longest: float = 60,
    publishers: int = 4,
    drain: float = 420,
) -> Report:
    """Publish for so long, then wait until the last one is due, and `drain` more where some are missing: a
    queue that lost a confirm to a kill dead-letters again after three minutes, or six.
    """
    with course(
        seconds=seconds, rate=rate, shortest=shortest, longest=longest, publishers=publishers
    ) as made:
        threads = [threading.Thread(target=made.publish, args=(lane,)) for lane in range(publishers)]
        consumer = threading.Thread(target=made.consume)
        for thread in (*threads, consumer):
            thread.start()
        try:
            for victim in made.kills(kill_every):
                print(f"{time.strftime('%X')} killed the {victim}: {progress(made)}", flush=True)
        finally:
            made.publishing.clear()
            for thread in threads:
                thread.join()
        made.finish(consumer, longest * 1.01 + drain)
        return report(made)


def pending(count: int, *, publishers: int = 4, shortest: float = 240, longest: float = 900) -> Report:
    """So many messages, published at once: all of them wait before the first one is due."""
    with course(rate=0, shortest=shortest, longest=longest, publishers=publishers, dead_letters=512) as made:
        threads = [
            threading.Thread(target=made.publish_many, args=(lane, count // publishers))
            for lane in range(publishers)
        ]
        consumer = threading.Thread(target=made.consume)
        for thread in (*threads, consumer):
            thread.start()
        for thread in threads:
            thread.join()
        made.finish(consumer, longest * 1.01 + 60)
        return report(made)


def progress(course: Course) -> str:
    return f"{len(course.confirmed)} confirmed, {len(course.came)} came"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--rate", type=float, default=100, help="messages a second")
    parser.add_argument("--kill-every", type=float, default=60, help="seconds; 0: nobody is killed")
    parser.add_argument("--longest", type=float, default=60, help="longest delay, in seconds")
    told = parser.parse_args(arguments)
    found = run(seconds=told.seconds, rate=told.rate, kill_every=told.kill_every, longest=told.longest)
    print(found.text())


if __name__ == "__main__":
    main()
