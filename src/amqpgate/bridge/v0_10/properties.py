"""The header of a transfer, and the properties of a message of 0-9-1.

======================  ==============  ==============================  ====================================
0-10                    0-9-1           to 0-9-1                        back
======================  ==============  ==============================  ====================================
priority                the same        the same                        at most 9
delivery-mode           the same        1 and 2; others are absent      the same
ttl, ms                 expiration      digits; 0 is absent             digits; "0" is 1, others are absent
timestamp               the same        seconds; above 10^11 it was     seconds; with ``milliseconds`` those
                                        milliseconds
message-id, a uuid      the same, text  its text, in lower case         the uuid in it, or one made of it;
                                                                        then with `MESSAGE_ID_HEADER`
correlation-id          the same        the same; above 255 bytes in    the same
                                        `CORRELATION_ID_HEADER`
user-id                 the same        up to 255 bytes; with           the same
                                        ``login`` only that
app-id                  the same        up to 255 bytes                 the same
content-type, encoding  the same        the same                        the same
reply-to                the same        see ``reply_to``
application-headers     headers         see ``tables``
header ``x-jms-type``   type            text up to 255 bytes            at the end of the headers
content-length          size of body    left out: the body counts       the body's size
expiration, resume-id,                  left out
resume-ttl
======================  ==============  ==============================  ====================================

Exchange, routing key, redelivered, discard-unroutable and immediate are arguments of methods in 0-9-1:
whoever has the method gives or takes them. cluster-id, now reserved, is left out.

Four names of headers are the bridge's own, with that of ``no_local``. It takes them out of messages of either
side. It goes by the other three only if they agree with the property that they are about: they often outlive
it, in applications that copy all headers of a message to the next one.
"""

from __future__ import annotations

import re
from hashlib import md5
from typing import Final

from amqpgate.bridge.v0_10.no_local import PUBLISHER_HEADER
from amqpgate.bridge.v0_10.reply_to import EXCHANGE_HEADER, reply_text, reply_to_of
from amqpgate.bridge.v0_10.tables import (
    fields_of,
    first_fields,
    map_of_fields,
    text_field,
    uuid_text,
)
from amqpgate.wire.generated.v0_9_1 import BasicProperties
from amqpgate.wire.generated.v0_10 import DeliveryProperties, MessageProperties, ReplyTo
from amqpgate.wire.tables import EMPTY_TABLE, Field, Table
from amqpgate.wire.v0_10.types import EMPTY_MAP, Map

#: A message-id of 0-9-1 that is not the text of a uuid, in a message of 0-10.
MESSAGE_ID_HEADER: Final = "x-amqp-message-id"
#: A correlation-id of 0-10 that is no short string, in a message of 0-9-1.
CORRELATION_ID_HEADER: Final = "x-amqp-correlation-id"
#: Where clients of Qpid keep what 0-9-1 calls type.
TYPE_HEADER: Final = "x-jms-type"

_MOST: Final = 255
#: Seconds until the year 5138. Java clients put milliseconds where the standard has seconds.
_MOST_SECONDS: Final = 10**11
_MOST_TTL: Final = 2**64 - 1
_HIGHEST: Final = 9
_MODES: Final = frozenset({1, 2})
#: Clients of Qpid's for 0-8 to 0-9-1 write "ID:" before it, as JMS wants it.
_UUID: Final = re.compile(r"(?:ID:)?([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})")


def to_canonical(
    delivery: DeliveryProperties | None,
    message: MessageProperties | None,
    *,
    login: str | None = None,
    lenient: bool = False,
) -> BasicProperties:
    """What a transfer's header says, as properties. An absent part says nothing.

    ``login`` is for what clients publish to a broker of 0-9-1: the user that they are to it. A user-id that
    is another one is left out, since RabbitMQ closes the channel for it (406), and so is the realm of one
    ("guest@QPID"). ``lenient`` is for what a broker delivers, see ``tables``: without it violation 542 may be
    raised.
    """
    priority = delivery_mode = timestamp = None
    expiration = None
    if delivery is not None:
        priority, delivery_mode, timestamp = delivery.priority, delivery.delivery_mode, delivery.timestamp
        if delivery_mode not in _MODES:
            delivery_mode = None
        if timestamp is not None and timestamp > _MOST_SECONDS:
            timestamp //= 1000
        if delivery.ttl:
            expiration = str(delivery.ttl)
    if message is None:
        return BasicProperties(
            delivery_mode=delivery_mode, priority=priority, expiration=expiration, timestamp=timestamp
        )
    given = message.application_headers
    fields = {} if given is None else fields_of(given, lenient=lenient)
    message_id = _id_text(message.message_id, fields.pop(MESSAGE_ID_HEADER, None))
    kind = _take_type(fields)
    fields.pop(CORRELATION_ID_HEADER, None)
    fields.pop(EXCHANGE_HEADER, None)
    fields.pop(PUBLISHER_HEADER, None)
    reply_to = None
    if message.reply_to is not None:
        reply_to, exchange = reply_text(message.reply_to)
        if exchange is not None:
            fields[EXCHANGE_HEADER] = text_field(exchange)
    correlation_id = message.correlation_id
    if correlation_id is not None and len(correlation_id) > _MOST:
        fields[CORRELATION_ID_HEADER] = Field("x", correlation_id)
    headers = None
    if fields:
        headers = Table(tuple(fields.items()))
    elif given is not None and not given.entries:
        headers = EMPTY_TABLE
    return BasicProperties(
        _text(message.content_type),
        _text(message.content_encoding),
        headers,
        delivery_mode,
        priority,
        _text(correlation_id),
        reply_to,
        expiration,
        message_id,
        timestamp,
        kind,
        _user(message.user_id, login),
        _text(message.app_id),
    )


def from_canonical(
    properties: BasicProperties,
    *,
    routing_key: str,
    exchange: str | None = None,
    redelivered: bool = False,
    discard_unroutable: bool = False,
    immediate: bool = False,
    body_size: int | None = None,
    milliseconds: bool = False,
) -> tuple[DeliveryProperties, MessageProperties]:
    """The header of the transfer that stands for a message of 0-9-1.

    Its method has the first five: ``exchange`` is that of deliver and get-ok, and what is not mandatory is
    ``discard_unroutable``. ``milliseconds``: the peer is Qpid's JMS client, which takes timestamps for such.
    """
    delivery_mode, timestamp = properties.delivery_mode, properties.timestamp
    priority = properties.priority
    if priority is not None and priority > _HIGHEST:
        priority = _HIGHEST
    if milliseconds and timestamp is not None and timestamp <= _MOST_SECONDS:
        timestamp *= 1000
    delivery = DeliveryProperties(
        discard_unroutable,
        immediate,
        redelivered,
        priority,
        delivery_mode if delivery_mode in _MODES else None,
        _ttl(properties.expiration),
        timestamp,
        None,
        _bytes(exchange),
        _bytes(routing_key),
    )
    table = properties.headers
    fields = {} if table is None else first_fields(table.entries)
    fields.pop(MESSAGE_ID_HEADER, None)
    fields.pop(PUBLISHER_HEADER, None)
    exchange_field = fields.pop(EXCHANGE_HEADER, None)
    correlation_field = fields.pop(CORRELATION_ID_HEADER, None)
    text = properties.message_id
    message_id = None
    if text is not None:
        message_id = uuid_of(text)
        if text != uuid_text(message_id):
            fields[MESSAGE_ID_HEADER] = Field("S", text)
    if properties.type is not None:
        fields.pop(TYPE_HEADER, None)
        fields[TYPE_HEADER] = Field("S", properties.type)
    correlation_id = _bytes(properties.correlation_id)
    if correlation_id is None and correlation_field is not None:
        data = correlation_field.value
        if isinstance(data, bytes) and len(data) > _MOST:
            correlation_id = data
    reply_to: ReplyTo | None = None
    if properties.reply_to is not None:
        reply_to = reply_to_of(properties.reply_to, _data(exchange_field))
    headers: Map | None = None
    if fields:
        headers = map_of_fields(fields)
    elif table is not None and not table.entries:
        headers = EMPTY_MAP
    return delivery, MessageProperties(
        body_size,
        message_id,
        correlation_id,
        reply_to,
        _bytes(properties.content_type),
        _bytes(properties.content_encoding),
        _bytes(properties.user_id),
        _bytes(properties.app_id),
        headers,
    )


def uuid_of(text: str) -> bytes:
    """The uuid in a message-id, with or without "ID:"; else one that is made of its bytes (version 3)."""
    found = _UUID.fullmatch(text)
    if found is not None:
        return bytes.fromhex(found[1].replace("-", ""))
    made = bytearray(md5(text.encode("utf-8", "surrogateescape"), usedforsecurity=False).digest())
    made[6] = made[6] & 0x0F | 0x30
    made[8] = made[8] & 0x3F | 0x80
    return bytes(made)


def _id_text(message_id: bytes | None, header: Field | None) -> str | None:
    if message_id is None:
        return None
    if header is not None:
        data = _data(header)
        if data is not None and len(data) <= _MOST:
            text = data.decode("utf-8", "surrogateescape")
            if uuid_of(text) == message_id:
                return text
    return uuid_text(message_id)


def _take_type(fields: dict[str, Field]) -> str | None:
    """The type, which is then no header any more; one that is no short string stays one."""
    field = fields.get(TYPE_HEADER)
    data = _data(field)
    if data is None or len(data) > _MOST:
        return None
    del fields[TYPE_HEADER]
    return data.decode("utf-8", "surrogateescape")


def _user(user_id: bytes | None, login: str | None) -> str | None:
    user = _text(user_id)
    if user is None or login is None or user == login:
        return user
    return login if user.startswith(f"{login}@") else None


def _ttl(expiration: str | None) -> int | None:
    if expiration is None or not (expiration.isascii() and expiration.isdigit()):
        return None
    return min(int(expiration), _MOST_TTL) or 1


def _text(data: bytes | None) -> str | None:
    """A short string, None if it is too long for one."""
    return None if data is None or len(data) > _MOST else data.decode("utf-8", "surrogateescape")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")


def _data(field: Field | None) -> bytes | None:
    """The bytes of a string."""
    value = None if field is None else field.value
    return value if isinstance(value, bytes) else _bytes(value) if isinstance(value, str) else None
