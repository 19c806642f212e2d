"""The ways to a broker that are compared, and a place on one of them for each test."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

import attrs

from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.interop.brokers import running
from tests.interop.pooling.careless import Careless
from tests.support.gateway import Gateway
from tests.support.rabbitmq import RabbitMQ
from tests.support.talker import CAPABILITIES, Gone, Talker

WAYS = ("direct", "own", "pooled")

CONFIG = """
listeners: [{{name: main, bind: "127.0.0.1:{{port}}"}}]
upstreams: [{{name: broker, url: "amqp://{address}"{pooled}}}]
admin: {{bind: "127.0.0.1:{{admin_port}}"}}
limits: {{drainTimeout: 1s, maxConnections: 12000}}
"""


def pooled_by(settings: Mapping[str, object]) -> str:
    """What an upstream says to be pooled."""
    pool = ", ".join(f"{name}: {value}" for name, value in settings.items())
    return f", connections: pooled, pool: {{{pool}}}"


@contextlib.contextmanager
def gateway(way: str, address: str, **pool: object) -> Iterator[Gateway]:
    """A gateway before the broker at `address`, `own` or `pooled` with these settings of its pools."""
    # Consumers share here, since it is they who can get into each other's way.
    pooled = pooled_by({"consumers": "shared"} | pool) if way == "pooled" else ""
    with running(CONFIG.format(address=address, pooled=pooled)) as it:
        yield it


@attrs.frozen
class Way:
    """A port that leads to the broker, and how."""

    name: str
    port: int
    rabbitmq: RabbitMQ
    gateway: Gateway | None = None

    @property
    def is_pooled(self) -> bool:
        return self.name in ("pooled", "careless")


@contextlib.contextmanager
def opened(name: str, rabbitmq: RabbitMQ, **pool: object) -> Iterator[Way]:
    """The way of that name."""
    if name == "careless":
        with Careless(rabbitmq.port) as careless:
            yield Way(name, careless.port, rabbitmq)
        return
    if name == "direct":
        yield Way(name, rabbitmq.port, rabbitmq)
        return
    with gateway(name, rabbitmq.address, **pool) as it:
        yield Way(name, it.port, rabbitmq, it)


@attrs.define(eq=False)
class Place:
    """One test's vhost on one way: its clients share links with nobody else."""

    way: Way
    vhost: str
    #: Seconds that a client waits for anything.
    patience: float = 20
    clients: list[Talker] = attrs.field(factory=list)
    _numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1))

    @property
    def rabbitmq(self) -> RabbitMQ:
        return self.way.rabbitmq

    def dial(self, **options: object) -> Talker:
        """Connected, and silent. Closed at the end of the test."""
        client = Talker.dial(self.way.port, timeout=self.patience, **options)  # type: ignore[arg-type]
        self.clients.append(client)
        return client

    def client(
        self,
        channels: int = 1,
        *,
        user: str = "guest",
        password: str = "guest",
        properties: Table = CAPABILITIES,
        **options: object,
    ) -> Talker:
        """A client with open channels 1 to `channels`."""
        client = self.dial(**options)
        client.open(vhost=self.vhost, channels=channels, user=user, password=password, properties=properties)
        return client

    def witness(self) -> Talker:
        """A client of the broker itself, on every way."""
        client = Talker.dial(self.rabbitmq.port)
        self.clients.append(client)
        client.open(vhost=self.vhost)
        return client

    def connections(self) -> list[str]:
        """The broker's connections in this vhost, by their process ids."""
        text = self.rabbitmq.eval(
            "[pid_to_list(Pid) || [{pid, Pid}, {vhost, Vhost}] <-"
            f' rabbit_networking:connection_info_all([pid, vhost]), Vhost =:= <<"{self.vhost}">>].'
        )
        return sorted(re.findall(r"<[\d.]+>", text))

    def close(self, connections: Iterable[str], reason: str) -> None:
        """Close these, as `rabbitmqctl close_connection` does."""
        for pid in connections:
            self.rabbitmq.eval(f'rabbit_networking:close_connection(list_to_pid("{pid}"), <<"{reason}">>).')

    def together(self, clients: int) -> None:
        """Assert that so many clients of this test are on one link, where links are shared."""
        assert len(self.connections()) == (1 if self.way.is_pooled else clients)

    def ready(self, witness: Talker, queue: str) -> int:
        """Messages in a queue that nobody holds."""
        return count(witness, queue).message_count

    def bystander(self) -> Bystander:
        """A client that shares its link with the others, and wants nothing of them."""
        return Bystander(self, f"bystander-{next(self._numbers)}")


@attrs.define(eq=False)
class Bystander:
    """Publishes with confirms, holds a delivery all the time, and hears what it is owed only."""

    place: Place
    queue: str
    client: Talker = attrs.field(init=False)
    _published: int = 0

    def __attrs_post_init__(self) -> None:
        self.client = self.place.client()
        self.client.ask(amqp.QueueDeclare(queue=self.queue), amqp.QueueDeclareOk, 1)
        self.client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
        self.client.ask(amqp.BasicQos(prefetch_count=2), amqp.BasicQosOk, 1)
        consume = amqp.BasicConsume(queue=self.queue, consumer_tag="t")
        self.client.ask(consume, amqp.BasicConsumeOk, 1)
        # This first one is held until the end.
        self._round_trip()

    def lives(self) -> None:
        """A message makes the round trip, and nothing else comes."""
        tag = self._round_trip()
        self.client.say(amqp.BasicAck(tag), 1)

    def _round_trip(self) -> int:
        self._published += 1
        body = f"{self.queue}:{self._published}".encode()
        self.client.publish(body, self.queue)
        owed = {amqp.BasicAck, amqp.BasicDeliver}
        tag = 0
        while owed:
            channel, method = self.client.hear()
            assert channel == 1, f"{method} on {channel}"
            assert type(method) in owed, f"{method} is not owed"
            owed.discard(type(method))
            if isinstance(method, amqp.BasicDeliver):
                assert self.client.content_of(method).body == body
                assert (method.consumer_tag, method.redelivered) == ("t", False)
                tag = method.delivery_tag
                assert tag == self._published
            else:
                assert isinstance(method, amqp.BasicAck)
                assert method.delivery_tag == self._published
        return tag

    def leave(self) -> None:
        """It lives, had its first delivery all the time, and goes in good order."""
        self.lives()
        self.client.say(amqp.BasicAck(1), 1)
        self.client.ask(amqp.BasicCancel("t"), amqp.BasicCancelOk, 1)
        assert self.client.ask(amqp.QueueDelete(queue=self.queue), amqp.QueueDeleteOk, 1).message_count == 0
        self.client.bye()


def count(client: Talker, queue: str, channel: int = 1) -> amqp.QueueDeclareOk:
    """Messages ready and consumers of a queue."""
    return client.ask(amqp.QueueDeclare(queue=queue, passive=True), amqp.QueueDeclareOk, channel)


def in_step(client: Talker, channel: int = 1) -> None:
    """The channel works, and nothing has come that nobody asked for."""
    passive = amqp.ExchangeDeclare(exchange="amq.direct", type="direct", passive=True)
    client.ask(passive, amqp.ExchangeDeclareOk, channel)


def refused(
    client: Talker, method: Method, channel: int = 1, *, content: bytes | None = None
) -> amqp.ChannelClose:
    """The close that `method` causes; the channel is opened again."""
    if content is None:
        client.say(method, channel)
    else:
        client.content(method, content, channel=channel)
    close = client.expect(amqp.ChannelClose, channel)
    client.say(amqp.ChannelCloseOk(), channel)
    client.ask(amqp.ChannelOpen(), amqp.ChannelOpenOk, channel)
    return close


def frames_of(data: bytes) -> list[bytes]:
    """Bytes of whole frames, each by itself."""
    frames = []
    while data:
        size = 8 + int.from_bytes(data[3:7], "big")
        frames.append(data[:size])
        data = data[size:]
    return frames


def end_of(client: Talker) -> amqp.ConnectionClose:
    """The connection.close that a client hears next, which it answers; then the end."""
    close = client.expect(amqp.ConnectionClose)
    client.say(amqp.ConnectionCloseOk())
    with contextlib.suppress(Gone):
        client.expect_end()
    return close
