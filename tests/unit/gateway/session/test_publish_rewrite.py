"""What the data path makes of publishes is what the transform makes of them; in both engines."""

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
from amqpgate.gateway.session.publish_rewrite import publish_rewrite
from amqpgate.gateway.session.transform import header_up, publish_up
from amqpgate.policy import Peek, Transform
from amqpgate.policy.engine.naming import Naming, NotTransformedError, Renaming
from amqpgate.policy.engine.subjects import NamePattern
from amqpgate.policy.kinds.transform_set import ContentChange
from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, decode_header, decode_method, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

from .test_transform import HEADERS, NAME

try:
    from amqpgate.datapath import _scan as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]

ENGINES = [reference] if compiled is None else [reference, compiled]
NAMES = Naming(Renaming("exchange", "a."), Renaming("queue", "a."))
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
