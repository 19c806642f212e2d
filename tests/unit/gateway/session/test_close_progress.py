"""The closes of one channel: who owes an answer after each step, and to whom."""

from __future__ import annotations

import pytest

from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session.close_progress import ChannelClose

DENIAL = ProtocolViolation(403, "denied", channel=1)


def is_over(close: ChannelClose) -> bool:
    return (close.up, close.down) == (None, None)


def test_a_denial_closes_the_brokers_side_and_then_the_clients() -> None:
    close = ChannelClose(Side.UPSTREAM, denial=DENIAL)
    assert (close.up, close.down, close.awaits_broker) == (Side.UPSTREAM, None, True)
    assert close.broker_answers_denial() is DENIAL
    assert (close.up, close.down, close.awaits_broker) == (None, Side.CLIENT, False)
    assert not is_over(close)
    assert close.client_answers() == 0
    assert is_over(close)


def test_a_close_of_the_clients_waits_for_the_denial_it_met() -> None:
    close = ChannelClose(Side.UPSTREAM, denial=DENIAL)
    assert close.client_closes_again(is_one=False)
    assert not close.release_client()
    close.broker_answers_denial()
    assert close.release_client()
    assert not close.release_client()


def test_the_brokers_close_that_meets_a_denial_takes_its_place() -> None:
    close = ChannelClose(Side.UPSTREAM, denial=DENIAL)
    assert close.broker_closes()
    assert (close.down, close.denial) == (Side.CLIENT, None)
    assert close.broker_answers_denial() is None
    assert not is_over(close)
    close.client_answers()
    assert is_over(close)


@pytest.mark.parametrize(("are_all", "answers", "over"), [(True, 2, True), (False, 1, False)])
def test_the_broker_answers_one_close_of_the_clients_or_all(are_all: bool, answers: int, over: bool) -> None:
    close = ChannelClose()
    close.client_closes()
    assert close.client_closes_again(is_one=True)
    assert close.broker_answers(are_all=are_all) == answers
    assert is_over(close) is over


def test_a_close_that_nobody_answers_later_is_answered_now() -> None:
    close = ChannelClose()
    assert not close.client_closes_again(is_one=False)
    close.client_closes()
    assert not close.client_closes_again(is_one=False)


def test_both_peers_close_at_once() -> None:
    close = ChannelClose()
    close.client_closes()
    assert not close.broker_closes()
    assert close.down is Side.UPSTREAM
    # The broker's answer comes late, for a number that may be used again.
    assert close.client_answers() == 1
    assert is_over(close)


@pytest.mark.parametrize(
    ("close", "is_told", "down"),
    [
        (ChannelClose(), True, Side.CLIENT),
        (ChannelClose(up=Side.UPSTREAM, denial=DENIAL), True, Side.CLIENT),
        (ChannelClose(up=Side.CLIENT, answers_due=1), False, None),
        (ChannelClose(down=Side.UPSTREAM), False, Side.CLIENT),
        (ChannelClose(down=Side.CLIENT), False, Side.CLIENT),
    ],
)
def test_the_brokers_channel_is_lost(close: ChannelClose, is_told: bool, down: Side | None) -> None:
    assert close.broker_lost() is is_told
    assert (close.up, close.down, close.denial) == (None, down, None)
