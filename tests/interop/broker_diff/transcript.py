"""What a broker sent in a scenario, as lines to compare.

Made equal: names that a broker makes up (numbered by first appearance, so that the same name stays the
same), what it says of itself in connection.start, and, unless the scenario asks for it, where its confirms
stand among the other frames and how it groups them. Each channel is a transcript of its own: between
channels no order is promised.
"""

from __future__ import annotations

import re
from collections import defaultdict

from attrs import evolve, fields

from amqpgate.protocol.frames import FRAME_BODY, FRAME_HEADER, FRAME_METHOD, Frame
from amqpgate.wire.codec import decode_header, decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import EMPTY_TABLE

from .line import CONFIRMS, Line

_MADE_UP = re.compile(r"amq\.(?:gen|ctag)-[\w-]{22}|amq\.rabbitmq\.reply-to\.[\w+/=]+\.[\w+/=]+")
_SHOWN_BYTES = 40


class Transcript:
    """Lines of one scenario."""

    def __init__(self, *, confirms_in_place: bool) -> None:
        self._confirms_in_place = confirms_in_place
        self._names: dict[str, str] = {}

    def lines(self, client: str, line: Line) -> list[str]:
        """What a client saw: one channel after the other."""
        channels: defaultdict[int, list[str]] = defaultdict(list)
        acked: defaultdict[int, set[int]] = defaultdict(set)
        nacked: defaultdict[int, set[int]] = defaultdict(set)
        if line.refusal:
            channels[0].append(f"header {line.refusal!r}")
        for position, frame in enumerate(line.received):
            if position in line.own:
                continue
            if frame.type == FRAME_METHOD and not self._confirms_in_place:
                method = decode_method(frame.payload)
                if isinstance(method, CONFIRMS):
                    kind = acked if isinstance(method, amqp.BasicAck) else nacked
                    known = acked[frame.channel] | nacked[frame.channel]
                    first = 1 if method.multiple else method.delivery_tag
                    kind[frame.channel].update(set(range(first, method.delivery_tag + 1)) - known)
                    continue
            channels[frame.channel].append(self._line(frame))
        for kind, by_channel in (("acked", acked), ("nacked", nacked)):
            for channel, tags in by_channel.items():
                channels[channel].append(f"confirms: {kind} {sorted(tags)}")
        return [f"{client}{channel} {text}" for channel in sorted(channels) for text in channels[channel]]

    def _line(self, frame: Frame) -> str:
        if frame.type == FRAME_METHOD:
            return self._named(_method_line(decode_method(frame.payload)))
        if frame.type == FRAME_HEADER:
            header = decode_header(frame.payload)
            return self._named(f"header class {header.class_id}, {header.body_size} bytes, ") + self._named(
                _fields_of(header.properties)
            )
        assert frame.type == FRAME_BODY
        return f"body {len(frame.payload)} bytes {frame.payload[:_SHOWN_BYTES]!r}"

    def _named(self, text: str) -> str:
        def number(match: re.Match[str]) -> str:
            name = match[0]
            kind = re.split(r"-(?!to)", name)[0] if name.startswith(("amq.gen", "amq.ctag")) else "reply-to"
            return self._names.setdefault(name, f"<{kind} {len(self._names) + 1}>")

        return _MADE_UP.sub(number, text)


def _method_line(method: Method) -> str:
    if isinstance(method, amqp.ConnectionStart):
        mechanisms = b" ".join(sorted(method.mechanisms.split()))
        method = evolve(method, server_properties=EMPTY_TABLE, mechanisms=mechanisms)
    return f"{method.NAME} {_fields_of(method)}"


def _fields_of(value: object) -> str:
    values = {entry.name: getattr(value, entry.name) for entry in fields(type(value))}  # type: ignore[arg-type]
    return ", ".join(f"{name}={found!r}" for name, found in values.items() if found is not None)
