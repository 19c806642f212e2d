"""A transform policy's changes of messages as the data path makes them: bytes in the place of bytes.

What depends on more than whether a property is there is not among them. A message with such a header is
shown, and `transform` changes it.
"""

from __future__ import annotations

from typing import Final

from amqpgate.datapath.properties import PROPERTIES
from amqpgate.datapath.scanner import Rewrite
from amqpgate.gateway.session.transform import message_down, publish_up
from amqpgate.policy import Peek, Transform
from amqpgate.policy.engine.operations import PROPERTY_FLAGS, SENDER_SELECTED
from amqpgate.policy.kinds.transform_set import DEAD_LETTER_HEADERS
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

#: Headers that hold names.
_NAMING_HEADERS: Final = frozenset({*SENDER_SELECTED, *DEAD_LETTER_HEADERS})
#: Bytes of property flags, and of a table's length, before what is encoded.
_FLAGS: Final = 2
_LENGTH: Final = 4
#: A header without names.
_PLAIN: Final = ContentHeader(amqp.BasicDeliver.CLASS_ID, 0, amqp.BasicProperties())


def publish_rewrite(transform: Transform, method: amqp.BasicPublish) -> tuple[Peek, Rewrite] | None:
    """What becomes of publishes like this one, each of which changes, and which must be shown nevertheless.

    None: not each of them changes, or all must be shown. Raises `NotTransformedError` where none may pass.
    """
    content = transform.content
    sets: dict[str, str | int] = dict(content.set_properties)
    strips = content.strip_properties
    flags, headers = 0, {*content.set_headers}
    changed = publish_up(transform, method)
    changes_all = changed is not method or sets or headers or content.max_ttl is not None
    names = transform.naming
    if not changes_all or ("headers" in strips and content.set_headers):
        return None
    if names is not None and ("reply_to" in sets or not _NAMING_HEADERS.isdisjoint(content.set_headers)):
        # What is set are the client's names, which change then.
        return None
    if content.max_ttl is not None:
        if "expiration" in sets:
            return None
        if "expiration" not in strips:
            flags |= PROPERTY_FLAGS["expiration"]
        sets["expiration"] = str(content.max_ttl)
    if content.validates_user:
        flags |= PROPERTY_FLAGS["user_id"]
    if any(pattern.is_prefix for pattern in content.strip_headers):
        flags |= PROPERTY_FLAGS["headers"]
    headers |= {pattern.text for pattern in content.strip_headers if not pattern.is_prefix}
    peek = Peek(flags=flags, headers=frozenset(headers), max_body=content.max_body)
    if names is not None:
        peek |= transform.peek_delivered
    rewrite = Rewrite(
        changed.encode(),
        tuple(
            [
                next(
                    (_encoded(name, sets[name]) for name in sets if PROPERTY_FLAGS[name] == 0x8000 >> place),
                    None,
                )
                for place in range(len(PROPERTIES))
            ]
        ),
        sum(PROPERTY_FLAGS[name] for name in strips),
        _entries(Table.of(content.set_headers)),
    )
    return peek, rewrite


def delivery_rewrite(transform: Transform, method: amqp.BasicDeliver) -> Rewrite | None:
    """What becomes of deliveries like this one that have no names in their headers; None: they stay."""
    changed, _ = message_down(transform, method, _PLAIN)
    return None if changed == method else Rewrite(changed.encode(), (None,) * len(PROPERTIES), 0, b"")


def _encoded(name: str, value: str | int) -> bytes:
    properties = amqp.BasicProperties(**{name: value})  # type: ignore[arg-type]
    return properties.encode()[_FLAGS:]


def _entries(table: Table) -> bytes:
    return amqp.BasicProperties(headers=table).encode()[_FLAGS + _LENGTH :]
