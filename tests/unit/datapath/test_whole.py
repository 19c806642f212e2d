"""How far a client's bytes may go to a shared link: both walks, at every split, and against each other."""

from __future__ import annotations

import itertools
import random
from struct import pack
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.datapath import confirms, properties, reference, tables, whole
from amqpgate.datapath.tables import ScanResult, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.frames import HEARTBEAT, encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.table_codec import TableLimits, get_table
from amqpgate.wire.tables import Table
from tests.support.frames import content_frames

try:
    from amqpgate.datapath import _scan as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]

IMPLEMENTATIONS = ["plain"] if compiled is None else ["plain", "compiled"]
needs_compiled = pytest.mark.skipif(
    compiled is None, reason="the compiled scanner was not built (no C compiler)"
)
WHOLE = 100
FRAME_MAX = 4096
PROPERTIES = amqp.BasicProperties(content_type="text/plain", delivery_mode=2)


def scanner_of(name: str) -> ModuleType:
    return reference if name == "plain" else compiled


def walk_of(name: str) -> whole.Walk:
    made: whole.Walk = (whole if name == "plain" else compiled).Walk()
    return made


def lane_of(
    name: str, opened: tuple[int, ...] = (1, 2), discarded: tuple[int, ...] = (), *, out: int = FRAME_MAX
) -> reference.Lane:
    module = scanner_of(name)
    channels = module.Channels()
    for number in opened + discarded:
        channels.open(number, number + 10)
    for number in discarded:
        channels.discard(number)
    made: reference.Lane = module.Lane(Side.CLIENT, FRAME_MAX, out, channels)
    return made


@pytest.fixture(params=IMPLEMENTATIONS)
def name(request: pytest.FixtureRequest) -> str:
    made: str = request.param
    return made


def publish(channel: int = 1, body: bytes = b"hello", frame_max: int = 64, **more: object) -> bytes:
    properties = amqp.BasicProperties(**more) if more else PROPERTIES  # type: ignore[arg-type]
    return content_frames(
        channel, amqp.BasicPublish(exchange="x", routing_key="k"), properties, body, frame_max
    )


def frames_of(data: bytes) -> list[bytes]:
    found = []
    while data:
        size = int.from_bytes(data[3:7], "big") + 8
        found.append(data[:size])
        data = data[size:]
    return found


def fresh(name: str, lane: reference.Lane, data: bytes) -> tuple[int, ScanResult, bytes]:
    """What is whole; the result; and its frame."""
    walk = walk_of(name)
    result, first, stop = walk.look(lane, data, 0, len(data), WHOLE)
    return walk.quiet, result, data[first:stop]


PUBLISH, HEADER, BODY = frames_of(publish())
HEADER_OF_5 = encode_frame(2, 1, encode_header(ContentHeader(60, 5, PROPERTIES)))
ACK = method_frame(1, amqp.BasicAck(1))


def test_whole_messages_are_quiet_at_their_ends_only(name: str) -> None:
    data = (
        publish(body=b"b" * 90) + ACK + publish(2, b"") + HEARTBEAT + method_frame(0, amqp.ConnectionClose())
    )
    ends = {0}
    at = 0
    for frame in frames_of(data):
        at += len(frame)
        if at == len(publish(body=b"b" * 90)) or at > len(publish(body=b"b" * 90)):
            ends.add(at)
    ends.discard(len(publish(body=b"b" * 90) + ACK + frames_of(publish(2, b""))[0]))
    lane = lane_of(name)
    for cut in range(len(data) + 1):
        quiet, result, _ = fresh(name, lane, data[:cut])
        assert (quiet, result) == (max(end for end in ends if end <= cut), ScanResult.MORE)


def test_messages_that_lie_in_each_other_are_quiet_where_all_have_ended(name: str) -> None:
    one, two = frames_of(publish(1)), frames_of(publish(2))
    data = [one[0], two[0], HEARTBEAT, one[1], ACK.replace(b"\1\0\1", b"\1\0\3", 1), two[1], one[2], two[2]]
    lane = lane_of(name, (1, 2, 3))
    for count in range(len(data) + 1):
        quiet, result, _ = fresh(name, lane, b"".join(data[:count]))
        assert (quiet, result) == (len(b"".join(data)) if count == len(data) else 0, ScanResult.MORE)


def header(payload: bytes) -> bytes:
    return encode_frame(2, 1, payload)


def content(body: int, flags: int, rest: bytes, *, class_id: int = 60, weight: int = 0) -> bytes:
    return header(pack(">HHQH", class_id, weight, body, flags) + rest)


VIOLATIONS = {
    "method for header": (ACK, ScanResult.HEADER_DUE),
    "body for header": (BODY, ScanResult.HEADER_DUE),
    "header for body": (HEADER_OF_5 + HEADER_OF_5, ScanResult.BODY_DUE),
    "method for body": (HEADER_OF_5 + PUBLISH, ScanResult.BODY_DUE),
    "overrun": (HEADER_OF_5 + encode_frame(3, 1, b"123456"), ScanResult.BODY_OVERRUN),
    "late overrun": (
        HEADER_OF_5 + encode_frame(3, 1, b"1234") + encode_frame(3, 1, b"56"),
        ScanResult.BODY_OVERRUN,
    ),
    "class": (content(5, 0, b"", class_id=50), ScanResult.CLASS_DIFFERS),
    "weight": (content(5, 0, b"", weight=1), ScanResult.HEADER_DUE),
    "short header": (header(pack(">HHQ", 60, 0, 5)), ScanResult.MALFORMED),
    "endless": (content(1 << 62, 0, b""), ScanResult.OVERSIZE),
    "property missing": (content(5, 0x8000, b""), ScanResult.MALFORMED),
    "property cut": (content(5, 0x8000, b"\5abcd"), ScanResult.MALFORMED),
    "property left over": (content(5, 0x1000, b"\1\1"), ScanResult.MALFORMED),
    "table cut": (content(5, 0x2000, b"\0\0\0\5\1aI\0\0"), ScanResult.MALFORMED),
    "unknown type": (content(5, 0x2000, b"\0\0\0\3\1aQ"), ScanResult.MALFORMED),
    "nan": (content(5, 0x2000, b"\0\0\0\7\1af\x7f\xc0\0\0"), ScanResult.MALFORMED),
    "type": (encode_frame(4, 2, b""), ScanResult.BAD_TYPE),
    "size": (b"\3\0\1\0\0\x10\1", ScanResult.TOO_LARGE),
    "end": (HEADER_OF_5[:-1] + b"\0", ScanResult.BAD_END),
    "heartbeat": (encode_frame(8, 1, b""), ScanResult.BAD_HEARTBEAT),
}


@pytest.mark.parametrize("case", VIOLATIONS)
def test_what_is_wrong_inside_a_message_is_found_before_any_of_it_passes(name: str, case: str) -> None:
    bad, result = VIOLATIONS[case]
    before = publish(2)
    quiet, found, frame = fresh(name, lane_of(name), before + PUBLISH + bad)
    assert (quiet, found) == (len(before), result)
    assert frame
    assert bad.endswith(frame)


@pytest.mark.parametrize(
    ("bad", "result"),
    [
        (encode_frame(1, 1, amqp.BasicPublish().encode() + b"\0"), ScanResult.MALFORMED),
        (encode_frame(1, 1, amqp.BasicAck(1).encode() + b"\0"), ScanResult.MALFORMED),
        (encode_frame(1, 1, amqp.BasicNack(1).encode()[:-1]), ScanResult.MALFORMED),
        (encode_frame(1, 1, amqp.BasicReject(1).encode()[:4]), ScanResult.MALFORMED),
    ],
)
def test_arguments_that_the_scanner_would_pass_or_find_too_late(
    name: str, bad: bytes, result: ScanResult
) -> None:
    assert fresh(name, lane_of(name), HEARTBEAT + bad) == (8, result, bad)
    assert fresh(name, lane_of(name, (2,)), HEARTBEAT + bad)[1] is ScanResult.MORE, (
        "the scanner says what it is"
    )


def test_frames_too_large_for_the_link_are_found(name: str) -> None:
    large = frames_of(publish(message_id="m" * 200, frame_max=4096))
    lane = lane_of(name, out=100)
    assert fresh(name, lane, large[0] + large[1]) == (0, ScanResult.UNSPLITTABLE, large[1])
    body = publish(body=b"x" * 100, frame_max=4096)
    assert fresh(name, lane, body) == (len(body), ScanResult.MORE, b""), "bodies are cut"


def test_a_message_that_is_too_large_is_found_at_its_header(name: str) -> None:
    small, large = publish(2, b"s" * WHOLE), publish(1, b"l" * (WHOLE + 1))
    first, second = frames_of(large)[:2]
    assert fresh(name, lane_of(name), small + first)[:2] == (len(small), ScanResult.MORE)
    assert fresh(name, lane_of(name), small + first + second) == (len(small), ScanResult.LARGE, first)
    half = frames_of(small)
    assert fresh(name, lane_of(name), half[0] + first + half[1] + second) == (0, ScanResult.LARGE, first)


def test_messages_that_never_end_are_bounded(name: str) -> None:
    lane = lane_of(name)
    start = PUBLISH + HEADER_OF_5
    data = start + encode_frame(3, 1, b"") * 2000
    quiet, result, frame = fresh(name, lane, data)
    assert (quiet, result, frame) == (0, ScanResult.LARGE, PUBLISH)
    data = start + publish(2) * 300
    quiet, result, frame = fresh(name, lane, data)
    assert (quiet, result, frame) == (0, ScanResult.LARGE, PUBLISH)


def test_so_many_messages_may_be_half_there_and_no_more(name: str) -> None:
    numbers = tuple(range(1, tables.HALF_MESSAGES + 2))
    lane = lane_of(name, numbers)
    methods = [frames_of(publish(number))[0] for number in numbers]
    assert fresh(name, lane, b"".join(methods[:-1]))[:2] == (0, ScanResult.MORE)
    assert fresh(name, lane, b"".join(methods)) == (0, ScanResult.LARGE, methods[0])


def test_what_is_dropped_need_not_be_whole(name: str) -> None:
    lane = lane_of(name, (1,), (2,))
    stray = b"".join(frames_of(publish(2))[1:] + frames_of(publish(2, b"x" * 1000))[:3])
    assert fresh(name, lane, stray + publish())[:2] == (len(stray + publish()), ScanResult.MORE)
    assert fresh(name, lane, publish(3) + stray)[:2] == (len(publish(3) + stray), ScanResult.MORE)


def test_a_channel_that_is_opened_may_carry_messages_at_once(name: str) -> None:
    opened = method_frame(5, amqp.ChannelOpen())
    lane = lane_of(name)
    half = frames_of(publish(5))
    for count in range(3):
        data = opened + b"".join(half[:count])
        assert fresh(name, lane, data)[:2] == (len(opened), ScanResult.MORE)
    assert fresh(name, lane, opened + publish(5))[0] == len(opened + publish(5))
    # What is wrong there is looked at again once the channel is open; until then no more is whole.
    quiet, result, _ = fresh(name, lane, opened + half[0] + ACK.replace(b"\1\0\1", b"\1\0\5", 1))
    assert (quiet, result) == (len(opened), ScanResult.HEADER_DUE)


def test_an_open_that_was_dealt_with_says_nothing_of_what_follows(name: str) -> None:
    opened = method_frame(5, amqp.ChannelOpen())
    data = opened + frames_of(publish(6))[0]
    walk = walk_of(name)
    walk.look(lane_of(name), data, 0, len(opened), WHOLE)
    walk.passed(len(opened))
    walk.look(lane_of(name), data, len(opened), len(data), WHOLE)
    assert walk.quiet == len(data) - len(opened)


def test_a_message_whose_channel_was_refused_is_forgotten(name: str) -> None:
    lane = lane_of(name)
    walk = walk_of(name)
    close = method_frame(1, amqp.ChannelCloseOk())
    data = PUBLISH + close + publish(2)
    assert walk.look(lane, data, 0, len(PUBLISH), WHOLE)[0] is ScanResult.MORE
    assert walk.quiet == 0
    lane.channels.discard(1)
    assert walk.look(lane, data, 0, len(data), WHOLE)[0] is ScanResult.MORE
    assert walk.quiet == len(data)


frames = st.one_of(
    st.builds(publish, st.integers(1, 5), st.binary(max_size=WHOLE + 20), st.sampled_from([20, 64, 4096])),
    st.builds(publish, st.integers(1, 5), headers=st.sampled_from([Table.of({"a": [1, {"b": 2.0}]}), None])),
    st.sampled_from(
        [HEARTBEAT, ACK, method_frame(5, amqp.ChannelOpen()), method_frame(3, amqp.ChannelCloseOk())]
    ),
    st.sampled_from([bad for bad, _ in VIOLATIONS.values()]),
    st.builds(encode_frame, st.sampled_from([1, 2, 3, 3, 3, 8]), st.integers(0, 5), st.binary(max_size=20)),
    st.binary(min_size=1, max_size=20),
)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Messages and other frames, on several channels, which may lie in each other."""
    queues = [
        [frame for data in draw(st.lists(frames, max_size=4)) for frame in pieces(data)] for _ in range(3)
    ]
    order = draw(st.randoms(use_true_random=False))
    data = b""
    while any(queues):
        queue = order.choice([queue for queue in queues if queue])
        data += queue.pop(0)
    return data


def pieces(data: bytes) -> list[bytes]:
    """Frames, or all of it where it is none."""
    size = int.from_bytes(data[3:7], "big") + 8 if len(data) > 7 else len(data)
    return frames_of(data) if data[:1] in b"\1\2\3" and size <= len(data) else [data]


def looks(name: str, data: bytes, cuts: list[int]) -> list[tuple[object, ...]]:
    """What a walk says piece by piece; what is whole is dealt with at once, as the pump does."""
    lane = lane_of(name, (1, 2), (3,), out=200)
    walk = walk_of(name)
    said: list[tuple[object, ...]] = []
    at = 0
    for end in [*sorted(cuts), len(data)]:
        while True:
            is_new = not walk.at
            result, first, stop = walk.look(lane, data, at, end, WHOLE)
            said.append((result, at + first, at + stop, at + walk.quiet, at + walk.at))
            passed = walk.quiet
            if passed:
                open_channels(lane, data[at : at + passed])
                walk.passed(passed)
                at += passed
            elif result is ScanResult.MORE:
                break
            elif is_new:
                return said
            else:
                walk.restart()
    return said


def open_channels(lane: reference.Lane, data: bytes) -> None:
    for frame in frames_of(data):
        number = int.from_bytes(frame[1:3], "big")
        is_open = frame[0] == 1 and frame[7:11] == amqp.ChannelOpen.INDEX.to_bytes(4, "big")
        if is_open and not lane.channels.state(number):
            lane.channels.open(number)


@needs_compiled
@given(streams(), st.data())
def test_both_walks_agree(data: bytes, more: st.DataObject) -> None:
    cuts = more.draw(st.lists(st.integers(0, len(data)), max_size=10))
    assert looks("plain", data, cuts) == looks("compiled", data, cuts)


@given(streams(), st.data())
def test_any_split_ends_at_the_same_place(data: bytes, more: st.DataObject) -> None:
    cuts = more.draw(st.lists(st.integers(0, len(data)), max_size=10))
    for name in IMPLEMENTATIONS:
        at_once, in_pieces = looks(name, data, [])[-1], looks(name, data, cuts)[-1]
        if at_once[0] in (ScanResult.BAD_TYPE, ScanResult.TOO_LARGE):
            # There the rest is its frame.
            at_once, in_pieces = at_once[:2] + at_once[3:], in_pieces[:2] + in_pieces[3:]
        if ScanResult.LARGE in (at_once[0], in_pieces[0]):
            continue
        assert at_once == in_pieces


@given(streams(), st.data())
def test_what_is_whole_never_leaves_a_message_half_way(data: bytes, more: st.DataObject) -> None:
    """The oracle is the scanner: what it has passed of a whole region has ended."""
    end = more.draw(st.integers(0, len(data)))
    for name in IMPLEMENTATIONS:
        lane = lane_of(name, (1, 2), (3,), out=200)
        quiet, _, _ = fresh(name, lane, data[:end])
        buf, pos, spans = bytearray(data[:quiet]), 0, []
        while True:
            pos, result, stop = scanner_of(name).scan(lane, buf, pos, quiet, 1.0, spans)
            if result is ScanResult.MORE:
                break
            if result is ScanResult.METHOD and buf[pos + 7 : pos + 11] == b"\0\x14\0\x0a" and buf[pos + 2]:
                lane.channels.open(int.from_bytes(buf[pos + 1 : pos + 3], "big"))
            assert result not in (ScanResult.HEADER_DUE, ScanResult.BODY_DUE, ScanResult.BODY_OVERRUN)
            pos = stop
        assert pos == quiet
        assert not lane.channels.is_half_way(Side.CLIENT)


# -- properties ----------------------------------------------------------------------------------


def decodes(data: bytes) -> bool:
    try:
        amqp.BasicProperties.decode(data, 0, len(data))
    except ProtocolViolation:
        return False
    return True


def checks(data: bytes) -> set[bool]:
    found = {properties.are_properties(data, 0, len(data))}
    if compiled is not None:
        found.add(compiled.are_properties(data, 0, len(data)))
    return found


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(width=32),
    st.text(max_size=5),
    st.binary(max_size=5),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.builds(
        amqp.BasicProperties,
        content_type=st.none() | st.text(max_size=5),
        headers=st.none() | st.dictionaries(st.text(max_size=3), values, max_size=3).map(Table.of),
        delivery_mode=st.none() | st.integers(0, 255),
        timestamp=st.none() | st.integers(0, 2**64 - 1),
        app_id=st.none() | st.text(max_size=5),
    ),
    st.integers(0, 2**32),
)
def test_properties_are_taken_for_such_exactly_where_they_decode(
    made: amqp.BasicProperties, seed: int
) -> None:
    data = bytearray(made.encode())
    assert checks(bytes(data)) == {decodes(bytes(data))}
    rng = random.Random(seed)
    for _ in range(5):
        changed = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(changed))
            changed[at] = rng.choice(
                [rng.randrange(256), changed[at] ^ 1, ord(rng.choice("tbBsuIilLfdDSATFVxQ"))]
            )
        changed = changed[: rng.choice([len(changed), rng.randint(2, max(2, len(changed)))])]
        if len(changed) >= 2:
            assert checks(bytes(changed)) == {decodes(bytes(changed))}


@pytest.mark.parametrize("kind", [b"F", b"A"])
def test_tables_may_nest_as_deep_as_the_codec_reads_them(kind: bytes) -> None:
    assert TableLimits().depth == tables.NESTED
    for depth in (1, 2, tables.NESTED - 1, tables.NESTED, tables.NESTED + 1, 5 * tables.NESTED):
        table = b""
        for level in range(depth):
            is_first = level == depth - 1
            named = b"\1a" if kind == b"F" else b""
            table = (
                pack(">I", len(table)) + table if is_first else named + kind + pack(">I", len(table)) + table
            )
            if kind == b"A" and level == depth - 2:
                table = b"\1a" + table
        try:
            get_table(table, 0, len(table))
            right = True
        except ProtocolViolation:
            right = False
        assert right == (depth <= tables.NESTED)
        assert checks(b"\x20\0" + table) == {right}


# -- confirms ------------------------------------------------------------------------------------


@pytest.fixture(params=IMPLEMENTATIONS)
def down(request: pytest.FixtureRequest) -> tuple[ModuleType, reference.Lane, reference.Lane]:
    module = scanner_of(request.param)
    channels = module.Channels()
    channels.open(1, 9)
    up = module.Lane(Side.CLIENT, FRAME_MAX, FRAME_MAX, channels)
    return module, up, module.Lane(Side.UPSTREAM, FRAME_MAX, FRAME_MAX, channels)


def passes(module: ModuleType, lane: reference.Lane, data: bytes) -> None:
    spans: list[tuple[int, int]] = []
    at, result, _ = module.scan(lane, bytearray(data), 0, len(data), 1.0, spans)
    assert (at, result) == (len(data), ScanResult.MORE)


@pytest.mark.parametrize("seed", range(20))
def test_confirms_that_pass_are_counted(
    down: tuple[ModuleType, reference.Lane, reference.Lane], seed: int
) -> None:
    """As RabbitMQ answers: singles in any order, and ``multiple`` up to the first that is due."""
    module, up, lane = down
    rng = random.Random(seed)
    passes(module, up, publish() * 3)
    up.channels.count_confirms(1)
    assert up.channels.unconfirmed(1) == 0
    published, due = 0, set()
    for _ in range(300):
        if rng.random() < 0.4 or not due:
            count = rng.choice([1, 3, 20])
            passes(module, up, publish() * count)
            due |= set(range(published + 1, published + count + 1))
            published += count
        elif rng.random() < 0.6:
            tag = rng.choice(sorted(due))
            due.discard(tag)
            answer = amqp.BasicAck(tag) if rng.random() < 0.8 else amqp.BasicNack(tag, False, True)
            passes(module, lane, method_frame(1, answer))
        else:
            tag = rng.choice(sorted(due))
            due = {number for number in due if number > tag}
            passes(module, lane, method_frame(1, amqp.BasicAck(tag, True)))
        assert not due or published - min(due) < tables.CONFIRM_WINDOW, "else it is an upper bound"
        assert up.channels.unconfirmed(1) == len(due)
    passes(
        module, lane, method_frame(1, amqp.BasicAck(published, True)) + method_frame(1, amqp.BasicGetEmpty())
    )
    assert up.channels.unconfirmed(1) == 0


def test_confirms_far_ahead_are_never_counted_too_low(
    down: tuple[ModuleType, reference.Lane, reference.Lane],
) -> None:
    module, up, lane = down
    up.channels.count_confirms(1)
    many = 3 * tables.CONFIRM_WINDOW
    passes(module, up, publish() * many)
    due = set(range(1, many + 1))
    rng = random.Random(3)
    for tag in rng.sample(range(2, many + 1), many - 1):
        due.discard(tag)
        passes(module, lane, method_frame(1, amqp.BasicAck(tag)))
        assert up.channels.unconfirmed(1) >= len(due)
    assert 0 < up.channels.unconfirmed(1) <= many - tables.CONFIRM_WINDOW + 1
    passes(module, lane, method_frame(1, amqp.BasicAck(many, True)))
    assert up.channels.unconfirmed(1) == 0


def test_confirms_that_are_shown_are_counted_all_the_same(
    down: tuple[ModuleType, reference.Lane, reference.Lane],
) -> None:
    module, up, lane = down
    up.channels.count_confirms(1)
    passes(module, up, publish())
    up.channels.show_acks(1)
    ack = method_frame(1, amqp.BasicAck(1))
    assert module.scan(lane, bytearray(ack), 0, len(ack), 1.0, [])[1] is ScanResult.METHOD
    assert up.channels.unconfirmed(1) == 0
    up.channels.close(1)
    up.channels.open(1)
    with pytest.raises(AssertionError):
        up.channels.unconfirmed(1)


def test_a_channel_gets_another_number(down: tuple[ModuleType, reference.Lane, reference.Lane]) -> None:
    module, up, lane = down
    assert (up.channels.to(1), up.channels.to(2)) == (9, 0)
    up.channels.remap(1, 300)
    data = bytearray(publish())
    module.scan(up, data, 0, len(data), 1.0, [])
    assert bytes(data) == publish(300)
    data = bytearray(method_frame(1, amqp.BasicAck(1)))
    module.scan(lane, data, 0, len(data), 1.0, [])
    assert bytes(data) == method_frame(1, amqp.BasicAck(1)), "the way down has the client's numbers already"
    with pytest.raises(KeyError):
        up.channels.remap(2, 3)


@needs_compiled
def test_the_compiled_walk_has_the_numbers_of_the_tables() -> None:
    numbers = compiled.numbers()
    for constant in ("HALF_MESSAGES", "NESTED", "CONFIRM_WINDOW"):
        assert numbers[constant] == getattr(tables, constant)
    assert numbers["CHANNEL_OPEN"] == amqp.ChannelOpen.INDEX
    assert confirms.CONFIRM_WINDOW == tables.CONFIRM_WINDOW
    assert len(list(itertools.chain(properties.PROPERTIES))) == 14
