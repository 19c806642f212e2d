"""What sessions have passed, summed: of those that are over, and with those that live, at a scrape."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from amqpgate.gateway.session.session import Session
from amqpgate.telemetry.readings import DELIVERED, GOT, PUBLISHED, REFUSED, RETURNED, Passage, Traffic
from amqpgate.values import define


@define(eq=False)
class SessionTotals:
    """Of any number of sessions: messages, and bytes of their bodies."""

    published: int = 0
    published_bytes: int = 0
    refused: int = 0
    refused_bytes: int = 0
    #: To clients, got and returned ones among them.
    sent: int = 0
    sent_bytes: int = 0
    got: int = 0
    got_bytes: int = 0
    returned: int = 0
    returned_bytes: int = 0
    #: Frames that the data path dealt with alone, from clients and from brokers.
    frames_up: int = 0
    frames_down: int = 0

    def add(self, session: Session) -> None:
        """This one, too, as it is now. There may be thousands: no object for each."""
        client, broker = session.relay.endpoints
        up, down, publishes, channels = client.lane, broker.lane, session.publishes, session.relay.channels
        self.published += up.messages
        self.published_bytes += up.body_bytes
        self.refused += publishes.refused
        self.refused_bytes += up.dropped
        self.sent += down.messages
        self.sent_bytes += down.body_bytes
        self.got += channels.got
        self.got_bytes += channels.got_bytes
        self.returned += channels.returned
        self.returned_bytes += channels.returned_bytes
        self.frames_up += up.frames
        self.frames_down += down.frames

    def traffic(self) -> Mapping[Passage, Traffic]:
        """By passage."""
        return {
            PUBLISHED: Traffic(self.published, self.published_bytes),
            REFUSED: Traffic(self.refused, self.refused_bytes),
            DELIVERED: Traffic(
                self.sent - self.got - self.returned,
                self.sent_bytes - self.got_bytes - self.returned_bytes,
            ),
            GOT: Traffic(self.got, self.got_bytes),
            RETURNED: Traffic(self.returned, self.returned_bytes),
        }

    def copy(self) -> SessionTotals:
        """To be added to."""
        return attrs.evolve(self)
