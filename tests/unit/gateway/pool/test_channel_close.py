"""Closes on a channel of a link, against a broker that forgets a channel at close-ok, as RabbitMQ does."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.gateway.pool.channel_close import STEPS, CloseStep, LinkChannelCloses, Unanswered


class Broker:
    """One channel of it, and what is on its way. It ends the link for what comes on a closed channel."""

    def __init__(self) -> None:
        self.state = "open"
        self.said: deque[CloseStep] = deque()
        self.heard: deque[CloseStep] = deque()

    def fails(self) -> None:
        if self.state == "open":
            self.state = "closing"
            self.said.append(CloseStep.CLOSED)

    def hear(self) -> None:
        step = self.heard.popleft()
        assert self.state != "closed", f"504: {step}"
        if step is CloseStep.CLOSE:
            self.said.append(CloseStep.ANSWERED)
            if self.state == "open":
                self.state = "closed"
        else:
            assert self.state == "closing", "503: a close-ok that nobody waits for"
            self.state = "closed"


@given(st.lists(st.sampled_from(["fails", "broker hears", "gateway hears", "close", "answer", "leave"])))
def test_nothing_is_said_on_a_channel_that_the_broker_has_forgotten(steps: list[str]) -> None:
    broker, closes = Broker(), LinkChannelCloses()
    for step in [*steps, "leave", *["broker hears", "gateway hears", "leave"] * 6]:
        if step == "fails":
            broker.fails()
        elif step == "broker hears" and broker.heard:
            broker.hear()
        elif step == "gateway hears" and broker.said:
            assert closes.step(1, broker.said.popleft())
        elif step == "leave":
            said = closes.leave(1)
            if said is not None:
                broker.heard.append(said)
        elif step in ("close", "answer") and closes.step(1, CloseStep(step)):
            broker.heard.append(CloseStep(step))
    # Whatever came before, in the end the channel is closed at both.
    assert (broker.state, closes.at(1)) == ("closed", Unanswered.CLOSED)
    assert not broker.heard
    assert not broker.said


@pytest.mark.parametrize("state", Unanswered)
def test_a_close_of_the_brokers_is_answered_and_never_closed(state: Unanswered) -> None:
    may_close = (state, CloseStep.CLOSE) in STEPS
    assert may_close == (state is Unanswered.NONE)
    assert ((state, CloseStep.ANSWER) in STEPS) == (state in (Unanswered.THEIRS, Unanswered.BOTH))


def test_a_number_is_as_new_when_it_is_free() -> None:
    closes = LinkChannelCloses()
    assert closes.leave(7) is CloseStep.CLOSE
    assert closes.step(7, CloseStep.ANSWERED)
    assert closes.leave(7) is None
    closes.freed(7)
    assert closes.at(7) is Unanswered.NONE
    assert closes.leave(7) is CloseStep.CLOSE
