"""Each anomaly is planted in a history that is good without it, and found, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.checker import ANOMALIES, judge
from tests.chaos.history import Event, Kind, Recorder, read, runs
from tests.chaos.message import DENIED, Template, body_of, lane_of, name_in, parts_of

LANE, OTHER, FORBIDDEN = lane_of(1, 0, 0), lane_of(1, 1, 1), lane_of(1, 0, DENIED)

Step = tuple[Kind, int, int, int]

PUBLISHER: list[Step] = [
    (Kind.OFFERED, LANE, 0, 9),
    (Kind.FORBIDDEN, FORBIDDEN, 0, 4),
    (Kind.CONFIRMED, LANE, 0, 4),
    (Kind.NACKED, FORBIDDEN, 0, 4),
    (Kind.CONFIRMED, LANE, 6, 6),
    # 5 and 7 to 9 are not confirmed: they may arrive or not.
    (Kind.GONE, 0, 320, 0),
    (Kind.OFFERED, OTHER, 0, 9),
    (Kind.COMMITTED, OTHER, 0, 4),
    (Kind.ROLLED_BACK, OTHER, 5, 9),
]
CONSUMER: list[Step] = [
    (Kind.BEGUN, 0, 0, 0),
    (Kind.DELIVERED, LANE, 0, 3),
    (Kind.ACKED, LANE, 0, 1),
    (Kind.GONE, 0, 0, 0),
    (Kind.BEGUN, 0, 0, 0),
    # What it had goes back in its place, with the mark; 4 follows, then others.
    (Kind.REDELIVERED, LANE, 2, 3),
    (Kind.DELIVERED, LANE, 4, 4),
    (Kind.DELIVERED, OTHER, 0, 4),
    (Kind.DELIVERED, LANE, 6, 7),
    (Kind.ACKED, LANE, 2, 4),
    (Kind.ACKED, OTHER, 0, 4),
    (Kind.ACKED, LANE, 6, 7),
]


def history(steps: list[Step], client: int) -> list[Event]:
    return [Event(*step[:1], client, *step[1:], float(at)) for at, step in enumerate(steps)]


def judged(publisher: list[Step], consumer: list[Step], kills: tuple[float, ...] = ()) -> dict[str, int]:
    verdict = judge([history(publisher, 1)], [history(consumer, 100)], kills)
    assert set(verdict.anomalies) == set(verdict.named)
    return dict(verdict.anomalies)


def test_a_good_history_is_good() -> None:
    assert judged(PUBLISHER, CONSUMER) == {}
    verdict = judge([history(PUBLISHER, 1)], [history(CONSUMER, 100)])
    assert (verdict.offered, verdict.forbidden) == (25, 5)
    assert (verdict.confirmed, verdict.committed, verdict.rolled_back, verdict.nacked) == (6, 5, 5, 5)
    assert (verdict.delivered, verdict.redelivered) == (14, 2)
    assert verdict.is_good


def without(steps: list[Step], step: Step) -> list[Step]:
    assert step in steps
    return [one for one in steps if one != step]


LATE: list[Step] = [(Kind.BEGUN, 0, 0, 0)]

PLANTED: dict[str, tuple[list[Step], list[Step], dict[str, int]]] = {
    "a confirmed message that nobody gets": (
        PUBLISHER,
        [*without(CONSUMER, (Kind.DELIVERED, LANE, 6, 7)), (Kind.DELIVERED, LANE, 7, 7)],
        {"lost": 1},
    ),
    "a committed one": (
        PUBLISHER,
        without(without(CONSUMER, (Kind.DELIVERED, OTHER, 0, 4)), (Kind.ACKED, OTHER, 0, 4)),
        {"lost": 5},
    ),
    "one that went with its consumer": (
        PUBLISHER,
        without(CONSUMER, (Kind.ACKED, OTHER, 0, 4)),
        {"forgotten": 5},
    ),
    "one without its mark": (
        PUBLISHER,
        [*CONSUMER, *LATE, (Kind.DELIVERED, LANE, 3, 3)],
        {"twice": 1},
    ),
    "one that was never sent": (
        PUBLISHER,
        [*CONSUMER, (Kind.DELIVERED, LANE, 10, 10), (Kind.DELIVERED, lane_of(9, 0, 0), 0, 2)],
        {"invented": 4},
    ),
    "bytes of nobody": (PUBLISHER, [*CONSUMER, (Kind.UNKNOWN, 0, 17, 0)], {"invented": 1}),
    "a denied one that arrives": (
        PUBLISHER,
        [*CONSUMER, (Kind.DELIVERED, FORBIDDEN, 1, 1), (Kind.ACKED, FORBIDDEN, 1, 1)],
        {"uncalled": 1},
    ),
    "a denied one that is confirmed": (
        [*PUBLISHER, (Kind.CONFIRMED, FORBIDDEN, 1, 1)],
        CONSUMER,
        {"uncalled": 1, "lost": 1},
    ),
    "one that was rolled back": (
        PUBLISHER,
        [*CONSUMER, (Kind.DELIVERED, OTHER, 5, 5), (Kind.ACKED, OTHER, 5, 5)],
        {"uncalled": 1},
    ),
    "another property": (PUBLISHER, [*CONSUMER, (Kind.CHANGED, LANE, 2, 2)], {"changed": 1}),
    "a confirm of no message": ([*PUBLISHER, (Kind.UNASKED, LANE, 77, 0)], CONSUMER, {"unasked": 1}),
    "a second confirm": ([*PUBLISHER, (Kind.CONFIRMED, LANE, 6, 6)], CONSUMER, {"unasked": 1}),
    "one before another": (
        PUBLISHER,
        [*CONSUMER, (Kind.DELIVERED, LANE, 5, 5), (Kind.ACKED, LANE, 5, 5)],
        {"disordered": 1},
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_found(name: str) -> None:
    publisher, consumer, found = PLANTED[name]
    assert judged(publisher, consumer) == found


def test_each_anomaly_is_planted() -> None:
    planted = {what for *_, found in PLANTED.values() for what in found}
    assert planted | {"twice over a kill", "forgotten over a kill"} == set(ANOMALIES)


def test_what_comes_again_over_a_kill_is_counted_apart() -> None:
    again = [*CONSUMER, *LATE, (Kind.DELIVERED, LANE, 3, 3)]
    assert judged(PUBLISHER, again, kills=(5.5,)) == {"twice over a kill": 1}
    assert judge([history(PUBLISHER, 1)], [history(again, 100)], (5.5,)).is_good
    assert judged(PUBLISHER, again, kills=(0.5, 50.0)) == {"twice": 1}


def test_what_goes_with_its_consumer_is_counted_apart_where_a_node_was_killed_later() -> None:
    """Not so what was delivered after the last kill, and not what nobody ever got."""
    gone = without(CONSUMER, (Kind.ACKED, OTHER, 0, 4))
    assert judged(PUBLISHER, gone, kills=(20.0,)) == {"forgotten over a kill": 5}
    assert judged(PUBLISHER, gone, kills=(50.0,)) == {"forgotten": 5}, "long after"
    assert judged(PUBLISHER, gone, kills=(0.5,)) == {"forgotten": 5}
    never = without(gone, (Kind.DELIVERED, OTHER, 0, 4))
    assert judged(PUBLISHER, never, kills=(20.0,)) == {"lost": 5}


def test_a_new_life_has_an_order_of_its_own() -> None:
    """And so has another consumer of that queue; what is marked has none."""
    fresh = [(Kind.BEGUN, 0, 0, 0), (Kind.DELIVERED, LANE, 5, 5), (Kind.ACKED, LANE, 5, 5)]
    assert judged(PUBLISHER, [*CONSUMER, *fresh]) == {}
    verdict = judge([history(PUBLISHER, 1)], [history(CONSUMER, 100), history(fresh[1:], 101)])
    assert verdict.is_good
    assert judged(PUBLISHER, [*CONSUMER, (Kind.REDELIVERED, LANE, 0, 3)]) == {}


def test_a_mark_that_is_read_first_is_no_anomaly() -> None:
    """The copy without it waited in another socket."""
    marked = [(Kind.BEGUN, 0, 0, 0), (Kind.REDELIVERED, LANE, 0, 3), (Kind.ACKED, LANE, 0, 3)]
    verdict = judge([history(PUBLISHER, 1)], [history(marked, 100), history(CONSUMER, 101)])
    assert verdict.is_good


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "one.events"
    recorder = Recorder(path, 7)
    recorder.add(Kind.CONFIRMED, LANE, 3, 9)
    recorder.add(Kind.GONE, 0, 320)
    recorder.close()
    with path.open("ab") as file:
        file.write(b"cut")
    assert [event[:5] for event in read(path)] == [
        (Kind.CONFIRMED, 7, LANE, 3, 9),
        (Kind.GONE, 7, 0, 320, 0),
    ]


def test_numbers_in_a_row_are_one_run() -> None:
    assert list(runs([1, 2, 3, 7, 9, 10])) == [(1, 3), (7, 7), (9, 10)]
    assert list(runs([])) == []


@pytest.mark.parametrize("number", [0, 17, 1014, 20028])
def test_a_message_is_known_by_its_name_and_no_byte_may_differ(number: int) -> None:
    body = body_of(5, LANE, number)
    assert name_in(5, body) == (LANE, number)
    assert name_in(6, body) is None
    assert name_in(5, body[:-1]) is None
    for at in (0, 11, len(body) // 2, len(body) - 1):
        assert name_in(5, body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]) is None


def test_a_property_may_not_differ_but_for_what_is_added() -> None:
    template = Template(5, "q")
    header = template.frames(LANE, 3).split(b"\xce")[1][7:]
    assert template.is_right(header, LANE, 3)
    assert not template.is_right(header, LANE, 4)
    assert not template.is_right(header.replace(b"application/x-chaos", b"application/x-other"), LANE, 3)
    assert not template.is_right(header.replace(b"\x05chaos\x53", b"\x05chaas\x53"), LANE, 3)
    added = Template(5, "q", added={"n": "7"})
    assert not added.is_right(header, LANE, 3), "n is there, and is none of ours"


def test_a_lane_has_its_parts() -> None:
    assert parts_of(lane_of(7, 65535, DENIED)) == (7, 65535, DENIED)
