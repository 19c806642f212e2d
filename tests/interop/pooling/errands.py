"""Clients that connect for a single message each: open, publish with a confirm, close.

Each is a handful of questions and answers, prepared as bytes, on one socket: so little work that the time is
the broker's, the way's and the gateway's. `with_pika` is the same with a real client.
"""

from __future__ import annotations

import itertools
import socket
import statistics
import struct
import threading
import time
from collections.abc import Callable, Sequence

import attrs
import pika

from amqpgate.protocol.frames import FRAME_HEAD, method_frame
from amqpgate.protocol.sasl import plain_response
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.frames import content_frames
from tests.support.talker import CAPABILITIES, Talker

_IDS = struct.Struct(">HH")


class Failed(Exception):
    """An errand that did not end as it should."""


@attrs.frozen
class Times:
    """How long each client took, in seconds, and all of them together."""

    each: Sequence[float]
    wall: float

    @property
    def median(self) -> float:
        return statistics.median(self.each)

    def at(self, percent: int) -> float:
        """The time within which so many of a hundred were done."""
        return statistics.quantiles(self.each, n=100)[percent - 1]

    def __str__(self) -> str:
        return (
            f"median {self.median * 1e3:6.1f} ms, 95 % within {self.at(95) * 1e3:6.1f} ms,"
            f" slowest {max(self.each) * 1e3:6.1f} ms, {len(self.each) / self.wall:6.1f} a second"
        )


def _say(method: Method, channel: int = 0) -> bytes:
    return method_frame(channel, method)


def _script(vhost: str) -> list[tuple[bytes, type[Method]]]:
    """What is said, and what must be heard before the next is said."""
    start_ok = amqp.ConnectionStartOk(CAPABILITIES, "PLAIN", plain_response("guest", "guest"), "en_US")
    tune_ok = amqp.ConnectionTuneOk(2047, 131072, 0)
    return [
        (amqp.PROTOCOL_HEADER, amqp.ConnectionStart),
        (_say(start_ok), amqp.ConnectionTune),
        (_say(tune_ok) + _say(amqp.ConnectionOpen(virtual_host=vhost)), amqp.ConnectionOpenOk),
        (_say(amqp.ChannelOpen(), 1), amqp.ChannelOpenOk),
        (_say(amqp.ConfirmSelect(), 1), amqp.ConfirmSelectOk),
    ]


_GOOD_BYE: list[tuple[bytes, type[Method]]] = [
    (_say(amqp.ChannelClose(200, "bye"), 1), amqp.ChannelCloseOk),
    (_say(amqp.ConnectionClose(200, "bye")), amqp.ConnectionCloseOk),
]


def raw(port: int, vhost: str, queue: str) -> Callable[[int], None]:
    """An errand over a bare socket."""
    hello = _script(vhost)

    def errand(number: int) -> None:
        publish = amqp.BasicPublish(routing_key=queue)
        message = content_frames(1, publish, amqp.BasicProperties(delivery_mode=1), b"%d" % number, 131072)
        with socket.socket() as sock:
            sock.settimeout(60)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.connect(("127.0.0.1", port))
            with sock.makefile("rb") as heard:
                for said, answer in (*hello, (message, amqp.BasicAck), *_GOOD_BYE):
                    sock.sendall(said)
                    head = heard.read(FRAME_HEAD.size)
                    if len(head) < FRAME_HEAD.size:
                        raise Failed(f"{answer.NAME} was expected, not the end")
                    size = FRAME_HEAD.unpack(head)[2]
                    payload = heard.read(size + 1)
                    if _IDS.unpack_from(payload) != (answer.CLASS_ID, answer.METHOD_ID):
                        raise Failed(f"{answer.NAME} was expected, not {payload[:-1]!r}")

    return errand


def with_pika(port: int, vhost: str, queue: str) -> Callable[[int], None]:
    """The same errand as pika does it."""
    parameters = pika.ConnectionParameters("127.0.0.1", port, vhost)

    def errand(number: int) -> None:
        connection = pika.BlockingConnection(parameters)
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("", queue, b"%d" % number)
        channel.close()
        connection.close()

    return errand


def run(errand: Callable[[int], None], clients: int, at_once: int) -> Times:
    """So many clients, `at_once` of them at any time; raises what one of them raised."""
    numbers = itertools.count()
    times: list[float] = []
    failures: list[BaseException] = []

    def work() -> None:
        while not failures and (number := next(numbers)) < clients:
            started = time.perf_counter()
            try:
                errand(number)
            except BaseException as error:
                failures.append(error)
                return
            times.append(time.perf_counter() - started)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(at_once)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise Failed(f"after {len(times)} clients") from failures[0]
    return Times(times, time.perf_counter() - started)


def arrived(port: int, vhost: str, queue: str) -> list[int]:
    """The numbers of the messages that are in the queue, sorted; they are taken."""
    with Talker.dial(port) as client:
        client.open(vhost=vhost)
        passive = amqp.QueueDeclare(queue=queue, passive=True)
        count = client.ask(passive, amqp.QueueDeclareOk, 1).message_count
        client.ask(amqp.BasicConsume(queue=queue, no_ack=True), amqp.BasicConsumeOk, 1)
        numbers = sorted(int(client.expect_content(amqp.BasicDeliver).body) for _ in range(count))
        client.bye()
    return numbers


def round_trip(port: int, vhost: str) -> float:
    """The median time of a question and its answer on an open channel, in seconds."""
    with Talker.dial(port) as client:
        client.open(vhost=vhost)
        passive = amqp.ExchangeDeclare(exchange="amq.direct", type="direct", passive=True)
        times = []
        for _ in range(9):
            started = time.perf_counter()
            client.ask(passive, amqp.ExchangeDeclareOk, 1)
            times.append(time.perf_counter() - started)
        client.bye()
    return statistics.median(times)
