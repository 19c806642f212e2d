"""Which publishes are copied for a mirror, what a copy holds, and what may wait: sums that must come out."""

from __future__ import annotations

import random
from types import ModuleType

import attrs
import pytest
from prometheus_client import CollectorRegistry

from amqpgate.datapath import reference
from amqpgate.datapath.captures import Captured
from amqpgate.datapath.scanner import ByChannel, Channels, Flow, flow_key
from amqpgate.datapath.tables import METHOD_NEXT, ScanResult, Show, Side
from amqpgate.gateway.limits.sampler import Sampler, Sampling
from amqpgate.gateway.observers.mirror.queue import MirrorQueue
from amqpgate.gateway.observers.mirror.session import Feed, MirrorObserver
from amqpgate.gateway.session.observer import Message, Release
from amqpgate.gateway.session.publish_denial import ChannelPublishes, HeldPublish
from amqpgate.policy import Mirror, Operation, Principal
from amqpgate.policy.engine.subjects import NamePattern
from amqpgate.policy.engine.verdicts import UNRESTRICTED
from amqpgate.protocol.frames import encode_frame
from amqpgate.telemetry.mirrors import MirrorMetrics
from amqpgate.wire.codec import ContentHeader, decode_method, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table
from amqpgate.yamldoc import Percent, Size
from tests.support.frames import content_frames
from tests.support.metrics import sample_value

try:
    from amqpgate.datapath import _scan as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]

ENGINES = [reference] if compiled is None else [reference, compiled]
PUBLISH = amqp.BasicPublish(exchange="e", routing_key="k")


class Stand:
    """A queue with its counters, and the copier of a session that feeds it."""

    def __init__(self, percent: float = 100, *, buffer: int = 8 << 20, max_body_bytes: int = 1 << 20) -> None:
        self.registry = CollectorRegistry()
        self.arrivals = 0
        account = MirrorMetrics(self.registry).account("m")
        self.queue = MirrorQueue(buffer, account, self.arrived)
        document = Mirror(cluster="m", percent=Percent(percent), max_body_bytes=Size(max_body_bytes))
        self.sampler = Sampler(percent / 100)
        self.channels = Channels()
        self.channels.open(1)
        self.states = ByChannel(ChannelPublishes)
        self.states.add(1)
        self.copier = MirrorObserver(self.channels, self.states, Feed(document, self.sampler, self.queue))

    def arrived(self) -> None:
        self.arrivals += 1

    def count(self, name: str, **labels: str) -> float:
        labels = {"upstream": "m"} | labels
        return sample_value(self.registry, f"amqpgate_mirror_{name}", labels) or 0

    def dropped(self, reason: str) -> float:
        return self.count("dropped_messages_total", reason=reason)

    def begin(self, body_size: int, *, transacts: bool = False, exchange: str = "e") -> None:
        """A publish up to its header, which stands for itself."""
        frames = content_frames(
            1, amqp.BasicPublish(exchange=exchange, routing_key="k"), amqp.BasicProperties(), b""
        )
        method_end = 8 + int.from_bytes(frames[3:7], "big")
        header = bytearray(frames[method_end:])
        header[11:19] = body_size.to_bytes(8, "big")
        self.states[1].commits_due = 0 if transacts else None
        self.release(frames[:method_end] + bytes(header), exchange=exchange)

    def release(
        self, frames: bytes, weight: int = 1, flow: Flow | None = None, *, exchange: str = "e"
    ) -> None:
        """A publish goes on with these frames of its method and header; ``weight`` is what it stands for."""
        operation = Operation(Principal("u", "/"), "basic.publish", exchange=exchange)
        method = amqp.BasicPublish(exchange=exchange)
        held = HeldPublish(method, b"", operation, flow or Flow(), weight)
        release = Release(1, held, UNRESTRICTED, memoryview(b""), None)
        assert self.copier.released(release, frames) == frames

    def samplers(self, exchange: str = "e") -> list[Sampler]:
        """Who chooses among messages to an exchange."""
        operation = Operation(Principal("u", "/"), "basic.publish", exchange=exchange)
        return list(self.copier.samplers(Message(1, amqp.BasicPublish(exchange=exchange), operation), Flow()))

    def body(self, body: bytes) -> None:
        self.copier.content(Side.CLIENT, 1, memoryview(encode_frame(3, 1, body)))


class Scanner:
    """What the data path does with flows, as far as sampling goes."""

    def __init__(self, stand: Stand, *, every: int = 0) -> None:
        self.stand = stand
        self.sampling = Sampling()
        self.every = every
        self.flows: dict[str, tuple[Flow, list[int]]] = {}
        self.copied: list[int] = []
        self.shown = 0

    def publish(self, number: int, key: str, *, forget: bool = False) -> None:
        samplers = self.stand.samplers()
        if key not in self.flows:
            flow = Flow(sample_every=self.every)
            self.sampling.enlist(flow, samplers)
            self.flows[key] = flow, [flow.unsampled]
        flow, unsampled = self.flows[key]
        unsampled[0] += 1
        shown = bool(flow.sample_every) and unsampled[0] >= flow.sample_every
        weight = 0
        if shown:
            unsampled[0] = 0
            self.shown += 1
            weight = self.sampling.weigh(flow, samplers)
        flow.messages += 1
        if weight and self.stand.sampler.count(weight):
            self.copied.append(number)
        if forget:
            del self.flows[key]


# -- sampling


@pytest.mark.parametrize("percent", [100, 75, 50, 33.3, 30, 25, 10, 5, 1, 0.1])
@pytest.mark.parametrize("every", [0, 1])
def test_one_flow_gives_the_share_exactly(percent: float, every: int) -> None:
    """`every` 1: a policy looks at every message, and then those stand for themselves."""
    stand = Stand(percent)
    scanner = Scanner(stand, every=every)
    for number in range(10_000):
        scanner.publish(number, "k")
    assert abs(len(scanner.copied) - 100 * percent) <= 2
    if not every:
        # One in N is shown, and no more.
        assert scanner.shown <= 10_000 // int(100 / percent + 1e-6) + 1


@pytest.mark.parametrize("percent", [100, 60, 25, 5, 1])
@pytest.mark.parametrize("messages", [1, 2, 3, 7])
def test_keys_that_come_a_few_times(percent: float, messages: int) -> None:
    """Flows that never see N messages: all first N are shown first as often."""
    scanner = Scanner(Stand(percent))
    for number in range(20_000):
        scanner.publish(number, f"{number // messages}")
    assert abs(len(scanner.copied) - 200 * percent) <= max(5, 2 * percent)


@pytest.mark.parametrize("percent", [100, 70, 50, 25, 7])
@pytest.mark.parametrize("seed", range(3))
def test_many_flows_in_any_order_of_which_some_are_forgotten(percent: float, seed: int) -> None:
    rng = random.Random(seed)
    scanner = Scanner(Stand(percent))
    keys = [f"{number}" for number in range(40)]
    for number in range(20_000):
        scanner.publish(number, rng.choice(keys), forget=rng.random() < 0.01)
    assert abs(len(scanner.copied) - 200 * percent) <= 0.02 * 200 * percent


def test_exchanges_that_are_not_meant_have_no_samples() -> None:
    stand = Stand()
    document = Mirror(cluster="m", exchanges=(NamePattern("other", False),))
    stand.copier.follow(Feed(document, stand.sampler, stand.queue))
    assert stand.samplers("e") == []
    assert stand.samplers("other") == [stand.sampler]
    flow = Flow()
    Sampling().enlist(flow, [])
    assert (flow.sample_every, flow.show) == (0, Show.METHOD)


def test_what_a_policy_peeks_at_stands_for_itself() -> None:
    """Else its senders would be mirrored N times as often as all others."""
    stand = Stand(10)
    flow = Flow(sample_every=10, show=Show.HEADER, peek_headers=(b"CC",))
    method = amqp.BasicPublish(exchange="e")
    assert Sampling().weigh(flow, [stand.sampler]) == 10
    with_body = Flow(sample_every=10, show=Show.HEADER, peek_body=5)
    for _ in range(10):
        frames = content_frames(1, method, amqp.BasicProperties(), b"123456")
        end = 8 + int.from_bytes(frames[3:7], "big")
        header_end = end + 8 + int.from_bytes(frames[end + 3 : end + 7], "big")
        stand.release(frames[:header_end], 10, with_body)
    assert stand.count("sampled_messages_total") == 1


# -- copies


def test_a_copy_is_whole_and_in_order() -> None:
    stand = Stand()
    stand.begin(6)
    stand.body(b"abc")
    assert (stand.arrivals, len(stand.queue)) == (0, 0)
    stand.body(b"def")
    message = stand.queue.take()
    assert message is not None
    assert (message.exchange, message.routing_key, bytes(message.body)) == ("e", "k", b"abcdef")
    stand.begin(0)
    assert stand.arrivals == 2
    assert stand.count("sampled_messages_total") == 2


def test_what_is_not_copied_is_counted_by_reason() -> None:
    stand = Stand(max_body_bytes=10)
    stand.begin(11)
    stand.begin(5, transacts=True)
    assert (stand.dropped("too_large"), stand.dropped("transaction")) == (1, 1)
    stand.release(b"\1\0\1\0\0\0\2\0\0\xce\2\0\1\0\0\0\1\0\xce")
    assert stand.dropped("malformed") == 1
    assert stand.count("sampled_messages_total") == 3
    assert stand.queue.held == 0


def test_the_end_of_a_session_gives_room_back() -> None:
    stand = Stand()
    stand.channels.expect_header(Side.CLIENT, 1, None)
    stand.begin(100)
    assert stand.queue.held > 100
    stand.copier.ended()
    assert (stand.queue.held, stand.dropped("unfinished")) == (0, 1)


def test_a_channel_that_was_closed_gives_room_back_at_the_next_copy() -> None:
    stand = Stand()
    stand.begin(100)
    held = stand.queue.held
    assert stand.channels.due(Side.CLIENT, 1) == METHOD_NEXT
    stand.begin(100)
    assert (stand.queue.held, stand.dropped("unfinished")) == (held, 1)


def test_a_session_that_follows_another_mirror_ends_its_copy_where_it_began() -> None:
    stand, other = Stand(), Stand()
    stand.begin(3)
    stand.copier.follow(other.copier.feed)
    stand.body(b"abc")
    assert (stand.arrivals, other.arrivals) == (1, 0)
    stand.begin(0)
    assert (stand.arrivals, other.arrivals) == (1, 1)
    stand.copier.follow(None)
    stand.begin(0)
    assert (stand.arrivals, other.arrivals) == (1, 1)


def metered(stand: Stand, exchange: str = "e") -> Flow:
    """The flow of publishes there, as the mirror's observer has it."""
    flow = Flow()
    operation = Operation(Principal("u", "/"), "basic.publish", exchange=exchange)
    method = amqp.BasicPublish(exchange=exchange, routing_key="k")
    stand.copier.meters(Message(1, method, operation), flow)
    return flow


def test_where_all_are_copied_they_are_captured_and_nobody_chooses() -> None:
    stand = Stand()
    flow = metered(stand)
    operation = Operation(Principal("u", "/"), "basic.publish", exchange="e")
    message = Message(1, amqp.BasicPublish(exchange="e"), operation)
    assert flow.captures == 1 << 20
    assert list(stand.copier.samplers(message, flow)) == []
    # One that is shown for something else stands for itself, however many that chooses among.
    frames = content_frames(1, amqp.BasicPublish(exchange="e"), amqp.BasicProperties(), b"")
    stand.release(frames, 7, flow)
    assert len(stand.queue) == 1


def test_what_a_bridge_changes_is_shown() -> None:
    stand = Stand()
    stand.copier = attrs.evolve(stand.copier, is_native=False)
    assert metered(stand).captures < 0
    stand.copier.follow(None)
    assert metered(stand).captures < 0


def rewrites(module: ModuleType, how: str) -> reference.Rewrite:
    """A transform's, or that of a trace of one in ``how`` so many."""
    sets: list[bytes | None] = [None] * 14
    entries = amqp.BasicProperties(headers=Table.of({"traceparent": "0" * 55})).encode()[6:]
    if how != "transform":
        made: reference.Rewrite = module.Rewrite(PUBLISH.encode(), tuple(sets), 0, entries, int(how))
        return made
    # Another exchange, a user, no type; another header.
    sets[12 - 1] = b"\1u"
    method = attrs.evolve(PUBLISH, exchange="a.e").encode()
    changed: reference.Rewrite = module.Rewrite(method, tuple(sets), 1 << 5, b"\3new" + b"t\1")
    return changed


@pytest.mark.parametrize("module", ENGINES, ids=lambda module: module.__name__.rpartition(".")[2])
@pytest.mark.parametrize("percent", [100, 50, 20])
@pytest.mark.parametrize("how", ["transform", "1", "2", "4"])
def test_what_is_rewritten_is_copied_as_the_broker_gets_it(
    module: ModuleType, percent: float, how: str
) -> None:
    """By captures. Where a mirror chooses among more than are traced, they are shown instead."""
    stand = Stand(percent)
    flow = module.Flow(show=Show.HEADER)
    samplers = []
    if how != "transform":
        samplers.append(Sampler(1 / int(how)))
        flow.capture_samples("traces", None, 0)
    flow.rewrite_by(rewrites(module, how))
    message = Message(1, PUBLISH, Operation(Principal("u", "/"), "basic.publish", exchange="e"))
    stand.copier.meters(message, flow)
    Sampling().enlist(flow, [*samplers, *stand.copier.samplers(message, flow)])
    lane = module.Lane(Side.CLIENT, 131072, 131072, module.Channels(), module.FlowTable())
    lane.channels.open(1)
    sent = [
        content_frames(
            1,
            PUBLISH,
            amqp.BasicProperties(
                headers=Table.of({"number": number}) if number % 3 else None, type="t", app_id="app"
            ),
            b"%d" % number,
        )
        for number in range(100)
    ]
    lane.flows.install(flow_key(Side.CLIENT, sent[0][: 8 + int.from_bytes(sent[0][3:7], "big")]), flow)
    data, captured, made, spans = bytearray(b"".join(sent)), list[Captured](), bytearray(), []
    at, result, _ = module.scan(lane, data, 0, len(data), 1.0, spans, captured, made)
    if how in ("2", "4") and percent > 100 / int(how) and percent < 100:
        assert (at, result) != (len(data), ScanResult.MORE)
        return
    assert (at, result) == (len(data), ScanResult.MORE)
    stand.copier.captured(Side.CLIENT, captured)
    went = messages_of(bytes(made) + b"".join(data[start:stop] for start, stop in spans))
    assert [body for *_, body in went] == [b"%d" % number for number in range(100)]
    copied = []
    while (copy := stand.queue.take()) is not None:
        copied.append((copy.exchange, copy.routing_key, copy.header, bytes(copy.body)))
        assert copy.user == ("u" if how == "transform" else None)
    assert abs(len(copied) - percent) <= 1
    # Each is one that went to the broker, byte by byte, and in the same order.
    assert copied == [one for one in went if one in copied]
    traced = [one for one in went if b"traceparent" in one[2]]
    assert len(traced) == (0 if how == "transform" else 100 // int(how))
    if percent == 100:
        assert copied == went


def messages_of(data: bytes) -> list[tuple[str, str, bytes, bytes]]:
    """Exchange, routing key, payload of the header, and body of what was sent."""
    found = []
    while data:
        frames = []
        for _ in range(3):
            end = 8 + int.from_bytes(data[3:7], "big")
            frames.append(data[7 : end - 1])
            data = data[end:]
        method = decode_method(frames[0])
        assert isinstance(method, amqp.BasicPublish)
        found.append((method.exchange, method.routing_key, frames[1], frames[2]))
    return found


@pytest.mark.parametrize("user", [None, "u"])
def test_what_is_captured_is_copied(user: str | None) -> None:
    stand = Stand(max_body_bytes=5)
    flow = metered(stand)
    properties = amqp.BasicProperties(message_id="m", user_id=user)

    def header(size: int) -> bytes:
        return encode_header(ContentHeader(60, size, properties))

    both = [(flow, 1, header(2), b"12", None), (flow, 1, header(6), b"12345", None)]
    stand.copier.captured(Side.CLIENT, both)
    copy = stand.queue.take()
    assert copy is not None
    assert (copy.exchange, copy.routing_key, copy.header, copy.body_size, copy.user, bytes(copy.body)) == (
        "e",
        "k",
        header(2),
        2,
        user,
        b"12",
    )
    assert stand.dropped("too_large") == 1
    stand.states[1].commits_due = 0
    stand.copier.captured(Side.CLIENT, [(flow, 1, header(2), b"12", None)])
    assert stand.dropped("transaction") == 1
    assert stand.count("sampled_messages_total") == 3
    # What others capture is not copied.
    stand.copier.captured(Side.CLIENT, [(Flow(), 1, header(2), b"12", None)])
    assert not stand.queue


def test_what_is_captured_has_to_fit() -> None:
    stand = Stand(buffer=2000)
    flow = metered(stand)
    header = encode_header(ContentHeader(60, 600, amqp.BasicProperties()))
    stand.copier.captured(Side.CLIENT, [(flow, 1, header, b"x" * 600, None)] * 2)
    assert len(stand.queue) == 1
    assert stand.dropped("full") == 1
