"""What the data path makes of messages is what the transform makes of them; in both engines."""

from __future__ import annotations

from types import ModuleType

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.datapath import reference
from amqpgate.datapath.scanner import flow_key
from amqpgate.datapath.tables import ScanResult, Show, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session.publish_rewrite import delivery_rewrite, publish_rewrite
from amqpgate.gateway.session.transform import header_up, message_down, publish_up
from amqpgate.policy import Peek, Transform
from amqpgate.policy.engine.naming import Naming, NotTransformedError, Renaming
from amqpgate.policy.engine.subjects import NamePattern
from amqpgate.policy.kinds.transform_set import ContentChange
from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, decode_header, decode_method, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from tests.support.frames import content_frames

from .test_transform import HEADERS, NAME

try:
    from amqpgate.datapath import _scan as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]

ENGINES = [reference] if compiled is None else [reference, compiled]
NAMES = Naming(Renaming("exchange", "a."), Renaming("queue", "a."))
EXCHANGES = Naming(Renaming("exchange", "a."))
#: Properties by name, and what they may be set to.
VALUES: dict[str, st.SearchStrategy[str | int]] = {
    **dict.fromkeys(
        ("content_type", "reply_to", "type", "user_id", "app_id"), st.sampled_from(["", "bob", "x"])
    ),
    "expiration": st.sampled_from(["", "7", "500", "+60", "soon"]),
    "delivery_mode": st.integers(0, 255),
    "timestamp": st.integers(0, 1 << 40),
}
CHANGES = st.builds(
    ContentChange,
    validates_user=st.booleans(),
    strip_properties=st.frozensets(st.sampled_from([*VALUES, "headers"]), max_size=2),
    set_properties=st.fixed_dictionaries({}, optional=VALUES),
    strip_headers=st.lists(
        st.builds(NamePattern, st.sampled_from(["CC", "h", "x-"]), is_prefix=st.booleans()), max_size=1
    ).map(tuple),
    set_headers=st.dictionaries(
        st.sampled_from(["h", "tenant", "x-first-death-queue"]),
        st.sampled_from(["acme", 1, 1 << 40, True]),
        max_size=2,
    ),
    max_body=st.none() | st.just(3),
    max_ttl=st.none() | st.just(60),
)
PROPERTIES = st.builds(
    amqp.BasicProperties,
    headers=st.none() | HEADERS | st.just(Table.of({"h": 1})),
    **{name: st.none() | values for name, values in VALUES.items()},
)


def passed(
    module: ModuleType, transform: Transform, method: amqp.BasicPublish, payload: bytes, body: bytes, to: int
) -> bytes | None:
    """What the data path sends of such a message; None: it shows it."""
    found = publish_rewrite(transform, method)
    peek, rewrite = found or (Peek(always=True), None)
    channels = module.Channels()
    channels.open(1, to)
    lane = module.Lane(Side.CLIENT, 131072, 131072, channels, module.FlowTable())
    flow = module.Flow(
        sample_every=int(peek.always),
        show=Show.HEADER,
        peek_flags=peek.flags,
        peek_headers=tuple(name.encode() for name in peek.headers),
        peek_body=-1 if peek.max_body is None else peek.max_body,
    )
    made_by = None
    if rewrite is not None:
        made_by = module.Rewrite(rewrite.method, rewrite.sets, rewrite.drops, rewrite.entries)
        flow.rewrite_by(made_by)
    frame = method_frame(1, method)
    lane.flows.install(flow_key(Side.CLIENT, frame), flow)
    data = bytearray(frame + encode_frame(amqp.FRAME_HEADER, 1, payload))
    if body:
        data += encode_frame(amqp.FRAME_BODY, 1, body)
    spans: list[tuple[int, int]] = []
    made = bytearray()
    at, result, _ = module.scan(lane, data, 0, len(data), 1.0, spans, [], made)
    if result is ScanResult.SHOWN:
        assert at == 0
        assert not made
        return None
    assert (at, result, spans) == (len(data), ScanResult.MORE, [])
    assert flow.messages == 1
    # Who gets a copy of what came is told what became of it.
    assert made_by is not None
    assert encode_frame(amqp.FRAME_HEADER, to, made_by.passed(payload, b"")) in made
    return bytes(made)


@given(
    st.builds(Transform, st.just("bob"), st.sampled_from([None, NAMES]), st.just(()), CHANGES),
    st.builds(amqp.BasicPublish, exchange=NAME, routing_key=NAME, mandatory=st.booleans()),
    PROPERTIES,
    st.binary(max_size=5),
    st.none() | st.tuples(st.integers(2, 60), st.integers(0, 255)),
)
def test_it_is_what_the_transform_says(
    transform: Transform,
    method: amqp.BasicPublish,
    properties: amqp.BasicProperties,
    body: bytes,
    damage: tuple[int, int] | None,
) -> None:
    payload = bytearray(encode_header(ContentHeader(60, len(body), properties)))
    if damage is not None and not 4 <= damage[0] < 12 and damage[0] < len(payload):
        payload[damage[0]] = damage[1]
    try:
        said = [passed(module, transform, method, bytes(payload), body, 9) for module in ENGINES]
    except NotTransformedError:
        with pytest.raises(NotTransformedError):
            publish_up(transform, method)
        return
    assert len(set(said)) == 1
    if said[0] is None:
        return
    try:
        header = decode_header(payload)
    except ProtocolViolation:
        pytest.fail("the broker gets what the gateway would have ended the connection for")
    content = encode_header(header_up(transform, method, header))
    up = method_frame(9, publish_up(transform, method)) + encode_frame(amqp.FRAME_HEADER, 9, content)
    if body:
        up += encode_frame(amqp.FRAME_BODY, 9, body)
    frames = said[0][: 8 + int.from_bytes(said[0][3:7], "big")]
    assert decode_method(frames[7:-1]) == publish_up(transform, method)
    # Tables may be encoded in more ways than one: ours is what came.
    assert decoded(said[0]) == decoded(up)


def decoded(data: bytes) -> list[object]:
    """Frames, the header as what it says."""
    found: list[object] = []
    while data:
        end = 8 + int.from_bytes(data[3:7], "big")
        what = decode_header(data[7 : end - 1]) if data[0] == amqp.FRAME_HEADER else data[7 : end - 1]
        found.append((data[0], data[1:3], what))
        data = data[end:]
    return found


@pytest.mark.parametrize("module", ENGINES, ids=lambda module: module.__name__.rpartition(".")[2])
@pytest.mark.parametrize(
    "content",
    [
        ContentChange(),
        ContentChange(set_properties={"app_id": "ours", "delivery_mode": 2}),
        ContentChange(set_headers={"tenant": "acme"}),
        ContentChange(set_headers={"tenant": "acme"}, strip_properties=frozenset({"type"}), max_ttl=5),
    ],
    ids=["names", "properties", "a header", "more"],
)
def test_nothing_is_shown_for_what_the_data_path_can_change(
    module: ModuleType, content: ContentChange
) -> None:
    transform = Transform("bob", NAMES, (), content)
    method = amqp.BasicPublish(exchange="x", routing_key="k")
    for properties in (
        amqp.BasicProperties(),
        amqp.BasicProperties(type="t", app_id="theirs", headers=Table.of({"order": 1, "s": "text"})),
    ):
        payload = encode_header(ContentHeader(60, 2, properties))
        data = passed(module, transform, method, payload, b"12", 1)
        assert data is not None
        assert b"a.x" in data


def test_where_not_each_message_changes_they_are_shown_by_their_headers() -> None:
    for content in (ContentChange(), ContentChange(validates_user=True), ContentChange(max_body=3)):
        transform = Transform("bob", None, (), content)
        assert publish_rewrite(transform, amqp.BasicPublish(exchange="x", routing_key="k")) is None
    both = ContentChange(set_headers={"h": 1}, strip_properties=frozenset({"headers"}))
    assert publish_rewrite(attrs.evolve(transform, content=both), amqp.BasicPublish()) is None


# -- deliveries ----------------------------------------------------------------------------------------------

#: As the broker has them.
THERE = st.sampled_from(["", "x", "a.x", "a.", "a.a.x", "amq.topic", "amq.gen-1", "q" * 255])


def delivered(
    module: ModuleType, transform: Transform, method: amqp.BasicDeliver, data: bytes, cuts: tuple[int, ...]
) -> bytes | None:
    """What the data path sends of deliveries of one flow, which come in pieces; None: it shows one."""
    rewrite, peek = delivery_rewrite(transform, method), transform.peek_delivered
    channels = module.Channels()
    channels.open(1, 1)
    lane = module.Lane(Side.UPSTREAM, 131072, 131072, channels, module.FlowTable())
    flow = module.Flow(
        show=Show.HEADER,
        peek_flags=peek.flags,
        peek_headers=tuple(name.encode() for name in peek.headers),
    )
    if rewrite is not None:
        flow.rewrite_by(module.Rewrite(rewrite.method, rewrite.sets, rewrite.drops, rewrite.entries))
    lane.flows.install(flow_key(Side.UPSTREAM, method_frame(1, method)), flow)
    came, at = bytearray(data), 0
    went = bytearray()
    for end in (*sorted(cuts), len(data)):
        spans: list[tuple[int, int]] = []
        made = bytearray()
        at, result, _ = module.scan(lane, came, at, max(at, min(end, len(data))), 1.0, spans, [], made)
        went += made or b"".join(came[first:last] for first, last in spans)
        if result is ScanResult.SHOWN:
            return None
        assert result is ScanResult.MORE
    assert at == len(data)
    return bytes(went)


DELIVERIES = st.builds(
    amqp.BasicDeliver,
    st.sampled_from(["", "c", "amq.ctag-1", "t" * 255]),
    exchange=THERE,
    routing_key=THERE,
)
#: Tag, whether it is redelivered, and body.
MESSAGES = st.lists(
    st.tuples(st.integers(0, (1 << 64) - 1), st.booleans(), st.binary(max_size=9)), min_size=1, max_size=3
)


@given(
    st.builds(Transform, st.just("bob"), st.sampled_from([None, NAMES, EXCHANGES])),
    DELIVERIES,
    MESSAGES,
    PROPERTIES,
    st.lists(st.integers(0, 900), max_size=3).map(tuple),
)
def test_a_delivery_is_what_the_transform_says(
    transform: Transform,
    method: amqp.BasicDeliver,
    messages: list[tuple[int, bool, bytes]],
    properties: amqp.BasicProperties,
    cuts: tuple[int, ...],
) -> None:
    """Each with its own tag, whether it is redelivered, and its body in several frames, or in none."""
    came, wanted = b"", b""
    for tag, redelivered, body in messages:
        sent = attrs.evolve(method, delivery_tag=tag, redelivered=redelivered)
        header = ContentHeader(60, len(body), properties)
        bodies = b"".join(
            encode_frame(amqp.FRAME_BODY, 1, body[at : at + 4]) for at in range(0, len(body), 4)
        )
        came += method_frame(1, sent) + encode_frame(amqp.FRAME_HEADER, 1, encode_header(header)) + bodies
        down, content = message_down(transform, sent, header)
        wanted += method_frame(1, down) + encode_frame(amqp.FRAME_HEADER, 1, encode_header(content)) + bodies
    said = [delivered(module, transform, method, came, cuts) for module in ENGINES]
    assert len(set(said)) == 1
    if said[0] is not None:
        assert decoded(said[0]) == decoded(wanted)


@pytest.mark.parametrize("module", ENGINES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_a_delivery_is_not_shown_but_for_names_in_its_headers(module: ModuleType) -> None:
    transform = Transform("bob", NAMES)
    method = amqp.BasicDeliver("c", 7, True, "a.x", "k")
    for properties, is_shown in (
        (amqp.BasicProperties(), False),
        (amqp.BasicProperties(app_id="theirs", headers=Table.of({"h": 1})), False),
        (amqp.BasicProperties(reply_to="a.r"), True),
        (amqp.BasicProperties(headers=Table.of({"CC": ["k", "a.l"]})), True),
        (amqp.BasicProperties(headers=Table.of({"x-death": [{"queue": "a.q", "exchange": ""}]})), True),
        (amqp.BasicProperties(headers=Table.of({"x-first-death-queue": "a.q"})), True),
    ):
        data = content_frames(1, method, properties, b"body", 131072)
        for at in (len(data), *range(len(data))):
            went = delivered(module, transform, method, data, (at,))
            assert (went is None) == is_shown
            if went is not None:
                down = attrs.evolve(method, exchange="x")
                assert went == content_frames(1, down, properties, b"body", 131072)
