"""Stand-in: the properties that need no thought."""

from __future__ import annotations

from amqpgate.bridge.v0_10.tables import from_table, to_table
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def to_canonical(
    delivery: amqp10.DeliveryProperties | None, message: amqp10.MessageProperties | None
) -> amqp.BasicProperties:
    """Of a transfer."""
    delivery = delivery or amqp10.DeliveryProperties()
    message = message or amqp10.MessageProperties()
    headers = message.application_headers
    return amqp.BasicProperties(
        content_type=_text(message.content_type),
        delivery_mode=delivery.delivery_mode,
        priority=delivery.priority,
        correlation_id=_text(message.correlation_id),
        headers=None if headers is None else to_table(headers),
    )


def from_canonical(
    properties: amqp.BasicProperties, *, exchange: bytes, routing_key: bytes, redelivered: bool
) -> tuple[amqp10.DeliveryProperties, amqp10.MessageProperties]:
    """Of a delivery."""
    headers = properties.headers
    return (
        amqp10.DeliveryProperties(
            redelivered=redelivered,
            priority=properties.priority,
            delivery_mode=properties.delivery_mode,
            exchange=exchange,
            routing_key=routing_key,
        ),
        amqp10.MessageProperties(
            content_type=_bytes(properties.content_type),
            correlation_id=_bytes(properties.correlation_id),
            application_headers=None if headers is None else from_table(headers),
        ),
    )
