"""Rules that every connection is judged by, whatever is played on it; `watch` tries them.

A rule is obeyed where it was tried and kept. What RabbitMQ takes without a word is *as RabbitMQ*: no program
fails of it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from amqpgate.conformance.case import ConformanceRule, Strength
from amqpgate.conformance.client.findings import KEPT


@attrs.define(eq=False)
class ClientSection:
    """Rules of one part of the specification."""

    name: str
    title: str
    cases: list[ConformanceRule] = attrs.field(factory=list)


def client_rule(
    path: str,
    title: str,
    section: str,
    *,
    obeys: str | tuple[str, ...] = KEPT,
    rabbitmq: str | tuple[str, ...] = (),
    strength: Strength = "must",
) -> ConformanceRule:
    """A rule on clients, of any version."""
    return ConformanceRule(
        id=path,
        title=title,
        section=section,
        strength=strength,
        versions=("0-9-1", "0-9", "0-8"),
        obeys=(obeys,) if isinstance(obeys, str) else obeys,
        rabbitmq=(rabbitmq,) if isinstance(rabbitmq, str) else rabbitmq,
    )


HANDSHAKE: Final[Sequence[ConformanceRule]] = (
    client_rule("connection.header", "the first eight bytes are a protocol header of AMQP", "4.2.2"),
    client_rule(
        "connection.order", "start-ok, tune-ok and open come in this order, and nothing else before", "2.2.4"
    ),
    client_rule(
        "connection.start-ok.mechanism", "the mechanism is one of those that were offered", "1.4.2.2.2"
    ),
    client_rule("connection.start-ok.response", "the response is what its mechanism asks for", "1.4.2.2.3"),
    client_rule("connection.start-ok.locale", "the locale is one of those that were offered", "1.4.2.2.4"),
    client_rule(
        "connection.start-ok.client-properties",
        "the client names its product, version, platform, copyright and information",
        "1.4.2.2.1",
        strength="should",
        rabbitmq="without *",
    ),
    client_rule("connection.tune-ok.channel-max", "channel-max is not above what was offered", "1.4.2.6.1"),
    client_rule(
        "connection.tune-ok.frame-max",
        "frame-max is 4096 or more, and not above what was offered",
        "1.4.2.6.2",
    ),
)

FRAMES: Final[Sequence[ConformanceRule]] = (
    client_rule("framing.end", "frames end with CE", "4.2.3"),
    client_rule("framing.type", "frames are methods, headers, bodies and heartbeats", "4.2.3"),
    client_rule(
        "framing.frame-max",
        "no frame is larger than was agreed, its eight bytes around the payload included",
        "4.2.3",
        rabbitmq="* up to 8 bytes more than *",
    ),
    client_rule("framing.heartbeat", "heartbeats are empty, and on channel 0", "4.2.7"),
    client_rule(
        "framing.channel.class", "methods of class connection, and no others, are on channel 0", "4.2.3"
    ),
    client_rule("framing.method.known", "methods are known, and of those that a client says", "4.2.4"),
    client_rule("framing.method.fields", "methods have their fields, no more and no fewer bytes", "4.2.4"),
    client_rule(
        "framing.method.reserved", "reserved fields are 0 or empty", "4.2.4", strength="should", rabbitmq="*"
    ),
    client_rule(
        "framing.field-table", "field tables are well-formed, and of types that RabbitMQ knows", "4.2.5.5"
    ),
)

CHANNELS: Final[Sequence[ConformanceRule]] = (
    client_rule(
        "channel.open.channel-max",
        "no channel above the agreed channel-max is opened",
        "1.4.2.6.1",
        # It counts channels, and takes any number.
        rabbitmq="channel *",
    ),
    client_rule("channel.open.first", "nothing is said on a channel that is not open", "2.2.4"),
    client_rule(
        "channel.open.reuse",
        "no channel is opened that is open, or whose close-ok is not here yet",
        "1.5.2.1",
    ),
    client_rule(
        "channel.close.last", "nothing but close-ok is said on a channel after channel.close", "1.5.2.5"
    ),
    client_rule("connection.close.last", "nothing but close-ok is said after connection.close", "1.4.2.9"),
    client_rule(
        "connection.close.said",
        "whoever leaves says connection.close",
        "2.2.4",
        strength="should",
        rabbitmq="hangs up",
    ),
)

CONTENTS: Final[Sequence[ConformanceRule]] = (
    client_rule(
        "content.order",
        "method, header and bodies follow one another, with nothing of the channel between",
        "4.2.6",
    ),
    client_rule("content.header.class", "the header has the class of its method", "4.2.6.1"),
    client_rule("content.header.weight", "the header's weight is 0", "4.2.6.1"),
    client_rule(
        "content.header.properties", "the flags of the header say which properties follow", "4.2.6.1"
    ),
    client_rule(
        "content.header.delivery-mode", "delivery-mode is 1 or 2", "1.8.1", strength="should", rabbitmq="*"
    ),
    client_rule("content.header.priority", "priority is 0 to 9", "1.8.1", strength="should", rabbitmq="*"),
    client_rule("content.body-size", "the bodies have as many bytes as the header says", "4.2.6.2"),
)

BASIC: Final[Sequence[ConformanceRule]] = (
    client_rule("basic.ack.known", "what is settled was delivered on the same channel", "1.8.3.13.1"),
    client_rule("basic.ack.once", "each delivery is settled once only", "1.8.3.13.1"),
    client_rule("basic.ack.no-ack", "what was taken with no-ack is not settled", "1.8.3.3.5"),
    client_rule("basic.consume.tag", "consumer tags are not given twice on a channel", "1.8.3.3.3"),
    client_rule("queue.declare.reserved", "no queue is declared whose name begins with amq.", "1.7.2.1.2"),
    client_rule(
        "exchange.declare.reserved", "no exchange is declared whose name begins with amq.", "1.6.2.1.2"
    ),
    client_rule("confirm.select.tx", "a channel has confirms or transactions, not both", "confirm.select"),
)

PASSIVE: Final = (
    ClientSection("handshake", "Handshake", list(HANDSHAKE)),
    ClientSection("frames", "Frames and methods", list(FRAMES)),
    ClientSection("channels", "Channels, and how they end", list(CHANNELS)),
    ClientSection("contents", "Contents", list(CONTENTS)),
    ClientSection("messages", "Messages, queues and exchanges", list(BASIC)),
)
