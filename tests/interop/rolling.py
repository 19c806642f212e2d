"""Publishers and consumers that come back whenever they are sent away, and a count of what has arrived."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator

import attrs
import pika
import pika.exceptions

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.talker import Gone, Talker, Unexpected

QUEUE = "rolling"

#: What a client sees that is sent away, or whose connection is not accepted.
SENT_AWAY = (pika.exceptions.AMQPError, OSError, Gone)


@attrs.define(eq=False)
class Tally:
    """What all clients together have seen."""

    lock: threading.Lock = attrs.field(factory=threading.Lock)
    #: Messages that were confirmed, and deliveries of each, those left out that are marked as redelivered.
    confirmed: set[str] = attrs.field(factory=set)
    delivered: Counter[str] = attrs.field(factory=Counter)
    redelivered: Counter[str] = attrs.field(factory=Counter)
    #: How often a client was sent away, and with which code or error.
    ends: Counter[str] = attrs.field(factory=Counter)
    #: The longest time in seconds from a client's last success to its next one.
    longest_pause: float = 0.0
    failures: list[BaseException] = attrs.field(factory=list)

    def ended(self, error: BaseException) -> None:
        with self.lock:
            code = getattr(error, "reply_code", None)
            self.ends[str(code) if code is not None else type(error).__name__] += 1

    def got(self, body: str, *, redelivered: bool) -> None:
        with self.lock:
            (self.redelivered if redelivered else self.delivered)[body] += 1

    def paused(self, seconds: float) -> None:
        with self.lock:
            self.longest_pause = max(self.longest_pause, seconds)

    @property
    def arrived(self) -> set[str]:
        with self.lock:
            return set(self.delivered) | set(self.redelivered)


class _ClosedError(Gone):
    """The gateway has said connection.close."""

    def __init__(self, close: amqp.ConnectionClose) -> None:
        super().__init__(close.reply_text)
        self.reply_code = close.reply_code


@attrs.define(eq=False)
class Client:
    """One that connects again and again until it is told to stop."""

    name: str
    port: int
    tally: Tally
    stop: threading.Event
    #: Seconds between two messages.
    pace: float = 0.02
    _last: float = attrs.field(factory=time.monotonic, init=False)

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                try:
                    self.live()
                except SENT_AWAY as error:
                    self.tally.ended(error)
        except BaseException as error:
            self.tally.failures.append(error)
            raise

    def live(self) -> None:
        """One connection's life."""
        raise NotImplementedError

    def succeeded(self) -> None:
        now = time.monotonic()
        self.tally.paused(now - self._last)
        self._last = now

    def connect(self) -> pika.BlockingConnection:
        return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.port))


@attrs.define(eq=False)
class Consumer(Client):
    """pika's, with a few messages at a time."""

    def live(self) -> None:
        with contextlib.closing(Quiet(self.connect())) as guard:
            channel = guard.connection.channel()
            channel.basic_qos(prefetch_count=10)
            for method, _, body in channel.consume(QUEUE, inactivity_timeout=0.2):
                if method is not None:
                    self.tally.got(body.decode(), redelivered=method.redelivered)
                    channel.basic_ack(method.delivery_tag)
                self.succeeded()
                if self.stop.is_set():
                    return


@attrs.define(eq=False)
class PatientPublisher(Client):
    """pika's: waits for the confirm of each message, and publishes it again where none came."""

    _number: int = attrs.field(default=0, init=False)

    def live(self) -> None:
        with contextlib.closing(Quiet(self.connect())) as guard:
            channel = guard.connection.channel()
            channel.confirm_delivery()
            while not self.stop.is_set():
                body = f"{self.name}-{self._number}"
                channel.basic_publish("", QUEUE, body.encode(), mandatory=True)
                self.tally.confirmed.add(body)
                self._number += 1
                self.succeeded()
                time.sleep(self.pace)


@attrs.define(eq=False)
class HastyPublisher(Client):
    """Has up to ten messages under way; what is not confirmed when it is sent away it publishes again."""

    _number: int = attrs.field(default=0, init=False)
    _due: deque[str] = attrs.field(factory=deque, init=False)

    def live(self) -> None:
        with Talker.dial(self.port) as talker:
            talker.open()
            talker.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
            published, acked = dict(enumerate(self._due, 1)), 0
            for body in self._due:
                talker.publish(body.encode(), QUEUE)
            while not self.stop.is_set() or self._due:
                while len(self._due) < 10 and not self.stop.is_set():
                    body = f"{self.name}-{self._number}"
                    self._number += 1
                    self._due.append(body)
                    published[len(published) + 1] = body
                    talker.publish(body.encode(), QUEUE)
                _, method = talker.hear()
                if isinstance(method, amqp.ConnectionClose):
                    talker.say(amqp.ConnectionCloseOk())
                    raise _ClosedError(method)
                if not isinstance(method, amqp.BasicAck):
                    raise Unexpected(method)
                tags = range(acked + 1, method.delivery_tag + 1) if method.multiple else [method.delivery_tag]
                for tag in tags:
                    if tag in published and published[tag] in self._due:
                        self._due.remove(published[tag])
                        self.tally.confirmed.add(published[tag])
                if method.multiple:
                    acked = method.delivery_tag
                self.succeeded()
                time.sleep(self.pace)
            talker.bye()


@attrs.define
class Quiet:
    """Closes a connection, whatever has become of it."""

    connection: pika.BlockingConnection

    def close(self) -> None:
        with contextlib.suppress(*SENT_AWAY):
            self.connection.close()


@contextlib.contextmanager
def at_work(port: int, publishers: int, consumers: int, *, pace: float = 0.02) -> Iterator[Tally]:
    """So many clients, half of the publishers hasty; in the end the publishers stop first."""
    tally, stop, over = Tally(), threading.Event(), threading.Event()
    kinds: list[Callable[..., Client]] = [PatientPublisher, HastyPublisher]
    pubs = [kinds[n % 2](f"p{n}", port, tally, stop, pace) for n in range(publishers)]
    subs = [Consumer(f"c{n}", port, tally, over) for n in range(consumers)]
    threads = [threading.Thread(target=client.run, name=client.name) for client in (*pubs, *subs)]
    for thread in threads:
        thread.start()
    try:
        yield tally
    finally:
        stop.set()
        for thread in threads[:publishers]:
            thread.join(60)
        deadline = time.monotonic() + 30
        while tally.confirmed - tally.arrived and time.monotonic() < deadline:
            time.sleep(0.05)
        over.set()
        for thread in threads[publishers:]:
            thread.join(60)


@attrs.define(eq=False)
class Knocker:
    """Connects all the time, and counts who does not let it in."""

    port: int
    stop: threading.Event
    count: int = 0
    errors: list[str] = attrs.field(factory=list)

    def run(self) -> None:
        # Imported here, since it is a socket that is wanted and no client.
        import socket

        while not self.stop.is_set():
            try:
                with socket.create_connection(("127.0.0.1", self.port), 20) as sock:
                    # Answered by the gateway itself (AMQP 0-9-1, section 4.2.2).
                    sock.sendall(b"HTTP/1.1")
                    if sock.recv(8) != amqp.PROTOCOL_HEADER:
                        self.errors.append("another answer")
                self.count += 1
            except OSError as error:
                self.errors.append(repr(error))


@contextlib.contextmanager
def knocking(port: int, count: int = 4) -> Iterator[list[Knocker]]:
    """So many of them."""
    stop = threading.Event()
    knockers = [Knocker(port, stop) for _ in range(count)]
    threads = [threading.Thread(target=knocker.run) for knocker in knockers]
    for thread in threads:
        thread.start()
    try:
        yield knockers
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
