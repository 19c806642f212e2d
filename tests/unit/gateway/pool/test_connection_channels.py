"""Channels of a shared connection that no session has: opened ahead of need, and seen to their end."""

from __future__ import annotations

from functools import partial

import pytest

from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.pool.channel_close import Unanswered
from amqpgate.gateway.pool.channel_numbers import ChannelNumbers, NumberState
from amqpgate.gateway.pool.connection_channels import LEFT, ConnectionChannels
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

OPEN_OK = amqp.ChannelOpenOk()
CLOSE = amqp.ChannelClose(320, "the broker closes it", 0, 0)
CLOSE_OK = amqp.ChannelCloseOk()


class Play:
    """The channels of a connection, and what is said and told of them."""

    def __init__(self) -> None:
        self.numbers = ChannelNumbers(10)
        self.channels = ConnectionChannels(self.numbers, self)
        self.said: list[tuple[int, Method]] = []
        self.spares: list[tuple[int, bool]] = []
        #: Numbers that are free again, and sessions that were told so.
        self.frees: list[int | str] = []

    def send(self, channel: int, *methods: Method) -> None:
        self.said += [(channel, method) for method in methods]

    def spare_opened(self, number: int, *, confirms: bool) -> None:
        self.spares.append((number, confirms))

    def freed(self, number: int) -> None:
        self.frees.append(number)

    def hears(self, *methods: Method, number: int = 1) -> None:
        for method in methods:
            self.channels.hears(number, method)

    def taken(self, number: int = 1) -> None:
        """A session has it, and it is open."""
        self.numbers.move(number, NumberState.TAKEN)

    def leaves(self, number: int = 1) -> bool:
        """The session leaves it; whether it may be freed at once."""
        self.channels.leave(number, partial(self.send, number))
        self.numbers.move(number, NumberState.CLOSING)
        return self.channels.release(number, lambda: self.frees.append("told"))

    def says(self) -> list[type[Method]]:
        """What was said since the last look."""
        said, self.said = self.said, []
        return [type(method) for _, method in said]


# -- spares --------------------------------------------------------------------------------------------------


def test_a_spare_is_there_when_the_broker_has_opened_it() -> None:
    play = Play()
    play.channels.open_spare(1, confirms=False)
    assert play.says() == [amqp.ChannelOpen]
    play.hears(OPEN_OK)
    assert play.spares == [(1, False)]


def test_one_that_confirms_is_there_with_its_second_answer() -> None:
    play = Play()
    play.channels.open_spare(1, confirms=True)
    assert play.says() == [amqp.ChannelOpen, amqp.ConfirmSelect]
    play.hears(OPEN_OK)
    assert play.spares == []
    play.hears(amqp.ConfirmSelectOk())
    assert play.spares == [(1, True)]


def test_one_that_is_not_needed_is_closed_and_its_number_is_free_with_the_answer() -> None:
    play = Play()
    play.channels.close_spare(1)
    assert play.said == [(1, amqp.ChannelClose(200, "not needed", 0, 0))]
    # What was under way is for nobody.
    play.hears(OPEN_OK, amqp.BasicAck(1))
    assert (play.spares, play.frees) == ([], [])
    play.hears(CLOSE_OK)
    assert play.frees == [1]


@pytest.mark.parametrize("confirms", [False, True])
def test_one_that_the_broker_closes_is_answered_and_free(confirms: bool) -> None:
    play = Play()
    play.channels.open_spare(1, confirms=confirms)
    play.says()
    play.hears(CLOSE)
    assert (play.says(), play.frees, play.spares) == ([amqp.ChannelCloseOk], [1], [])
    # The number is as new: a plain spare is one with its open-ok.
    play.channels.open_spare(1, confirms=False)
    play.hears(OPEN_OK)
    assert play.spares == [(1, False)]


@pytest.mark.parametrize("state", [NumberState.SPARE, NumberState.SPARE_CONFIRMING])
def test_a_broker_that_speaks_on_a_spare_breaks_the_protocol(state: NumberState) -> None:
    play = Play()
    play.numbers.move(1, state)
    with pytest.raises(ProtocolViolation) as violation:
        play.hears(amqp.BasicAck(1))
    assert violation.value.code == 504


# -- channels of sessions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [OPEN_OK, CLOSE])
def test_a_session_that_has_not_waited_hears_the_answer_once(answer: Method) -> None:
    play = Play()
    heard: list[Method] = []
    play.taken()
    play.channels.await_open(1, heard.append)
    assert play.channels.unanswered_opens == 1
    play.hears(answer, answer)
    assert (heard, play.channels.unanswered_opens) == ([answer], 0)
    # Its session answers a close.
    assert (play.says(), play.frees) == ([], [])


def test_one_that_leaves_closes_its_channel_and_is_told_when_the_number_is_free() -> None:
    play = Play()
    play.taken()
    assert not play.leaves()
    assert play.said == [(1, LEFT)]
    # RabbitMQ may deliver behind its own words.
    play.hears(amqp.BasicAck(1), amqp.ChannelFlow(active=True))
    assert play.frees == []
    play.hears(CLOSE_OK)
    assert play.frees == [1, "told"]


@pytest.mark.parametrize("answer", [OPEN_OK, CLOSE])
def test_one_that_leaves_before_its_channel_is_open_hears_nothing_of_it(answer: Method) -> None:
    play = Play()
    heard: list[Method] = []
    play.taken()
    play.channels.await_open(1, heard.append)
    assert not play.leaves()
    assert play.channels.unanswered_opens == 0
    play.hears(answer, CLOSE_OK)
    assert (heard, play.spares, play.frees) == ([], [], [1, "told"])


def test_closes_that_meet_are_both_answered_before_the_number_is_free() -> None:
    play = Play()
    play.taken()
    assert not play.leaves()
    assert play.says() == [amqp.ChannelClose]
    play.hears(CLOSE)
    assert (play.says(), play.frees) == ([amqp.ChannelCloseOk], [])
    play.hears(CLOSE_OK)
    assert play.frees == [1, "told"]


def test_a_session_that_is_over_when_the_broker_has_closed_answers_in_its_leaving() -> None:
    play = Play()
    play.taken()
    play.hears(CLOSE)
    assert play.says() == []
    assert play.leaves()
    assert (play.says(), play.frees) == ([amqp.ChannelCloseOk], [])
    play.channels.free(1)
    assert (play.frees, play.channels.closes.at(1)) == ([1, "told"], Unanswered.NONE)


def test_a_broker_that_answers_what_nobody_asked_frees_nothing() -> None:
    """The answer to its close is still on its way: another session would be closed by that."""
    play = Play()
    play.taken()
    play.hears(CLOSE)
    assert play.leaves()
    play.hears(CLOSE_OK)
    assert play.frees == []
    play.channels.free(1)
    assert play.frees == [1, "told"]
    play.hears(CLOSE_OK, number=2)
    assert play.frees == [1, "told"]


def test_a_channel_of_the_gateways_own_is_free_with_the_brokers_answer() -> None:
    play = Play()
    play.taken()
    play.channels.closing(1)
    play.hears(OPEN_OK, amqp.QueueDeclareOk("q", 0, 0), CLOSE_OK)
    assert (play.spares, play.frees) == ([], [1])


def test_nobody_waits_for_a_connection_that_is_over() -> None:
    play = Play()
    for number in (1, 2):
        play.taken(number)
        play.leaves(number)
    play.channels.ended()
    assert play.frees == ["told", "told"]
    play.channels.ended()
    assert play.frees == ["told", "told"]
