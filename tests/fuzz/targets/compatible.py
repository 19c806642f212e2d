"""Clients of RabbitMQ 3 before a broker that says what it likes, with everything that a compatibility policy
does: the gateway goes on, what arrives was sent, and both get whole messages."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import attrs
import trio

from amqpgate.gateway.objects.store import StoreError
from amqpgate.gateway.objects.threads import StoreThreads, Work
from amqpgate.gateway.server import policy_fit
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.gateway.session import deaths, delay_ladder, delayed_messages
from amqpgate.gateway.session.claim_reference import BODY, CLAIM, VARIABLE, ClaimKeys, Reference
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Field, Table
from tests.fuzz.choices import Choices
from tests.fuzz.frames import KEYS
from tests.fuzz.stage.broker import Broker, Link, Message
from tests.fuzz.stage.client import Speaker
from tests.fuzz.stage.running import Client, Stage, play
from tests.fuzz.targets.brokers import Teller
from tests.fuzz.targets.sessions import may_all, policies, sent_by
from tests.support.frames import content_frames
from tests.unit.gateway.objects.fake import FakeStore

MOST = 400
TOKENS = (b"\0\0\0\0", b"\0\x06\0")
STEPS = 24

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: CompatibilityPolicy
metadata: {name: three}
spec:
  subjects: [{user: "*"}]
  as: rabbitmq-3.13
  nacks: count
  deliveryLimits: [{queue: {prefix: limited}, limit: -1}]
  quorumQueues: [{queue: {prefix: mirrored}}]
  delayedExchanges: [{exchange: {prefix: later}}]
  claimCheck: {store: "s3://bucket/prefix", above: 64Ki, timeout: 5s}
"""
SECRET: Final = "k" * 32
#: No client's message of more fits the broker.
LARGE: Final = 70_000

T = TypeVar("T")

_DELAYS: Final = tuple(
    Field(tag, value)
    for tag, value in (
        ("I", 5000),
        ("I", 0),
        ("I", -7),
        ("l", 2**32 - 1),
        ("l", 2**32),
        ("b", 5),
        ("t", True),
        ("d", 1e300),
        ("d", float("nan")),
        ("S", "500"),
        ("S", "soon"),
        ("S", "9" * 200),
        ("V", None),
        ("A", ()),
    )
)
_DEATH: Final = Table.of({"queue": "q", "reason": "expired", "count": 3, "exchange": "x"})
_DEATHS: Final = (
    Field("A", (Field("F", _DEATH),)),
    Field("A", (Field("F", _DEATH), Field("I", 7), Field("F", Table(())))),
    Field("A", ()),
    Field("S", "none"),
    Field("A", (Field("F", _DEATH.with_("queue", delay_ladder.rung_name(9))),) * 3),
)

ASKED: Final[tuple[Method, ...]] = (
    amqp.QueueDeclare(queue="transient"),
    amqp.QueueDeclare(queue="mirrored", durable=True),
    amqp.QueueDeclare(queue="mirrored.own", exclusive=True, auto_delete=True),
    amqp.QueueDeclare(queue="limited", durable=True, arguments=Table.of({"x-queue-type": "quorum"})),
    amqp.QueueDeclare(queue="", arguments=Table.of({"x-queue-master-locator": "min-masters"})),
    amqp.QueueDeclare(
        queue="old", durable=True, arguments=Table.of({"x-queue-version": 1, "x-ha-policy": "all"})
    ),
    amqp.QueueDelete(queue="mirrored", if_unused=True),
    amqp.QueueDelete(queue="mirrored", if_empty=True, no_wait=True),
    amqp.ExchangeDeclare(
        exchange="later", type="x-delayed-message", arguments=Table.of({"x-delayed-type": "topic"})
    ),
    amqp.ExchangeDeclare(exchange="later.odd", type="x-delayed-message"),
    amqp.ExchangeDeclare(
        exchange="later", type="x-delayed-message", no_wait=True, arguments=Table.of({"x-delayed-type": 7})
    ),
    amqp.BasicQos(prefetch_count=2, global_=True),
    amqp.BasicQos(prefetch_count=0, global_=True),
    amqp.BasicQos(prefetch_count=9, global_=True),
    amqp.BasicQos(prefetch_count=1),
    amqp.BasicQos(prefetch_size=1, global_=True),
    amqp.BasicConsume(queue="q", consumer_tag="t"),
    amqp.BasicConsume(queue="mirrored", consumer_tag="u", no_wait=True),
    amqp.BasicConsume(queue="q"),
    amqp.BasicConsume(queue="q", no_ack=True, consumer_tag="a"),
    amqp.BasicCancel("t"),
    amqp.BasicCancel("u", no_wait=True),
    amqp.BasicGet(queue="q"),
    amqp.BasicNack(1, requeue=True),
    amqp.BasicNack(0, multiple=True, requeue=True),
    amqp.BasicNack(3, multiple=True, requeue=True),
    amqp.BasicAck(2, multiple=True),
    amqp.BasicAck(1),
    amqp.BasicReject(2, requeue=True),
    amqp.BasicRecover(True),
    amqp.ConfirmSelect(),
    amqp.TxSelect(),
    amqp.TxCommit(),
    amqp.ChannelFlow(False),
    amqp.ChannelFlow(True),
    amqp.ChannelOpen(),
    amqp.ChannelClose(200, "bye"),
)
ANSWERS: Final[tuple[Method, ...]] = (
    amqp.BasicQosOk(),
    amqp.BasicConsumeOk("t"),
    amqp.BasicConsumeOk("amq.ctag-made"),
    amqp.BasicCancelOk("t"),
    amqp.BasicCancel("u"),
    amqp.QueueDeclareOk("mirrored", 0, 0),
    amqp.QueueDeclareOk("mirrored", 3, 1),
    amqp.QueueDeleteOk(3),
    amqp.ChannelClose(404, "NOT_FOUND", 50, 10),
    amqp.ChannelClose(406, "PRECONDITION_FAILED", 60, 40),
    amqp.ExchangeDeclareOk(),
    amqp.BasicAck(2, multiple=True),
    amqp.BasicNack(1),
)


@attrs.define(eq=False)
class InlineThreads(StoreThreads):
    """What would take a thread is done at once, so that the same input does the same; it ends as ever."""

    token: trio.lowlevel.TrioToken = attrs.field(factory=trio.lowlevel.current_trio_token)

    def start(
        self,
        kind: Work,
        work: Callable[[], T],
        done: Callable[[T | StoreError], None],
        undo: Callable[[T], None] | None = None,
    ) -> bool:
        result: T | StoreError
        try:
            result = work()
        except StoreError as error:
            result = error
        self.soon(lambda: done(result))
        return True

    def soon(self, call: Callable[[], None]) -> None:
        self.token.run_sync_soon(call)


class RabbitMQ3Client(Speaker):
    """Says what RabbitMQ 4 does otherwise, mostly."""

    def some(self, number: int) -> bytes:
        choices = self.choices
        what = choices.below(8)
        if what == 0:
            return super().some(number)
        channel = choices.pick((1, 1, 2))
        if what < 5:
            return method_frame(channel, choices.pick(ASKED))
        entries: list[tuple[str, Field]] = []
        if choices.flag():
            entries.append((delayed_messages.DELAY, choices.pick(_DELAYS)))
        if choices.flag():
            entries.append((deaths.DEATHS, choices.pick(_DEATHS)))
        if choices.rarely():
            entries.append((choices.pick((CLAIM, deaths.SAVED, delay_ladder.TARGET)), Field("S", "made up")))
        properties = amqp.BasicProperties(
            headers=Table(tuple(entries)) if entries or choices.flag() else None,
            expiration=choices.pick((None, "60000", "")),
        )
        publish = amqp.BasicPublish(0, choices.pick(("later", "x", "later.odd", "yy")), choices.pick(KEYS))
        body = b"%d." % number + b"." * choices.pick((0, 30, LARGE, 3 * LARGE))
        return content_frames(channel, publish, properties, body, choices.pick((4096, 131072)))


class RabbitMQ4(Teller):
    """Delivers what has been through the ladder, references, and deaths that count on."""

    def __init__(self, choices: Choices, store: FakeStore) -> None:
        super().__init__(choices)
        self.store = store
        self.tag = 0

    def some(self) -> bytes:
        choices = self.choices
        what = choices.below(8)
        channel = choices.pick((1, 1, 2))
        if what == 0:
            return super().some()
        if what == 1:
            return method_frame(channel, choices.pick(ANSWERS))
        body = choices.some(20)
        entries: list[tuple[str, Field]] = []
        if choices.flag():
            target = choices.pick((Field("S", "later"), Field("S", b"\xff"), Field("I", 1)))
            entries.append((delay_ladder.TARGET, target))
            entries.append((delayed_messages.ID, Field("l", choices.below(3))))
            entries.append((deaths.DEATHS, choices.pick(_DEATHS)))
        if choices.flag():
            saved = Field("F", Table(((deaths.DEATHS, choices.pick(_DEATHS)),)))
            entries.append((deaths.SAVED, choices.pick((saved, Field("S", "x")))))
        if choices.flag():
            entries.append((CLAIM, Field("S", self._reference())))
            body = BODY
        properties = amqp.BasicProperties(headers=Table(tuple(entries)))
        self.tag += 1
        tag = self.tag if choices.below(8) else choices.byte()
        exchange = choices.pick(("later", delay_ladder.DONE, "x"))
        method: Method
        match choices.below(6):
            case 0:
                method = amqp.BasicGetOk(tag, choices.flag(), exchange, "k", 0)
            case 1:
                method = amqp.BasicReturn(312, "NO_ROUTE", exchange, "k")
            case _:
                consumer = choices.pick(("t", "u", "a", "t"))
                method = amqp.BasicDeliver(consumer, tag, choices.flag(), exchange, "k")
        frames = content_frames(channel, method, properties, body, choices.pick((4096, 16)))
        return frames if choices.below(8) else frames[: choices.below(len(frames))]

    def _reference(self) -> str:
        """To a body that is there, to another one than it should be, or to none."""
        choices = self.choices
        keys = ClaimKeys.of({VARIABLE: SECRET if choices.below(8) else "o" * 32})
        key = "0" * 16 + "/" + f"{choices.below(3):032x}"
        if choices.flag():
            self.store.objects[f"prefix/{key}"] = b"b" * choices.pick((0, 2000, 70_000))
        size = choices.pick((2000, 0, 1 << 62))
        return keys.sign(Reference(key, size, "0" * 64, choices.flag()), "/")


def seeds() -> Iterator[bytes]:
    """Each request and each answer; deliveries with all that they may have."""
    for number in range(len(ASKED)):
        yield bytes((0, 0)) + bytes((1, 1, 0, number, 1, 1, 0, 16, 1)) * 5
    for number in range(len(ANSWERS)):
        yield bytes((1, 0)) + bytes((1, 3, 0, number, 2, 1, 0, number, 0, 1)) * 4
    for odd in range(24):
        yield bytes((odd & 1, 0)) + bytes((odd % 3, 5, 0, odd, 1, odd % 14, 1, odd % 5, 1, 2, 0, 2)) * 6


def check(data: bytes) -> None:
    """Play it."""
    choices = Choices(data)
    flags = choices.byte()
    is_hostile = bool(flags & 1)
    more = ", connections: pooled" if flags & 2 else ""
    store = FakeStore()
    broker = Broker(False, may_all, is_hostile=is_hostile)
    teller = RabbitMQ4(choices, store)

    async def scenario(stage: Stage) -> None:
        client = stage.client()
        for piece in Speaker(Choices(b"")).handshake():
            client.send(piece)
            await stage.settle()
        speaker = RabbitMQ3Client(choices)
        for number in range(STEPS):
            if not choices or not client.is_open:
                break
            links: list[Link] = [link for link in broker.links if link.is_open]
            if is_hostile and links and choices.flag():
                links[-1].send(teller.some())
            else:
                client.send(speaker.some(number))
            if choices.flag():
                await stage.settle()
        await stage.settle()
        whole(client)
        if not is_hostile:
            arrived(stage, client, store)
            return
        # Half a frame is waited for as long as the broker is there.
        for link in broker.links:
            link.close()

    def prepare(gateway: Gateway) -> None:
        stores = gateway.registry.claim_checks.stores
        stores.threads = InlineThreads()
        stores.connect = lambda *_: store

    before, os.environ[VARIABLE] = os.environ.get(VARIABLE), SECRET
    spec, policy_fit.find_spec = policy_fit.find_spec, lambda _: object()  # type: ignore[attr-defined]
    try:
        play(scenario, broker, more=more, policies=policies(POLICY), prepare=prepare)
    finally:
        policy_fit.find_spec = spec
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def whole(client: Client) -> None:
    """What a client gets are whole messages: a method with content, its header, its bodies, nothing between
    of the same channel."""
    left: dict[int, int | None] = {}
    contents = {amqp.BasicDeliver.INDEX, amqp.BasicGetOk.INDEX, amqp.BasicReturn.INDEX}
    for frame in client.frames:
        number, payload = frame.channel, bytes(frame.payload)
        if frame.type == amqp.FRAME_METHOD:
            index = int.from_bytes(payload[:4], "big")
            if index in (amqp.ChannelClose.INDEX, amqp.ChannelCloseOk.INDEX):
                # It may be between the halves of a message.
                left.pop(number, None)
            assert number not in left, f"a method within a message on {number}"
            if index in contents:
                left[number] = None
        elif frame.type == amqp.FRAME_HEADER:
            assert left.get(number, 0) is None, f"a header that nothing announced on {number}"
            left[number] = int.from_bytes(payload[4:12], "big")
        elif frame.type == amqp.FRAME_BODY:
            rest = left.get(number)
            assert rest, f"a body that nothing announced on {number}"
            left[number] = rest - len(payload)
        if left.get(number) == 0:
            del left[number]
        assert (left.get(number) or 0) >= 0, f"more body than was announced on {number}"


def arrived(stage: Stage, client: Client, store: FakeStore) -> None:
    """Of each channel, the broker has what was sent, in that order; nothing twice, nothing else."""
    sent = sent_by(client)
    for link in stage.broker.links:
        for number in {number for number, _ in link.messages}:
            left = iter(sent.get(number, []))
            for of, message in link.messages:
                if of == number:
                    body = body_of(message, store)
                    assert any(one.body == body for one in left), (
                        f"{message} was not sent on {number}, or late"
                    )


def body_of(message: Message, store: FakeStore) -> bytes:
    """A message's body, wherever it is."""
    headers = None if message.properties is None else message.properties.headers
    claim = None if headers is None else headers.get(CLAIM)
    if not isinstance(claim, str) or message.body != BODY:
        return message.body
    reference = ClaimKeys.of({VARIABLE: SECRET}).read(claim, "/")
    assert reference is not None, claim
    return next(data for key, data in store.objects.items() if key.endswith(reference.key))
