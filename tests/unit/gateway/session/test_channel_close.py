"""Refusals and crossing closes, as conversations: who says what, and what the gateway says then."""

from __future__ import annotations

from typing import cast

import pytest

from amqpgate.datapath.relay import Relay
from amqpgate.datapath.scanner import Channels
from amqpgate.datapath.tables import DISCARD, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.gateway.session.upstream import SessionUpstream
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

CLOSE = amqp.ChannelClose(reply_code=404, reply_text="NOT_FOUND - no queue 'q'", class_id=50, method_id=10)
CLOSE_OK = amqp.ChannelCloseOk()
DENIAL = ProtocolViolation(403, "access to exchange 'x' refused", class_id=60, method_id=40, channel=1)
REFUSAL = amqp.ChannelClose(
    reply_code=403, reply_text="ACCESS_REFUSED - access to exchange 'x' refused", class_id=60, method_id=40
)


class Play:
    """Channel 1 of a session. Each step answers with what the gateway sent to whom."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, object]] = []
        self.table = Channels()
        self.table.open(1)
        # Of a relay it is this that channels need.
        self.channels = SessionChannels(cast(Relay, self), self.table)
        self.channels.states.add(1)

    def send(self, side: Side, data: bytes) -> None:
        assert data[1:3] == b"\0\x01"
        self.sent.append((side.name.lower(), decode_method(data[7:-1])))

    def __call__(self, step: str) -> list[tuple[str, object]]:
        self.sent.clear()
        if step == "refuse":
            self.channels.refuse(1, DENIAL)
        elif step == "client close":
            self.channels.client_closes(1, CLOSE)
        elif step == "client close-ok":
            self.channels.client_answers(1, CLOSE_OK)
        elif step == "broker close":
            self.channels.broker_closes(1, CLOSE)
        else:
            assert step == "broker close-ok"
            self.channels.broker_answers(1, CLOSE_OK)
        return list(self.sent)

    def reopen(self) -> None:
        self.table.open(1)
        self.channels.states.add(1)

    @property
    def closed(self) -> bool:
        return self.table.state(1) == 0 and 1 not in self.channels.states


def test_a_refusal_closes_the_broker_first_and_then_the_client() -> None:
    play = Play()
    assert play("refuse") == [("upstream", REFUSAL)]
    assert play.table.state(1) == DISCARD
    assert play("broker close-ok") == [("client", REFUSAL)]
    assert not play.closed
    assert play("client close-ok") == []
    assert play.closed


def test_a_second_refusal_on_the_way_says_nothing_more() -> None:
    play = Play()
    play("refuse")
    assert play("refuse") == []
    assert play("broker close-ok") == [("client", REFUSAL)]
    assert play("refuse") == []


def test_a_close_by_the_client_is_passed_on() -> None:
    play = Play()
    assert play("client close") == [("upstream", CLOSE)]
    assert play("broker close-ok") == [("client", CLOSE_OK)]
    assert play.closed


def test_a_close_by_the_broker_is_passed_on() -> None:
    play = Play()
    assert play("broker close") == [("client", CLOSE)]
    assert play("client close-ok") == [("upstream", CLOSE_OK)]
    assert play.closed


def test_crossing_closes_of_the_peers_are_both_answered_by_the_peers() -> None:
    play = Play()
    assert play("client close") == [("upstream", CLOSE)]
    assert play("broker close") == [("client", CLOSE)]
    assert play("broker close-ok") == [("client", CLOSE_OK)]
    assert not play.closed
    assert play("client close-ok") == [("upstream", CLOSE_OK)]
    assert play.closed


@pytest.mark.parametrize("closes", [1, 2])
def test_a_client_that_has_answered_may_use_the_number_while_its_own_close_is_not_answered(
    closes: int,
) -> None:
    play = Play()
    for _ in range(closes):
        assert play("client close") == [("upstream", CLOSE)]
    assert play("broker close") == [("client", CLOSE)]
    assert play("client close-ok") == [("upstream", CLOSE_OK)]
    assert play.closed
    play.reopen()
    for _ in range(closes):
        assert play("broker close-ok") == [("client", CLOSE_OK)]
        assert not play.closed
    # From here on it is a channel like any other.
    assert play("client close") == [("upstream", CLOSE)]
    assert play("broker close-ok") == [("client", CLOSE_OK)]
    assert play.closed


def test_a_client_that_closes_while_it_is_refused_hears_of_the_refusal_and_is_answered() -> None:
    play = Play()
    play("refuse")
    assert play("client close") == []
    assert play("broker close-ok") == [("client", REFUSAL), ("client", CLOSE_OK)]
    assert play("client close-ok") == []
    assert play.closed


def test_a_client_that_closes_after_it_was_refused_is_answered() -> None:
    play = Play()
    play("refuse")
    play("broker close-ok")
    assert play("client close") == [("client", CLOSE_OK)]
    assert play("client close-ok") == []
    assert play.closed


def test_an_earlier_error_of_the_broker_is_what_the_client_hears() -> None:
    play = Play()
    play("refuse")
    assert play("broker close") == [("upstream", CLOSE_OK), ("client", CLOSE)]
    assert play("client close-ok") == []
    assert not play.closed, "the broker has not answered the gateway's own close"
    assert play("broker close-ok") == []
    assert play.closed


def test_the_broker_may_answer_the_gateways_close_before_the_client_answers_the_brokers() -> None:
    play = Play()
    play("refuse")
    play("broker close")
    assert play("broker close-ok") == []
    assert not play.closed
    assert play("client close-ok") == []
    assert play.closed


def test_a_refusal_after_the_broker_has_closed_only_drops() -> None:
    play = Play()
    play("broker close")
    assert play("refuse") == []
    assert play.table.state(1) == DISCARD
    assert play("client close-ok") == [("upstream", CLOSE_OK)]
    assert play.closed


def test_a_refusal_after_the_client_has_closed_only_drops() -> None:
    play = Play()
    play("client close")
    assert play("refuse") == []
    assert play("broker close-ok") == [("client", CLOSE_OK)]
    assert play.closed


def test_an_answer_that_nobody_asked_for_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation, match="COMMAND_INVALID - unimplemented method"):
        Play()("client close-ok")
    assert Side.CLIENT.other is Side.UPSTREAM


# -- a session that shares a connection ----------------------------------------------------------------------


class Shared(Play):
    """As `Play`, of a channel of a shared connection, and its own `SessionUpstream`."""

    closes_once = True
    is_transparent = False

    def __init__(self) -> None:
        super().__init__()
        self.settled_with: list[int] = []
        self.refuses = False
        self.channels = SessionChannels(
            cast(Relay, self), self.table, self.channels.states, upstream=cast(SessionUpstream, self)
        )

    def may_tell(self, channel: int, method: Method) -> bool:
        return not self.refuses

    def settled(self, channel: int, late: int) -> None:
        self.settled_with.append(late)


def test_of_several_closes_a_link_hears_one_and_its_answer_is_the_answer_to_all() -> None:
    play = Shared()
    assert play("client close") == [("upstream", CLOSE)]
    assert play.table.state(1) == DISCARD
    assert play("client close") == []
    assert play("client close") == []
    assert play("broker close-ok") == [("client", CLOSE_OK)] * 3
    assert play.closed
    assert play.settled_with == [0]


def test_closes_that_cross_on_a_link_leave_their_answers_to_it() -> None:
    play = Shared()
    play("client close")
    play("client close")
    assert play("broker close") == [("client", CLOSE)]
    assert play("client close-ok") == [("upstream", CLOSE_OK)]
    assert play.closed
    assert play.settled_with == [2]


def test_what_must_not_be_said_on_a_link_is_not_said() -> None:
    play = Shared()
    play.refuses = True
    assert play("refuse") == []
    assert play("broker close") == [("client", CLOSE)]
