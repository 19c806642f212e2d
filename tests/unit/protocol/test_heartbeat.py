"""Heartbeats, with time as a number."""

from __future__ import annotations

from math import inf

import pytest

from amqpgate.protocol.heartbeat import Heartbeat


def test_a_heartbeat_is_due_after_half_an_interval_of_our_silence() -> None:
    heartbeat = Heartbeat(10, now=100)
    assert not heartbeat.is_due(104.9)
    assert heartbeat.is_due(105)
    heartbeat.sent(105)
    assert not heartbeat.is_due(109.9)
    assert heartbeat.send_at == 110


def test_the_peer_is_given_up_after_two_intervals_of_its_silence() -> None:
    heartbeat = Heartbeat(10, now=100)
    assert not heartbeat.is_expired(119.9)
    assert heartbeat.is_expired(120)
    heartbeat.received(115)
    assert not heartbeat.is_expired(134.9)
    assert heartbeat.expires_at == 135


def test_the_two_directions_are_apart() -> None:
    heartbeat = Heartbeat(10, now=0)
    heartbeat.received(4)
    assert heartbeat.is_due(5)
    heartbeat.sent(19)
    assert heartbeat.is_expired(24)


@pytest.mark.parametrize(("sent", "received", "deadline"), [(0, 0, 5), (18, 1, 21), (3, 18, 8)])
def test_the_next_deadline_is_the_earlier_one(sent: float, received: float, deadline: float) -> None:
    heartbeat = Heartbeat(10, now=0)
    heartbeat.sent(sent)
    heartbeat.received(received)
    assert heartbeat.next_deadline == deadline


def test_interval_0_is_no_heartbeat() -> None:
    heartbeat = Heartbeat(0, now=0)
    assert heartbeat.next_deadline == inf
    assert not heartbeat.is_due(1e9)
    assert not heartbeat.is_expired(1e9)
