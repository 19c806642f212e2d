"""What a channel has declared of the delay ladder; as conversations it is in `test_delays`."""

from __future__ import annotations

from amqpgate.gateway.session.channel_ladder import MOST_ENDS, ChannelLadder
from amqpgate.gateway.session.delay_ladder import ANSWERED


def test_what_is_answered_is_forgotten_once_all_is() -> None:
    ladder = ChannelLadder()
    assert ladder.climb(7) == [ANSWERED]
    assert ladder.lead_to("x") == [ANSWERED]
    assert ladder.answered() == 7
    assert (ladder.highest, ladder.ends) == (7, {"x"})
    assert ladder.answered() == "x"
    assert (ladder.highest, ladder.ends) == (None, set())


def test_a_channel_waits_for_few_answers_and_remembers_few_exchanges() -> None:
    ladder = ChannelLadder()
    asked = [ladder.lead_to(f"x.{number}") for number in range(3 * MOST_ENDS)]
    assert sum(map(len, asked)) == 4
    assert 0 < len(ladder.ends) <= MOST_ENDS
