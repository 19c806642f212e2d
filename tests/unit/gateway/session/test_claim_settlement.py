"""Acks while a body is on its way; as conversations they are in `test_claim_delivery`."""

from __future__ import annotations

import pytest

from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session.claim_settlement import told
from amqpgate.gateway.session.settlement import Settling
from amqpgate.wire.generated import v0_9_1 as amqp

ALL = amqp.BasicAck(0, multiple=True)


@pytest.mark.parametrize(
    ("unsettled", "tag"),
    [([(1, 6)], 4), ([(1, 3), (5, 9)], 2), ([(1, 3), (4, 6), (8, 9)], 4), ([(5, 9)], None), ([], None)],
)
def test_of_all_the_last_that_was_shown_is_named(unsettled: list[tuple[int, int]], tag: int | None) -> None:
    expected = None if tag is None else amqp.BasicAck(tag, multiple=True)
    assert told(ALL, 1, 5, unsettled) == expected


@pytest.mark.parametrize(
    "method", [amqp.BasicAck(4), amqp.BasicAck(4, multiple=True), amqp.BasicReject(4), amqp.BasicAck(0)]
)
def test_what_names_others_passes(method: Settling) -> None:
    assert told(method, 1, 5, [(1, 6)]) is method


def test_where_nobody_knows_an_ack_of_all_passes() -> None:
    assert told(ALL, 1, 5, None) is ALL


def test_a_tag_that_was_not_shown_is_unknown() -> None:
    with pytest.raises(ProtocolViolation, match="unknown delivery tag 6") as refused:
        told(amqp.BasicNack(6, multiple=True), 3, 5, [(1, 6)])
    assert (refused.value.code, refused.value.channel, refused.value.method_id) == (406, 3, 120)
