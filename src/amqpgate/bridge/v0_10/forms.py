"""What a client's transfers are in 0-9-1, but for their bodies: basic.publish and a content header, as bytes.

A client says nearly the same of one message after the other. So what was made of a destination and a header
is kept, for the `MOST_FORMS` that came last; and what is new is made the quick way (`quick_header`). What that
does not see to, or what cannot be said in 0-9-1, is nobody's here: `publishing` takes it apart, and refuses it
where it has to.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from amqpgate.bridge.v0_10.quick_header import quick_header
from amqpgate.wire.generated.v0_9_1 import BasicPublish

#: Forms that are kept, each of some hundred bytes mostly.
MOST_FORMS: Final = 32
#: Bytes of a header that is kept; larger ones are read each time.
_LARGEST: Final = 512

#: How basic.publish begins, with a reserved number.
_PUBLISH: Final = BasicPublish.INDEX.to_bytes(4, "big") + b"\0\0"
#: Neither mandatory nor immediate.
_NO_FLAGS: Final = b"\0"


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
                if len(self._known) >= MOST_FORMS:
                    del self._known[next(iter(self._known))]
                self._known[key] = form
        return form


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
