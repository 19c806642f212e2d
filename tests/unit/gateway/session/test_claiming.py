"""What a session asks of its claim checks, these can be asked."""

from __future__ import annotations

from amqpgate.gateway.session.claim_delivery import ClaimedDeliveries
from amqpgate.gateway.session.claim_publish import PublishClaims
from amqpgate.gateway.session.claiming import Claiming, DeliveryClaiming, PublishClaiming
from amqpgate.gateway.session.claims import SessionClaims


def test_both_ways_can_be_asked_all() -> None:
    for asked, kind in (
        (Claiming, SessionClaims),
        (PublishClaiming, PublishClaims),
        (DeliveryClaiming, ClaimedDeliveries),
    ):
        names = {name for name in vars(asked) if not name.startswith("_")}
        assert names
        assert names <= set(dir(kind))
