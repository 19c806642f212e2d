"""Deliveries in all forms that a client has to take. Its ack is the proof, or what it says later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from amqpgate.conformance.client.line import ClientLine, Proof
from amqpgate.conformance.client.rules import client_rule
from amqpgate.conformance.client.scenario import Scenario
from amqpgate.conformance.field_types import types_of
from amqpgate.conformance.peer import BODY, frame
from amqpgate.protocol.frames import FRAME_OVERHEAD, HEARTBEAT
from amqpgate.wire.method import Method, Properties
from amqpgate.wire.tables import EMPTY_TABLE, Field, Table

_SETTLES: Final = ("basic.ack", "basic.nack", "basic.reject")

#: So many deliveries are looked at for their acks.
_MOST: Final = 1000


class Delivering(Scenario):
    """Does something to deliveries, and looks for what shows that they were taken."""

    needs = "no program took a message"

    def __init__(self) -> None:
        self.expects: set[int] = set()

    def delivers(self, said: Method, properties: Properties, body: bytes) -> tuple[Method, Properties, bytes]:
        if len(self.expects) < _MOST:
            self.expects.add(getattr(said, "delivery_tag", 0))
        return said, properties, body

    def frames(self, line: ClientLine, channel: int, frames: list[bytes]) -> Sequence[bytes]:
        line.course.act(self.takes(line, channel))
        return frames

    def takes(self, line: ClientLine, channel: int) -> Proof:
        """Proof that a delivery was taken: it is settled, or, if it need not be, something else is said."""

        def proof(where: int, said: Method) -> bool:
            watched = line.watch.channels.get(channel)
            if watched is not None and watched.automatic and not watched.unsettled:
                return True
            tag = getattr(said, "delivery_tag", None)
            is_multiple = getattr(said, "multiple", False)
            return said.NAME in _SETTLES and (tag in self.expects or is_multiple)

        return proof


def _body(frames: list[bytes]) -> tuple[list[bytes], bytes]:
    """Frames but the bodies, and the body."""
    return frames[:2], b"".join(one[7:-1] for one in frames[2:])


class SmallBodies(Delivering):
    """Bodies in frames of three bytes."""

    rule = client_rule(
        "basic.deliver.body.frames", "a body in many frames is put together", "4.2.6.2", obeys="goes on"
    )
    needs = "no program took a message of more than three bytes"
    step = 3

    def frames(self, line: ClientLine, channel: int, frames: list[bytes]) -> Sequence[bytes]:
        head, body = _body(frames)
        if len(body) <= self.step:
            return frames
        line.course.act(self.takes(line, channel))
        # Of a long body the beginning will do.
        short, rest = body[:3000], body[3000:]
        parts = [short[start : start + self.step] for start in range(0, len(short), self.step)]
        room = (line.watch.frame_max or 131072) - FRAME_OVERHEAD
        parts += [rest[start : start + room] for start in range(0, len(rest), room)]
        return [*head, *(frame(BODY, channel, part) for part in parts)]


class OneByteBodies(SmallBodies):
    """Bodies in frames of one byte."""

    rule = client_rule(
        "basic.deliver.body.one-byte",
        "a body in frames of one byte each is put together",
        "4.2.6.2",
        obeys="goes on",
    )
    needs = "no program took a message of more than one byte"
    step = 1


class EmptyBodies(Delivering):
    """Messages without a body."""

    rule = client_rule(
        "basic.deliver.body.empty",
        "a message of no bytes is whole with its header, and its body frames do not come",
        "4.2.6.2",
        obeys="goes on",
    )
    needs = "no program took a message of no bytes: let it publish one"

    def delivers(self, said: Method, properties: Properties, body: bytes) -> tuple[Method, Properties, bytes]:
        return (said, properties, body) if body else super().delivers(said, properties, body)

    def frames(self, line: ClientLine, channel: int, frames: list[bytes]) -> Sequence[bytes]:
        return super().frames(line, channel, frames) if len(frames) == 2 else frames


class HeartbeatsBetween(Delivering):
    """Heartbeats between the frames of a content."""

    rule = client_rule(
        "basic.deliver.heartbeats",
        "heartbeats between the frames of a message are passed over",
        "4.2.7",
        obeys="goes on",
    )
    needs = "no program that wants heartbeats took a message"

    def frames(self, line: ClientLine, channel: int, frames: list[bytes]) -> Sequence[bytes]:
        if not line.heartbeat:
            return frames
        line.course.act(self.takes(line, channel))
        return [part for one in frames for part in (HEARTBEAT, one)]


class ByteByByte(Delivering):
    """Everything in segments of one byte."""

    rule = client_rule(
        "framing.segments",
        "frames are read however the stream is cut, byte by byte, too",
        "2.3.3",
        obeys="goes on",
    )
    segment = 1


class Coalesced(Delivering):
    """As much as can be in one piece."""

    rule = client_rule(
        "framing.coalesced",
        "an answer and the deliveries after it are read from one piece",
        "2.3.3",
        obeys="goes on",
    )
    needs = "no program consumed from a queue with messages"

    def before(self, line: ClientLine, channel: int, said: Method) -> bool:
        if said.NAME == "basic.consume":
            line.outbox.hold()
        return False

    def flush(self, line: ClientLine) -> None:
        line.outbox.release()


class Interleaved(Delivering):
    """Frames of several channels between each other's."""

    rule = client_rule(
        "framing.interleaved",
        "frames of several channels may lie between each other's: a message on each is put together",
        "4.2.6",
        obeys="goes on",
    )
    needs = "no program consumed on two channels at once"
    is_mixed = True

    def __init__(self) -> None:
        super().__init__()
        self.channels: set[int] = set()

    def after(self, line: ClientLine, channel: int, said: Method) -> None:
        if said.NAME == "basic.consume":
            self.channels.add(channel)
        if len(self.channels) > 1:
            line.outbox.hold()

    def flush(self, line: ClientLine) -> None:
        line.outbox.release()

    def frames(self, line: ClientLine, channel: int, frames: list[bytes]) -> Sequence[bytes]:
        if len(self.channels) > 1:
            line.course.act(self.takes(line, channel))
            line.outbox.hold()
        return frames

    def outcome(self, line: ClientLine) -> str | None:
        said = super().outcome(line)
        return said if line.outbox.was_mixed or said not in ("goes on", "silence") else None


class Redelivered(Delivering):
    """Everything was delivered before."""

    rule = client_rule(
        "basic.deliver.redelivered",
        "messages that are marked as redelivered are taken",
        "1.8.3.9.3",
        obeys="goes on",
    )

    def delivers(self, said: Method, properties: Properties, body: bytes) -> tuple[Method, Properties, bytes]:
        super().delivers(said, properties, body)
        return attrs.evolve(said, redelivered=True), properties, body  # type: ignore[misc]


class AllTypes(Delivering):
    """Headers of all types beside those of the message."""

    rule = client_rule(
        "basic.deliver.header-types",
        "headers of all types, which a broker may add, are taken",
        "4.2.5.5",
        obeys="goes on",
    )

    def delivers(self, said: Method, properties: Properties, body: bytes) -> tuple[Method, Properties, bytes]:
        super().delivers(said, properties, body)
        headers: Table = getattr(properties, "headers", None) or EMPTY_TABLE
        is_old = type(said).__module__.endswith("v0_8")
        added = Field("F", types_of("0-8" if is_old else "0-9-1"))
        more = Table((*headers.entries, ("x-amqpgate", added)))
        return said, attrs.evolve(properties, headers=more), body  # type: ignore[misc]


class LargeTags(Delivering):
    """Delivery tags beyond 32 bits."""

    rule = client_rule(
        "basic.deliver.delivery-tag",
        "delivery tags of more than 32 bits are acked as they are",
        "1.8.3.9.2",
        obeys="goes on",
    )
    last_tag = 2**40

    def outcome(self, line: ClientLine) -> str | None:
        said = super().outcome(line)
        found = line.watch.findings.outcomes.get("basic.ack.known", "kept")
        return said if found == "kept" else found


class LongNames(Scenario):
    """Names of 255 bytes."""

    rule = client_rule(
        "queue.declare-ok.name",
        "names of 255 bytes that the broker gives, of queues and of consumers, are used as they are",
        "1.7.2.2.1",
        obeys="goes on",
    )
    needs = "no program asked for a name: declared a queue, or consumed, without one"
    name_length = 255

    def after(self, line: ClientLine, channel: int, said: Method) -> None:
        is_asked = (said.NAME == "queue.declare" and not getattr(said, "queue", "")) or (
            said.NAME == "basic.consume" and not getattr(said, "consumer_tag", "")
        )
        if is_asked:
            line.course.act()


SCENARIOS: Final[tuple[type[Scenario], ...]] = (
    SmallBodies,
    OneByteBodies,
    EmptyBodies,
    HeartbeatsBetween,
    ByteByByte,
    Coalesced,
    Interleaved,
    Redelivered,
    AllTypes,
    LargeTags,
    LongNames,
)
