"""Which messages left a step of the ladder late, by what RabbitMQ says of their deaths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.gateway.session.delay_ladder import LONGEST, end_of, rung_name, rungs_of
from amqpgate.gateway.session.late_steps import AT, is_late
from amqpgate.wire.tables import Field, Table

#: Rungs of 8,192 and 2,048 ms.
_HIGH, _LOW, _END = rung_name(13), rung_name(11), end_of("later")


def headers(at: int | None, **left: int) -> Table:
    """Of a message that was published ``at`` (ms), and left these queues in these seconds."""
    deaths = [Table.of({"queue": name, "time": Field("T", time)}) for name, time in left.items()]
    # The latest is the first in the list.
    table = Table.of({"k": 1, "x-death": list(reversed(deaths))})
    return table if at is None else table.with_(AT, Field("l", at))


@pytest.mark.parametrize(
    ("at", "left", "late"),
    [
        (1_000_900, {_HIGH: 1009, _LOW: 1011, _END: 1011}, False),
        (1_000_900, {_HIGH: 1012, _LOW: 1014, _END: 1014}, True),
        (1_000_900, {_HIGH: 1009, _LOW: 1014, _END: 1014}, True),
        (1_000_900, {_HIGH: 1009, _LOW: 1011, _END: 1014}, True),
        # Each step is in time: what comes together is no copy of anything.
        (1_000_900, {_HIGH: 1010, _LOW: 1013, _END: 1015}, False),
        # Clocks that were set back, and a gateway that did not write its time.
        (1_000_900, {_HIGH: 900, _LOW: 902, _END: 902}, False),
        (None, {_HIGH: 2000, _LOW: 2002, _END: 2002}, False),
        (None, {_HIGH: 1009, _LOW: 1011, _END: 1200}, True),
        # What is no queue of the ladder says nothing.
        (1_000_900, {_HIGH: 1009, _END: 1009, "work": 5000}, False),
        (1_000_900, {}, False),
    ],
)
def test_a_step_is_late(at: int | None, left: dict[str, int], *, late: bool) -> None:
    assert is_late(headers(at, **left)) is late


@given(st.integers(0, 10**13), st.integers(1, LONGEST), st.data())
def test_a_copy_is_late_and_what_is_in_time_is_not(at: int, delay: int, data: st.DataObject) -> None:
    """RabbitMQ sends a copy four seconds after the first at least, for it had to start."""
    queues = [*map(rung_name, rungs_of(delay)), end_of("x" * 300)]
    stays = [*(1 << k for k in rungs_of(delay)), 0]
    again = data.draw(st.integers(0, len(queues) - 1))
    now, left, twice = at, {}, {}
    for index, (queue, stay) in enumerate(zip(queues, stays, strict=True)):
        now += stay + data.draw(st.integers(0, 999))
        left[queue] = now // 1000
        twice[queue] = (now + (4000 if index >= again else 0)) // 1000
    assert not is_late(headers(at, **left))
    assert is_late(headers(at, **twice))


@pytest.mark.parametrize(
    "deaths",
    [5, "x", [5, "x"], [{}], [{"queue": 5, "time": 1}], [{"queue": _END}], [{"queue": _END, "time": "x"}]],
)
def test_a_history_that_is_none_says_nothing(deaths: object) -> None:
    assert not is_late(Table.of({AT: 5, "x-death": deaths}))
    assert not is_late(Table.of({AT: "x"}))
