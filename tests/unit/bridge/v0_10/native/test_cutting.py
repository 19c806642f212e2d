"""Both cutters give the same of any bytes, however they are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amqpgate.bridge.v0_10.native import build, cutting
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_10 as amqp
from amqpgate.wire.v0_10.codec import encode_command, encode_header
from tests.support.talk_0_10 import KEY, TRANSFER, B, E, b, command, control, e, frame

_COMMAND, _HEADER = encode_command(TRANSFER, False), encode_header(KEY)
SAID = [
    command(TRANSFER, KEY, b"body", channel=3),
    command(TRANSFER, KEY, channel=3),
    command(TRANSFER, None, b"body"),
    command(TRANSFER, KEY, bytes(5000), channel=0xFFFF),
    command(amqp.ExecutionSync()),
    control(amqp.SessionFlush(completed=True), channel=3),
    frame(B | b | e, 1, _COMMAND)
    + frame(b | e, 2, _HEADER)
    + frame(E | b, 3, b"one")
    + frame(E | e, 3, b"two"),
    frame(B | b | e, 1, _COMMAND) + frame(b | e, 2, _HEADER, channel=2) + frame(E | b | e, 3, b""),
    frame(B | b | e, 1, _COMMAND) + frame(E | b | e, 2, _HEADER, track=0),
    frame(B | b | e, 1, _COMMAND) + frame(b | e, 2, b"", size=11),
    frame(B | E | b | e, 1, b""),
]


def found(
    cutter: type[cutting.AssemblyCutter], pieces: list[bytes], unfinished: dict[int, object]
) -> list[object]:
    """What it gives, and what it takes apart, in order."""

    class Noting(cutter):  # type: ignore[valid-type,misc]
        __slots__ = ()

        def take(
            self, flags: int, kind: int, channel: int, payload: bytes, frame: bytes
        ) -> cutting.Assembly | None:
            seen.append((flags, kind, channel, payload, frame))
            # It is the last of an assembly now and then.
            if flags & E and flags & e:
                return cutting.Assembly(channel, kind, payload, None, None, frame)
            return None

    seen: list[object] = []
    reader = Noting(unfinished)
    try:
        for piece in pieces:
            reader.add(piece)
            while (assembly := reader.next()) is not None:
                seen.append((type(assembly), assembly))
    except ProtocolViolation as violation:
        seen.append((violation.code, violation.text, violation.channel))
    return seen


@given(
    st.lists(st.sampled_from(SAID), max_size=6),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3),
    st.lists(st.integers(0, 60), max_size=30),
    st.sampled_from([(), (2 | 1,), (3 << 1 | 1, 3 << 1)]),
)
def test_of_anything(
    said: list[bytes], changes: list[tuple[int, int]], cuts: list[int], open_: tuple[int, ...]
) -> None:
    data = bytearray(b"".join(said))
    for at, byte in changes:
        if at < len(data):
            data[at] = byte
    pieces, at = [], 0
    for size in cuts:
        pieces.append(bytes(data[at : at + size]))
        at += size
    pieces.append(bytes(data[at:]))
    unfinished: dict[int, object] = dict.fromkeys(open_)
    plain = found(cutting.AssemblyCutter, pieces, unfinished)
    assert found(build.AssemblyCutter, pieces, unfinished) == plain
