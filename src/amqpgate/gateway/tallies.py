"""What sessions have passed, summed: of those that are over, and with those that live, at a scrape."""

from __future__ import annotations

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

    _messages: dict[Passage, int] = attrs.field(factory=lambda: dict.fromkeys(PASSAGES, 0))
    _octets: dict[Passage, int] = attrs.field(factory=lambda: dict.fromkeys(PASSAGES, 0))
    #: Frames that the data path dealt with alone, by the side that sent them.
    frames: list[int] = attrs.field(factory=lambda: [0, 0])

    def add(self, session: Session) -> None:
        """One more, as it is now."""
        up, down = session.relay.up, session.relay.down
        self._count(PUBLISHED, up.messages, up.octets)
        self._count(REFUSED, session.holding.refused, session.holding.refused_octets)
        self._count(
            DELIVERED,
            down.messages - down.got - down.returned,
            down.octets - down.got_octets - down.returned_octets,
        )
        self._count(GOT, down.got, down.got_octets)
        self._count(RETURNED, down.returned, down.returned_octets)
        self.frames[Side.CLIENT] += up.frames
        self.frames[Side.UPSTREAM] += down.frames

    def _count(self, passage: Passage, messages: int, octets: int) -> None:
        self._messages[passage] += messages
        self._octets[passage] += octets

    def copy(self) -> Tally:
        """To be added to."""
        return Tally(self._messages.copy(), self._octets.copy(), self.frames.copy())

    @property
    def traffic(self) -> dict[Passage, Traffic]:
        """By passage."""
        return {passage: Traffic(self._messages[passage], self._octets[passage]) for passage in PASSAGES}
