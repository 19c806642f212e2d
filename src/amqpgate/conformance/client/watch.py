"""Judges what a client says, frame by frame, by the rules of `rules`. Does no I/O."""

from __future__ import annotations

from struct import Struct
from typing import Final

import attrs

from amqpgate.conformance.client.findings import ClientFindings
from amqpgate.conformance.client.watched_channel import WatchedChannel
from amqpgate.conformance.peer import BODY, HEADER, HEARTBEAT, METHOD
from amqpgate.conformance.versions import SpokenVersion
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import FRAME_MIN_SIZE, FRAME_OVERHEAD, Frame
from amqpgate.protocol.methods import CONNECTION_CLASS, FROM_CLIENT
from amqpgate.protocol.sasl import credentials, offered_by
from amqpgate.wire.codec import ContentHeader, decode_header, decode_method
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

_HEAD: Final = Struct(">HHQ")

#: What a client says before the connection is open, and what may come next.
_NEXT: Final = {
    "start": ("connection.start-ok",),
    "connection.start-ok": ("connection.secure-ok", "connection.tune-ok"),
    "connection.secure-ok": ("connection.secure-ok", "connection.tune-ok"),
    "connection.tune-ok": ("connection.open",),
}

_NAMED: Final = ("product", "version", "platform", "copyright", "information")


@attrs.define(eq=False)
class ClientWatch:
    """One connection's."""

    findings: ClientFindings
    version: SpokenVersion
    #: The last of the handshake's methods that came; "open" once it is.
    stage: str = "start"
    #: As was offered.
    mechanisms: list[str] = attrs.field(factory=list)
    locales: list[str] = attrs.field(factory=list)
    offered: tuple[int, int] = (0, 0)
    #: As was agreed.
    frame_max: int = FRAME_MIN_SIZE
    channel_max: int = 0
    channels: dict[int, WatchedChannel] = attrs.field(factory=dict)
    #: Whether the client has said connection.close, and whether the broker has.
    is_leaving: bool = False
    is_dismissed: bool = False

    @property
    def is_over(self) -> bool:
        """Whether either side has said connection.close."""
        return self.is_leaving or self.is_dismissed

    def check(self, rule: str, is_kept: bool, what: str = "") -> bool:
        """As of `ClientFindings`; what came after the broker's connection.close does not count."""
        return is_kept if self.is_dismissed else self.findings.check(rule, is_kept, what)

    # -- what the broker says --------------------------------------------------------------------------------

    def told(self, channel: int, said: Method) -> None:
        """A method of the broker's."""
        amqp = self.version.amqp
        if isinstance(said, amqp.ConnectionStart):
            self.mechanisms = offered_by(said.mechanisms)
            self.locales = said.locales.decode("utf-8", "replace").split()
        elif isinstance(said, amqp.ConnectionTune):
            self.offered = said.channel_max, said.frame_max
        elif isinstance(said, amqp.ConnectionClose):
            self.is_dismissed = True
        elif channel in self.channels:
            self.channels[channel].told(said)
            if self.channels[channel].is_closed:
                del self.channels[channel]

    # -- what the client says --------------------------------------------------------------------------------

    def heard(self, frame: Frame) -> Method | ContentHeader | None:
        """A frame of the client's, and what is in it; None: nothing, or nothing that can be read."""
        self.check("framing.end", True)
        self.check("framing.type", True)
        self._size(frame)
        if self.is_leaving and frame.type != METHOD:
            self.check("connection.close.last", False, f"a frame of type {frame.type}")
        if frame.type == HEARTBEAT:
            what = f"{len(frame.payload)} bytes on channel {frame.channel}"
            self.check("framing.heartbeat", not frame.payload and not frame.channel, what)
            return None
        if frame.type == METHOD:
            return self._method(frame)
        watched = self.channels.get(frame.channel)
        if watched is None:
            what = f"a frame of type {frame.type} on channel {frame.channel}"
            self.check("channel.open.first", False, what)
            return None
        if watched.passes_over:
            watched.after_close(self.check, f"a frame of type {frame.type}")
            return None
        if frame.type == HEADER:
            return self._header(frame, watched)
        if frame.type == BODY:
            watched.body(self.check, len(frame.payload))
        return None

    def violated(self, violation: ProtocolViolation, *, is_lost: bool) -> None:
        """Bytes that are no frame; ``is_lost``: nothing after them is."""
        if "end_marker" in violation.text:
            self.check("framing.end", False, violation.text)
        elif is_lost:
            self.check("framing.frame-max", False, violation.text)
        else:
            self.check("framing.type", False, violation.text)

    def ended(self) -> None:
        """The client has hung up."""
        if self.stage == "open" and not self.is_dismissed:
            self.check("connection.close.said", self.is_leaving, "hangs up")

    def _size(self, frame: Frame) -> None:
        size = len(frame.payload) + FRAME_OVERHEAD
        if not self.frame_max or (frame.type != BODY and size <= self.frame_max):
            return
        over = size - self.frame_max
        more = "up to 8 bytes more than" if 0 < over <= FRAME_OVERHEAD else "more than"
        what = f"a frame of {size} bytes, {more} {self.frame_max}"
        # A body says something of the rule only if it fills its frame.
        if over > -FRAME_OVERHEAD or frame.type != BODY:
            self.check("framing.frame-max", over <= 0, what)

    def _method(self, frame: Frame) -> Method | None:
        try:
            said = decode_method(frame.payload, self.version.dialect)
        except ProtocolViolation as violation:
            rule = {540: "framing.method.known", 541: "framing.field-table", 506: "framing.field-table"}
            self.check(rule.get(violation.code, "framing.method.fields"), False, violation.text)
            return None
        self.check("framing.method.fields", True)
        self.check("framing.method.known", said.NAME in FROM_CLIENT, f"{said.NAME} of a client")
        self._fields(said)
        is_connection = said.CLASS_ID == CONNECTION_CLASS
        place = f"{said.NAME} on channel {frame.channel}"
        if not self.check("framing.channel.class", is_connection == (frame.channel == 0), place):
            return None
        if self.is_leaving:
            is_answer = said.NAME in ("connection.close-ok", "channel.close-ok")
            self.check("connection.close.last", is_answer, said.NAME)
        if is_connection:
            self._connection(said)
            return said
        self._order(said)
        return said if self._channel(frame.channel, said) else None

    def _fields(self, said: Method) -> None:
        for name in said.__match_args__:
            value = getattr(said, name)
            if name.startswith("reserved"):
                self.check("framing.method.reserved", not value, f"{said.NAME} has {name} {value!r}")
            elif isinstance(value, Table) and len(value):
                self.check("framing.field-table", True)

    def _order(self, said: Method) -> None:
        if self.stage == "open" or said.NAME in ("connection.close", "connection.close-ok"):
            return
        wanted = _NEXT[self.stage]
        self.check("connection.order", said.NAME in wanted, f"{said.NAME} after {self.stage}")
        self.stage = (
            "open" if said.NAME == "connection.open" else said.NAME if said.NAME in _NEXT else self.stage
        )

    def _connection(self, said: Method) -> None:
        amqp = self.version.amqp
        self._order(said)
        if isinstance(said, amqp.ConnectionClose):
            self.is_leaving = True
            self.check("connection.close.last", True)
        elif isinstance(said, amqp.ConnectionStartOk):
            self._start_ok(said)
        elif isinstance(said, amqp.ConnectionTuneOk):
            self._tune_ok(said.channel_max, said.frame_max)

    def _start_ok(self, said: Method) -> None:
        mechanism, locale = getattr(said, "mechanism", ""), getattr(said, "locale", "")
        response, properties = getattr(said, "response", b""), getattr(said, "client_properties", Table())
        self.check("connection.start-ok.mechanism", mechanism in self.mechanisms, repr(mechanism))
        self.check("connection.start-ok.locale", locale in self.locales, repr(locale))
        lacks = [name for name in _NAMED if not isinstance(properties.get(name), str)]
        self.check("connection.start-ok.client-properties", not lacks, f"without {', '.join(lacks)}")
        if mechanism in ("PLAIN", "AMQPLAIN"):
            try:
                is_right = credentials(mechanism, response) is not None
            except ProtocolViolation:
                is_right = False
            self.check(
                "connection.start-ok.response", is_right, f"{len(response)} bytes that are no {mechanism}"
            )

    def _tune_ok(self, channel_max: int, frame_max: int) -> None:
        for rule, said, offered, least in (
            ("connection.tune-ok.channel-max", channel_max, self.offered[0], 0),
            ("connection.tune-ok.frame-max", frame_max, self.offered[1], FRAME_MIN_SIZE),
        ):
            # 0 is no limit.
            is_kept = (said == 0 or said >= least) and (offered == 0 or 0 < said <= offered)
            self.check(rule, is_kept, f"{said}, where {offered} was offered")
        self.channel_max, self.frame_max = channel_max, frame_max

    def _channel(self, number: int, said: Method) -> bool:
        """Whether it counts."""
        watched = self.channels.get(number)
        if said.NAME == "channel.open":
            self.check("channel.open.reuse", watched is None, f"channel {number}")
            is_kept = not self.channel_max or number <= self.channel_max
            self.check("channel.open.channel-max", is_kept, f"channel {number} of {self.channel_max}")
            self.channels[number] = WatchedChannel()
            return watched is None
        if watched is None:
            # Closes may have crossed; then each is answered.
            is_late = said.NAME == "channel.close-ok"
            self.check("channel.open.first", is_late, f"{said.NAME} on channel {number}")
            return is_late
        self.check("channel.open.first", True)
        counts = watched.heard(self.check, said)
        if watched.is_closed:
            del self.channels[number]
        return counts

    def _header(self, frame: Frame, watched: WatchedChannel) -> ContentHeader | None:
        if len(frame.payload) < _HEAD.size:
            self.check("content.header.properties", False, f"{len(frame.payload)} bytes")
            return None
        class_id, weight, size = _HEAD.unpack_from(frame.payload)
        if not watched.header(self.check, class_id, size):
            return None
        self.check("content.header.weight", weight == 0, f"{weight}")
        try:
            header = decode_header(frame.payload, self.version.dialect)
        except ProtocolViolation as violation:
            self.check("content.header.properties", False, violation.text)
            return None
        self.check("content.header.properties", True)
        self._properties(header)
        return header

    def _properties(self, header: ContentHeader) -> None:
        mode = getattr(header.properties, "delivery_mode", None)
        priority = getattr(header.properties, "priority", None)
        if mode is not None:
            self.check("content.header.delivery-mode", mode in (1, 2), f"{mode}")
        if priority is not None:
            self.check("content.header.priority", priority <= 9, f"{priority}")
        if getattr(header.properties, "headers", None):
            self.check("framing.field-table", True)
