"""What is known of one reference; conversations are in `test_claim_delivery` and `test_held_references`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from amqpgate.gateway.session.claim_reference import BODY, CLAIM, VARIABLE, ClaimKeys, Reference, new_key
from amqpgate.gateway.session.claim_restoring import Restoring, header_of, is_acked
from amqpgate.gateway.session.observer import Sent
from amqpgate.gateway.session.session import Session
from amqpgate.wire.codec import ContentHeader, decode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

KEYS = ClaimKeys.of({VARIABLE: "k" * 32})
SESSION = cast(
    Session,
    SimpleNamespace(
        principal=SimpleNamespace(vhost="/"),
        relay=SimpleNamespace(channels=SimpleNamespace(unacked_tags=lambda _: [(3, 5)])),
    ),
)


def restoring(method: Sent, claim: str) -> Restoring:
    properties = amqp.BasicProperties(headers=Table.of({CLAIM: claim, "x": 1}))
    header = ContentHeader(amqp.BasicProperties.CLASS_ID, len(BODY), properties)
    return Restoring(1, method, lambda: None, header)


@pytest.mark.parametrize("vhost", ["/", "other"])
def test_the_header_is_the_messages_where_a_gateway_signed_it(vhost: str) -> None:
    claim = KEYS.sign(Reference(new_key("/"), 12345, "0" * 64, True), vhost)
    header = decode_header(header_of(SESSION, KEYS, restoring(amqp.BasicDeliver("c", 1), claim))[7:-1])
    assert isinstance(header.properties, amqp.BasicProperties)
    assert header.properties.headers is not None
    names = [name for name, _ in header.properties.headers]
    assert (header.body_size, names) == ((12345, ["x"]) if vhost == "/" else (len(BODY), [CLAIM, "x"]))


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (amqp.BasicGetOk(2, False, "e", "k", 0), False),
        (amqp.BasicGetOk(4, False, "e", "k", 0), True),
        (amqp.BasicReturn(312, "NO_ROUTE", "e", "k"), False),
    ],
)
def test_what_was_got_is_acked_if_the_broker_waits_for_it(method: Sent, expected: bool) -> None:
    assert is_acked(SESSION, restoring(method, "")) is expected


def test_why_its_channel_closes_names_the_method() -> None:
    one = restoring(amqp.BasicGetOk(2, False, "e", "k", 0), "")
    one.refuse_for(404, "gone")
    assert one.refusal is not None
    assert (one.refusal.class_id, one.refusal.method_id, one.refusal.channel) == (60, 71, 1)
