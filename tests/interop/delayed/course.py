"""One run: a RabbitMQ 4, a gateway before it, clients of an exchange that delays, and kills.

Directly, clients put messages on the ladder's first rung themselves, and see what RabbitMQ gives them.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pika
import pika.exceptions
from pika.adapters.blocking_connection import BlockingChannel

from amqpgate.gateway.session import delay_ladder
from tests.support.gateway import Gateway
from tests.support.processes import ChildDied
from tests.support.rabbitmq import CtlError, RabbitMQ
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

#: So many of one kill are tried again.
SLOW_STARTS = 4

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
    #: Publishing is to end before its time.
    cut: threading.Event
    #: Messages pass by no gateway.
    is_direct: bool = False
    gateway: Gateway = attrs.field(init=False)
    #: By copy: when it was published, its delay in ms, when it was confirmed.
    confirmed: dict[str, tuple[float, int, float]] = attrs.field(factory=dict)
    #: By copy: when it came, and whether as redelivered.
    came: dict[str, list[tuple[float, bool]]] = attrs.field(factory=lambda: defaultdict(list))
    #: Copies that did not come as the plugin shows them.
    odd: list[str] = attrs.field(factory=list)
    #: From when to when something was down.
    outages: list[tuple[float, float, str]] = attrs.field(factory=list)
    #: Starts after a kill that took too long, each with what it said: it was killed and started again.
    slow_starts: list[str] = attrs.field(factory=list)
    publishing: threading.Event = attrs.field(factory=threading.Event)
    running: threading.Event = attrs.field(factory=threading.Event)

    def start_gateway(self) -> None:
        gateway = Gateway(f"amqp://{self.node.address}", policies=self.policies)
        try:
            gateway.start()
        except ChildDied:
            gateway.kill()
            raise
        self.gateway = gateway

    def connect(self) -> pika.BlockingConnection:
        port = self.node.port if self.is_direct else self.gateway.port
        return pika.BlockingConnection(
            pika.ConnectionParameters("127.0.0.1", port, heartbeat=30, blocked_connection_timeout=60)
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

    def send(self, channel: BlockingChannel, copy: str, delay: int) -> None:
        """Publish one copy."""
        exchange, headers = EXCHANGE, {"x-delay": delay, "copy": copy}
        if self.is_direct:
            rungs = delay_ladder.rungs_of(delay)
            exchange = delay_ladder.rung_name(rungs[0])
            headers |= {delay_ladder.TARGET: EXCHANGE} | {delay_ladder.rung_header(k): True for k in rungs}
        properties = pika.BasicProperties(headers=headers, delivery_mode=2)
        channel.basic_publish(exchange, "job.x", copy.encode(), properties)

    def go_direct(self) -> None:
        """Have the gateway declare all rungs that there will be, and do without it from now on."""
        with self.connect() as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            self.send(channel, "ladder", round(1000 * self.longest))
        self.is_direct = True

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
                    self.send(channel, copy, delay)
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
        if copy == "ladder":
            return
        self.came[copy].append((time.time(), method.redelivered))
        if self.is_direct:
            return
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
                    self.send(channel, copy, delay)
                channel.tx_commit()
                self.confirmed |= copies

    def finish(self, consumer: threading.Thread, patience: float, tell: Callable[[int], None]) -> int:
        """Wait until all have come that will, and a little for those that come twice.

        What is missing is late as long as the ladder has any message, and lost when it has none. How many it
        has at the end: nobody waits for longer than ``patience`` seconds in which none comes. ``tell`` hears
        each minute how many are in the ladder.
        """
        last, known, waiting = time.monotonic() + patience, 0, 0
        empty_since, told = None, time.monotonic()
        while self.missing() and time.monotonic() < last:
            time.sleep(0.5)
            if len(self.came) > known:
                known, last = len(self.came), time.monotonic() + patience
            try:
                waiting = self.waiting()
            except (CtlError, subprocess.TimeoutExpired):
                # It does not answer in time: nothing is known.
                continue
            if time.monotonic() - told > 60:
                told = time.monotonic()
                tell(waiting)
            empty_since = None if waiting else empty_since or time.monotonic()
            # RabbitMQ counts every five seconds.
            if empty_since is not None and time.monotonic() - empty_since > 15:
                break
        time.sleep(2)
        self.running.clear()
        consumer.join()
        return waiting

    def missing(self) -> set[str]:
        """Copies that were confirmed and have not come."""
        return set(self.confirmed) - set(self.came)

    def waiting(self) -> int:
        """Messages in the ladder and the queue behind it, as RabbitMQ counts them now and then."""
        names = f'<<"{delay_ladder.PREFIX}", _/binary>>'
        told = self.node.eval(
            "lists:sum([case {Name, Count} of"
            f" {{{names}, Many}} when is_integer(Many) -> Many;"
            f' {{<<"{QUEUE}">>, Many}} when is_integer(Many) -> Many; _ -> 0 end'
            " || Queue <- rabbit_amqqueue:list(),"
            " [{name, {resource, _, _, Name}}, {messages, Count}]"
            " <- [rabbit_amqqueue:info(Queue, [name, messages])]])."
        )
        return int(told)

    # -- what happens to them ----------------------------------------------------------------

    def kill(self, what: str) -> None:
        begin = time.time()
        if what != "gateway":
            self.node.kill()
        if what != "broker":
            self.gateway.kill()
        if what != "gateway":
            self._again(self.node.start, self.node.kill)
        if what != "broker":
            self._again(self.start_gateway, lambda: None)
        self.outages.append((begin, time.time(), what))

    def _again(self, start: Callable[[], None], kill: Callable[[], None]) -> None:
        """Start one that was killed. On a busy machine that takes longer than one start waits."""
        for _ in range(SLOW_STARTS):
            try:
                start()
                return
            except ChildDied as error:
                self.slow_starts.append(str(error).partition("\n")[0])
                kill()
        start()

    def kills(self, every: float, calm: float = 0, *, together: bool = False) -> Iterator[str]:
        """Kill one or the other, or both ``together``, until it is time; what was killed.

        Nobody is in the last ``calm`` seconds.
        """
        end = time.monotonic() + self.seconds
        victims = itertools.cycle(("both",) if together else ("broker", "gateway"))
        while (left := end - time.monotonic()) > 0:
            if not every or left < every + calm:
                self.cut.wait(left)
                return
            if self.cut.wait(every):
                return
            victim = "broker" if self.is_direct else next(victims)
            self.kill(victim)
            yield victim


@contextlib.contextmanager
def course(
    *,
    seconds: float = 0,
    rate: float,
    shortest: float,
    longest: float,
    publishers: int,
    dead_letters: int = 0,
    confirm_timeout: int = 0,
    direct: bool = False,
    cut: threading.Event | None = None,
) -> Iterator[Course]:
    """A broker, a gateway, and the exchange."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "three.yaml").write_text(POLICY)
        # As the documents advise.
        rabbit = {
            "dead_letter_worker_consumer_prefetch": dead_letters,
            "dead_letter_worker_publisher_confirm_timeout": confirm_timeout,
        }
        rabbit = {name: value for name, value in rabbit.items() if value}
        node = RabbitMQ(root=root_of_4(), rabbit=rabbit)
        made = Course(
            seconds, rate, shortest, longest, publishers, node, Path(folder), cut or threading.Event()
        )
        try:
            node.start()
            made.start_gateway()
            made.declare()
            if direct:
                made.go_direct()
            made.publishing.set()
            made.running.set()
            yield made
        finally:
            made.publishing.clear()
            made.running.clear()
            made.gateway.kill()
            node.destroy()
