"""Both scanners, frame by frame, at every split of the stream, and against each other."""

from __future__ import annotations

import itertools
import random
from types import ModuleType

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpgate.datapath import captures, framing, reference, tables
from amqpgate.datapath import header_rules as plain_rules
from amqpgate.datapath.content_tests import ContentTests, HeaderPeek, RuleGroup, TextForm, TextTest, ValueTest
from amqpgate.datapath.tables import LAST_HARMLESS, ScanResult, Show, Side
from amqpgate.protocol.frames import HEARTBEAT, encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.support.frames import content_frames

try:
    from amqpgate.datapath import _scan as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]

IMPLEMENTATIONS = [reference] if compiled is None else [reference, compiled]
PROPERTIES = amqp.BasicProperties(content_type="text/plain")


@pytest.fixture(params=IMPLEMENTATIONS, ids=lambda module: module.__name__.rpartition(".")[2])
def scanner(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


def lane(
    scanner: ModuleType,
    side: Side = Side.CLIENT,
    *,
    flows: bool = False,
    channels: tuple[int, ...] = (1, 2),
    discarded: tuple[int, ...] = (),
    frame_max: int = 4096,
    out: int = 4096,
) -> reference.Lane:
    table = scanner.Channels()
    for number in channels + discarded:
        table.open(number)
    for number in discarded:
        table.discard(number)
    made: reference.Lane = scanner.Lane(side, frame_max, out, table, scanner.FlowTable() if flows else None)
    return made


#: Two headers, one of which is looked for; and a property that is.
WITH_CC = amqp.BasicProperties(headers=Table.of({"CC": []}))
WITH_OTHER = amqp.BasicProperties(headers=Table.of({"C": 1}))
WITH_REPLY_TO = amqp.BasicProperties(reply_to="q")


def publish(
    channel: int = 1,
    key: str = "k",
    body: bytes = b"hello",
    frame_max: int = 4096,
    properties: amqp.BasicProperties = PROPERTIES,
) -> bytes:
    method = amqp.BasicPublish(exchange="x", routing_key=key)
    return content_frames(channel, method, properties, body, frame_max)


def flow_key(key: str = "k") -> bytes:
    return amqp.BasicPublish(exchange="x", routing_key=key).encode()[6:]


def delivery_key(frame: bytes) -> bytes:
    """Channel, consumer tag, exchange and routing key of a deliver frame."""
    end = 12 + frame[11]
    return frame[1:3] + frame[11:end] + frame[end + 9 : -1]


def stamp(trace: bytes = b"0" * 32, span: bytes = b"0" * 16) -> bytes:
    """A trace context."""
    return b"00-" + trace + b"-" + span + b"-03"


STAMP = stamp()


@attrs.define
class Seen:
    """What a driver of the scanner saw: forwarded bytes, upcalls with their frames, and what was captured of
    which flow."""

    forwarded: bytes = b""
    upcalls: list[tuple[ScanResult, bytes]] = attrs.field(factory=list)
    captured: list[tuple[object, int, bytes, bytes, captures.Sample | None]] = attrs.field(factory=list)
    rest: bytes = b""


def drive(
    scanner: ModuleType,
    lane: reference.Lane,
    data: bytes,
    cuts: list[int] | None = None,
    *,
    now: float = 1.0,
    control: dict[bytes, reference.Flow] | None = None,
) -> Seen:
    """Feed ``data`` in pieces, as the pump does; stop at the first violation and when throttled.

    ``control`` plays the control plane: a miss installs the flow of its key, if there is one, and
    every publish that is shown goes on.
    """
    seen = Seen()
    kept = b""
    edges = [0, *sorted(cuts or []), len(data)]
    for start, stop in itertools.pairwise(edges):
        chunk = bytearray(kept + data[start:stop])
        pos = 0
        while True:
            spans: list[tuple[int, int]] = []
            captured: list[captures.Captured] = []
            made = bytearray()
            at, result, end = scanner.scan(lane, chunk, pos, len(chunk), now, spans, captured, made)
            assert not (made and spans)
            for flow, number, header, body, sample in captured:
                if sample is not None and sample[2]:
                    # Others each time.
                    trace, span = sample[2][:16].hex().encode(), sample[2][16:].hex().encode()
                    assert made.count(stamp(trace, span)) == 1
                    made = made.replace(stamp(trace, span), STAMP)
                    sample = *sample[:2], b"stamped", sample[3]
                seen.captured.append(((flow.notes or {})["it"], number, header, body, sample))
            seen.forwarded += made
            assert pos <= at <= len(chunk)
            for first, last in spans:
                assert pos <= first < last <= at
                seen.forwarded += chunk[first:last]
            if result is ScanResult.MORE:
                kept = bytes(chunk[at:])
                break
            if result is ScanResult.THROTTLED or result > LAST_HARMLESS:
                seen.upcalls.append((result, b""))
                if result is ScanResult.THROTTLED:
                    seen.rest = bytes(chunk[at:]) + data[stop:]
                return seen
            frame = bytes(chunk[at:end])
            seen.upcalls.append((result, frame))
            if result is ScanResult.APART:
                flow = (control or {}).get(frame[13:-1])
                lane.channels.expect_header(lane.side, frame[2], flow, Show.HEADER)
            if result in (ScanResult.MISS, ScanResult.SHOWN) and control is not None:
                key = frame[13:-1] if lane.side is Side.CLIENT else delivery_key(frame)
                flow = control.get(key)
                if flow is not None and lane.flows is not None:
                    lane.flows.install(key, flow)
                show = flow.show if flow and (flow.sample_every or result is ScanResult.SHOWN) else 0
                lane.channels.expect_header(lane.side, frame[2], flow, show)
            pos = end
    seen.rest = kept
    return seen


def test_a_publish_passes_whole_when_no_policy_selects(scanner: ModuleType) -> None:
    up = lane(scanner)
    data = publish(body=b"x" * 9000)
    assert drive(scanner, up, data) == Seen(forwarded=data)
    assert (up.messages, up.body_bytes, up.channels.due(Side.CLIENT, 1)) == (1, 9000, 0)
    assert up.frames == 2 + 3


def test_a_publish_without_a_flow_is_a_miss_before_any_byte_of_it_passes(scanner: ModuleType) -> None:
    up = lane(scanner, flows=True)
    chunk = bytearray(HEARTBEAT + publish())
    spans: list[tuple[int, int]] = []
    at, result, stop = scanner.scan(up, chunk, 0, len(chunk), 1.0, spans)
    assert (result, spans, at) == (ScanResult.MISS, [], 8)
    assert chunk[at:stop] == method_frame(1, amqp.BasicPublish(exchange="x", routing_key="k"))


def test_a_flow_lets_its_arguments_pass_and_counts_them(scanner: ModuleType) -> None:
    flow = scanner.Flow()
    up = lane(scanner, flows=True)
    assert up.flows is not None
    up.flows.install(flow_key(), flow)
    data = publish(body=b"12345") * 3
    assert drive(scanner, up, data).forwarded == data
    assert (flow.messages, flow.body_bytes) == (3, 15)
    assert drive(scanner, up, publish(key="other")).upcalls[0][0] is ScanResult.MISS


def test_a_flush_makes_every_flow_a_miss_until_it_is_installed_again(scanner: ModuleType) -> None:
    flow = scanner.Flow()
    up = lane(scanner, flows=True)
    assert up.flows is not None
    up.flows.install(flow_key(), flow)
    up.flows.flush()
    seen = drive(scanner, up, publish() + publish(), control={flow_key(): flow})
    assert [result for result, _ in seen.upcalls] == [ScanResult.MISS]
    assert flow.messages == 2


def test_the_flows_that_can_be_hit_are_listed(scanner: ModuleType) -> None:
    table = scanner.FlowTable()
    assert table.flows() == []
    # Some longer than what an entry has room for.
    keys = [b"%d" % number * (1 + number % 40) for number in range(300)]
    flows = {key: scanner.Flow() for key in keys}
    for key, flow in flows.items():
        table.install(key, flow)
    assert dict(table.flows()) == {key: flow for key, flow in flows.items() if table.get(key) is flow}
    assert len(table.flows()) == len(table) > 250
    table.flush()
    assert table.flows() == []
    table.install(keys[7], flows[keys[7]])
    assert table.flows() == [(keys[7], flows[keys[7]])]


def test_a_flow_that_is_installed_again_replaces_the_one_before(scanner: ModuleType) -> None:
    first, second = scanner.Flow(), scanner.Flow()
    up = lane(scanner, flows=True)
    assert up.flows is not None
    for flow in (first, second):
        up.flows.install(flow_key(), flow)
        drive(scanner, up, publish() + publish())
    assert (first.messages, second.messages) == (2, 2)
    up.flows = scanner.FlowTable()
    assert drive(scanner, up, publish()).upcalls[0][0] is ScanResult.MISS


def test_many_flows_stay_bounded_and_the_latest_stays(scanner: ModuleType) -> None:
    table = scanner.FlowTable()
    bound = tables.FLOWS
    up = lane(scanner, flows=True)
    up.flows = table
    for n in range(3 * bound):
        table.install(flow_key(str(n)), scanner.Flow())
        assert len(table) <= bound
    assert len(table) > bound / 2
    assert drive(scanner, up, publish(key=str(3 * bound - 1))).upcalls == []


def test_long_keys_are_bounded_in_bytes(scanner: ModuleType) -> None:
    table = scanner.FlowTable()
    for n in range(8000):
        table.install(b"%0500d" % n, scanner.Flow())
        assert len(table) * 500 <= tables.FLOW_KEY_BYTES
    assert len(table) > 0


def test_two_thousand_keys_all_hit(scanner: ModuleType) -> None:
    up = lane(scanner, flows=True)
    keys = [f"key.{n}.created" for n in range(2000)]
    control = {flow_key(key): scanner.Flow() for key in keys}
    data = b"".join(publish(key=key) for key in keys)
    assert len(drive(scanner, up, data, control=control).upcalls) == 2000
    again = drive(scanner, up, data, control=control)
    assert again.upcalls == []


def test_a_sampled_flow_shows_one_in_n_as_far_as_it_asks(scanner: ModuleType) -> None:
    flow = scanner.Flow(sample_every=3, show=Show.BODY)
    up = lane(scanner, flows=True)
    assert up.flows is not None
    up.flows.install(flow_key(), flow)
    body = encode_frame(3, 1, b"hello")
    data = publish() * 7
    seen = drive(scanner, up, data, control={flow_key(): flow})
    assert [result for result, _ in seen.upcalls] == [
        ScanResult.SHOWN,
        ScanResult.HEADER,
        ScanResult.BODY,
    ] * 2
    assert seen.upcalls[2][1] == body
    assert seen.forwarded == publish() * 5
    assert flow.messages == 7


def test_what_follows_a_message_that_was_shown_is_not_shown_for_that(scanner: ModuleType) -> None:
    def content(method: amqp.BasicDeliver | amqp.BasicGetOk) -> bytes:
        return content_frames(1, method, PROPERTIES, b"12345", 4096)

    deliver = content(amqp.BasicDeliver("a", 1, False, "x", "k"))
    got = content(amqp.BasicGetOk(2, False, "x", "k", 0))
    down = lane(scanner, Side.UPSTREAM, flows=True)
    flow = scanner.Flow(sample_every=1, show=Show.BODY)
    control = {delivery_key(method_frame(1, amqp.BasicDeliver("a", 1, False, "x", "k"))): flow}
    whole = drive(scanner, down, (deliver + got) * 2, control=control)
    assert [result.name for result, _ in whole.upcalls] == [
        "MISS",
        "HEADER",
        "BODY",
        "SHOWN",
        "HEADER",
        "BODY",
    ]
    bytewise = drive(scanner, down, deliver + got, list(range(len(deliver + got))), control=control)
    assert [result.name for result, _ in bytewise.upcalls] == ["SHOWN", "HEADER", "BODY"]
    assert (whole.forwarded, bytewise.forwarded) == (got * 2, got)


def mode(number: int, **more: object) -> amqp.BasicProperties:
    return amqp.BasicProperties(delivery_mode=number, **more)  # type: ignore[arg-type]


def peeking(scanner: ModuleType, **what: object) -> reference.Flow:
    made: reference.Flow = scanner.Flow(show=Show.HEADER, **what)
    return made


@pytest.mark.parametrize(
    ("what", "tripping", "passing"),
    [
        ({"peek_headers": (b"CC", b"BCC")}, [{"properties": WITH_CC}], [{"properties": WITH_OTHER}, {}]),
        ({"peek_flags": 1 << 9}, [{"properties": WITH_REPLY_TO}], [{"properties": WITH_CC}, {}]),
        ({"peek_body": 4}, [{"body": b"hello"}, {"body": b"x" * 9000}], [{"body": b"four"}, {"body": b""}]),
        ({"peek_body": 0}, [{"body": b"x"}], [{"body": b""}]),
        (
            {"peek_mode_0": True},
            [
                {"properties": mode(0)},
                {"properties": mode(0, content_type="a" * 99, headers=WITH_CC.headers)},
            ],
            [{"properties": mode(1)}, {"properties": mode(2, content_encoding="gzip")}, {}],
        ),
    ],
)
def test_a_message_with_a_certain_header_is_shown_before_any_of_it_passes(
    scanner: ModuleType,
    what: dict[str, object],
    tripping: list[dict[str, object]],
    passing: list[dict[str, object]],
) -> None:
    for options in tripping:
        up = lane(scanner, flows=True)
        flow = peeking(scanner, **what)
        assert up.flows is not None
        up.flows.install(flow_key(), flow)
        data = publish(**options)  # type: ignore[arg-type]
        for cuts in ([], list(range(1, len(data)))):
            seen = drive(scanner, up, data, cuts, control={flow_key(): flow})
            assert [result for result, _ in seen.upcalls] == [ScanResult.SHOWN, ScanResult.HEADER]
            assert b"".join(frame for _, frame in seen.upcalls) + seen.forwarded == data
    for options in passing:
        up = lane(scanner, flows=True)
        flow = peeking(scanner, **what)
        assert up.flows is not None
        up.flows.install(flow_key(), flow)
        data = publish(**options) * 3  # type: ignore[arg-type]
        for count, cuts in enumerate(([], list(range(1, len(data)))), 1):
            assert drive(scanner, up, data, cuts) == Seen(forwarded=data)
            assert flow.messages == 3 * count


@pytest.mark.parametrize(
    ("like", "other"),
    [
        (mode(1), mode(0)),
        (mode(1, content_type="a"), mode(0, content_type="a")),
        (mode(2, headers=WITH_CC.headers), mode(0)),
    ],
)
def test_one_among_many_that_look_alike_is_shown(
    scanner: ModuleType, like: amqp.BasicProperties, other: amqp.BasicProperties
) -> None:
    """Runs of like messages are taken in one step by the compiled scanner."""
    up = lane(scanner, flows=True)
    flow = peeking(scanner, peek_mode_0=True)
    assert up.flows is not None
    up.flows.install(flow_key(), flow)
    before, shown = publish(properties=like) * 3, publish(properties=other)
    seen = drive(scanner, up, before + shown + before, [], control={flow_key(): flow})
    assert [result for result, _ in seen.upcalls] == [ScanResult.SHOWN, ScanResult.HEADER]
    assert seen.upcalls[1][1][21:-1].endswith(b"\0")
    assert flow.messages == 7


@pytest.mark.parametrize(
    "headers",
    [
        {"CC": ["k"]},
        {"x": 2, "CC": ["k"]},
        {"a": "\x02C\x02CX", "CC": ["k"]},
        {"CD": 1, "y": b"\x03BCC"},
        {"x": "y" * 5000, "CC": ["k"]},
    ],
)
def test_one_among_many_with_headers_is_shown(scanner: ModuleType, headers: dict[str, object]) -> None:
    up = lane(scanner, flows=True, frame_max=8192, out=8192)
    flow = peeking(scanner, peek_headers=(b"CC", b"BCC"))
    assert up.flows is not None
    up.flows.install(flow_key(), flow)
    before = publish(properties=amqp.BasicProperties(headers=Table.of({"C": "\x02C", "BC": 2}))) * 3
    shown = publish(properties=amqp.BasicProperties(headers=Table.of(headers)), frame_max=8192)
    seen = drive(scanner, up, before + shown + before, [], control={flow_key(): flow})
    assert [result for result, _ in seen.upcalls] == [ScanResult.SHOWN, ScanResult.HEADER]
    assert seen.upcalls[1][1] in shown
    assert flow.messages == 7


def asking(module: ModuleType) -> plain_rules.HeaderRules:
    """Messages with the header C whose value is 1 pass by the second rule, those of mode 1 by the first."""
    first = ContentTests(denies=False, required=1 << 12, delivery_mode=1)
    second = ContentTests(denies=False, required_headers=(b"C",), values=(ValueTest(b"C", None, 1, 1),))
    none = ContentTests(
        denies=True, properties=((0, TextTest(TextForm.CALL, call=lambda text: text == "no")),)
    )
    group = RuleGroup((none,), (first, second))
    made: plain_rules.HeaderRules = module.HeaderRules((group,), 0, HeaderPeek(always=True))
    return made


def test_what_passes_the_rules_on_headers_is_a_hit(scanner: ModuleType) -> None:
    first, second = publish(properties=mode(1)), publish(properties=WITH_OTHER)
    neither = publish(properties=mode(2, headers=Table.of({"C": 2})))
    denied = publish(properties=mode(1, content_type="no"))
    for cuts in ([], list(range(1, 3 * len(first)))):
        up = lane(scanner, flows=True)
        flow = peeking(scanner, header_rules=asking(scanner))
        assert up.flows is not None
        up.flows.install(flow_key(), flow)
        assert drive(scanner, up, first * 3, cuts) == Seen(forwarded=first * 3)
        # Which of the other rules lets messages pass is known once one has been shown.
        seen = drive(scanner, up, second * 3 + first * 2 + second, cuts, control={flow_key(): flow})
        assert [result for result, _ in seen.upcalls] == [ScanResult.SHOWN, ScanResult.HEADER]
        for other in (neither, denied):
            seen = drive(scanner, up, first + other + second, cuts, control={flow_key(): flow})
            assert [result for result, _ in seen.upcalls] == [ScanResult.SHOWN, ScanResult.HEADER]
        assert flow.messages == 15
        # Where it counts for the rule that admits all, what passes by another is always shown.
        flow.meter = scanner.Meter("one", [])
        seen = drive(scanner, up, first + second * 2, cuts, control={flow_key(): flow})
        assert [result for result, _ in seen.upcalls] == [ScanResult.SHOWN, ScanResult.HEADER] * 2


def tracing(flags: str) -> amqp.BasicProperties:
    """With a trace context."""
    return amqp.BasicProperties(headers=Table.of({"traceparent": f"00-{'a' * 32}-{'b' * 16}-{flags}"}))


def test_who_carries_an_unsampled_context_is_no_sample(scanner: ModuleType) -> None:
    other, carrying, sampled = publish(), publish(properties=tracing("00")), publish(properties=tracing("01"))
    for what, shown in ((1, [other, sampled]), (2, [carrying] * 3 + [other, sampled])):
        up = lane(scanner, flows=True)
        flow = peeking(scanner, peek_contexts=what, sample_every=2)
        assert up.flows is not None
        up.flows.install(flow_key(), flow)
        data = carrying + other + carrying * 2 + other + sampled
        seen = drive(scanner, up, data, control={flow_key(): flow})
        assert [result for result, _ in seen.upcalls] == [ScanResult.SHOWN, ScanResult.HEADER] * len(shown)
        headers = [frame for result, frame in seen.upcalls if result is ScanResult.HEADER]
        assert all(frame in one for frame, one in zip(headers, shown, strict=True))


def test_rules_on_headers_take_part_of_a_scan_alone(scanner: ModuleType) -> None:
    up = lane(scanner, flows=True)
    rules = asking(scanner)
    flow = peeking(scanner, header_rules=rules)
    assert up.flows is not None
    up.flows.install(flow_key(), flow)
    one = publish(properties=mode(1))
    most = -(-plain_rules.PATIENCE // rules.weight)
    data = bytearray(one * (2 * most + 1))
    spans: list[tuple[int, int]] = []
    at = 0
    for passed in (most, 2 * most):
        at, result, stop = scanner.scan(up, data, at, len(data), 1.0, spans)
        assert (result, at, stop) == (ScanResult.JUDGED, passed * len(one), passed * len(one))
    assert scanner.scan(up, data, at, len(data), 1.0, spans) == (len(data), ScanResult.MORE, len(data))
    assert flow.messages == 2 * most + 1
    assert b"".join(bytes(data[first:last]) for first, last in spans) == one * (2 * most + 1)


def test_a_header_that_does_not_follow_at_once_is_not_waited_for(scanner: ModuleType) -> None:
    up = lane(scanner, flows=True)
    flow = peeking(scanner, peek_headers=(b"CC",))
    assert up.flows is not None
    up.flows.install(flow_key(), flow)
    first, other = publish(), method_frame(2, amqp.BasicAck(1))
    method_end = len(first) - len(first[first.index(b"\x02\x00\x01") :])
    interleaved = first[:method_end] + other + first[method_end:]
    seen = drive(scanner, up, interleaved, control={flow_key(): flow})
    assert seen.upcalls[0] == (ScanResult.SHOWN, first[:method_end])
    assert [result for result, _ in seen.upcalls] == [ScanResult.SHOWN, ScanResult.HEADER]
    large = publish(properties=amqp.BasicProperties(headers=Table.of({"x": "y" * 5000})), frame_max=8192)
    up = lane(scanner, flows=True, frame_max=8192, out=8192)
    assert up.flows is not None
    up.flows.install(flow_key(), flow)
    assert drive(scanner, up, large[: method_end + 7], control={flow_key(): flow}).upcalls == [
        (ScanResult.SHOWN, large[:method_end])
    ]


def test_what_the_control_plane_refuses_is_dropped_and_not_counted(scanner: ModuleType) -> None:
    up = lane(scanner, flows=True)
    channels = up.channels
    channels.drop_next(Side.CLIENT, 1)
    data = publish(body=b"x" * 9000)
    method_end = data.index(b"\x02\x00\x01")
    assert drive(scanner, up, data[method_end:]) == Seen()
    assert channels.messages(Side.CLIENT, 1) == 0
    channels.expect_header(Side.CLIENT, 1, None, Show.HEADER)
    header_end = method_end + 8 + int.from_bytes(data[method_end + 3 : method_end + 7], "big")
    assert drive(scanner, up, data[method_end:header_end]).upcalls[0][0] is ScanResult.HEADER
    assert channels.messages(Side.CLIENT, 1) == 1
    channels.uncount(Side.CLIENT, 1)
    channels.drop_rest(Side.CLIENT, 1)
    assert drive(scanner, up, data[header_end:]) == Seen()
    assert (channels.messages(Side.CLIENT, 1), channels.due(Side.CLIENT, 1)) == (0, 0)
    assert drive(scanner, up, data).upcalls[0][0] is ScanResult.MISS


def capturing(scanner: ModuleType, body_bytes: int) -> tuple[reference.Lane, reference.Flow]:
    up = lane(scanner, flows=True, frame_max=131072, out=131072)
    assert up.flows is not None
    flow = scanner.Flow(show=Show.BODY)
    flow.capture("it", "it", body_bytes)
    up.flows.install(flow_key(), flow)
    up.channels.open(2, 9)
    return up, flow


def test_what_is_captured_passes_and_is_told_afterwards(scanner: ModuleType) -> None:
    up, flow = capturing(scanner, 3)
    bodies = [b"", b"12", b"12345"]
    data = b"".join(publish(2, body=body) for body in bodies)
    seen = drive(scanner, up, data)
    assert seen.upcalls == []
    assert len(seen.forwarded) == len(data)
    assert seen.captured == [
        ("it", 2, encode_header(ContentHeader(60, len(body), PROPERTIES)), body[:3], None) for body in bodies
    ]
    assert flow.messages == 3


def test_a_message_in_pieces_that_may_be_captured_is_waited_for(scanner: ModuleType) -> None:
    data = publish(body=b"12345")
    for cut in range(1, len(data)):
        up, _ = capturing(scanner, 3)
        seen = drive(scanner, up, data, [cut])
        assert (seen.forwarded, seen.upcalls) == (data, [])
        assert [body for *_, body, _ in seen.captured] == [b"123"]


def test_the_end_of_a_body_is_waited_for_once_its_frame_has_begun(scanner: ModuleType) -> None:
    """Anything may come instead of a body: of the frame behind the header nothing is known before."""
    up, _ = capturing(scanner, 3)
    data = publish(body=b"12345")
    for left, end in ((13, 0), (7, 0), (6, len(data)), (1, len(data))):
        chunk = bytearray(data[:-left])
        spans: list[tuple[int, int]] = []
        assert scanner.scan(up, chunk, 0, len(chunk), 1.0, spans, []) == (0, ScanResult.MORE, end)
        assert spans == []


@pytest.mark.parametrize("how", ["large", "two frames", "shut", "another frame", "malformed", "weight"])
def test_what_cannot_be_captured_is_shown(scanner: ModuleType, how: str) -> None:
    up, flow = capturing(scanner, 3)
    data = publish(body=b"12345")
    if how == "large":
        data = publish(body=b"x" * tables.CAPTURED_BYTES, frame_max=131072)
    elif how == "two frames":
        data = publish(body=b"x" * 100, frame_max=70)
    elif how == "shut":
        gate = scanner.CaptureGate()
        gate.shut()
        flow.capture("another", None, 0, gate)
    elif how == "another frame":
        data = data[:-13] + HEARTBEAT + data[-13:]
    else:
        header = data.index(b"\0\x3c\0\0" + bytes(7) + b"\5")
        # The length of its content type, or the weight.
        at = header + (14 if how == "malformed" else 3)
        data = data[:at] + b"\x0b" + data[at + 1 :]
    seen = drive(scanner, up, publish() + data, control={flow_key(): flow})
    # The method at least; the control plane asks for the rest.
    assert seen.upcalls[0][0] is ScanResult.SHOWN
    assert len(seen.captured) == (0 if how == "shut" else 1)


def test_a_scan_captures_so_many_and_no_more(scanner: ModuleType) -> None:
    up, _ = capturing(scanner, 3)
    data = publish() * (2 * tables.CAPTURED_MESSAGES + 1)
    seen = drive(scanner, up, data)
    assert [result for result, _ in seen.upcalls] == [ScanResult.JUDGED] * 2
    assert (seen.forwarded, len(seen.captured)) == (data, 2 * tables.CAPTURED_MESSAGES + 1)


def sampling(
    scanner: ModuleType, every: int, *, stamps: int = 0, out: int = 131072
) -> tuple[reference.Lane, reference.Flow]:
    """Samples are captured, three bytes of each, and stamped where ``stamps`` says of how many."""
    up = lane(scanner, flows=True, frame_max=131072, out=out)
    assert up.flows is not None
    flow = scanner.Flow(show=Show.HEADER)
    assert flow.capture_samples("it", "it", 3)
    if stamps:
        flow.rewrite_by(stamping(scanner, stamps))
    flow.sample_every = every
    up.flows.install(flow_key(), flow)
    return up, flow


def stamping(scanner: ModuleType, every: int) -> reference.Rewrite:
    entries = amqp.BasicProperties(headers=Table.of({"traceparent": STAMP.decode()})).encode()[6:]
    method = amqp.BasicPublish(exchange="x", routing_key="k").encode()
    made: reference.Rewrite = scanner.Rewrite(method, (None,) * 14, 0, entries, every)
    return made


def stamped(body: bytes = b"hello", headers: dict[str, object] | None = None) -> bytes:
    named = Table.of({**(headers or {}), "traceparent": STAMP.decode()})
    properties = attrs.evolve(PROPERTIES, headers=named)
    return publish(body=body, properties=properties)


def test_samples_are_captured_and_nothing_else_is(scanner: ModuleType) -> None:
    up, flow = sampling(scanner, 3)
    data = publish() * 7
    seen = drive(scanner, up, data, control={flow_key(): flow})
    assert (seen.forwarded, seen.upcalls, flow.messages) == (data, [], 7)
    header = encode_header(ContentHeader(60, 5, PROPERTIES))
    assert seen.captured == [("it", 1, header, b"hel", (3, number, b"", 0.0)) for number in (3, 6)]
    # Where each is captured, it is told which are samples.
    flow.capture("each", None, 4)
    assert [(body, sample) for *_, body, sample in drive(scanner, up, data).captured] == [
        (b"hell", (3, 7 + number, b"", 0.0) if number in (2, 5) else None) for number in range(1, 8)
    ]


def test_a_sample_that_cannot_be_captured_is_shown_and_counts_as_one(scanner: ModuleType) -> None:
    large = publish(body=b"x" * tables.CAPTURED_BYTES, frame_max=131072)
    headers = publish(properties=amqp.BasicProperties(headers=Table.of({"x": "y" * 5000})), frame_max=8192)
    for data in (large, headers):
        up, flow = sampling(scanner, 2)
        seen = drive(scanner, up, data * 4 + publish(), control={flow_key(): flow})
        shown = [result for result, _ in seen.upcalls]
        assert (shown, seen.captured) == ([ScanResult.SHOWN, ScanResult.HEADER] * 2, [])
        assert flow.unsampled == 1


def test_who_has_to_be_shown_samples_is_shown_them(scanner: ModuleType) -> None:
    up, flow = sampling(scanner, 2, stamps=2)
    flow.show_samples()
    assert flow.rewrite is None
    seen = drive(scanner, up, publish() * 2, control={flow_key(): flow})
    assert ([result for result, _ in seen.upcalls], seen.captured) == (
        [ScanResult.SHOWN, ScanResult.HEADER],
        [],
    )
    # So is a policy that looks at each.
    for other in (flow, scanner.Flow(sample_every=1)):
        assert not other.capture_samples("it", "it", 3)
        assert other.samples == -1


def test_samples_get_a_trace_context_of_their_own(scanner: ModuleType) -> None:
    up, flow = sampling(scanner, 2, stamps=2)
    with_header = publish(properties=attrs.evolve(PROPERTIES, headers=Table.of({"a": 1})))
    seen = drive(scanner, up, publish() * 2 + publish(body=b"") + with_header, control={flow_key(): flow})
    assert seen.upcalls == []
    assert seen.forwarded == publish() + stamped() + publish(body=b"") + stamped(headers={"a": 1})
    assert [sample for *_, sample in seen.captured] == [(2, 2, b"stamped", 0.0), (2, 4, b"stamped", 0.0)]
    # What was captured is what came.
    assert seen.captured[0][2] == encode_header(ContentHeader(60, 5, PROPERTIES))


def test_stamps_are_numbers_of_their_own(scanner: ModuleType) -> None:
    up, _ = sampling(scanner, 1, stamps=1)
    chunk, found = bytearray(publish() * 200), list[captures.Captured]()
    scanner.scan(up, chunk, 0, len(chunk), 1.0, [], found, bytearray())
    ids = [sample[2] for *_, sample in found if sample is not None]
    assert len({one[:16] for one in ids}) == len({one[16:] for one in ids}) == 200
    assert {len(one) for one in ids} == {24}


def test_who_carries_a_context_that_decides_is_captured_and_is_no_sample(scanner: ModuleType) -> None:
    up = lane(scanner, flows=True, frame_max=131072, out=131072)
    assert up.flows is not None
    flow = scanner.Flow(show=Show.HEADER, peek_contexts=1)
    flow.capture_contexts()
    assert not flow.captures_contexts
    assert flow.capture_samples("it", "it", 0)
    flow.rewrite_by(stamping(scanner, 2))
    flow.capture_contexts()
    flow.sample_every = 2
    up.flows.install(flow_key(), flow)
    may, never = publish(properties=tracing("01")), publish(properties=tracing("00"))
    seen = drive(scanner, up, publish() + may + never + may + publish(), control={flow_key(): flow})
    assert seen.upcalls == []
    assert seen.forwarded == publish() + may + never + may + stamped()
    assert [sample for *_, sample in seen.captured] == [
        (0, 2, b"", 0.0),
        (0, 4, b"", 0.0),
        (2, 5, b"stamped", 0.0),
    ]
    assert seen.captured[0][2] == encode_header(ContentHeader(60, 5, tracing("01")))
    # Where others choose among them, too, they are shown.
    flow.show_contexts()
    seen = drive(scanner, up, may + never, control={flow_key(): flow})
    assert [result for result, _ in seen.upcalls] == [ScanResult.SHOWN, ScanResult.HEADER] * 2


def test_a_delivery_is_rewritten_with_its_own_tag(scanner: ModuleType) -> None:
    down = lane(scanner, Side.UPSTREAM, flows=True, frame_max=131072, out=131072)
    assert down.flows is not None
    flow = scanner.Flow(show=Show.HEADER)
    flow.rewrite_by(rewriting(scanner, side=Side.UPSTREAM))
    came, went = (
        [
            content_frames(1, amqp.BasicDeliver("a", tag, tag % 2 == 0, exchange, key), properties, b"hello")
            for tag in (1, 2, 1 << 40)
        ]
        for exchange, key, properties in (
            ("x", "k", amqp.BasicProperties()),
            ("a.x", "other", amqp.BasicProperties(app_id="app")),
        )
    )
    down.flows.install(delivery_key(method_frame(1, amqp.BasicDeliver("a", 1, False, "x", "k"))), flow)
    seen = drive(scanner, down, b"".join(came))
    assert (seen.upcalls, seen.forwarded, flow.messages) == ([], b"".join(went), 3)


def test_who_gets_a_copy_is_told_what_became_of_it(scanner: ModuleType) -> None:
    up, flow = sampling(scanner, 2, stamps=2)
    chunk, found, made = bytearray(publish() * 2), list[captures.Captured](), bytearray()
    scanner.scan(up, chunk, 0, len(chunk), 1.0, [], found, made)
    _, _, header, _, sample = found[0]
    assert sample is not None
    assert flow.rewrite is not None
    passed = flow.rewrite.passed(header, sample[2])
    assert encode_frame(amqp.FRAME_HEADER, 1, passed) in made
    assert sample[2][16:].hex().encode() in passed
    for wrong in ((header[:-1], sample[2]), (b"", b"")):
        with pytest.raises(ValueError, match="no header"):
            flow.rewrite.passed(*wrong)
    with pytest.raises(ValueError):  # noqa: PT011
        rewriting(scanner).passed(header, sample[2])


@pytest.mark.parametrize("how", ["another share", "no room", "carries"])
def test_what_cannot_be_stamped_is_shown(scanner: ModuleType, how: str) -> None:
    up, flow = sampling(scanner, 1, stamps=2 if how == "another share" else 1)
    data = publish(properties=tracing("00")) if how == "carries" else publish()
    if how == "no room":
        up.out_frame_max = 60
    seen = drive(scanner, up, data, control={flow_key(): flow})
    assert seen.upcalls[0][0] is ScanResult.SHOWN
    assert seen.captured == []


def test_a_sample_tells_how_long_it_waited_for_a_limit(scanner: ModuleType) -> None:
    up, flow = sampling(scanner, 1)
    flow.message_buckets = (scanner.Bucket(10.0, 1.0),)
    assert drive(scanner, up, publish() * 2, now=100.0).upcalls == [(ScanResult.THROTTLED, b"")]
    *_, sample = drive(scanner, up, publish(), now=100.25).captured[0]
    assert sample is not None
    assert sample[3] == pytest.approx(0.25)


def test_acks_are_shown_once_they_are_asked_for(scanner: ModuleType) -> None:
    down = lane(scanner, Side.UPSTREAM)
    ack = method_frame(1, amqp.BasicAck(1, True))
    assert drive(scanner, down, ack).forwarded == ack
    down.channels.show_acks(1)
    assert drive(scanner, down, ack).upcalls == [(ScanResult.METHOD, ack)]
    other = method_frame(2, amqp.BasicNack(1))
    assert drive(scanner, down, other).forwarded == other
    down.channels.show_acks(1, False)
    assert drive(scanner, down, ack).forwarded == ack
    down.channels.show_acks(1)
    down.channels.close(1)
    down.channels.open(1)
    assert drive(scanner, down, ack).forwarded == ack


@pytest.mark.parametrize(
    "method", [amqp.BasicAck(1), amqp.BasicNack(1, True), amqp.BasicReject(1)], ids=lambda method: method.NAME
)
def test_what_a_client_says_to_deliveries_is_shown_while_it_is_asked_for(
    scanner: ModuleType, method: Method
) -> None:
    up = lane(scanner)
    down = scanner.Lane(Side.UPSTREAM, 4096, 4096, up.channels, None)
    settle = method_frame(1, method)
    confirm = method_frame(1, amqp.BasicAck(1))
    assert drive(scanner, up, settle).forwarded == settle
    up.channels.show_settles(1)
    assert drive(scanner, up, settle).upcalls == [(ScanResult.METHOD, settle)]
    other = method_frame(2, method)
    assert drive(scanner, up, other).forwarded == other
    assert drive(scanner, down, confirm).forwarded == confirm
    up.channels.show_acks(1)
    up.channels.show_settles(1, False)
    assert drive(scanner, up, settle).forwarded == settle
    assert drive(scanner, down, confirm).upcalls == [(ScanResult.METHOD, confirm)]


def test_the_rest_of_a_message_can_be_shown(scanner: ModuleType) -> None:
    down = lane(scanner, Side.UPSTREAM)
    data = content_frames(1, amqp.BasicDeliver("a", 1, False, "x", "k"), PROPERTIES, b"x" * 9000, 4096)
    half = data.index(b"\x03\x00\x01")
    assert drive(scanner, down, data[:half]).forwarded == data[:half]
    down.channels.show_rest(Side.UPSTREAM, 1)
    assert [result for result, _ in drive(scanner, down, data[half:]).upcalls] == [ScanResult.BODY] * 3
    assert drive(scanner, down, data).forwarded == data


def test_a_dropped_flow_is_swallowed_whole_and_counted_apart(scanner: ModuleType) -> None:
    flow = scanner.Flow(drop=True)
    up = lane(scanner, flows=True, out=1000)
    assert up.flows is not None
    up.flows.install(flow_key(), flow)
    up.flows.install(flow_key("good"), scanner.Flow())
    good = publish(key="good")
    data = publish(body=b"b" * 9000) + good + publish(body=b"") + good
    assert drive(scanner, up, data).forwarded == good + good
    assert (flow.messages, flow.body_bytes, up.messages) == (2, 9000, 2)


def test_an_empty_bucket_stops_before_the_publish_and_says_when(scanner: ModuleType) -> None:
    bucket = scanner.Bucket(10.0, 2.0)
    flow = scanner.Flow((bucket,))
    up = lane(scanner, flows=True)
    assert up.flows is not None
    up.flows.install(flow_key(), flow)
    data = publish() * 5
    seen = drive(scanner, up, data, now=100.0)
    assert seen.forwarded == publish() * 2
    assert seen.upcalls == [(ScanResult.THROTTLED, b"")]
    assert seen.rest == publish() * 3
    assert up.ready_at == pytest.approx(100.1)
    assert drive(scanner, up, publish(), now=99.0).upcalls == [(ScanResult.THROTTLED, b"")]
    assert up.held_since == 100.0
    assert drive(scanner, up, publish(), now=100.15).forwarded == publish()
    assert up.held_since == 0
    assert drive(scanner, up, publish() * 2, now=100.15).upcalls == [(ScanResult.THROTTLED, b"")]
    assert up.held_since == 100.15


def test_a_large_body_takes_a_byte_bucket_below_zero_once(scanner: ModuleType) -> None:
    bucket = scanner.Bucket(1000.0, 500.0)
    up = lane(scanner, flows=True)
    assert up.flows is not None
    up.flows.install(flow_key(), scanner.Flow((), (bucket,)))
    data = publish(body=b"x" * 3000)
    seen = drive(scanner, up, data + data, now=10.0)
    assert seen.forwarded == data
    assert up.ready_at == pytest.approx(12.5, abs=0.01)


def test_deliveries_are_told_apart_by_channel_consumer_exchange_and_key(scanner: ModuleType) -> None:
    def deliver(tag: str, number: int, key: str = "k", channel: int = 1) -> bytes:
        method = amqp.BasicDeliver(tag, number, number % 2 == 0, "x", key)
        return content_frames(channel, method, PROPERTIES, b"12345", 4096)

    down = lane(scanner, Side.UPSTREAM, flows=True)
    flow = scanner.Flow()
    key = delivery_key(method_frame(1, amqp.BasicDeliver("a", 1, False, "x", "k")))
    control = {key: flow}
    data = deliver("a", 1) + deliver("a", 2) + deliver("a", 3)
    seen = drive(scanner, down, data, control=control)
    assert [result for result, _ in seen.upcalls] == [ScanResult.MISS]
    assert (flow.messages, flow.body_bytes) == (3, 15)
    for other in (deliver("b", 4), deliver("a", 4, "j"), deliver("a", 4, channel=2)):
        seen = drive(scanner, down, data + other, control=control)
        assert [result for result, _ in seen.upcalls] == [ScanResult.MISS]
        down.channels.open(1)
        down.channels.open(2)
    cut = encode_frame(1, 1, amqp.BasicDeliver("a", 1, False, "x", "k").encode()[:-1])
    assert drive(scanner, lane(scanner, Side.UPSTREAM), cut).upcalls == [(ScanResult.MALFORMED, b"")]


def test_channel_numbers_are_rewritten_in_place(scanner: ModuleType) -> None:
    up = lane(scanner, channels=())
    up.channels.open(1, 300)
    up.channels.open(2, 2)
    data = publish(1, body=b"b" * 5000) + publish(2)
    assert drive(scanner, up, data).forwarded == publish(300, body=b"b" * 5000) + publish(2)


def test_channels_open_close_and_open_again(scanner: ModuleType) -> None:
    numbers = random.Random(5).sample(range(200, 65536), 500)
    table = scanner.Channels()
    for number in numbers:
        table.open(number)
    assert len(table) == 500
    for number in numbers[::2]:
        table.close(number)
        table.close(number)
    assert len(table) == 250
    assert [table.state(number) for number in numbers[:4]] == [0, 1, 0, 1]
    for number in range(1, 200):
        table.open(number)
        table.close(number)
    assert [table.state(number) for number in numbers[1::2]] == [1] * 250
    with pytest.raises(KeyError):
        table.discard(numbers[0])


def test_heartbeats_are_not_forwarded(scanner: ModuleType) -> None:
    up = lane(scanner)
    data = publish()
    assert drive(scanner, up, (HEARTBEAT + data) * 40) == Seen(forwarded=data * 40)


def test_what_a_refused_channel_sends_is_dropped_but_for_its_closes(scanner: ModuleType) -> None:
    up = lane(scanner, channels=(2,), discarded=(1,))
    close = method_frame(1, amqp.ChannelClose())
    close_ok = method_frame(1, amqp.ChannelCloseOk())
    other = publish(channel=2)
    stray = encode_frame(3, 1, b"tail of a refused body")
    seen = drive(scanner, up, stray + publish(channel=1) + other + close + publish(channel=1) + close_ok)
    assert seen == Seen(forwarded=other, upcalls=[(ScanResult.METHOD, close), (ScanResult.METHOD, close_ok)])


def test_a_body_frame_too_large_for_the_other_hop_is_handed_over_and_cut(scanner: ModuleType) -> None:
    down = lane(scanner, Side.UPSTREAM, frame_max=131072, out=4096)
    body = bytes(range(256)) * 40
    deliver = amqp.BasicDeliver(consumer_tag="c")
    seen = drive(scanner, down, content_frames(1, deliver, PROPERTIES, body, 131072))
    assert [result for result, _ in seen.upcalls] == [ScanResult.REFRAME]
    pieces = framing.reframe(seen.upcalls[0][1], 4096)
    assert seen.forwarded + pieces == content_frames(1, deliver, PROPERTIES, body, 4096)
    assert down.channels.due(Side.UPSTREAM, 1) == 0


BODY = encode_frame(3, 1, b"12345")
HEADER = encode_frame(2, 1, encode_header(ContentHeader(60, 5, PROPERTIES)))
PUBLISH = method_frame(1, amqp.BasicPublish())
VIOLATIONS = {
    "type": (encode_frame(9, 1, b""), ScanResult.BAD_TYPE),
    "type_4": (encode_frame(4, 1, b""), ScanResult.BAD_TYPE),
    "size": (b"\x01\x00\x01\x00\x00\x10\x01", ScanResult.TOO_LARGE),
    "huge": (b"\x03\x00\x01\xff\xff\xff\xff", ScanResult.TOO_LARGE),
    "end": (PUBLISH[:-1] + b"\x00", ScanResult.BAD_END),
    "closed": (encode_frame(2, 3, b"\0" * 14), ScanResult.NOT_OPEN),
    "empty_method": (encode_frame(1, 1, b""), ScanResult.MALFORMED),
    "empty_method_closed": (encode_frame(1, 7, b""), ScanResult.MALFORMED),
    "short_publish": (encode_frame(1, 1, amqp.BasicPublish().encode()[:-1]), ScanResult.MALFORMED),
    "long_publish": (encode_frame(1, 1, amqp.BasicPublish().encode() + b"\0"), ScanResult.MALFORMED),
    "lying_exchange": (encode_frame(1, 1, b"\0\x3c\0\x28\0\0\xff\0\0"), ScanResult.MALFORMED),
    "lying_key": (encode_frame(1, 1, b"\0\x3c\0\x28\0\0\0\xff\0"), ScanResult.MALFORMED),
    "ticket_only": (encode_frame(1, 1, b"\0\x3c\0\x28\0\0"), ScanResult.MALFORMED),
    "no_arguments": (encode_frame(1, 1, b"\0\x3c\0\x28"), ScanResult.MALFORMED),
    "header_unasked": (HEADER, ScanResult.HEADER_UNASKED),
    "body_unasked": (BODY, ScanResult.BODY_UNASKED),
    "method_for_header": (PUBLISH + PUBLISH, ScanResult.HEADER_DUE),
    "body_for_header": (PUBLISH + BODY, ScanResult.HEADER_DUE),
    "header_for_body": (PUBLISH + HEADER + HEADER, ScanResult.BODY_DUE),
    "method_for_body": (PUBLISH + HEADER + PUBLISH, ScanResult.BODY_DUE),
    "class": (PUBLISH + encode_frame(2, 1, b"\0\x32" + b"\0" * 12), ScanResult.CLASS_DIFFERS),
    "short_header": (PUBLISH + encode_frame(2, 1, b"\0\x3c" + b"\0" * 10), ScanResult.MALFORMED),
    "overrun": (PUBLISH + HEADER + encode_frame(3, 1, b"123456"), ScanResult.BODY_OVERRUN),
    "heartbeat_channel": (encode_frame(8, 1, b""), ScanResult.BAD_HEARTBEAT),
    "heartbeat_payload": (encode_frame(8, 0, b"x"), ScanResult.BAD_HEARTBEAT),
    "header_on_channel_0": (encode_frame(2, 0, b"\0" * 14), ScanResult.HEADER_UNASKED),
    "body_on_channel_0": (encode_frame(3, 0, b"\0" * 14), ScanResult.BODY_UNASKED),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_violations_stop_the_scan_whatever_the_split(scanner: ModuleType, name: str) -> None:
    data, result = VIOLATIONS[name]
    whole = drive(scanner, lane(scanner), data)
    assert whole.upcalls[-1][0] is result
    bytewise = drive(scanner, lane(scanner), data, list(range(len(data))))
    assert bytewise.upcalls[-1][0] is result
    assert bytewise.forwarded == whole.forwarded


def test_a_header_too_large_for_the_other_hop_is_a_violation_upward_only(scanner: ModuleType) -> None:
    big = amqp.BasicProperties(message_id="m" * 200, correlation_id="c" * 200)
    up = lane(scanner, frame_max=8192, out=300)
    seen = drive(scanner, up, content_frames(1, amqp.BasicPublish(), big, b"", 8192))
    assert seen.upcalls == [(ScanResult.UNSPLITTABLE, b"")]
    down = lane(scanner, Side.UPSTREAM, frame_max=8192, out=300)
    data = content_frames(1, amqp.BasicDeliver(), big, b"", 8192)
    assert drive(scanner, down, data).forwarded == data


def run(side: Side, channel: int, key: str, bodies: list[bytes]) -> bytes:
    """Messages that differ in nothing but their bodies, and their delivery tags."""
    if side is Side.CLIENT:
        return b"".join(publish(channel, key, body) for body in bodies)
    return b"".join(
        content_frames(channel, amqp.BasicDeliver("a", tag, tag % 3 == 0, "x", key), PROPERTIES, body, 4096)
        for tag, body in enumerate(bodies)
    )


frames = st.one_of(
    st.builds(
        run,
        st.sampled_from(Side),
        channel=st.integers(1, 2),
        key=st.sampled_from(["a", "b", "aa", "ab", "ba", "bb", "aaa", "c", "bc", "ca", "da", "ac"]),
        bodies=st.lists(st.binary(max_size=50), min_size=2, max_size=6),
    ),
    st.builds(
        publish,
        channel=st.integers(1, 3),
        key=st.text("abcd", max_size=2) | st.just("aab"),
        body=st.binary(max_size=40),
        properties=st.sampled_from(
            [PROPERTIES, WITH_CC, WITH_OTHER, WITH_REPLY_TO, mode(0), mode(1), tracing("00"), tracing("01")]
        ),
    ),
    st.just(HEARTBEAT),
    st.just(method_frame(1, amqp.BasicAck(delivery_tag=3))),
    st.just(method_frame(2, amqp.BasicAck(delivery_tag=3))),
    st.just(method_frame(2, amqp.BasicReject(delivery_tag=3))),
    st.just(method_frame(2, amqp.QueueDeclare(queue="q"))),
    st.just(method_frame(4, amqp.ChannelOpen())),
    st.just(method_frame(3, amqp.ChannelCloseOk())),
    st.builds(
        lambda tag, key, body: content_frames(
            2, amqp.BasicDeliver(tag, 7, True, "x", key), PROPERTIES, body, 4096
        ),
        st.text("ab", max_size=1),
        st.text("ab", max_size=2),
        st.binary(max_size=40),
    ),
    st.binary(min_size=1, max_size=30),
    st.builds(encode_frame, st.integers(0, 9), st.integers(0, 4), st.binary(max_size=30)),
)
streams = st.lists(frames, max_size=10).map(b"".join)


def rewriting(module: ModuleType, entries: bytes = b"", side: Side = Side.CLIENT) -> reference.Rewrite:
    """Another exchange; an app-id, and no content-type. Of a publish, or of a delivery."""
    sets = [None] * 14
    sets[12] = b"\3app"
    method = amqp.BasicPublish(exchange="a.x", routing_key="other").encode()
    if side is Side.UPSTREAM:
        method = amqp.BasicDeliver("a", 0, False, "a.x", "other").encode()
    made: reference.Rewrite = module.Rewrite(method, tuple(sets), 1 << 15, entries)
    return made


def scene(
    module: ModuleType, side: Side, with_flows: bool
) -> tuple[reference.Lane, dict[bytes, reference.Flow], list[reference.Meter]]:
    """A lane with every kind of flow behind it, the same for each module; and the book of their meters."""
    made = lane(module, side, flows=with_flows, discarded=(3,), out=40)
    made.channels.open(2, 77)
    bucket = module.Bucket(1.0, 3.0)
    book: list[reference.Meter] = []
    shared = module.Meter("some", book)
    kinds = [
        module.Flow(),
        module.Flow(drop=True),
        module.Flow((), (), 2, Show.HEADER),
        module.Flow((bucket,), (module.Bucket(50.0, 100.0),)),
        module.Flow((bucket,), (), 1, Show.METHOD),
        module.Flow(show=Show.HEADER, peek_flags=1 << 9, peek_headers=(b"CC",), peek_body=30),
        module.Flow(show=Show.HEADER, peek_mode_0=True),
        module.Flow((), (), 3, Show.HEADER, peek_headers=(b"CC",)),
        module.Flow(show=Show.HEADER, header_rules=asking(module), peek_flags=1 << 9),
        module.Flow(show=Show.HEADER, header_rules=asking(module)),
        module.Flow(show=Show.HEADER, peek_contexts=1, sample_every=2),
        module.Flow(show=Show.HEADER, peek_contexts=2, header_rules=asking(module)),
        module.Flow(),
        module.Flow((bucket,), (), 2, Show.BODY, peek_flags=1 << 9),
        module.Flow(),
        module.Flow((), (), 3, Show.HEADER, peek_flags=1 << 9),
        module.Flow(),
        module.Flow(peek_flags=1 << 9),
        module.Flow(),
    ]
    for number, every in ((16, 2), (17, 3), (18, 2)):
        kinds[number].capture_samples("it", number, 5)
        kinds[number].sample_every = every
    kinds[14].rewrite_by(rewriting(module, side=side))
    kinds[15].rewrite_by(rewriting(module, b"\3new" + b"t\1", side))
    kinds[18].rewrite_by(rewriting(module, side=side))
    kinds[15].capture("it", 15, 5)
    for number, size in ((9, 3), (12, 20), (13, 0), (17, 2)):
        kinds[number].capture("it", number, size)
    for flow in (*kinds[:4], kinds[9]):
        flow.meter = shared if flow.drop or flow.sample_every else module.Meter("one", book)
    keys = ["a", "b", "aa", "ab", "ba", "bb", "aaa", "c", "aab", "d", "dd", "cd", "bc", "ca", "da", "ac"]
    keys += ["cc", "db", "bd"]
    made.channels.show_settles(2)
    if side is Side.UPSTREAM:
        made.channels.show_acks(2)
    if side is Side.CLIENT:
        return made, {flow_key(key): flow for key, flow in zip(keys, kinds, strict=True)}, book
    deliveries = [delivery_key(method_frame(1, amqp.BasicDeliver("a", 1, False, "x", key))) for key in keys]
    return made, dict(zip(deliveries, kinds, strict=True)), book


def outcome(
    module: ModuleType, side: Side, with_flows: bool, data: bytes, cuts: list[int]
) -> tuple[object, ...]:
    made, control, book = scene(module, side, with_flows)
    seen = drive(module, made, data, cuts, control=control)
    return (
        seen,
        made.messages,
        made.body_bytes,
        made.frames,
        made.ready_at,
        made.held_since,
        [made.channels.due(made.side, n) for n in range(5)],
        [made.channels.messages(made.side, n) for n in range(1, 4) if made.channels.state(n)],
        [(flow.messages, flow.body_bytes) for flow in control.values()],
        [(meter.row, meter.read()) for meter in book],
        [bucket.tokens for flow in control.values() for bucket in flow.message_buckets + flow.byte_buckets],
    )


@given(streams, st.data(), st.booleans(), st.sampled_from(Side))
def test_any_split_gives_the_same(data: bytes, more: st.DataObject, with_flows: bool, side: Side) -> None:
    cuts = more.draw(st.lists(st.integers(0, len(data)), max_size=10))
    for module in IMPLEMENTATIONS:
        assert outcome(module, side, with_flows, data, cuts) == outcome(module, side, with_flows, data, [])


@pytest.mark.skipif(compiled is None, reason="the compiled scanner was not built (no C compiler)")
@given(streams, st.data(), st.booleans(), st.sampled_from(Side))
def test_both_scanners_agree(data: bytes, more: st.DataObject, with_flows: bool, side: Side) -> None:
    cuts = more.draw(st.lists(st.integers(0, len(data)), max_size=10))
    assert outcome(reference, side, with_flows, data, cuts) == outcome(compiled, side, with_flows, data, cuts)


LONG = "long" * 12


def neighbours(
    module: ModuleType, burst: float
) -> tuple[reference.Lane, dict[bytes, reference.Flow], list[reference.Meter]]:
    """A lane that knows all its flows, many of them under the same limits; and the book of their meters."""
    made = lane(module, flows=True, out=52)
    made.channels.open(2, 77)
    book: list[reference.Meter] = []
    messages, byte_count = (module.Bucket(1.0, burst),), (module.Bucket(1.0, 4 * burst),)
    flows = {
        "a": module.Flow(messages, byte_count),
        "bb": module.Flow(messages, byte_count),
        "a longer key": module.Flow(messages, byte_count, peek_headers=(b"CC",)),
        "a loNGer key": module.Flow(messages, byte_count),
        LONG: module.Flow(messages, byte_count),
        "slower": module.Flow((module.Bucket(1.0, 5.0),), byte_count),
        "smaller": module.Flow(messages, (module.Bucket(1.0, 9.0),)),
        "sampled": module.Flow(messages, byte_count, 1, Show.METHOD),
        "dropped": module.Flow(messages, byte_count, drop=True),
        "captured": module.Flow(messages, byte_count),
        "captured shut": module.Flow(messages, byte_count),
        "rewritten": module.Flow(messages, byte_count),
        "samples": module.Flow(messages, byte_count),
        "stamped": module.Flow(messages, byte_count, peek_contexts=1),
        "stamped others": module.Flow(messages, byte_count),
    }
    flows["rewritten"].rewrite_by(rewriting(module))
    for key, every in (("samples", 2), ("stamped", 2), ("stamped others", 1)):
        flows[key].capture_samples("it", key, 3)
        if key != "samples":
            flows[key].rewrite_by(stamping(module, 2))
            flows[key].capture_contexts()
        flows[key].sample_every = every
    gate = module.CaptureGate()
    if burst < 10:
        gate.shut()
    flows["bb"].capture("it", "bb", 3)
    flows["captured"].capture("it", "captured", 2)
    flows["captured shut"].capture("it", "captured shut", 2, gate)
    for key in ("a", "bb", "a loNGer key", "slower", "dropped"):
        flows[key].meter = module.Meter(key, book)
    control = {flow_key(key): flow for key, flow in flows.items()}
    for each, flow in control.items():
        made.flows.install(each, flow)
    return made, control, book


def spoilt(frame: bytes, how: str) -> bytes:
    """A publish whose method frame ends wrongly, or has a string too long or another channel; or as it is."""
    size = 8 + int.from_bytes(frame[3:7], "big")
    method = bytearray(frame[:size])
    if how == "end":
        method[-1] = 0
    elif how == "string":
        method[13] += 1
    elif how == "other":
        method[2] = 3 - method[2]
    return bytes(method) + frame[size:]


publishes = st.lists(
    st.builds(
        spoilt,
        st.builds(
            publish,
            channel=st.sampled_from([1, 1, 1, 2]),
            key=st.sampled_from(
                ["a", "bb", "a longer key", "a loNGer key"] * 3
                + [
                    LONG,
                    "slower",
                    "smaller",
                    "sampled",
                    "dropped",
                    "new",
                    "captured",
                    "captured",
                    "captured shut",
                    "rewritten",
                    "rewritten",
                    "samples",
                    "samples",
                    "stamped",
                    "stamped",
                    "stamped others",
                ]
            ),
            body=st.binary(max_size=4),
            properties=st.sampled_from(
                [PROPERTIES] * 3 + [WITH_CC, WITH_OTHER, tracing("00"), tracing("01")]
            ),
        ),
        st.sampled_from(["", "end", "string", "other"]).flatmap(
            lambda how: st.sampled_from([""] * 9 + [how])
        ),
    ),
    min_size=2,
    max_size=30,
).map(b"".join)


def neighbourly(module: ModuleType, burst: float, data: bytes, cuts: list[int]) -> tuple[object, ...]:
    made, control, book = neighbours(module, burst)
    seen = drive(module, made, data, cuts, control=control)
    return (
        seen,
        (made.messages, made.body_bytes, made.frames, made.ready_at, made.held_since),
        [made.channels.due(made.side, n) for n in (1, 2)],
        [made.channels.messages(made.side, n) for n in (1, 2)],
        [(flow.messages, flow.body_bytes) for flow in control.values()],
        [(meter.row, meter.read()) for meter in book],
        [bucket.tokens for flow in control.values() for bucket in flow.message_buckets + flow.byte_buckets],
    )


@pytest.mark.skipif(compiled is None, reason="the compiled scanner was not built (no C compiler)")
@settings(max_examples=1000)
@given(publishes, st.sampled_from([6.0, 1e6]), st.data())
def test_both_scanners_agree_on_publishes_to_many_keys(
    data: bytes, burst: float, more: st.DataObject
) -> None:
    """The compiled one deals with those under the same limits without starting anew for each."""
    data = data[: more.draw(st.integers(1, len(data)) | st.just(len(data)))]
    cuts = more.draw(st.lists(st.integers(0, len(data)), max_size=4))
    assert neighbourly(compiled, burst, data, cuts) == neighbourly(reference, burst, data, cuts)


@pytest.mark.skipif(compiled is None, reason="the compiled scanner was not built (no C compiler)")
def test_the_compiled_scanner_has_the_numbers_of_the_tables() -> None:
    numbers = compiled.numbers()
    assert numbers["UP"] == tables.UP_ACTIONS
    assert numbers["DOWN"] == tables.DOWN_ACTIONS
    assert numbers["CLOSES"] == {amqp.ChannelClose.INDEX, amqp.ChannelCloseOk.INDEX}
    assert numbers["SCAN_RESULTS"] == {result.name: result.value for result in ScanResult}
    for name in ("OPEN", "DISCARD", "HEADER_NEXT", "FLOWS", "FLOW_KEY_BYTES", "PEEKED_HEADER"):
        assert numbers[name] == getattr(tables, name)
    for name in ("CAPTURED_MESSAGES", "CAPTURED_BYTES"):
        assert numbers[name] == getattr(tables, name)
    assert (numbers["CLASS_BASIC"], numbers["FRAME_END"]) == (amqp.BasicPublish.CLASS_ID, amqp.FRAME_END)


def test_messages_got_and_returned_are_shown_where_the_control_plane_asks_for_it(scanner: ModuleType) -> None:
    down = lane(scanner, Side.UPSTREAM)
    methods = (amqp.BasicGetOk(1, False, "x", "k", 0), amqp.BasicReturn(312, "NO_ROUTE", "x", "k"))
    content = b"".join(content_frames(1, method, PROPERTIES, b"body", 4096) for method in methods)
    assert drive(scanner, down, content) == Seen(forwarded=content)
    down.shows_content = True
    empty, ack = method_frame(1, amqp.BasicGetEmpty()), method_frame(1, amqp.BasicAck(1))
    chunk = bytearray(ack + empty + content)
    spans: list[tuple[int, int]] = []
    at, result, stop = scanner.scan(down, chunk, 0, len(chunk), 1.0, spans)
    assert (result, chunk[at:stop], spans) == (ScanResult.METHOD, empty, [(0, len(ack))])
    spans.clear()
    at, result, stop = scanner.scan(down, chunk, stop, len(chunk), 1.0, spans)
    assert (result, spans) == (ScanResult.METHOD, [])
    assert chunk[at:stop] == method_frame(1, methods[0])
    # The control plane lets it pass: its content follows.
    down.channels.expect_header(Side.UPSTREAM, 1, None, Show.HEADER)
    at, result, stop = scanner.scan(down, chunk, stop, len(chunk), 1.0, spans)
    assert result is ScanResult.HEADER
    at, result, stop = scanner.scan(down, chunk, stop, len(chunk), 1.0, spans)
    assert result is ScanResult.METHOD
    assert chunk[at:stop] == method_frame(1, methods[1])


def test_nacks_are_shown_where_the_control_plane_asks_for_it(scanner: ModuleType) -> None:
    up = lane(scanner)
    ack, nack = method_frame(1, amqp.BasicAck(1)), method_frame(1, amqp.BasicNack(2))
    assert drive(scanner, up, ack + nack) == Seen(forwarded=ack + nack)
    up.shows_nacks = True
    chunk = bytearray(ack + nack)
    spans: list[tuple[int, int]] = []
    at, result, stop = scanner.scan(up, chunk, 0, len(chunk), 1.0, spans)
    assert (result, spans) == (ScanResult.METHOD, [(0, len(ack))])
    assert chunk[at:stop] == nack


def test_whether_the_message_under_way_is_dropped(scanner: ModuleType) -> None:
    it = lane(scanner)
    assert not it.channels.is_dropping(Side.CLIENT, 1)
    method = method_frame(1, amqp.BasicPublish(exchange="x", routing_key="k"))
    content = publish(body=b"12345")[len(method) :]
    it.channels.drop_next(Side.CLIENT, 1)
    for cut in (len(content) - 13, len(content)):
        assert it.channels.is_dropping(Side.CLIENT, 1)
        assert not it.channels.is_dropping(Side.CLIENT, 2)
        data, content = content[:cut], content[cut:]
        drive(scanner, it, data)
    assert not it.channels.is_dropping(Side.CLIENT, 1)
    drive(scanner, it, publish(body=b"12345")[:-13])
    assert not it.channels.is_dropping(Side.CLIENT, 1)
