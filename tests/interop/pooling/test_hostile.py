"""Whatever a client says, and however it goes: who shares its link keeps it, and is owed nothing.

Each conversation is one burst of bytes on a link with a quiet client on it. Its client waits for what it is
told, hangs up, or resets the connection; and it may move to a connection of its own, or is kept on the link
by a consumer.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator

import attrs
import pytest

from amqpgate.protocol.frames import FRAME_BODY, FRAME_HEADER, encode_frame, method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.interop.pooling.ways import Bystander, Place, opened
from tests.support.frames import content_frames
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import Gone, Talker

VHOST = "hostile"

#: A name that RabbitMQ cuts off inside a character where it repeats it.
LONG_NAME = "x" + "ä" * 120


def m(*methods: Method, channel: int = 1) -> bytes:
    return b"".join(method_frame(channel, method) for method in methods)


def publish(
    key: str = "there",
    exchange: str = "",
    body: bytes = b"x",
    *,
    channel: int = 1,
    immediate: bool = False,
    mandatory: bool = False,
    **properties: object,
) -> bytes:
    method = amqp.BasicPublish(exchange=exchange, routing_key=key, mandatory=mandatory, immediate=immediate)
    return content_frames(channel, method, amqp.BasicProperties(**properties), body, 4096)  # type: ignore[arg-type]


def declare(queue: str = "mine", /, arguments: dict[str, object] | None = None, **options: bool) -> bytes:
    return m(amqp.QueueDeclare(queue=queue, arguments=Table.of(arguments or {}), **options))


def raw_declare(table: bytes) -> bytes:
    payload = b"\0\x32\0\x0a\0\0\x04mine\0" + struct.pack(">I", len(table)) + table
    return encode_frame(1, 1, payload)


def quorum(queue: str) -> bytes:
    return declare(queue, {"x-queue-type": "quorum"}, durable=True)


CLOSE = m(amqp.ChannelClose(200, "enough", 0, 0))
CLOSE_OK = m(amqp.ChannelCloseOk())
OPEN = m(amqp.ChannelOpen())
MISSING = publish(exchange="nothing")
PASSIVE = declare("nothing", passive=True)
CONSUME = m(amqp.BasicConsume(queue="there", consumer_tag="t"))
QOS = m(amqp.BasicQos(prefetch_count=5))
PUBLISH = m(amqp.BasicPublish(routing_key="there"))


def header(flags: int, properties: bytes, size: int = 1) -> bytes:
    return encode_frame(FRAME_HEADER, 1, struct.pack(">HHQH", 60, 0, size, flags) + properties)


BODY = encode_frame(FRAME_BODY, 1, b"x")

CONVERSATIONS: dict[str, bytes] = {
    # Closes that meet.
    "six publishes to no exchange": MISSING * 6,
    "a publish to no exchange, and a close": MISSING + CLOSE,
    "a publish to no exchange, a close, and more": MISSING + CLOSE + publish() + declare(),
    "a publish to no exchange, a close, an open": MISSING + CLOSE + OPEN + publish(),
    "a passive declare of nothing, and an answer to come": PASSIVE + CLOSE_OK + publish(),
    "nothing, on each channel": b"".join(publish(exchange="nothing", channel=n) for n in (1, 2) * 6),
    "a close": CLOSE,
    "a close, and a publish": CLOSE + publish() * 3,
    "a close, and a declare": CLOSE + declare() * 3,
    "a close, and an ack": CLOSE + m(amqp.BasicAck(1)) * 3,
    "a close, and qos": CLOSE + QOS * 3,
    "two closes": CLOSE * 2,
    "six closes": CLOSE * 6,
    "a close and a close-ok": CLOSE + CLOSE_OK,
    "a close, and an open at once": CLOSE + OPEN + publish(),
    "work, a close, and a publish": declare() + CLOSE + publish(),
    "work, two closes": declare() + QOS + CLOSE * 2,
    "work, a close, and half a message": declare() + CLOSE + PUBLISH,
    "an error, and half a message": MISSING + PUBLISH,
    "an error within a message of another channel": m(amqp.BasicPublish(routing_key="there"), channel=2)
    + MISSING
    + CLOSE,
    "a close-ok that nobody waits for": CLOSE_OK,
    "a close-ok, and more": CLOSE_OK + publish(),
    "a close by no-wait and an error": declare("nothing", passive=True, no_wait=True) + CLOSE,
    # Channels.
    "a second open": OPEN,
    "a channel that is not open": m(amqp.BasicQos(), channel=77),
    "a publish on a channel that is not open": publish(channel=77),
    "an open on no channel": m(amqp.ChannelOpen(), channel=0),
    "an open on the last channel of all": m(amqp.ChannelOpen(), channel=65535),
    "flow off": m(amqp.ChannelFlow(False)),
    "flow on": m(amqp.ChannelFlow(True)),
    "flow-ok": m(amqp.ChannelFlowOk(True)),
    "an answer": m(amqp.QueueDeclareOk(queue="there")),
    "a delivery": m(amqp.BasicDeliver("t", 1, False, "", "there")) + header(0, b"") + BODY,
    "an open-ok": m(amqp.ChannelOpenOk()),
    "a cancel-ok": m(amqp.BasicCancelOk("t")),
    # The connection's own.
    "start-ok": m(amqp.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest"), channel=0),
    "secure-ok": m(amqp.ConnectionSecureOk(b""), channel=0),
    "tune-ok": m(amqp.ConnectionTuneOk(), channel=0),
    "open again": m(amqp.ConnectionOpen("/"), channel=0),
    "close-ok of the connection": m(amqp.ConnectionCloseOk(), channel=0),
    "blocked": m(amqp.ConnectionBlocked("x"), channel=0),
    "update-secret": m(amqp.ConnectionUpdateSecret(b"guest", "x"), channel=0),
    "a close of the connection on a channel": m(amqp.ConnectionClose(200, "x", 0, 0)),
    "a close, and more": m(amqp.ConnectionClose(200, "x", 0, 0), channel=0) + publish() + CLOSE,
    "a queue on no channel": m(amqp.QueueDeclare(queue="q"), channel=0),
    # Frames.
    "an unknown method": encode_frame(1, 1, b"\0\x3c\x01\x00"),
    "an unknown class": encode_frame(1, 1, b"\0\xff\0\x0a"),
    "a method of two bytes": encode_frame(1, 1, b"\0\x3c"),
    "a method that goes on": m(amqp.BasicQos())[:-1] + b"x\xce",
    "bytes behind a method": encode_frame(1, 1, m(amqp.BasicQos())[7:-1] + b"more"),
    "bytes behind an ack": encode_frame(1, 1, m(amqp.BasicAck(1))[7:-1] + b"more"),
    "half an ack": encode_frame(1, 1, m(amqp.BasicAck(1))[7:-3]),
    "a frame of type 4": encode_frame(4, 1, b"x"),
    "a heartbeat on a channel": encode_frame(8, 1, b""),
    "a heartbeat with bytes": encode_frame(8, 0, b"x"),
    "a frame of 4 GiB": b"\x01\0\x01\xff\xff\xff\xff",
    "a frame beyond frame-max": encode_frame(1, 1, m(amqp.BasicQos())[7:-1] + b"\0" * 200_000),
    "a body frame beyond frame-max": PUBLISH + header(0, b"", 400_000) + encode_frame(3, 1, b"\0" * 200_000),
    "content on channel 0": encode_frame(FRAME_BODY, 0, b"x"),
    # Content.
    "a header that nobody asked for": header(0, b""),
    "a body that nobody asked for": BODY,
    "a body without a header": PUBLISH + BODY,
    "two headers": PUBLISH + header(0, b"") + header(0, b""),
    "a method within a message": PUBLISH + QOS,
    "a message within a message": PUBLISH + header(0, b"", 99) + BODY + publish(),
    "a body that is too long": PUBLISH + header(0, b"") + encode_frame(FRAME_BODY, 1, b"xx"),
    "a size beyond all": PUBLISH + header(0, b"", 2**64 - 1),
    "a size of 200 MiB": PUBLISH + header(0, b"", 200 << 20) + BODY,
    "headers with an unknown type": PUBLISH + header(0x2000, b"\0\0\0\x07\x01a?1234") + BODY,
    "headers with a short string": PUBLISH + header(0x2000, b"\0\0\0\x05\x01as\x01x") + BODY,
    "headers in 100 tables": publish(headers=Table.of({"a": [[[[[[[[[[{"b": "c"}]]]]]]]]]]})),
    "CC that is a text": publish(headers=Table.of({"CC": "there"})),
    "BCC that is a number": publish(headers=Table.of({"BCC": [1, 2]})),
    "delivery mode 0": publish(delivery_mode=0),
    "delivery mode 200": publish(delivery_mode=200),
    "an expiration that is none": publish(expiration="soon"),
    "a negative expiration": publish(expiration="-1"),
    "another user": publish(user_id="mallory"),
    "a reply-to without a consumer": publish(reply_to="amq.rabbitmq.reply-to"),
    "a key that is no text": encode_frame(1, 1, b"\0\x3c\0\x28\0\0\0\x02\xff\xfe\0") + header(0, b"") + BODY,
    "an exchange that is no text": encode_frame(1, 1, b"\0\x3c\0\x28\0\0\x02\xff\xfe\0\0")
    + header(0, b"")
    + BODY,
    "an exchange with a line break": publish(exchange="a\nb"),
    # What RabbitMQ ends a connection for.
    "immediate": publish(immediate=True),
    "a prefetch size": m(amqp.BasicQos(prefetch_size=9)),
    "recover without requeue": m(amqp.BasicRecover(False)),
    "recover without requeue or answer": m(amqp.BasicRecoverAsync(False)),
    "recover": m(amqp.BasicRecover(True), amqp.BasicRecoverAsync(True)),
    "an unknown type of exchange": m(amqp.ExchangeDeclare(exchange="e", type="nonsense")),
    "an unknown type of a plug-in's": m(amqp.ExchangeDeclare(exchange="e", type="x-nonsense")),
    "no type of exchange": m(amqp.ExchangeDeclare(exchange="e", type="")),
    "an unknown type of a passive declare": m(
        amqp.ExchangeDeclare(exchange="amq.direct", type="nonsense", passive=True)
    ),
    "a queue of a quorum deleted if unused": quorum("quorum")
    + m(amqp.QueueDelete(queue="quorum", if_unused=True)),
    "a queue of a quorum deleted if empty": quorum("quorum")
    + m(amqp.QueueDelete(queue="quorum", if_empty=True)),
    "global qos, and a consumer of a quorum": quorum("quorum")
    + m(amqp.BasicQos(prefetch_count=5, global_=True), amqp.BasicConsume(queue="quorum", consumer_tag="q")),
    "global qos behind a consumer of a quorum": quorum("quorum")
    + QOS
    + m(amqp.BasicConsume(queue="quorum", consumer_tag="q"), amqp.BasicQos(prefetch_count=5, global_=True)),
    "a stream without acknowledgements": declare("stream", {"x-queue-type": "stream"}, durable=True)
    + QOS
    + m(amqp.BasicConsume(queue="stream", consumer_tag="s", no_ack=True)),
    "get from a stream": declare("stream", {"x-queue-type": "stream"}, durable=True)
    + m(amqp.BasicGet(queue="stream")),
    "global qos, and a stream": declare("stream", {"x-queue-type": "stream"}, durable=True)
    + m(amqp.BasicQos(prefetch_count=5, global_=True), amqp.BasicConsume(queue="stream", consumer_tag="s")),
    "a purge of a stream": declare("stream", {"x-queue-type": "stream"}, durable=True)
    + m(amqp.QueuePurge(queue="stream")),
    "a stream from nowhere": declare("stream", {"x-queue-type": "stream"}, durable=True)
    + QOS
    + m(
        amqp.BasicConsume(
            queue="stream", consumer_tag="s", arguments=Table.of({"x-stream-offset": "nowhere"})
        )
    ),
    "a stream that is deleted if unused": declare("stream2", {"x-queue-type": "stream"}, durable=True)
    + m(amqp.QueueDelete(queue="stream2", if_unused=True)),
    # Arguments.
    "an exclusive queue of a quorum": declare("q1", {"x-queue-type": "quorum"}, durable=True, exclusive=True),
    "a queue of a quorum that is not durable": declare("q2", {"x-queue-type": "quorum"}),
    "an unknown type of queue": declare("q3", {"x-queue-type": "nonsense"}),
    "a type of queue that is a number": declare("q3", {"x-queue-type": 7}),
    "an unknown locator": declare("q4", {"x-queue-master-locator": "nonsense"}),
    "a locator that is a number": declare("q4", {"x-queue-master-locator": 7}),
    "an unknown locator of leaders": declare("q5", {"x-queue-leader-locator": "nonsense"}, durable=True),
    "an unknown locator of a quorum's": declare(
        "q6", {"x-queue-type": "quorum", "x-queue-leader-locator": "nonsense"}, durable=True
    ),
    "no members": declare("q7", {"x-queue-type": "quorum", "x-quorum-initial-group-size": 0}, durable=True),
    "a negative length": declare("q8", {"x-max-length": -1}),
    "a length that is a text": declare("q9", {"x-max-length": "many"}),
    "a time to live beyond all": declare("q10", {"x-message-ttl": 2**62}),
    "no expiry": declare("q11", {"x-expires": 0}),
    "a thousand priorities": declare("q12", {"x-max-priority": 1000}),
    "negative priorities": declare("q12", {"x-max-priority": -1}),
    "a dead-letter exchange that is a number": declare("q13", {"x-dead-letter-exchange": 7}),
    "a dead-letter key without its exchange": declare("q14", {"x-dead-letter-routing-key": "k"}),
    "a dead-letter exchange that is a table": declare("q13", {"x-dead-letter-exchange": {"a": 1}}),
    "an unknown overflow": declare("q15", {"x-overflow": "nonsense"}),
    "an unknown mode": declare("q16", {"x-queue-mode": "nonsense"}),
    "a mode that is a table": declare("q16", {"x-queue-mode": {"a": 1}}),
    "an unknown version": declare("q17", {"x-queue-version": 77}),
    "one consumer that is a text": declare("q18", {"x-single-active-consumer": "yes"}),
    "an age that is none": declare("q19", {"x-queue-type": "stream", "x-max-age": "soon"}, durable=True),
    "an alternate exchange that is a number": m(
        amqp.ExchangeDeclare(exchange="e2", type="direct", arguments=Table.of({"alternate-exchange": 7}))
    ),
    "a priority that is a text": QOS
    + m(amqp.BasicConsume(queue="there", consumer_tag="p", arguments=Table.of({"x-priority": "high"}))),
    "an argument of an unsigned type": raw_declare(b"\x01aU\0\x01"),
    "an argument of a short string": raw_declare(b"\x01as\x01x"),
    "an argument of no type": raw_declare(b"\x01a?1234"),
    "an argument of an infinite number": raw_declare(b"\x01ad\x7f\xf0\0\0\0\0\0\0"),
    "an argument that is a signalling NaN": raw_declare(b"\x01af\x7f\x80\0\x01"),
    "an argument without a name": raw_declare(b"\0S\0\0\0\x01x"),
    "an argument twice": raw_declare(b"\x01aS\0\0\0\x01x\x01aS\0\0\0\x01y"),
    "an argument that is no text": raw_declare(b"\x02\xff\xfeS\0\0\0\x02\xff\xfe"),
    "x-match that is none": m(
        amqp.ExchangeDeclare(exchange="amq.headers", type="headers", passive=True),
        amqp.QueueBind(queue="there", exchange="amq.headers", arguments=Table.of({"x-match": "some"})),
    ),
    "x-match that is a number": m(
        amqp.QueueBind(queue="there", exchange="amq.headers", arguments=Table.of({"x-match": 7}))
    ),
    "a mirror of a queue": declare("q20", {"x-ha-policy": "all"}),
    # Names.
    "a name that RabbitMQ cuts off": declare(LONG_NAME, passive=True),
    "a name that RabbitMQ cuts off elsewhere": m(amqp.BasicGet(queue="ä" * 127)),
    "an exchange that RabbitMQ cuts off": publish(exchange=LONG_NAME),
    "a queue that is no text": encode_frame(1, 1, b"\0\x32\0\x0a\0\0\x02\xff\xfe\0\0\0\0\0"),
    "a close that is no text": encode_frame(1, 1, b"\0\x14\0\x28\0\xc8\x02\xff\xfe\0\0\0\0"),
    "a tag that is no text": encode_frame(1, 1, b"\0\x3c\0\x1e\x02\xff\xfe\0"),
    "a reserved name": declare("amq.mine"),
    "a reserved exchange": m(amqp.ExchangeDeclare(exchange="amq.mine", type="direct")),
    "the default exchange": m(amqp.ExchangeDeclare(exchange="", type="direct")),
    "a delete of the default exchange": m(amqp.ExchangeDelete(exchange="")),
    "a binding to the default exchange": m(amqp.QueueBind(queue="there", exchange="")),
    "a binding of exchanges to nothing": m(amqp.ExchangeBind(destination="nothing", source="amq.direct")),
    "the queue declared last, where there is none": m(amqp.QueueBind(queue="", exchange="amq.direct")),
    # Consumers, transactions, confirms.
    "a tag used twice": QOS + CONSUME * 2,
    "a tag used twice without an answer": QOS
    + m(amqp.BasicConsume(queue="there", consumer_tag="n", no_wait=True)) * 2,
    "a tag used while it is cancelled": QOS + CONSUME + m(amqp.BasicCancel("t")) + CONSUME,
    "a tag cancelled twice": m(amqp.BasicCancel("t"), amqp.BasicCancel("t", no_wait=True)),
    "an exclusive consumer beside another": QOS
    + CONSUME
    + m(amqp.BasicConsume(queue="there", consumer_tag="e", exclusive=True)),
    "consumers of replies": m(
        amqp.BasicConsume(queue="amq.rabbitmq.reply-to", consumer_tag="r", no_ack=True),
        amqp.BasicConsume(queue="amq.rabbitmq.reply-to", consumer_tag="s", no_ack=True),
    ),
    "a consumer of replies that acknowledges": QOS
    + m(amqp.BasicConsume(queue="amq.rabbitmq.reply-to", consumer_tag="r")),
    "an unknown tag acknowledged": m(amqp.BasicAck(77)),
    "all acknowledged, where there is nothing": m(amqp.BasicAck(0, multiple=True)),
    "an unknown tag rejected": m(amqp.BasicReject(77)),
    "an unknown tag of all": m(amqp.BasicNack(2**64 - 1, multiple=True)),
    "an ack six times": m(amqp.BasicAck(77)) * 6 + CLOSE,
    "a commit without a transaction": m(amqp.TxCommit()),
    "a rollback without a transaction": m(amqp.TxRollback()),
    "confirms in a transaction": m(amqp.TxSelect(), amqp.ConfirmSelect()),
    "a transaction in confirm mode": m(amqp.ConfirmSelect(), amqp.TxSelect()),
    "a transaction that fails": m(amqp.TxSelect()) + MISSING + m(amqp.TxCommit()),
    "confirms without an answer, twice": m(amqp.ConfirmSelect(no_wait=True)) * 2 + publish(),
    "confirms, and no exchange": m(amqp.ConfirmSelect()) + MISSING * 6,
    "credit": encode_frame(1, 1, b"\0\x3c\0\x82\x01t" + b"\0\0\0\x01\0"),
    "access": m(amqp.AccessRequest(realm="/data", active=True)),
    "mandatory, and nobody there": publish("nobody", mandatory=True),
    "a queue and its deletion": declare() + m(amqp.QueueDelete(queue="mine"), amqp.QueueDelete(queue="mine")),
    "an exclusive queue of another's": declare("its", exclusive=True),
}

ENDS = ("waits", "hangs up", "resets")


@attrs.define(eq=False)
class Street:
    """One link, and who shares it."""

    place: Place
    bystander: Bystander = attrs.field(init=False)
    #: Of the link.
    pid: str = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.meet()

    def meet(self) -> None:
        """A quiet client on the link, where there is one."""
        before = self.place.connections()
        self.bystander = self.place.bystander()
        # Of several, nobody knows which. What a session had of its own may not be gone yet.
        self.pid = (sorted(set(self.place.connections()) - set(before)) or before)[0]

    def lives(self) -> None:
        """The quiet client and its link are as they were."""
        self.bystander.lives()
        assert self.pid in self.place.connections()


@pytest.fixture(scope="module")
def street(rabbitmq: RabbitMQ) -> Iterator[Street]:
    rabbitmq.fresh_vhost(VHOST)
    with opened("pooled", rabbitmq, maxLinks=1) as way:
        place = Place(way, VHOST)
        street = Street(place)
        street.bystander.client.ask(amqp.QueueDeclare(queue="there"), amqp.QueueDeclareOk, 1)
        place.witness().ask(amqp.QueueDeclare(queue="its", exclusive=True), amqp.QueueDeclareOk, 1)
        yield street
        for client in place.clients:
            client.close()
    rabbitmq.eval(f'rabbit_vhost:delete(<<"{VHOST}">>, <<"guest">>).')


def hear(client: Talker) -> None:
    """What it is told, until nothing comes for a moment, or the end."""
    client.sock.settimeout(0.1)
    with contextlib.suppress(Gone, TimeoutError):
        while True:
            client.frame()


def converse(place: Place, data: bytes, end: str, *, is_kept: bool) -> None:
    client = place.client(channels=2)
    place.clients.remove(client)
    with client:
        if is_kept:
            client.ask(amqp.BasicQos(prefetch_count=1), amqp.BasicQosOk, 2)
            consume = amqp.BasicConsume(queue="there", consumer_tag="kept")
            client.ask(consume, amqp.BasicConsumeOk, 2)
        with contextlib.suppress(OSError):
            client.raw(data)
        if end == "waits":
            hear(client)
        if end == "resets":
            client.reset()


@pytest.mark.parametrize("what", CONVERSATIONS)
def test_a_hostile_client_ends_nobody_elses_link(street: Street, what: str) -> None:
    try:
        for is_kept in (False, True):
            for end in ENDS:
                for _ in range(1 + (end == "hangs up")):
                    converse(street.place, CONVERSATIONS[what], end, is_kept=is_kept)
                    street.bystander.lives()
        street.lives()
    except BaseException:
        street.meet()
        raise
