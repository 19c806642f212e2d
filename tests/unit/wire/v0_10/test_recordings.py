"""Every control, command and header that Qpid's clients and broker sent, read and written again."""

from __future__ import annotations

from collections import Counter

import pytest

from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_10
from amqpgate.wire.generated.v0_10 import SegmentType
from amqpgate.wire.v0_10.codec import (
    decode_command,
    decode_control,
    decode_header,
    decode_struct32,
    encode_command,
    encode_control,
    encode_header,
    encode_struct32,
)
from amqpgate.wire.v0_10.structs import Command, Struct
from tests.support import recorded_0_10 as recorded

STREAMS = recorded.streams()


def _again(frame: recorded.Frame) -> tuple[list[str], bytes]:
    """The names of what is in a frame, and its payload made anew."""
    if frame.type == SegmentType.CONTROL:
        control = decode_control(frame.payload)
        return [control.NAME], encode_control(control)
    if frame.type == SegmentType.COMMAND:
        command, sync = decode_command(frame.payload)
        return [command.NAME], encode_command(command, sync)
    if frame.type == SegmentType.HEADER:
        structs = decode_header(frame.payload)
        return [one.NAME for one in structs if isinstance(one, Struct)], encode_header(structs)
    return [], frame.payload


@pytest.mark.parametrize("recording", sorted({stream.recording for stream in STREAMS}))
def test_the_same_bytes_again(recording: str) -> None:
    for stream in STREAMS:
        if stream.recording == recording:
            for frame in recorded.frames(stream):
                names, again = _again(frame)
                assert again == frame.payload, (stream.connection, stream.side, names)


def test_what_the_recordings_have() -> None:
    """If it is less, the test above says less than it seems to."""
    seen = Counter(
        name for stream in STREAMS for frame in recorded.frames(stream) for name in _again(frame)[0]
    )
    assert sum(seen.values()) > 20_000
    missing = {cls.NAME for cls in (*v0_10.CONTROLS.values(), *v0_10.COMMANDS.values())} - set(seen)
    assert {name for name in missing if not name.startswith(("file.", "stream."))} == {
        "connection.heartbeat",
        "connection.redirect",
        "dtx.forget",
        "message.resume",
        "session.confirmed",
        "session.expected",
        "session.gap",
    }


def test_results_are_what_their_commands_promise() -> None:
    """Ids count up from the command-point of the session on that channel."""
    results = Counter[str]()
    answers: dict[tuple[str, int, int], dict[int, Struct]] = {}
    for stream in STREAMS:
        if stream.side != "broker":
            continue
        for frame in recorded.frames(stream):
            if frame.type == SegmentType.COMMAND:
                command, _ = decode_command(frame.payload)
                if isinstance(command, v0_10.ExecutionResult):
                    assert command.value is not None
                    assert command.command_id is not None
                    struct = decode_struct32(command.value)
                    assert isinstance(struct, Struct)
                    assert encode_struct32(struct) == command.value
                    results[struct.NAME] += 1
                    key = (stream.recording, stream.connection, frame.channel)
                    answers.setdefault(key, {})[command.command_id] = struct
    assert {"queue.queue-query-result", "exchange.exchange-bound-result", "dtx.xa-result"} <= set(results)
    checked = 0
    for stream in STREAMS:
        if stream.side == "client":
            for channel, commands in _first_sessions(stream).items():
                known = answers.get((stream.recording, stream.connection, channel), {})
                for number, struct in known.items():
                    if number < len(commands):
                        promised = commands[number].RESULT
                        assert promised == struct.CLASS_CODE << 8 | struct.CODE, commands[number]
                        checked += 1
    assert checked > 300


def _first_sessions(stream: recorded.Stream) -> dict[int, list[Command]]:
    """By channel, the commands of the only session on it; channels with a second one are left out."""
    sessions: dict[int, list[Command]] = {}
    attached = Counter[int]()
    for frame in recorded.frames(stream):
        if frame.type == SegmentType.CONTROL:
            attached[frame.channel] += isinstance(decode_control(frame.payload), v0_10.SessionAttach)
        elif frame.type == SegmentType.COMMAND:
            sessions.setdefault(frame.channel, []).append(decode_command(frame.payload)[0])
    return {channel: commands for channel, commands in sessions.items() if attached[channel] == 1}


def test_every_way_to_cut_a_segment_short() -> None:
    """A violation, or a header of fewer structs, and nothing else. One segment of each size and kind."""
    kinds: dict[tuple[int, str, int], recorded.Frame] = {}
    for stream in STREAMS:
        for frame in recorded.frames(stream):
            if frame.type != SegmentType.BODY:
                kinds.setdefault((frame.type, " ".join(_again(frame)[0]), len(frame.payload)), frame)
    assert len(kinds) > 500
    for frame in kinds.values():
        whole = frame.payload
        starts = set()
        if frame.type == SegmentType.HEADER:
            at = 0
            while at < len(whole):
                starts.add(at)
                at += 4 + int.from_bytes(whole[at : at + 4], "big")
        for size in range(len(whole)):
            cut = recorded.Frame(frame.flags, frame.type, frame.channel, whole[:size])
            if size in starts:
                assert _again(cut)[1] == whole[:size]
                continue
            with pytest.raises(ProtocolViolation) as caught:
                _again(cut)
            assert caught.value.code == (501 if frame.type == SegmentType.CONTROL else 503)
