"""What waits, what is summed on, who is told of room, and that nothing is lost or counted twice."""

from __future__ import annotations

import threading
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpgate.telemetry.audit import writer
from amqpgate.telemetry.audit.log import AuditLog
from amqpgate.telemetry.audit.messages import Content, WaitingMessages
from amqpgate.telemetry.audit.pieces import (
    EVENT_BYTES,
    MESSAGES,
    PIECE_BYTES,
    ROW_BYTES,
    SIZE,
    Piece,
    Pieces,
    Waiting,
)
from amqpgate.telemetry.audit.rows import AuditRow, Columns, Sums

from .records import BOOT, NOW, ORIGIN, row, until


class Gate:
    """A sink that takes pieces while it is open, and says no to the attempts that it is told to refuse."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        #: Whether the thread stands before it.
        self.knocked = threading.Event()
        self.refusals = 0
        self.pieces: list[Piece] = []

    def start(self) -> None: ...

    def recover(self) -> None: ...

    def write(self, piece: Piece) -> None:
        self.knocked.set()
        self.open.wait()
        if self.refusals:
            self.refusals -= 1
            raise OSError(28, "No space left on device")
        self.pieces.append(piece)

    def settle(self) -> float | None:
        return None

    def close(self) -> None: ...

    def shut(self) -> None:
        self.knocked.clear()
        self.open.clear()

    def column(self, sort: str, name: str) -> list[object]:
        return [value for piece in self.pieces if piece.sort == sort for value in piece.columns[name]]


@pytest.fixture(autouse=True)
def _in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_RETRY", 0.001)
    monkeypatch.setattr(writer, "_GATHER", 0.0)
    monkeypatch.setattr(writer, "_LAST_PIECE", 0.0)


def started(gate: Gate, *, max_queue: int = 1 << 30, on_room: object = lambda: None) -> AuditLog:
    assert callable(on_room)
    log = AuditLog(gate, Pieces("gw", BOOT), max_queue=max_queue, on_room=on_room)
    log.start()
    return log


ROWS = [row(str(number)) for number in range(4)]

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("usage"), st.integers(0, 3), st.integers(1, 5), st.integers(0, 1 << 40)),
        st.tuples(st.just("close")),
        st.tuples(st.just("event")),
        st.tuples(st.just("shut")),
        st.tuples(st.just("open")),
        st.tuples(st.just("refuse"), st.integers(1, 3)),
    ),
    max_size=60,
)


def test_what_comes_in_bulk_leaves_room_for_what_comes_alone() -> None:
    gate, rooms = Gate(), threading.Semaphore(0)
    log = started(gate, max_queue=8 * EVENT_BYTES, on_room=rooms.release)
    gate.shut()
    told = []
    for _ in range(8):
        told.append((log.has_room_for_bulk, log.has_room))
        log.event(ORIGIN, "denied", NOW)
    assert told == [(True, True)] * 6 + [(False, True)] * 2
    assert not log.has_room
    gate.open.set()
    # For who waits alone, and, when half is free, for what comes in bulk.
    assert rooms.acquire(timeout=20)
    until(lambda: log.has_room_for_bulk)
    log.stop()


@given(STEPS)
# Nothing may be lost: more examples than others.
@settings(max_examples=150)
def test_what_goes_in_comes_out(steps: list[tuple[object, ...]]) -> None:
    gate = Gate()
    log = started(gate)
    messages, byte_count, events, windows, now = Counter[str | None](), Counter[str | None](), 0, 0, NOW
    for step in steps:
        match step:
            case ("usage", int(index), int(count), int(size)):
                one = ROWS[index]
                log.usage(one, 1, count, size, now + 1, now + 2)
                messages[one.routing_key] += count
                byte_count[one.routing_key] += size
            case ("close",):
                log.close_window(now, now + 10)
                now += 10
                windows += 1
            case ("event",):
                log.event(ORIGIN, "denied", NOW + events)
                events += 1
            case ("shut",):
                gate.shut()
            case ("open",):
                gate.open.set()
            case ("refuse", int(times)):
                gate.refusals = times
    gate.open.set()
    log.close_window(now, now + 10)
    assert log.stop(60)
    found, sizes = Counter[object](), Counter[object]()
    keys = gate.column("usage", "routing_key")
    for key, count, size in zip(
        keys, gate.column("usage", "messages"), gate.column("usage", "bytes"), strict=True
    ):
        assert isinstance(count, int)
        assert isinstance(size, int)
        found[key] += count
        sizes[key] += size
    assert (found, sizes) == (messages, byte_count)
    # Each once, in order.
    assert gate.column("events", "time") == [NOW + number for number in range(events)]
    ids = gate.column("events", "record_id") + gate.column("usage", "record_id")
    assert sorted(ids, key=str) == sorted({f"gw-{BOOT}-{n}" for n in range(1, len(ids) + 1)})
    # Windows of a row follow each other; what is in one lies within it.
    last: dict[object, object] = {}
    names = ("routing_key", "window_start", "first", "last", "window_end")
    for key, *times in zip(*(gate.column("usage", name) for name in names), strict=True):
        assert times == sorted(times)  # type: ignore[type-var]
        assert times[0] >= last.get(key, 0.0)
        last[key] = times[-1]
    counts = log.counts()
    assert counts.written == (events, len(keys))
    assert (counts.dropped, counts.queued, counts.queued_bytes) == ((0, 0), (0, 0), 0)


def test_usage_that_cannot_be_handed_over_is_summed_on() -> None:
    gate = Gate()
    log = started(gate)
    gate.shut()
    for window in range(100):
        for one in ROWS:
            log.usage(one, 1, 1, 10, NOW + 10 * window + 1, NOW + 10 * window + 2)
        log.close_window(NOW + 10 * window, NOW + 10 * window + 10)
        if not window:
            # The first is being written: of the others, the next waits, and all that come are one.
            gate.knocked.wait()
    counts = log.counts()
    assert counts.queued == (0, 3 * len(ROWS))
    assert counts.queued_bytes == 3 * len(ROWS) * ROW_BYTES
    assert counts.late_windows == 98
    gate.open.set()
    assert log.stop(60)
    assert gate.column("usage", "messages") == [1] * 8 + [98] * 4
    assert gate.column("usage", "window_start") == [NOW] * 4 + [NOW + 10] * 4 + [NOW + 20] * 4
    assert gate.column("usage", "window_end") == [NOW + 10] * 4 + [NOW + 20] * 4 + [NOW + 1000] * 4
    assert gate.column("usage", "first")[-1] == NOW + 21
    assert gate.column("usage", "last")[-1] == NOW + 992


def test_who_finds_no_room_is_told_of_it() -> None:
    gate = Gate()
    told = threading.Event()
    log = started(gate, max_queue=10 * EVENT_BYTES, on_room=told.set)
    gate.shut()
    taken = 0
    while log.has_room:
        log.event(None, "denied")
        taken += 1
    assert taken == 10
    assert log.counts().waits == 1
    # What cannot wait is taken all the same.
    log.event(None, "session.close")
    assert not told.is_set()
    gate.open.set()
    assert told.wait(60)
    assert log.has_room
    # Nobody has asked since, so nobody is told.
    told.clear()
    log.event(None, "denied")
    until(lambda: log.counts().written == (12, 0))
    assert not told.is_set()
    assert log.stop(60)


def test_bodies_and_texts_count() -> None:
    gate = Gate()
    log = started(gate, max_queue=1 << 20)
    gate.shut()
    log.event(None, "message", body=b"x" * (1 << 19), headers="y" * (1 << 19))
    assert not log.has_room
    gate.open.set()
    assert log.stop(60)
    before = log.counts().queued_bytes
    for text, byte_count in (("a" * 1000, 1000), ("a" * 999 + "\N{GRINNING FACE}", 4000)):
        log.event(None, "message", headers=text)
        held = log.counts().queued_bytes - before
        assert byte_count <= held - EVENT_BYTES < byte_count + 100
        before += held


def test_pieces_are_no_larger_than_need_be() -> None:
    gate = Gate()
    gate.shut()
    log = started(gate)
    for _ in range(1000):
        log.event(None, "denied")
    for _ in range(8):
        log.event(None, "message", body=b"x" * (1 << 19))
    gate.open.set()
    assert log.stop(60)
    assert sum(piece.length for piece in gate.pieces) == 1008
    assert max(piece.length for piece in gate.pieces) == SIZE
    assert max(piece.byte_count for piece in gate.pieces) < PIECE_BYTES + (1 << 19) + SIZE * EVENT_BYTES


def test_a_window_in_time_takes_nobodys_room() -> None:
    log = started(Gate(), max_queue=1)
    for one in ROWS:
        log.usage(one, 1, 1, 1, NOW, NOW)
    assert log.has_room
    assert log.stop(60)


def test_failures_are_said_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    gate = Gate()
    gate.refusals = 5
    log = started(gate)
    log.event(None, "denied", NOW)
    assert log.stop(60)
    assert gate.column("events", "time") == [NOW]
    assert log.counts().failed_writes == 5
    assert [record.getMessage() for record in caplog.records] == [
        "audit records cannot be written, and wait: [Errno 28] No space left on device",
        "audit records are written again",
    ]


def test_a_stop_waits_only_so_long(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    log = started(gate)
    gate.shut()
    log.event(None, "denied")
    log.usage(ROWS[0], 1, 1, 1, NOW, NOW)
    assert not log.stop(0.01)
    counts = log.counts()
    assert (counts.written, counts.dropped) == ((0, 0), (1, 1))
    assert "1 records of events could not be written" in caplog.text
    gate.open.set()


def test_what_was_counted_as_lost_is_not_written_after_that() -> None:
    """And so the thread does not work on while the process ends."""
    gate = Gate()
    log = started(gate)
    gate.shut()
    log.event(None, "denied")
    gate.knocked.wait(20)
    log.usage(ROWS[0], 1, 1, 1, NOW, NOW)
    assert not log.stop(0.01)
    assert log.counts().dropped == (1, 1)
    gate.open.set()
    until(lambda: not any(thread.name == "audit" for thread in threading.enumerate()))
    assert [piece.sort for piece in gate.pieces] == ["events"], "the one in hand"


def test_the_piece_in_hand_is_waited_for_and_counts_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_LAST_PIECE", 20.0)
    gate = Gate()
    log = started(gate)
    gate.shut()
    log.event(None, "denied")
    gate.knocked.wait(20)
    log.usage(ROWS[0], 1, 1, 1, NOW, NOW)
    threading.Timer(0.05, gate.open.set).start()
    assert not log.stop(0.0)
    counts = log.counts()
    assert (counts.written, counts.dropped) == ((1, 0), (0, 1))


def test_a_log_that_was_never_started_stops() -> None:
    assert AuditLog(Gate(), Pieces("gw", BOOT), max_queue=1).stop()


def test_what_waits_takes_no_more_memory_than_is_counted() -> None:
    """Bytes of a row with all that is its own, and of an event, beside its texts."""
    count = 5000
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        sums = Sums()
        for number in range(count):
            sums.add(row(f"order.{number}.created"), 1000, 1000, 1 << 40, NOW, NOW)
        sums.close(NOW, NOW)
        rows = (tracemalloc.get_traced_memory()[0] - before) / count
        gate = Gate()
        log = AuditLog(gate, Pieces("gw", BOOT), max_queue=1)
        before = tracemalloc.get_traced_memory()[0]
        for number in range(count):
            log.event(
                ORIGIN,
                "denied",
                exchange="orders",
                routing_key=f"order.{number}",
                verdict="deny",
                policy="p",
                rule="r",
                policy_digest="d",
                reply_code=403,
                reason=f"because {number}",
            )
        events = (tracemalloc.get_traced_memory()[0] - before) / count
    finally:
        tracemalloc.stop()
    assert ROW_BYTES / 3 < rows < ROW_BYTES
    # A character counts one byte, and its object what `EVENT_BYTES` leaves for it.
    assert EVENT_BYTES / 3 < events < EVENT_BYTES + 40


def test_rows_are_told_apart_by_identity() -> None:
    sums = Sums()
    one = row()
    same = attrs.evolve(one)
    for each in (one, same, one):
        sums.add(each, 1, 1, 1, NOW, NOW)
    assert isinstance(one, AuditRow)
    assert list(sums.messages) == [2, 1]


def fail_after_writing(monkeypatch: pytest.MonkeyPatch, times: int) -> list[ZeroDivisionError]:
    """A defect behind each piece, so many times; those that are to come."""
    defects = [ZeroDivisionError()] * times

    def tell(_log: AuditLog) -> None:
        if defects:
            raise defects.pop()

    monkeypatch.setattr(AuditLog, "_made_room", tell)
    return defects


def test_a_defect_in_the_thread_is_no_end_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    defects = fail_after_writing(monkeypatch, 3)
    gate = Gate()
    log = started(gate)
    for number in range(4):
        log.event(ORIGIN, "denied", NOW + number)
        until(lambda: len(gate.pieces) == number + 1)  # noqa: B023
    until(lambda: not log.is_down)
    assert not defects
    assert log.counts().failed_writes == 3
    assert log.counts().dropped == (0, 0)
    assert log.stop(60)


def test_it_is_down_while_it_does_not_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_RETRY", 60)
    fail_after_writing(monkeypatch, 1)
    log = started(Gate())
    assert not log.is_down
    log.event(ORIGIN, "denied", NOW)
    until(lambda: log.is_down)
    assert not log.stop(0)


def test_it_is_down_where_the_disk_is_full_and_no_more_can_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_RETRY", 0.01)
    gate = Gate()
    log = started(gate, max_queue=2 * EVENT_BYTES)
    gate.refusals = 1 << 60
    log.event(ORIGIN, "denied", NOW)
    until(lambda: log.counts().failed_writes > 0)
    assert not log.is_down, "there is room in memory"
    log.event(ORIGIN, "denied", NOW)
    assert log.is_down
    gate.refusals = 0
    until(lambda: not log.is_down)
    assert log.stop(60)


def test_records_of_which_no_piece_can_be_made_are_lost_alone_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate()
    make = Pieces.of_events

    def made(pieces: Pieces, waiting: Sequence[Waiting]) -> Piece:
        if any(event.time == NOW + 1 for event in waiting):
            raise ZeroDivisionError
        return make(pieces, waiting)

    monkeypatch.setattr(Pieces, "of_events", made)
    log = started(gate, max_queue=10 * EVENT_BYTES)
    gate.shut()
    log.event(ORIGIN, "denied", NOW + 10)
    assert gate.knocked.wait(60)
    for number in range(5):
        log.event(ORIGIN, "denied", NOW + number)
    gate.open.set()
    until(lambda: log.counts().queued == (0, 0))
    assert gate.column("events", "time") == [NOW + 10, NOW, NOW + 2, NOW + 3, NOW + 4]
    assert log.counts().dropped == (1, 0)
    assert log.counts().queued_bytes == 0
    assert log.stop(60)


@attrs.frozen(eq=False)
class Kind:
    """Messages with one routing key, whose header and body are told as they are; but for some headers."""

    key: str

    @property
    def columns(self) -> Columns:
        return {"operation": "basic.publish", "routing_key": self.key}

    def read(self, header: bytes, body: bytes) -> Content:
        if header == b"bad":
            raise ZeroDivisionError
        return len(body), header.decode(), None, body[:2], len(body) > 2


def batch(*messages: tuple[Kind, bytes, bytes]) -> WaitingMessages:
    return WaitingMessages(ORIGIN, NOW, messages, EVENT_BYTES * len(messages))


def test_messages_are_events_in_their_order_with_all_others() -> None:
    gate = Gate()
    log = started(gate)
    one, other = Kind("one"), Kind("other")
    log.event(ORIGIN, "denied", NOW, routing_key="first")
    log.messages(batch((one, b"a", b"123"), (other, b"b", b""), (one, b"c", b"45")))
    log.event(ORIGIN, "denied", NOW, routing_key="then")
    log.messages(batch((other, b"d", b"6")))
    assert log.counts().queued == (6, 0)
    assert log.stop(60)
    assert gate.column("events", "routing_key") == ["first", "one", "other", "one", "then", "other"]
    assert gate.column("events", "kind") == ["denied", *["message"] * 3, "denied", "message"]
    assert gate.column("events", "properties") == [None, "a", "b", "c", None, "d"]
    assert gate.column("events", "body") == [None, b"12", b"", b"45", None, b"6"]
    assert gate.column("events", "body_cut") == [False, True, False, False, False, False]
    assert gate.column("events", "user") == [ORIGIN.user] * 6
    assert len(set(gate.column("events", "record_id"))) == 6
    assert log.counts().queued_bytes == 0


def test_messages_that_come_one_by_one_are_written_together() -> None:
    gate = Gate()
    gate.shut()
    log = started(gate)
    for number in range(2 * MESSAGES):
        log.messages(batch((Kind(f"key-{number}"), b"", b"")))
    gate.open.set()
    assert log.stop(60)
    assert gate.column("events", "routing_key") == [f"key-{number}" for number in range(2 * MESSAGES)]
    assert max(piece.length for piece in gate.pieces) == MESSAGES
    # A piece for each took 1 ms, and each piece of a file that is made Parquet some 12 KiB meanwhile.
    assert len(gate.pieces) <= 3


@pytest.mark.parametrize("of_each", [1, 3])
def test_a_message_that_cannot_be_read_is_lost_alone_among_those_of_others(
    monkeypatch: pytest.MonkeyPatch, of_each: int
) -> None:
    monkeypatch.setattr(writer, "_RETRY", 0.01)
    gate = Gate()
    log = started(gate)
    names = [b"a", b"b", b"bad", b"c", b"d", b"e"]
    for at in range(0, len(names), of_each):
        log.messages(batch(*[(Kind("one"), header, b"") for header in names[at : at + of_each]]))
    until(lambda: log.counts().queued == (0, 0))
    assert gate.column("events", "properties") == ["a", "b", "c", "d", "e"]
    assert log.counts().dropped == (1, 0)
    assert log.counts().queued_bytes == 0
    assert log.stop(60)


def test_a_message_that_cannot_be_read_is_lost_alone_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_RETRY", 0.01)
    gate = Gate()
    log = started(gate)
    one = Kind("one")
    log.messages(batch(*[(one, header, b"") for header in (b"a", b"b", b"bad", b"c", b"d")]))
    until(lambda: log.counts().queued == (0, 0))
    assert gate.column("events", "properties") == ["a", "b", "c", "d"]
    assert log.counts().dropped == (1, 0)
    assert log.counts().queued_bytes == 0
    assert log.stop(60)


def test_a_window_of_which_no_piece_can_be_made_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()

    def broken(pieces: Pieces, sums: Sums) -> Iterator[Piece]:
        raise ZeroDivisionError
        yield

    monkeypatch.setattr(Pieces, "of_usage", broken)
    log = started(gate)
    for one in ROWS:
        log.usage(one, 1, 1, 1, NOW, NOW)
    log.close_window(NOW, NOW + 10)
    until(lambda: log.counts().dropped == (0, len(ROWS)))
    assert log.counts().queued_bytes == 0
    log.event(ORIGIN, "denied", NOW)
    until(lambda: len(gate.column("events", "time")) == 1)
    assert log.stop(60)
