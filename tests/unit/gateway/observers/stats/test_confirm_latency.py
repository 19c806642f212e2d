"""Whose turn it is to have a confirm timed."""

from __future__ import annotations

import attrs

from amqpgate.datapath.channels import Channels
from amqpgate.datapath.scanner import ByChannel
from amqpgate.gateway.observers.stats.confirm_latency import ConfirmLatency
from amqpgate.gateway.session.publish_denial import ChannelPublishes


@attrs.define
class Rig:
    """A session with channels 1 to 3 in confirm mode, and 4 that is not."""

    channels: Channels = attrs.field(factory=Channels)
    states: ByChannel[ChannelPublishes] = attrs.field(factory=lambda: ByChannel(ChannelPublishes))
    probe: ConfirmLatency = attrs.field(init=False)
    took: list[float] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        for number in range(1, 5):
            self.channels.open(number)
            if number < 4:
                self.states.of(number).select_confirms(0)
        self.probe = ConfirmLatency(self.channels, self.states)
        self.probe.turn()

    def look(self) -> int:
        """The channel whose turn it is then."""
        self.probe.look(self.took.append)
        return self.channels.timed

    def close(self, *numbers: int) -> None:
        for number in numbers:
            self.channels.close(number)
            if number in self.states:
                del self.states[number]


def test_a_channel_on_which_nothing_passes_gives_its_turn_away() -> None:
    rig = Rig()
    assert rig.channels.timed == 1
    assert [rig.look() for _ in range(4)] == [2, 3, 1, 2]
    assert rig.took == []


def test_where_a_publish_waits_for_its_answer_it_goes_on() -> None:
    rig = Rig()
    rig.channels.published(1, 5.0)
    assert [rig.look() for _ in range(3)] == [1, 1, 1]
    rig.channels.answered(1, 0, 7.5)
    assert rig.look() == 2
    assert rig.took == [2.5]


def test_what_was_timed_is_told_once_whatever_closes() -> None:
    rig = Rig()
    rig.channels.published(1, 5.0)
    rig.channels.answered(1, 0, 6.0)
    rig.close(1, 2, 3)
    assert [rig.look() for _ in range(3)] == [0, 0, 0]
    assert rig.took == [1.0]


def test_a_channel_that_closes_in_its_turn() -> None:
    rig = Rig()
    rig.channels.published(1, 5.0)
    rig.close(1)
    assert rig.look() == 2
    rig.close(2)
    assert rig.look() == 3
    assert rig.took == []
