"""Messages, and the one limit on how many bytes of them the broker keeps."""

from __future__ import annotations

from typing import Final

from attrs import define, evolve, field

from amqpgate.broker.terms import type_name
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated.v0_9_1 import BasicProperties
from amqpgate.wire.tables import Field, Table

#: What a message costs besides its bytes. Measured with tracemalloc: 0.5 KiB without properties, 1.2 KiB
#: with four of them and two headers (which count extra, below).
MESSAGE_OVERHEAD: Final = 1024
#: What each entry of its headers costs besides its bytes: a field, its name, a tuple of both.
ENTRY_OVERHEAD: Final = 200

#: Headers that name more routing keys; those of BCC are not shown to the receiver.
_CC: Final = "CC"
_BCC: Final = "BCC"


@define(eq=False)
class BrokerMessage:
    """A message as it was published; one object however many queues hold it."""

    exchange: str
    #: The routing key of basic.publish, then those of the CC and BCC headers.
    routing_keys: tuple[str, ...]
    properties: BasicProperties
    body: bytes = field(repr=False)
    #: How many places hold it: queue entries, deliveries without an ack, open transactions.
    holders: int = 0
    #: What it counts against the limit, in bytes.
    size: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        data = len(self.body) + len(self.properties.encode())
        self.size = MESSAGE_OVERHEAD + data + ENTRY_OVERHEAD * _entries(self.properties.headers)

    @property
    def routing_key(self) -> str:
        """The key that basic.publish gave."""
        return self.routing_keys[0]


def _entries(headers: Table | None) -> int:
    """How many fields there are in headers, at any depth."""
    count = 0
    todo = [entry for _name, entry in headers or ()]
    while todo:
        value = todo.pop().value
        count += 1
        if isinstance(value, Table):
            todo.extend(entry for _name, entry in value)
        elif isinstance(value, tuple):
            todo.extend(value)
    return count


def make_message(exchange: str, routing_key: str, properties: BasicProperties, body: bytes) -> BrokerMessage:
    """The message of a basic.publish. Raises 406 for a delivery-mode or a CC header that makes no sense."""
    if properties.delivery_mode not in (None, 1, 2):
        raise ProtocolViolation(406, f"invalid message: {{delivery_mode_unknown,{properties.delivery_mode}}}")
    headers = properties.headers
    if headers is None:
        return BrokerMessage(exchange, (routing_key,), properties, body)
    keys = (routing_key, *_more_keys(headers, _CC), *_more_keys(headers, _BCC))
    if _BCC in headers:
        properties = evolve(properties, headers=headers.without(_BCC))
    return BrokerMessage(exchange, keys, properties, body)


def _more_keys(headers: Table, name: str) -> list[str]:
    found = headers.field(name)
    if found is None:
        return []
    if not isinstance(found.value, tuple):
        raise ProtocolViolation(
            406, f'invalid message: {{unacceptable_type_in_header,"{name}",{type_name(found)}}}'
        )
    # Any other type of value in the list is passed over, as RabbitMQ does it.
    return [_text(item) for item in found.value if item.tag == "S"]


def _text(item: Field) -> str:
    value = item.value
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


@define(eq=False)
class Memory:
    """Counts the bytes of all messages that are held anywhere; a body that many hold counts once."""

    limit: int
    used: int = 0

    def has_room_for(self, message: BrokerMessage) -> bool:
        """Whether one more message may be taken in."""
        return message.holders > 0 or self.used + message.size <= self.limit

    def hold(self, message: BrokerMessage) -> None:
        """One more place holds it."""
        message.holders += 1
        if message.holders == 1:
            self.used += message.size

    def release(self, message: BrokerMessage) -> None:
        """One place fewer holds it."""
        message.holders -= 1
        if message.holders == 0:
            self.used -= message.size

    @property
    def refusal(self) -> ProtocolViolation:
        """406 for a publisher that cannot be told with basic.nack."""
        return ProtocolViolation(
            406,
            f"the embedded broker keeps its messages in memory and has reached its limit of"
            f" {self.limit} bytes; consume or purge some, or use a real broker",
        )
