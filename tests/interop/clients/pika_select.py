"""pika's SelectConnection: every step is a chain of callbacks, written as a generator."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator

import pika
from pika.channel import Channel
from pika.delivery_mode import DeliveryMode
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker

from tests.interop.steps import BIG_BODY, HEADERS, PROPERTIES, Setting

from .pika_blocking import _code_and_text, declared, parameters

#: A step yields functions that take the callback to be called with the answer, and gets that answer back.
Step = Generator[Callable[[Callable[..., None]], object], object, object]


class Play:
    """One connection and the step that runs on it."""

    def __init__(self, at: Setting, step: Callable[[Play], Step], **changes: object) -> None:
        self.at = at
        self._step = step
        self._generator: Step | None = None
        self._result: object = None
        self._error: BaseException | None = None
        self._closed: Exception | None = None
        self._when_closed: Callable[[Exception], None] | None = None
        self.connection = pika.SelectConnection(
            parameters(at, **changes),
            on_open_callback=self._on_open,
            on_open_error_callback=self._on_closed,
            on_close_callback=self._on_closed,
        )

    def run(self) -> object:
        """What the step returned. Its exceptions are raised here."""
        loop = self.connection.ioloop
        watchdog = loop.call_later(30, lambda: self._fail(AssertionError("the awaited answer did not come")))
        loop.start()
        loop.remove_timeout(watchdog)
        loop.close()
        if self._error is not None:
            raise self._error
        return self._result

    def channel(self) -> Callable[[Callable[..., None]], object]:
        """Wait for a new channel."""
        return lambda done: self.connection.channel(on_open_callback=done)

    def broken(self) -> Callable[[Callable[..., None]], object]:
        """Wait until the connection is closed by the other side; the answer is the exception."""

        def wait(done: Callable[[Exception], None]) -> None:
            self._when_closed = done

        return wait

    def _on_open(self, _: object) -> None:
        self._generator = self._step(self)
        self._resume(None)

    def _resume(self, *answer: object) -> None:
        assert self._generator is not None
        try:
            wait = self._generator.send(answer[0] if len(answer) == 1 else answer)
            wait(self._resume)
        except StopIteration as end:
            self._result = end.value
            self._finish()
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._error = error
        self._finish()

    def _finish(self) -> None:
        if self.connection.is_open:
            self.connection.close()
        elif self.connection.is_closed:
            self.connection.ioloop.stop()

    def _on_closed(self, _: object, why: Exception) -> None:
        self._closed = why
        if self._generator is None:
            self._error = why
        elif self._when_closed is not None:
            waiting, self._when_closed = self._when_closed, None
            waiting(why)
        self.connection.ioloop.stop()


def when_closed(channel: Channel, act: Callable[[], object]) -> Callable[[Callable[..., None]], object]:
    """Do `act` and wait until the broker closes the channel; the answer is (channel, exception)."""

    def wait(done: Callable[..., None]) -> None:
        channel.add_on_close_callback(done)
        act()

    return wait


class Inbox:
    """Collects what a callback brings, and lets a step wait for a number of them."""

    def __init__(self) -> None:
        self.items: list[object] = []
        self._wanted = 0
        self._done: Callable[..., None] | None = None

    def put(self, item: object) -> None:
        self.items.append(item)
        if self._done is not None and len(self.items) >= self._wanted:
            done, self._done = self._done, None
            done(self.items)

    def wait(self, wanted: int) -> Callable[[Callable[..., None]], object]:
        def wait(done: Callable[..., None]) -> None:
            if len(self.items) >= wanted:
                done(self.items)
            else:
                self._wanted, self._done = wanted, done

        return wait


def own_queue(channel: Channel, **arguments: object) -> Callable[[Callable[..., None]], object]:
    return lambda done: channel.queue_declare("", exclusive=True, arguments=arguments or None, callback=done)


def declare(at: Setting) -> object:
    def step(play: Play) -> Step:
        ch = yield play.channel()
        named = yield lambda done: ch.queue_declare(
            "declare", durable=True, arguments={"x-max-length": 10}, callback=done
        )
        passive = yield lambda done: ch.queue_declare("declare", passive=True, callback=done)
        ch.basic_publish("", "declare", b"x")
        own = yield own_queue(ch)
        purged = yield lambda done: ch.queue_purge("declare", callback=done)
        deleted = yield lambda done: ch.queue_delete("declare", callback=done)
        return {
            "named": declared(named),
            "passive": declared(passive),
            "server_named": own.method.queue.startswith("amq.gen-"),
            "purged": purged.method.message_count,
            "deleted": deleted.method.message_count,
        }

    return Play(at, step).run()


def properties(at: Setting) -> object:
    def step(play: Play) -> Step:
        ch = yield play.channel()
        queue = (yield own_queue(ch)).method.queue
        persistent = {"delivery_mode": DeliveryMode.Persistent.value}
        sent = pika.BasicProperties(headers=dict(HEADERS), **(PROPERTIES | persistent))
        ch.basic_publish("", queue, b"", sent)
        _, _, got, _ = yield lambda done: ch.basic_get(queue, done, auto_ack=True)
        return {"properties": {name: getattr(got, name) for name in PROPERTIES}, "headers": got.headers}

    return Play(at, step).run()


def _confirmed(channel: Channel, inbox: Inbox) -> Callable[[Callable[..., None]], object]:
    """Select confirm mode; a tuple (ack or nack, delivery tag) per message goes to the inbox."""
    told: set[int] = set()

    def on_confirm(frame: pika.frame.Method) -> None:
        method = frame.method
        first = 1 if method.multiple else method.delivery_tag
        # Those up to a tag may have been told one by one already.
        for tag in sorted(set(range(first, method.delivery_tag + 1)) - told):
            told.add(tag)
            inbox.put((method.NAME.rpartition(".")[2].lower(), tag))

    return lambda done: channel.confirm_delivery(on_confirm, callback=done)


def confirms(at: Setting) -> object:
    def step(play: Play) -> Step:
        ch = yield play.channel()
        queue = (yield own_queue(ch)).method.queue
        confirmed = Inbox()
        yield _confirmed(ch, confirmed)
        for _ in range(100):
            ch.basic_publish("", queue, b"x")
        yield confirmed.wait(100)
        in_queue = yield lambda done: ch.queue_declare(queue, passive=True, callback=done)
        tags = {kind: {tag for seen, tag in confirmed.items if seen == kind} for kind in ("ack", "nack")}
        assert tags["ack"] | tags["nack"] == set(range(1, 101))
        return {
            "acked": len(tags["ack"]),
            "nacked": len(tags["nack"]),
            "in_queue": in_queue.method.message_count,
        }

    return Play(at, step).run()


def confirm_nack(at: Setting) -> object:
    def step(play: Play) -> Step:
        ch = yield play.channel()
        full = {"x-max-length": 1, "x-overflow": "reject-publish"}
        queue = (yield own_queue(ch, **full)).method.queue
        confirmed = Inbox()
        yield _confirmed(ch, confirmed)
        for number in (1, 2):
            ch.basic_publish("", queue, b"x")
            yield confirmed.wait(number)
        return [kind for kind, _ in confirmed.items]

    return Play(at, step).run()


def returns(at: Setting) -> object:
    def step(play: Play) -> Step:
        ch = yield play.channel()
        returned = Inbox()
        ch.add_on_return_callback(lambda *message: returned.put(message))
        ch.basic_publish("", "nowhere", b"lost", mandatory=True)
        yield returned.wait(1)
        _, method, _, body = returned.items[0]
        return [method.reply_code, method.reply_text, method.exchange, method.routing_key, body.decode()]

    return Play(at, step).run()


def acks(at: Setting) -> object:
    def step(play: Play) -> Step:
        ch = yield play.channel()
        dead = (yield own_queue(ch)).method.queue
        letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        queue = (yield own_queue(ch, **letters)).method.queue
        for body in (b"one", b"two", b"three"):
            ch.basic_publish("", queue, body)
        yield lambda done: ch.basic_qos(prefetch_count=1, callback=done)
        inbox = Inbox()
        ch.basic_consume(queue, lambda *delivery: inbox.put(delivery))
        seen: list[list[object]] = []
        while len(seen) < 4:
            yield inbox.wait(len(seen) + 1)
            _, method, _, body = inbox.items[len(seen)]
            seen.append([body.decode(), method.redelivered])
            if len(seen) == 1:
                ch.basic_nack(method.delivery_tag, requeue=True)
            elif body == b"two":
                ch.basic_reject(method.delivery_tag, requeue=False)
            else:
                ch.basic_ack(method.delivery_tag)
        _, _, letter, body = yield lambda done: ch.basic_get(dead, done, auto_ack=True)
        return {"deliveries": seen, "dead": [body.decode(), letter.headers["x-death"][0]["reason"]]}

    return Play(at, step).run()


def consume(at: Setting) -> object:
    def step(play: Play) -> Step:
        ch = yield play.channel()
        queue = (yield own_queue(ch)).method.queue
        for number in range(10):
            ch.basic_publish("", queue, f"m{number}".encode())
        inbox = Inbox()
        tag = ch.basic_consume(queue, lambda *delivery: inbox.put(delivery), consumer_tag="reader")
        yield inbox.wait(10)
        ch.basic_ack(0, multiple=True)
        yield lambda done: ch.basic_cancel(tag, callback=done)
        left = yield lambda done: ch.queue_declare(queue, passive=True, callback=done)
        bodies = [body.decode() for _, _, _, body in inbox.items]
        return {"tag": tag, "bodies": bodies, "left": left.method.message_count + left.method.consumer_count}

    return Play(at, step).run()


def tx(at: Setting) -> object:
    def step(play: Play) -> Step:
        ch = yield play.channel()
        queue = (yield own_queue(ch)).method.queue
        yield lambda done: ch.tx_select(callback=done)
        ch.basic_publish("", queue, b"x")
        yield lambda done: ch.tx_rollback(callback=done)
        rolled_back = yield lambda done: ch.queue_purge(queue, callback=done)
        ch.basic_publish("", queue, b"y")
        ch.basic_publish("", queue, b"z")
        yield lambda done: ch.tx_commit(callback=done)
        committed = yield lambda done: ch.queue_purge(queue, callback=done)
        return {"rolled_back": rolled_back.method.message_count, "committed": committed.method.message_count}

    return Play(at, step).run()


def cancel_notify(at: Setting) -> object:
    def step(play: Play) -> Step:
        ch = yield play.channel()
        other = yield play.channel()
        yield lambda done: ch.queue_declare("doomed", callback=done)
        inbox = Inbox()
        ch.add_on_cancel_callback(inbox.put)
        yield lambda done: ch.basic_consume("doomed", lambda *_: None, consumer_tag="watcher", callback=done)
        other.queue_delete("doomed")
        yield inbox.wait(1)
        return inbox.items[0].method.consumer_tag

    return Play(at, step).run()


def bodies(at: Setting) -> object:
    def step(play: Play) -> Step:
        ch = yield play.channel()
        queue = (yield own_queue(ch)).method.queue
        seen = []
        for body in (BIG_BODY, b""):
            ch.basic_publish("", queue, body)
            _, _, _, got = yield lambda done: ch.basic_get(queue, done, auto_ack=True)
            seen.append([len(got), hashlib.sha256(got).hexdigest()])
        return seen

    return Play(at, step).run()


def channel_errors(at: Setting) -> object:
    def step(play: Play) -> Step:
        seen: dict[str, object] = {}
        ch = yield play.channel()
        yield lambda done: ch.queue_declare("errors", durable=True, callback=done)
        acts: list[Callable[[Channel], object]] = [
            lambda ch: ch.queue_declare("nothing", passive=True),
            lambda ch: ch.queue_declare("errors", durable=False),
            lambda ch: ch.exchange_declare("amq.mine"),
        ]
        for act in acts:
            ch = yield play.channel()
            _, why = yield when_closed(ch, lambda act=act, ch=ch: act(ch))
            assert isinstance(why, ChannelClosedByBroker)
            seen[str(why.reply_code)] = why.reply_text
        ch = yield play.channel()
        yield lambda done: ch.queue_delete("errors", callback=done)
        seen["usable"] = play.connection.is_open
        return seen

    return Play(at, step).run()


def exclusive(at: Setting) -> object:
    def step(play: Play) -> Step:
        ch = yield play.channel()
        yield lambda done: ch.queue_declare("mine", exclusive=True, callback=done)

        def intrude(other: Play) -> Step:
            ch = yield other.channel()
            _, why = yield when_closed(ch, lambda: ch.queue_declare("mine", exclusive=True))
            return [why.reply_code, why.reply_text]

        return Play(at, intrude).run()

    return Play(at, step).run()


def wrong_password(at: Setting) -> object:
    return _refusal(at, credentials=pika.PlainCredentials("guest", "wrong"))


def unknown_vhost(at: Setting) -> object:
    return _refusal(at, virtual_host="nowhere")


def _refusal(at: Setting, **changes: object) -> object:
    def step(_: Play) -> Step:
        yield from ()

    try:
        return Play(at, step, **changes).run()
    except pika.exceptions.AMQPConnectionError as error:
        return _code_and_text(error)


def update_secret(at: Setting) -> object:
    def step(play: Play) -> Step:
        yield lambda done: play.connection.update_secret(at.password, "interop", callback=done)
        ch = yield play.channel()
        return declared((yield lambda done: ch.queue_declare("update_secret", exclusive=True, callback=done)))

    return Play(at, step).run()


def blocked(at: Setting) -> object:
    def step(play: Play) -> Step:
        notices = Inbox()
        connection = play.connection
        connection.add_on_connection_blocked_callback(lambda _, frame: notices.put(frame.method.reason))
        connection.add_on_connection_unblocked_callback(lambda *_: notices.put("unblocked"))
        ch = yield play.channel()
        queue = (yield own_queue(ch)).method.queue
        ch.basic_publish("", queue, b"x")
        at.ask("alarm")
        try:
            ch.basic_publish("", queue, b"y")
            yield notices.wait(1)
        finally:
            at.ask("clear")
        yield notices.wait(2)
        return notices.items

    return Play(at, step).run()


def operator_close(at: Setting) -> object:
    def step(play: Play) -> Step:
        at.ask("close")
        why = yield play.broken()
        assert isinstance(why, ConnectionClosedByBroker)
        return [why.reply_code, why.reply_text]

    return Play(at, step).run()


def connection_list(at: Setting) -> object:
    def step(play: Play) -> Step:
        yield play.channel()
        return at.ask("connections")

    return Play(at, step).run()
