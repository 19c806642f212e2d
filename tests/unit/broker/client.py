"""A client of a session, without any I/O: methods in, what the broker answers out."""

from __future__ import annotations

from collections.abc import Mapping

from amqpgate.broker.amqp.connection import Connection
from amqpgate.broker.amqp.events import ContentReceived, MethodReceived
from amqpgate.broker.greeting import Greeting
from amqpgate.broker.messages import BrokerMessage
from amqpgate.broker.outbox import Outbox
from amqpgate.broker.session import BrokerSession
from amqpgate.broker.state import BrokerState
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.sasl import plain_response
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

CAPABILITIES: Mapping[str, object] = {"authentication_failure_close": True, "consumer_cancel_notify": True}


#: What an empty message counts against the memory limit.
EMPTY = BrokerMessage("", ("",), amqp.BasicProperties(), b"").size


def new_state(memory_limit: int = 1_000_000) -> BrokerState:
    return BrokerState.of({"guest": "guest", "other": "secret"}, ("/", "v"), memory_limit)


class Client:
    """`tell` sends and returns what came back: (channel, method) or (channel, method, properties, body)."""

    def __init__(
        self,
        state: BrokerState,
        *,
        channels: int = 1,
        frame_max: int = 131_072,
        capabilities: Mapping[str, object] = CAPABILITIES,
    ) -> None:
        self.session = BrokerSession(state, Greeting(), Outbox(lambda: None))
        self.connection = Connection("client")
        self.is_sending = True
        #: Channels that the broker has closed, and that it awaits the answer of.
        self.closes_due: set[int] = set()
        if channels:
            self.open(frame_max=frame_max, capabilities=capabilities)
            for number in range(1, channels + 1):
                assert self.tell(amqp.ChannelOpen(), number) == [(number, amqp.ChannelOpenOk())]

    def open(
        self,
        *,
        user: str = "guest",
        password: str = "guest",
        vhost: str = "/",
        frame_max: int = 131_072,
        capabilities: Mapping[str, object] = CAPABILITIES,
    ) -> list[tuple[object, ...]]:
        """The handshake, as far as it goes; the last answer."""
        ((_channel, start),) = self.feed(self.connection.send_header())
        assert isinstance(start, amqp.ConnectionStart)
        properties = Table.of({"capabilities": dict(capabilities)})
        response = plain_response(user, password)
        answer = self.tell(amqp.ConnectionStartOk(properties, "PLAIN", response, "en_US"), 0)
        if answer and isinstance(answer[0][1], amqp.ConnectionTune):
            assert self.tell(amqp.ConnectionTuneOk(2047, frame_max, 60), 0) == []
            answer = self.tell(amqp.ConnectionOpen(vhost), 0)
        return answer

    def tell(self, method: Method, channel: int = 1) -> list[tuple[object, ...]]:
        if isinstance(method, amqp.ChannelCloseOk):
            self.closes_due.discard(channel)
        return self.feed(self.connection.send(channel, method))

    def publish(
        self,
        key: str,
        body: bytes = b"",
        *,
        channel: int = 1,
        exchange: str = "",
        mandatory: bool = False,
        properties: amqp.BasicProperties | None = None,
    ) -> list[tuple[object, ...]]:
        method = amqp.BasicPublish(0, exchange, key, mandatory)
        data = self.connection.send_content(channel, method, properties or amqp.BasicProperties(), body)
        return self.feed(data)

    def feed(self, data: bytes) -> list[tuple[object, ...]]:
        for _ in self.session.receive(data):
            pass
        return self.read()

    def read(self) -> list[tuple[object, ...]]:
        """What the broker has sent by now."""
        data = self.session.outbox.take()
        if self.session.outbox.sent(len(data)):
            self.session.resume()
        return self.events(data)

    def events(self, data: bytes) -> list[tuple[object, ...]]:
        found: list[tuple[object, ...]] = []
        for event in self.connection.receive(data):
            if isinstance(event, MethodReceived):
                found.append((event.channel, event.method))
                if isinstance(event.method, amqp.ChannelClose):
                    self.closes_due.add(event.channel)
            elif isinstance(event, ContentReceived):
                found.append((event.channel, event.method, event.header.properties, event.body))
        return found


def bodies(answers: list[tuple[object, ...]]) -> list[object]:
    """The bodies of deliveries."""
    return [answer[3] for answer in answers if len(answer) == 4]


def closing(answers: list[tuple[object, ...]]) -> tuple[int, str]:
    """Code and text of the close that is the only answer."""
    ((_channel, method),) = answers
    assert isinstance(method, amqp.ChannelClose | amqp.ConnectionClose)
    return method.reply_code, method.reply_text


def refusal(violation: ProtocolViolation) -> tuple[int, str]:
    return violation.code, violation.text
