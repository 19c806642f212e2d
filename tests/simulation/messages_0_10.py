"""Messages of AMQP 0-10 as 0-9-1 has them, made apart from the gateway's translation, which is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import attrs

from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.generated.v0_9_1 import BasicProperties
from amqpgate.wire.generated.v0_10_types import TypeCode
from amqpgate.wire.tables import Table
from amqpgate.wire.v0_10.structs import Struct, Unknown
from amqpgate.wire.v0_10.types import Map, Value
from tests.simulation.ledger import DELIVERY
from tests.simulation.talk import Content

#: The header that keeps a message-id that is no UUID.
_NAME = "x-amqp-message-id"


def id_of(number: int) -> str:
    """The message-id of a message that a client of 0-10 publishes."""
    return str(UUID(int=number))


def structs_of(key: str, content: Content) -> list[Struct]:
    """A message that is to be published. Its headers are text."""
    properties = content.properties
    assert properties.message_id is not None
    assert properties.headers is not None
    headers = Map(
        tuple(
            (name.encode(), Value(TypeCode.STR16, str(field.value).encode()))
            for name, field in properties.headers.entries
        )
    )
    message = amqp.MessageProperties(
        content_length=len(content.body),
        message_id=UUID(properties.message_id).bytes,
        content_type=(properties.content_type or "").encode(),
        app_id=properties.app_id.encode() if properties.app_id is not None else None,
        application_headers=headers,
    )
    return [
        amqp.DeliveryProperties(routing_key=key.encode(), delivery_mode=properties.delivery_mode),
        message,
    ]


def content_of(structs: Sequence[Struct | Unknown], body: bytes) -> tuple[amqp.DeliveryProperties, Content]:
    """A message that has come."""
    delivery = next(one for one in structs if isinstance(one, amqp.DeliveryProperties))
    message = next(one for one in structs if isinstance(one, amqp.MessageProperties))
    headers: dict[str, object] = {}
    for name, value in message.application_headers.entries if message.application_headers else ():
        told = value.value
        headers[name.decode()] = told.decode() if isinstance(told, bytes) else told
    name = headers.pop(_NAME, None)
    if name is None and message.message_id is not None:
        name = str(UUID(bytes=message.message_id))
    properties = BasicProperties(
        content_type=_text(message.content_type),
        headers=Table.of(headers),
        delivery_mode=delivery.delivery_mode,
        message_id=str(name) if name is not None else None,
        app_id=_text(message.app_id),
    )
    return delivery, Content(properties, body)


def numbered(message: amqp.MessageProperties, delivery: int) -> amqp.MessageProperties:
    """A message as a broker sends it: as it came, with the number of the delivery."""
    headers = message.application_headers.entries if message.application_headers else ()
    number = (DELIVERY.encode(), Value(TypeCode.INT32, delivery))
    return attrs.evolve(message, application_headers=Map((*headers, number)))


def _text(value: bytes | None) -> str | None:
    return value.decode() if value is not None else None
