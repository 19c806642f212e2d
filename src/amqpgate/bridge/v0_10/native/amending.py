"""An original whose copy the gateway has changed: for a trace, or by a transform of messages.

The message's header is written anew from the copy, but for what 0-9-1 has no word for; command and body stay.
"""

from __future__ import annotations

from attrs import evolve

from amqpgate.bridge.v0_10.native.assemblies import AssemblyReader
from amqpgate.bridge.v0_10.native.build import Original
from amqpgate.bridge.v0_10.properties import from_canonical, to_canonical
from amqpgate.protocol.v0_10.frames import encode_segments
from amqpgate.wire.codec import decode_header as decode_content_header
from amqpgate.wire.generated.v0_9_1 import BasicProperties
from amqpgate.wire.generated.v0_10 import DeliveryProperties, MessageProperties
from amqpgate.wire.v0_10.codec import decode_header, encode_header
from amqpgate.wire.v0_10.structs import Struct, Unknown
from amqpgate.wire.v0_10.types import EMPTY_MAP, Map


def amended(original: Original, header: bytes, most: int) -> bytes:
    """Its frames, with what ``header`` says: the payload of the header frame of its copy, as it came out.

    Violation 506 if what it says does not fit into a frame of ``most`` bytes.
    """
    (assembly,) = AssemblyReader(len(original.data)).feed(original.data)
    properties = decode_content_header(header).properties
    assert isinstance(properties, BasicProperties)
    structs = decode_header(assembly.header or b"")
    encoded = encode_header(_with(structs, properties))
    return encode_segments(assembly.channel, assembly.segment, encoded, assembly.body or b"", most)


def _with(structs: tuple[Struct | Unknown, ...], properties: BasicProperties) -> tuple[Struct | Unknown, ...]:
    """The same, but for what the properties say otherwise than its copy did."""
    delivery = next((one for one in structs if isinstance(one, DeliveryProperties)), None)
    message = next((one for one in structs if isinstance(one, MessageProperties)), None)
    before = to_canonical(delivery, message, lenient=True)
    now = from_canonical(properties, routing_key="")
    was = from_canonical(before, routing_key="")
    changed: list[Struct | Unknown] = [_merged(message or MessageProperties(), now[1], was[1])]
    merged = _merged(delivery or DeliveryProperties(), now[0], was[0])
    if delivery is not None or merged != DeliveryProperties():
        changed.insert(0, merged)
    rest = [one for one in structs if not isinstance(one, DeliveryProperties | MessageProperties)]
    return (*changed, *rest)


def _merged(said: Struct, now: Struct, before: Struct) -> Struct:
    """What was said, with the fields that are others."""
    changes = {
        name: getattr(now, name)
        for name in type(said).__match_args__
        if getattr(now, name) != getattr(before, name)
    }
    if isinstance(said, MessageProperties) and "application_headers" in changes:
        changes["application_headers"] = _headers(
            said.application_headers, changes["application_headers"], before
        )
    return evolve(said, **changes)  # type: ignore[misc]  # all of them are attrs classes


def _headers(said: Map | None, now: Map | None, before: Struct) -> Map | None:
    """The headers, of which those that nobody has changed keep types that 0-9-1 lacks."""
    assert isinstance(before, MessageProperties)
    was = dict((before.application_headers or EMPTY_MAP).entries)
    told = dict((now or EMPTY_MAP).entries)
    kept = tuple(
        [(name, value) for name, value in (said or EMPTY_MAP).entries if told.get(name) == was.get(name)]
    )
    names = {name for name, _ in kept}
    return Map((*kept, *((name, value) for name, value in told.items() if name not in names)))
