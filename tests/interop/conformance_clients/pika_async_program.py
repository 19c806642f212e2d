"""pika, asynchronous: publishes all before it waits for confirms, consumes on two channels at once."""

from __future__ import annotations

import os

import pika

BODIES = [b"", b"small", b"x" * 300_000, b"four", b"five"]


class Program:
    def __init__(self) -> None:
        parameters = pika.URLParameters(os.environ["AMQP_URL"])
        self.failed: object = "nothing happened"
        self.confirmed, self.got, self.queues = set(), {}, []
        self.connection = pika.SelectConnection(
            parameters, self.opened, on_open_error_callback=self.ended, on_close_callback=self.ended
        )
        self.connection.ioloop.start()

    def ended(self, _, why) -> None:
        if self.failed:
            self.failed = why
        self.connection.ioloop.stop()

    def opened(self, connection) -> None:
        connection.channel(on_open_callback=self.publishing)

    def publishing(self, channel) -> None:
        self.publisher = channel
        channel.confirm_delivery(self.answered)
        for _ in range(2):
            channel.queue_declare("", exclusive=True, callback=self.declared)

    def declared(self, frame) -> None:
        self.queues.append(frame.method.queue)
        if len(self.queues) == 2:
            for body in BODIES:
                for queue in self.queues:
                    self.publisher.basic_publish("", queue, body)

    def answered(self, frame) -> None:
        method = frame.method
        first = 1 if method.multiple else method.delivery_tag
        self.confirmed |= set(range(first, method.delivery_tag + 1))
        if len(self.confirmed) == 2 * len(BODIES):
            for queue in self.queues:
                self.connection.channel(
                    on_open_callback=lambda channel, queue=queue: self.consume(channel, queue)
                )

    def consume(self, channel, queue) -> None:
        channel.basic_consume(queue, self.take)

    def take(self, channel, method, _, body) -> None:
        self.got.setdefault(method.consumer_tag, []).append(body)
        channel.basic_ack(method.delivery_tag)
        if sum(map(len, self.got.values())) == 2 * len(BODIES):
            if list(self.got.values()) == [BODIES, BODIES]:
                self.failed = None
            self.publisher.add_on_close_callback(lambda *_: self.connection.close())
            self.publisher.close()


program = Program()
assert program.failed is None, program.failed
