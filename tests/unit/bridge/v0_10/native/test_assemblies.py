"""Bytes to assemblies: whole, unchanged, in order, and nothing else."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest

from amqpgate.bridge.v0_10.native.assemblies import AssemblyReader, cut
from amqpgate.bridge.v0_10.native.cutting import Assembly
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.codec import encode_command, encode_header
from tests.support.talk_0_10 import KEY, TRANSFER, B, E, b, command, control, e, frame

SYNC = command(amqp.ExecutionSync(), channel=3)
FLUSH = control(amqp.SessionFlush(completed=True), channel=3)
_COMMAND, _HEADER = encode_command(TRANSFER, False), encode_header(KEY)
#: A message of which every segment has two frames, with others in between.
PIECES = (
    frame(B | b, 1, _COMMAND[:5], channel=3),
    frame(B | e, 1, _COMMAND[5:], channel=3),
    FLUSH,
    frame(b, 2, _HEADER[:9], channel=3),
    frame(e, 2, _HEADER[9:], channel=3),
    command(TRANSFER, KEY, b"other", channel=4),
    frame(E | b, 3, b"one", channel=3),
    frame(E | e, 3, b"two", channel=3),
)


def read(data: bytes, cut_at: int, most: int = 1 << 20) -> Iterator[Assembly]:
    reader = AssemblyReader(most)
    for at in range(0, len(data), cut_at):
        yield from reader.feed(data[at : at + cut_at])


@pytest.mark.parametrize("cut_at", [1, 5, 12, 13, 64, 1 << 20])
def test_whole_and_unchanged(cut_at: int) -> None:
    forms = [
        command(TRANSFER, channel=3),
        command(TRANSFER, KEY, channel=3),
        command(TRANSFER, None, b"body", channel=3),
        command(TRANSFER, KEY, b"body", channel=3),
        SYNC,
        FLUSH,
    ]
    found = list(read(b"".join(forms), cut_at))
    assert [one.original for one in found] == forms
    assert [(one.header, one.body) for one in found] == [
        (None, None),
        (_HEADER, None),
        (None, b"body"),
        (_HEADER, b"body"),
        (None, None),
        (None, None),
    ]
    assert {one.segment for one in found[:4]} == {_COMMAND}


@pytest.mark.parametrize("cut_at", [1, 5, 12, 13, 64, 1 << 20])
def test_segments_in_pieces_with_others_between(cut_at: int) -> None:
    flush, other, whole = read(b"".join(PIECES), cut_at)
    assert flush.original == FLUSH
    assert other.body == b"other"
    assert (whole.segment, whole.header, whole.body) == (_COMMAND, _HEADER, b"onetwo")
    assert whole.original == b"".join(piece for number, piece in enumerate(PIECES) if number not in (2, 5))


@pytest.mark.parametrize(
    "wrong",
    [
        frame(E | b | e, 3, b"body of nothing"),
        frame(b | e, 2, b"header of nothing"),
        frame(B | b | e, 1, _COMMAND) + frame(B | E | b | e, 1, _COMMAND),
        frame(B | b | e, 1, _COMMAND) + frame(E | e, 3, b"no beginning"),
        frame(B | b | e, 1, _COMMAND) + frame(b | e, 3, b"not the last segment"),
        frame(B | b | e, 1, _COMMAND) + frame(E | b | e, 2, _HEADER) + frame(E | b | e, 3, b""),
        frame(B | b | e, 0, b"\1\x0a\0\0"),
        frame(B | E | b | e, 1, _COMMAND, track=0),
        frame(B | E | b | e, 0, b"\1\x0a\0\0", track=1),
        frame(B | b | e, 1, _COMMAND) + frame(E | b | e, 2, _HEADER, track=0),
        frame(B | b | e, 1, _COMMAND) + frame(b | e, 2, _HEADER) + frame(E | b | e, 3, b"", track=2),
        frame(B | E | b | e | 0x40, 1, _COMMAND),
        frame(B | E | b | e, 4, b""),
        frame(B | E | b | e, 1, b"", size=11),
        frame(B | b | e, 1, _COMMAND) + frame(b | e, 2, b"", size=11),
        frame(B | b | e, 1, _COMMAND) + frame(b | e, 2, _HEADER) + frame(E | b | e, 3, b"", size=11),
    ],
)
@pytest.mark.parametrize("cut_at", [7, 1 << 20])
def test_frames_out_of_place(wrong: bytes, cut_at: int) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        list(read(SYNC + wrong, cut_at))
    assert caught.value.code == 501


def test_what_came_before_a_violation_is_there() -> None:
    found = read(SYNC + FLUSH + frame(E | e, 3, b""), 1 << 20)
    assert [next(found).original, next(found).original] == [SYNC, FLUSH]
    with pytest.raises(ProtocolViolation):
        next(found)


def test_what_is_not_whole_is_bounded() -> None:
    body = frame(B | b | e, 1, _COMMAND) + b"".join(
        frame(E | (0 if number else b), 3, bytes(1000)) for number in range(11)
    )
    assert list(read(body[:-2000], 100, 10_000)) == []
    with pytest.raises(ProtocolViolation) as caught:
        list(read(body, 100, 10_000))
    assert caught.value.code == 506
    halves = b"".join(frame(B | b, 1, b"x", channel=number) for number in range(17))
    with pytest.raises(ProtocolViolation) as caught:
        list(read(halves, 100))
    assert caught.value.code == 506
    long = frame(B | b, 1, bytes(60_000)) + frame(B, 1, bytes(60_000))
    with pytest.raises(ProtocolViolation) as caught:
        list(read(long, 1 << 20))
    assert caught.value.code == 506


def test_an_end_gives_room_back() -> None:
    reader = AssemblyReader(10_000)
    for _ in range(100):
        message = frame(B | b | e, 1, _COMMAND) + frame(E | b, 3, bytes(5000)) + frame(E | e, 3, b"")
        assert [one.body for one in reader.feed(message)] == [bytes(5000)]


def test_who_is_abandoned_may_begin_anew() -> None:
    reader = AssemblyReader(1 << 20)
    begun = frame(B | b | e, 1, _COMMAND, channel=3) + frame(E | b, 3, b"half", channel=3)
    assert list(reader.feed(begun)) == []
    reader.abandon(3)
    assert [one.original for one in reader.feed(SYNC)] == [SYNC]
    assert list(reader.feed(begun)) == []
    with pytest.raises(ProtocolViolation):
        list(reader.feed(SYNC))


def test_smaller_frames() -> None:
    original = command(TRANSFER, KEY, bytes(range(256)) * 20, channel=3)
    (assembly,) = read(original, 1 << 20)
    (again,) = read(cut(assembly, 1000).original, 1 << 20)
    assert again[:5] == assembly[:5]
    assert again.original != original
    (none,) = read(command(TRANSFER, KEY, channel=3), 1 << 20)
    assert cut(none, 1000) == none
    (flush,) = read(FLUSH, 1 << 20)
    assert cut(flush, 1000) == flush
    with pytest.raises(ProtocolViolation):
        cut(assembly, 20)


@pytest.mark.parametrize(
    ("kind", "payload"), [(1, b""), (2, b""), (3, b""), (3, b"x"), (3, b"12345678")], ids=str
)
def test_a_segment_of_many_frames_takes_its_own_bytes(kind: int, payload: bytes) -> None:
    """Twice, its payload and its frames. Of frames without a payload any segment may have many, so nothing
    is done for each of those that have come.
    """
    flags = {1: B, 2: 0, 3: E}[kind]
    begin = (frame(B | b | e, 1, _COMMAND, channel=3), frame(b | e, 2, _HEADER, channel=3))[: kind - 1]
    many = frame(flags | b, kind, payload, channel=3) + frame(flags, kind, payload, channel=3) * 20_000
    reader = AssemblyReader(1 << 20)
    tracemalloc.start()
    try:
        assert not list(reader.feed(b"".join(begin)))
        before, _ = tracemalloc.get_traced_memory()
        assert not list(reader.feed(many))
        # Bytes that were read are kept until more come.
        assert not list(reader.feed(frame(flags, kind, payload, channel=3)))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 2 * len(many) * 9 // 8
    if kind == 3:
        [whole] = reader.feed(frame(E | e, 3, b"", channel=3))
        assert whole.body == payload * 20_002
