"""A reply-to of 0-10, exchange and routing key, and 0-9-1's, one text (class "basic", "reply-to").

=============================  ==================================================================
0-10                           0-9-1
=============================  ==================================================================
key, no exchange, or ""        the key: RPC of 0-9-1's clients
exchange and key               ``exchange/key``, and the exchange in header `EXCHANGE_HEADER`
exchange, no key               ``exchange``, and that header
=============================  ==================================================================

The way back goes by the header, if the text begins with what it says: an exchange's name may have slashes.
Without it ``class://exchange/destination/queue?routingkey='key'``, which clients of Qpid write, is
taken apart, and all else is a key. A text above 255 bytes has no place in 0-9-1.
"""

from __future__ import annotations

import re
from typing import Final

from amqpgate.wire.generated.v0_10 import ReplyTo

#: The exchange of a reply-to, in a message of 0-9-1. The name is the bridge's own.
EXCHANGE_HEADER: Final = "x-amqp-reply-to-exchange"

_MOST: Final = 255
#: As Qpid has it (AMQBindingURL): no part has a slash or a question mark.
_URL: Final = re.compile(
    r"(direct|topic|fanout|headers)://([^/?]*)(?:/([^/?]*)(?:/([^/?]*))?)?(?:\?(.*))?", re.DOTALL
)
_KEY: Final = re.compile(r"(?:^|[&,])routingkey='([^']*)'")


def reply_text(reply_to: ReplyTo) -> tuple[str | None, bytes | None]:
    """The text, and the exchange for the header; None for none, and for a text that is too long."""
    exchange, key = reply_to.exchange, reply_to.routing_key
    if not exchange:
        return _text(key), None
    whole = exchange if key is None else b"%b/%b" % (exchange, key)
    return (_text(whole), exchange) if len(whole) <= _MOST else (None, None)


def reply_to_of(text: str, exchange: bytes | None) -> ReplyTo:
    """The two parts of a text, with what the header says, if there is one."""
    whole = text.encode("utf-8", "surrogateescape")
    if exchange:
        if whole == exchange:
            return ReplyTo(exchange)
        if whole.startswith(exchange + b"/"):
            return ReplyTo(exchange, whole[len(exchange) + 1 :])
    url = _URL.fullmatch(text) if "://" in text else None
    if url is None:
        return ReplyTo(routing_key=whole)
    kind, name, destination, queue, options = url.groups("")
    given = _KEY.search(options)
    chosen = given[1] if given else (queue or destination) if kind == "direct" else destination
    key = chosen.encode("utf-8", "surrogateescape")
    return ReplyTo(name.encode("utf-8", "surrogateescape") or None, key)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")
