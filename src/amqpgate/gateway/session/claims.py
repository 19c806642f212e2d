"""The claim checks of one session: bodies that go to an object store, and those that come from there."""

from __future__ import annotations

from collections.abc import Callable

from amqpgate.datapath.tables import Side
from amqpgate.gateway.objects.stores import ObjectStores
from amqpgate.gateway.session.claim_delivery import ClaimedDeliveries
from amqpgate.gateway.session.claim_publish import PublishClaims
from amqpgate.gateway.session.claim_reference import ClaimKeys
from amqpgate.gateway.session.session import Session
from amqpgate.values import frozen


@frozen(eq=False)
class SessionClaims:
    """Both directions."""

    session: Session
    #: Bytes of body that the settings allow.
    most_body: int
    publishes: PublishClaims
    deliveries: ClaimedDeliveries

    def follow(self) -> None:
        """Other policies may hold, or the session has another connection: what is too large from now on."""
        compatibility, relay = self.session.session_policies.compatibility, self.session.relay
        claim_check = None if compatibility is None else compatibility.claim_check
        is_own = relay.pooled is None and not self.session.facts.is_relayed
        if claim_check is not None and is_own:
            relay.up.most_body = min(self.most_body, claim_check.above)
        else:
            relay.up.most_body = self.most_body

    def takes(self, byte_count: int) -> bool:
        """Whether a publish with so much body goes to the store."""
        return byte_count > self.session.relay.up.most_body

    def keeps(self, side: Side, channel: int, frame: memoryview) -> bool:
        """A frame on a channel that is held: whether it is looked at again."""
        ways = self.publishes if side is Side.CLIENT else self.deliveries
        return ways.keeps(channel, frame)

    def end(self) -> None:
        """The session is over."""
        self.publishes.end()
        self.deliveries.end()


@frozen(eq=False)
class ClaimChecks:
    """Those of one gateway."""

    stores: ObjectStores
    #: Bytes of body that the settings allow.
    most_body: int
    #: Raises ``ConfigError`` where there are none.
    keys: Callable[[], ClaimKeys]

    def of(self, session: Session) -> SessionClaims:
        """A session's. Raises ``ConfigError`` where no key can be had."""
        keys = self.keys()
        return SessionClaims(
            session,
            self.most_body,
            PublishClaims(session, self.stores, keys),
            ClaimedDeliveries(session, self.stores, keys),
        )
