"""What a session asks of its claim checks, these can be asked."""

from __future__ import annotations

from amqpgate.gateway.session.claim_delivery import ClaimedDeliveries
from amqpgate.gateway.session.claim_publish import PublishClaims
from amqpgate.gateway.session.claiming import Claiming, DeliveryClaiming, PublishClaiming, owner_of
from amqpgate.gateway.session.claims import SessionClaims
from amqpgate.policy import Principal


def test_both_ways_can_be_asked_all() -> None:
    for asked, kind in (
        (Claiming, SessionClaims),
        (PublishClaiming, PublishClaims),
        (DeliveryClaiming, ClaimedDeliveries),
    ):
        names = {name for name in vars(asked) if not name.startswith("_")}
        assert names
        assert names <= set(dir(kind))


def test_a_user_has_one_share_in_all_virtual_hosts() -> None:
    one, other = (Principal(user="eve", vhost=vhost) for vhost in ("a", "b"))
    assert owner_of(one) == owner_of(other)
    nobody, somebody = (Principal(user=None, vhost=vhost) for vhost in ("eve", "b"))
    assert len({owner_of(one), owner_of(nobody), owner_of(somebody)}) == 3
