"""The connection to a 0-10 broker, as methods of 0-9-1 and back.

=================  ===========================================================================================
0-9-1              what is different in 0-10
=================  ===========================================================================================
start              mechanisms are an array, less those that nobody in between could read; what the translator
                   does for a client counts among the broker's capabilities
start-ok           a response that is empty is left out where the mechanism lets the server begin: qpidd takes
                   it for an answer. Words that make it treat a client as a broker are left out, too
tune               channels are counted from 0, their number is the same; frames are cut anew, and of 0-9-1
                   those of RabbitMQ's size are taken, which some clients send unasked; the heartbeat is the
                   most that the broker allows
tune-ok            what was agreed, within what was offered; frames as large as the broker takes
open               virtual-host; what 0-8 calls insist, which no client of 0-9-1 has
redirect           addresses are taken out of URLs, which may have several
close              ``protocol.v0_10.codes``
=================  ===========================================================================================
"""

from __future__ import annotations

from typing import Final

from amqpgate.bridge.canonical import ConnectionRedirect
from amqpgate.bridge.v0_10.tables import from_table, to_table
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import FRAME_OVERHEAD
from amqpgate.protocol.v0_10.connection import Tuning, offered
from amqpgate.protocol.v0_10.frames import FRAME_HEADER_SIZE, MIN_MAX_FRAME_SIZE
from amqpgate.protocol.v0_10.login import passable, without_link_properties
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.tables import EMPTY_TABLE
from amqpgate.wire.v0_10.types import EMPTY_ARRAY, EMPTY_MAP, Array, Map

#: What a client may do, as RabbitMQ says it.
_CAPABILITIES: Final = {
    "authentication_failure_close": True,
    "basic.nack": True,
    "consumer_cancel_notify": False,
    "per_consumer_qos": True,
    "publisher_confirms": True,
}
#: Mechanisms in which an empty response is all that there is to say; in others the server begins.
_SILENT: Final = frozenset({"ANONYMOUS", "EXTERNAL"})
#: The largest frame of 0-9-1, in bytes: RabbitMQ's own.
FRAME_MAX: Final = 131_072
#: Bytes of words, at most: what a mechanism or a locale may have.
_MOST_WORD: Final = 255


def start_of(start: amqp10.ConnectionStart, most: int) -> amqp.ConnectionStart:
    """connection.start; server properties that need more than ``most`` bytes are left out."""
    said = to_table(start.server_properties, lenient=True).with_("capabilities", _CAPABILITIES)
    mechanisms = b" ".join(passable(_words(start.mechanisms)))
    locales = b" ".join(_words(start.locales)) or b"en_US"
    method = amqp.ConnectionStart(0, 9, said, mechanisms, locales)
    if len(method.encode()) + FRAME_OVERHEAD <= most:
        return method
    return amqp.ConnectionStart(
        0, 9, EMPTY_TABLE.with_("capabilities", _CAPABILITIES), mechanisms[: most // 4], locales[: most // 4]
    )


def _words(array: Array | None) -> tuple[bytes, ...]:
    """Names in an array, as far as a list with spaces between them can have them."""
    items = () if array is None else array.items
    return tuple(
        [
            item
            for item in items
            if isinstance(item, bytes) and 0 < len(item) <= _MOST_WORD and min(item) > 0x20 and item.isascii()
        ]
    )


def start_ok_of(start_ok: amqp.ConnectionStartOk) -> amqp10.ConnectionStartOk:
    """connection.start-ok; it is never larger than what is taken before tune."""
    silent = start_ok.mechanism.upper() in _SILENT
    properties = without_link_properties(from_table(start_ok.client_properties))
    answer = _start_ok(start_ok, properties, is_absent=not start_ok.response and not silent)
    if len(answer.encode()) + FRAME_HEADER_SIZE <= MIN_MAX_FRAME_SIZE:
        return answer
    return _start_ok(start_ok, EMPTY_MAP, is_absent=answer.response is None)


def _start_ok(said: amqp.ConnectionStartOk, properties: Map, *, is_absent: bool) -> amqp10.ConnectionStartOk:
    return amqp10.ConnectionStartOk(
        client_properties=properties,
        mechanism=said.mechanism.encode(),
        response=None if is_absent else said.response,
        locale=said.locale.encode(),
    )


def keeps_used_exchanges(start: amqp10.ConnectionStart) -> bool:
    """Whether exchange.delete with if-unused means something: qpidd does not look."""
    return to_table(start.server_properties, lenient=True).get("product") != "qpid-cpp"


def takes_reserved_queues(start: amqp10.ConnectionStart) -> bool:
    """Whether clients may declare queues whose names begin with "amq.", which the standard reserves: Qpid's
    brokers look at names of exchanges only."""
    product = to_table(start.server_properties, lenient=True).get("product")
    return isinstance(product, str) and "qpid" in product.lower()


def hears_cancels(start_ok: amqp.ConnectionStartOk) -> bool:
    """Whether the client takes basic.cancel."""
    capabilities = start_ok.client_properties.get("capabilities")
    return isinstance(capabilities, dict) and capabilities.get("consumer_cancel_notify") is True


def tune_of(tune: amqp10.ConnectionTune) -> amqp.ConnectionTune:
    """connection.tune. Violation 501 for an offer that nobody could take."""
    offer = offered(tune)
    if not offer.channel_max or offer.max_frame_size < MIN_MAX_FRAME_SIZE:
        raise ProtocolViolation(501, "connection.tune offers no channels, or frames that nothing fits into")
    if offer.heartbeat_min > offer.heartbeat:
        raise ProtocolViolation(501, "connection.tune asks for a heartbeat above the one that it allows")
    return amqp.ConnectionTune(offer.channel_max, FRAME_MAX, offer.heartbeat)


def tune_ok_of(tune_ok: amqp.ConnectionTuneOk, tune: amqp10.ConnectionTune) -> amqp10.ConnectionTuneOk:
    """connection.tune-ok, to ``tune``."""
    offer = offered(tune)
    wanted = Tuning(
        channel_max=tune_ok.channel_max or offer.channel_max,
        max_frame_size=offer.max_frame_size,
        heartbeat=tune_ok.heartbeat,
    )
    return wanted.answer(tune)


def open_of(open_: amqp.ConnectionOpen) -> amqp10.ConnectionOpen:
    """connection.open."""
    return amqp10.ConnectionOpen(
        virtual_host=open_.virtual_host.encode(), capabilities=EMPTY_ARRAY, insist=open_.reserved_2
    )


def redirect_of(redirect: amqp10.ConnectionRedirect) -> ConnectionRedirect:
    """connection.redirect. Addresses are ``host:port`` or ``host``, as many as 0-8 has room for."""
    found = [
        *_addresses(redirect.host),
        *(address for url in _words(redirect.known_hosts) for address in _addresses(url)),
    ]
    host, *others = found or [b""]
    known = b""
    for other in others:
        if len(known) + len(other) >= _MOST_WORD:
            break
        known += b" " + other if known else other
    return ConnectionRedirect(host.decode(), known.decode())


def _addresses(url: bytes | None) -> list[bytes]:
    """What an amqp-host-url has: ``amqp:tcp:host:port,tls:host,host``."""
    found = []
    for word in (url or b"").removeprefix(b"amqp:").split(b","):
        address = word.removeprefix(b"tcp:").removeprefix(b"tls:")
        if 0 < len(address) <= _MOST_WORD and min(address) > 0x20 and address.isascii():
            found.append(address)
    return found
