"""What sessions have passed, summed: of those that are over, and with those that live, at a scrape."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from amqpgate.datapath.tables import Side
from amqpgate.gateway.session import Session
from amqpgate.telemetry.readings import (
    DELIVERED,
    GOT,
    PASSAGES,
    PUBLISHED,
    REFUSED,
    RETURNED,
    Passage,
    Traffic,
)


@attrs.define(eq=False)
class Tally:
    """Of any number of sessions."""

    #: By passage.
    traffic: dict[Passage, Traffic] = attrs.field(factory=lambda: dict.fromkeys(PASSAGES, Traffic()))
    #: Frames that the data path dealt with alone, by the side that sent them.
    frames: tuple[int, int] = (0, 0)

    def add(self, sessions: Iterable[Session]) -> None:
        """These, too, as they are now. The data path stands still meanwhile: no object for each."""
        published = refused = sent = got = returned = from_client = from_broker = 0
        published_octets = refused_octets = sent_octets = got_octets = returned_octets = 0
        for session in sessions:
            client, broker = session.relay.endpoints
            up, down, holding, channels = client.lane, broker.lane, session.holding, session.relay.channels
            published += up.messages
            published_octets += up.octets
            refused += holding.refused
            refused_octets += holding.refused_octets
            sent += down.messages
            sent_octets += down.octets
            got += channels.got
            got_octets += channels.got_octets
            returned += channels.returned
            returned_octets += channels.returned_octets
            from_client += up.frames
            from_broker += down.frames
        self._count(PUBLISHED, published, published_octets)
        self._count(REFUSED, refused, refused_octets)
        self._count(DELIVERED, sent - got - returned, sent_octets - got_octets - returned_octets)
        self._count(GOT, got, got_octets)
        self._count(RETURNED, returned, returned_octets)
        self.frames = self.frames[Side.CLIENT] + from_client, self.frames[Side.UPSTREAM] + from_broker

    def _count(self, passage: Passage, messages: int, octets: int) -> None:
        before = self.traffic[passage]
        self.traffic[passage] = Traffic(before.messages + messages, before.octets + octets)

    def copy(self) -> Tally:
        """To be added to."""
        return Tally(self.traffic.copy(), self.frames)
