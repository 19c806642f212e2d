"""What messages are on the other side, but for their bodies, as bytes: for whom nearly the same comes again.

Of one message after the other, peers say nearly the same. So what was made of a header is kept, for the
`MOST_FORMS` that came last.

To 0-9-1 what is new is made the quick way (`quick_header`). What that does not see to, or what cannot be said
in 0-9-1, is nobody's here: who asked takes it apart, and refuses it where it has to.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple, TypeVar

from amqpgate.bridge.v0_10.build import quick_header
from amqpgate.bridge.v0_10.properties import from_canonical
from amqpgate.bridge.v0_10.quick_header import QuickHeader
from amqpgate.wire.codec import decode_header
from amqpgate.wire.generated.v0_9_1 import BasicProperties, BasicPublish
from amqpgate.wire.generated.v0_10 import MessageProperties
from amqpgate.wire.v0_10.codec import encode_header

#: Forms that are kept, each of some hundred bytes mostly.
MOST_FORMS: Final = 32
#: Bytes of a header that is kept; larger ones are read each time.
_LARGEST: Final = 512

#: How basic.publish begins, with a reserved number.
_PUBLISH: Final = BasicPublish.INDEX.to_bytes(4, "big") + b"\0\0"
#: Neither mandatory nor immediate.
_NO_FLAGS: Final = b"\0"
#: Where the properties of a content header begin (AMQP 0-9-1, section 4.2.6.1).
_PROPERTIES_AT: Final = 12
_SIZE: Final = Struct(">Q")
#: Bytes of message properties before the size of the body: their own size, class and code, flags.
_HEAD_OF_MESSAGE: Final = 8

K = TypeVar("K")
V = TypeVar("V")


class PublishForm(NamedTuple):
    """A message without its body: payloads of its frames, the header's with a size of 0."""

    method: bytes
    header: bytes


class PublishForms:
    """Those of one session."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, bytes], PublishForm] = {}

    def form(self, exchange: bytes, header: bytes, login: str) -> PublishForm | None:
        """That of a transfer to ``exchange``, with this header segment, of a client that is ``login`` to the
        broker. None: it is to be taken apart.
        """
        key = exchange, header
        form = self._known.get(key)
        if form is None:
            form = _made(exchange, header, login)
            if form is not None and len(header) <= _LARGEST:
                keep(self._known, key, form)
        return form


class QuickHeaders:
    """Headers of transfers that came last, as `QuickHeader`."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, QuickHeader] = {}

    def of(self, header: bytes) -> QuickHeader | None:
        """What it says; None: it is to be taken apart."""
        quick = self._known.get(header)
        if quick is None:
            quick = quick_header(header)
            if quick is not None and len(header) <= _LARGEST:
                keep(self._known, header, quick)
        return quick


class TransferForm(NamedTuple):
    """The header segment of a transfer: what is before the size of the body, and behind it; None: there is no
    size in it."""

    before: bytes
    behind: bytes | None

    def header(self, size: int) -> bytes:
        """The segment, for a body of so many bytes."""
        return self.before if self.behind is None else b"".join((self.before, _SIZE.pack(size), self.behind))


class TransferForms:
    """Header segments of transfers that messages of 0-9-1 become, in one direction of one session."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, str, str | None, bool, bool, bool, bool, bool], TransferForm] = {}

    def form(
        self,
        header: bytes,
        routing_key: str,
        *,
        exchange: str | None = None,
        redelivered: bool = False,
        discard_unroutable: bool = False,
        immediate: bool = False,
        milliseconds: bool = False,
        is_brief: bool = False,
    ) -> TransferForm:
        """That of a message with this content header; the rest is as in ``properties.from_canonical``.
        ``is_brief``: message properties that say nothing are left out.

        Violations as decoding the header has them.
        """
        # Before its properties is the size of the body.
        key = (
            header[_PROPERTIES_AT:],
            routing_key,
            exchange,
            redelivered,
            discard_unroutable,
            immediate,
            milliseconds,
            is_brief,
        )
        form = self._known.get(key)
        if form is None:
            properties = decode_header(header).properties
            assert isinstance(properties, BasicProperties)
            delivery, message = from_canonical(
                properties,
                routing_key=routing_key,
                exchange=exchange,
                redelivered=redelivered,
                discard_unroutable=discard_unroutable,
                immediate=immediate,
                body_size=0,
                milliseconds=milliseconds,
            )
            before = encode_header((delivery,))
            if is_brief and _says_nothing(message):
                form = TransferForm(before, None)
            else:
                behind = encode_header((message,))
                at = _HEAD_OF_MESSAGE
                form = TransferForm(before + behind[:at], behind[at + _SIZE.size :])
            if len(header) <= _LARGEST:
                keep(self._known, key, form)
        return form


def _says_nothing(message: MessageProperties) -> bool:
    """Whether there is nothing in them but the size of the body, which everybody sees."""
    return message == MessageProperties(message.content_length)


def keep(known: dict[K, V], key: K, value: V) -> None:
    """Keep it, in the place of the oldest if there are too many."""
    if len(known) >= MOST_FORMS:
        del known[next(iter(known))]
    known[key] = value


def _made(exchange: bytes, header: bytes, login: str) -> PublishForm | None:
    quick = quick_header(header, login.encode("utf-8", "surrogateescape"))
    if quick is None or quick.immediate:
        return None
    key = quick.routing_key
    if not (exchange.isascii() and key.isascii()):
        # RabbitMQ ends the connection for what is not UTF-8.
        try:
            exchange.decode()
            key.decode()
        except UnicodeDecodeError:
            return None
    method = b"".join((_PUBLISH, bytes((len(exchange),)), exchange, bytes((len(key),)), key, _NO_FLAGS))
    return PublishForm(method, quick.payload)
