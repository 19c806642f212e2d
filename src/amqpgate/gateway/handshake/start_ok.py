"""The start-ok that most clients say: read from its frame and written for the broker, with no method between.

What a client says of itself it says again and again: it is read once. Only the login is new each time.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

import attrs

from amqpgate.bridge import NATIVE
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.handshake.client_side import SAID, ClientProperties
from amqpgate.gateway.transport.caller import Caller
from amqpgate.gateway.upstream.broker_side import BROKER_FRAME_BEFORE_TUNE
from amqpgate.protocol.frames import FRAME_END, FRAME_OVERHEAD
from amqpgate.protocol.sasl import AMQPLAIN, PLAIN, credentials
from amqpgate.values import frozen
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.table_codec import get_known_table, put_table
from amqpgate.wire.tables import Table

#: A method frame on channel 0.
_HEAD: Final = b"\x01\x00\x00"
_INDEX: Final = amqp.ConnectionStartOk.INDEX.to_bytes(4, "big")
#: How the frame begins: that and the frame's size, the method, and the size of the table.
_BEGIN: Final = Struct(">3sI4sI")
#: Where the arguments begin in a frame.
_ARGUMENTS: Final = 11
#: The mechanisms of one response that names the user, as they are said.
_MECHANISMS: Final = {name.encode(): name for name in (PLAIN, AMQPLAIN)}
#: What nearly all clients say.
_LOCALE: Final = "en_US"
_LOCALE_SAID: Final = b"\x05en_US"
#: The entry that shows in a broker's connection list who is calling.
ENTRY: Final = "amqpgate"
_ENTRY_SAID: Final = ENTRY.encode()
_LONG: Final = Struct(">I").pack
#: Bytes of that entry's table but for its values.
_SHOWN: Final = sum(1 + len(name) + 1 + 4 for name in ("client_address", "session", "version"))
#: Bytes of a start-ok's payload but for its table, its mechanism and its response.
_BESIDE: Final = 4 + 4 + 1 + 4 + len(_LOCALE_SAID)


@frozen
class Introduction:
    """What a client says of itself."""

    properties: Table
    said: ClientProperties
    #: The entries of ``properties`` as the broker hears them; None: that is for `broker_side`.
    encoded: bytes | None


#: By what has been received of it; those that came last.
_INTRODUCED: Final[dict[bytes, Introduction]] = {}
#: As many are kept.
_MOST: Final = 64


def _introduce(frame: bytes, encoded: bytes) -> Introduction | None:
    """What a client says for the first time, in this frame. None: it says too much to be kept. Raises
    ``ProtocolViolation``."""
    properties, _ = get_known_table(frame, _ARGUMENTS, len(frame) - 1, NATIVE.dialect)
    if properties.encodings is None:
        return None
    is_usual = properties.field(ENTRY) is None
    again = put_table(properties, NATIVE.dialect)[4:] if is_usual else None
    introduction = Introduction(properties, SAID.of(properties), again)
    if len(_INTRODUCED) >= _MOST:
        _INTRODUCED.clear()
    _INTRODUCED[encoded] = introduction
    return introduction


@frozen
class UsualStartOk:
    """A client's start-ok."""

    #: The frame.
    frame: bytes = attrs.field(repr=False)
    introduction: Introduction
    mechanism: str
    response: bytes = attrs.field(repr=False)
    user: str

    @property
    def method(self) -> amqp.ConnectionStartOk:
        """The same as a method."""
        return amqp.ConnectionStartOk(self.introduction.properties, self.mechanism, self.response, _LOCALE)


def usual_start_ok(frame: bytes) -> UsualStartOk | None:
    """What was received, if it is one such frame and nothing else: by a client that speaks AMQP 0-9-1 as
    RabbitMQ has it, with a login by PLAIN or AMQPLAIN. None: it is to be looked at closely."""
    size = len(frame)
    if size < _BEGIN.size:
        return None
    head, payload, index, table = _BEGIN.unpack_from(frame)
    if head != _HEAD or index != _INDEX or payload + FRAME_OVERHEAD != size or frame[-1] != FRAME_END:
        return None
    try:
        at = _ARGUMENTS + 4 + table
        properties = frame[_ARGUMENTS:at]
        introduction = _INTRODUCED.get(properties) or _introduce(frame, properties)
        if introduction is None or introduction.encoded is None or not introduction.said.is_native:
            return None
        begin = at + 1 + frame[at]
        mechanism = _MECHANISMS.get(frame[at + 1 : begin])
        end = begin + 4 + int.from_bytes(frame[begin : begin + 4], "big")
        if mechanism is None or frame[end:-1] != _LOCALE_SAID:
            return None
        response = frame[begin + 4 : end]
        login = credentials(mechanism, response) if response else None
    except ProtocolViolation:
        return None
    return None if login is None else UsualStartOk(frame, introduction, mechanism, response, login.user)


def start_ok_of(said: UsualStartOk, caller: Caller, version: str) -> bytes:
    """The frame that the broker hears, as `broker_side.start_ok_for` makes it where the broker has the
    client's mechanism. ``version`` is the gateway's."""
    encoded = said.introduction.encoded
    assert encoded is not None, "it is usual"
    address, session, gateway = caller.address.encode(), caller.session_id.encode(), version.encode()
    shown = _SHOWN + len(address) + len(session) + len(gateway)
    entry = b"\x08%bF%b\x0eclient_addressS%b%b\x07sessionS%b%b\x07versionS%b%b" % (
        _ENTRY_SAID,
        _LONG(shown),
        _LONG(len(address)),
        address,
        _LONG(len(session)),
        session,
        _LONG(len(gateway)),
        gateway,
    )
    frame = _frame(encoded, entry, said)
    return frame if len(frame) <= BROKER_FRAME_BEFORE_TUNE else _frame(encoded, b"", said)


def _frame(properties: bytes, entry: bytes, said: UsualStartOk) -> bytes:
    mechanism, response = said.mechanism.encode(), said.response
    table = len(properties) + len(entry)
    return b"%b%b%b%b%b%b%c%b%b%b%b%c" % (
        _HEAD,
        _LONG(_BESIDE + table + len(mechanism) + len(response)),
        _INDEX,
        _LONG(table),
        properties,
        entry,
        len(mechanism),
        mechanism,
        _LONG(len(response)),
        response,
        _LOCALE_SAID,
        FRAME_END,
    )
