"""What the gateway reads of itself at a scrape: nothing of this is counted twice, or as it happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import attrs

from amqpgate.values import frozen

#: Direction, operation and verdict of messages: ``publish`` is from clients to brokers, ``deliver`` back.
Passage: TypeAlias = tuple[str, str, str]

PASSAGES: Final[tuple[Passage, ...]] = (
    ("publish", "basic.publish", "allow"),
    ("publish", "basic.publish", "deny"),
    ("deliver", "basic.deliver", "allow"),
    ("deliver", "basic.get-ok", "allow"),
    ("deliver", "basic.return", "allow"),
)
PUBLISHED, REFUSED, DELIVERED, GOT, RETURNED = PASSAGES


@frozen
class Traffic:
    """Messages of one passage."""

    messages: int = 0
    #: Of their bodies, as far as they are known: of a message that is refused at its method they are not.
    byte_count: int = 0


@frozen(kw_only=True)
class PoolUse:
    """The connections of one upstream that clients share."""

    #: By state.
    links: Mapping[str, int]
    #: Of links, by state.
    channels: Mapping[str, int]
    sessions: int
    #: Sessions that wait for a channel.
    waiting: int


@frozen(kw_only=True)
class LabelledUse:
    """The sessions with the same labels."""

    #: Those that are established.
    sessions: int
    #: Of these, and of those that are over.
    published: Traffic
    refused: Traffic
    #: To clients, by whatever operation.
    sent: Traffic
    denials: int
    #: Seconds that they waited for limits.
    waited: int


@frozen(kw_only=True)
class Totals:
    """One reading."""

    traffic: Mapping[Passage, Traffic]
    #: Frames that the data path dealt with alone, by direction.
    hits: Mapping[str, int]
    #: Frames handed to the control plane, by reason.
    upcalls: Mapping[str, int]
    #: Of clients, by state.
    connections: Mapping[str, int]
    #: By route; the empty one stands for none.
    sessions: Mapping[str, int]
    #: By version of AMQP, the client's and the broker's.
    versions: Mapping[tuple[str, str], int]
    #: By state.
    channels: Mapping[str, int]
    #: Bytes that wait to be sent, by the side that they are for.
    buffered: Mapping[str, int]
    pauses: int
    throttled: int
    failures: int
    #: Turns of the data path by how long they were (`buckets.ADDED`), and the seconds of all of them.
    latency: tuple[Sequence[int], float]
    #: By upstream.
    pools: Mapping[str, PoolUse]
    #: Listener, file of a certificate, and when that expires, in seconds since 1970.
    certificates: Sequence[tuple[str, str, float]]
    #: By the values of the labels that the settings ask for. Empty where they ask for none.
    labelled: Mapping[tuple[str, ...], LabelledUse] = attrs.field(factory=dict)
