"""When a channel of a session that shares a connection may be closed without asking the broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from amqpgate.datapath.scanner import Channels, Lane, scan
from amqpgate.datapath.tables import Side
from amqpgate.gateway.pool.answers import is_idle
from amqpgate.gateway.pool.channel_mapping import ChannelMapping
from amqpgate.gateway.session.channel_close import SessionChannel
from amqpgate.gateway.session.close_progress import ChannelClose
from amqpgate.gateway.session.confirm_numbers import ConfirmNumbers
from amqpgate.gateway.session.session import Session
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.frames import content_frames


class Play:
    """Channel 1 of a session, which is open, and on which nothing has been said."""

    def __init__(self) -> None:
        self.table = Channels()
        self.table.open(1, 7)
        self.state = SessionChannel()
        self.mapping = ChannelMapping(7, is_spare=True, is_open=True)
        self.session = SimpleNamespace(
            relay=SimpleNamespace(channels=self.table), channels=SimpleNamespace(states={1: self.state})
        )

    def passes(self, side: Side, method: Method) -> None:
        """A message goes by, as far as the data path is concerned."""
        lane = Lane(side, 4096, 4096, self.table)
        data = bytearray(content_frames(1, method, amqp.BasicProperties(), b"x", 4096))
        scan(lane, data, 0, len(data), 0.0, [])

    @property
    def is_idle(self) -> bool:
        return is_idle(cast(Session, self.session), 1, self.mapping)


def test_a_channel_on_which_nothing_was_said_is_idle() -> None:
    assert Play().is_idle


@pytest.mark.parametrize(
    "method",
    [
        amqp.BasicGetOk(1, False, "", "q", 0),
        amqp.BasicReturn(312, "NO_ROUTE", "", "q"),
        amqp.BasicDeliver("t", 1, False, "", "q"),
    ],
)
def test_one_on_which_the_broker_sent_a_message_is_not(method: Method) -> None:
    """It is not acknowledged, or there is more to come: the broker has not done all that it was asked."""
    play = Play()
    play.passes(Side.UPSTREAM, method)
    assert play.table.messages(Side.UPSTREAM, 1) == 1
    assert not play.is_idle


def test_publishes_are_answered_by_confirms_only() -> None:
    play = Play()
    play.passes(Side.CLIENT, amqp.BasicPublish(routing_key="q"))
    assert not play.is_idle
    confirming = Play()
    confirming.state.confirms_from = 0
    confirming.table.count_confirms(1)
    assert confirming.is_idle
    confirming.passes(Side.CLIENT, amqp.BasicPublish(routing_key="q"))
    assert not confirming.is_idle
    later = Play()
    later.passes(Side.CLIENT, amqp.BasicPublish(routing_key="q"))
    later.state.confirms_from = 1
    later.table.count_confirms(1)
    assert not later.is_idle


def test_neither_is_one_that_closes_or_is_not_open_or_was_asked_something() -> None:
    play = Play()
    play.table.discard(1)
    assert not play.is_idle
    for close in (ChannelClose(up=Side.CLIENT), ChannelClose(down=Side.CLIENT)):
        play = Play()
        play.state.close = close
        assert not play.is_idle
    play = Play()
    play.state.confirm_numbers = ConfirmNumbers(0)
    assert not play.is_idle
    for attribute, value in (("is_open", False), ("is_used", True)):
        play = Play()
        setattr(play.mapping, attribute, value)
        assert not play.is_idle
