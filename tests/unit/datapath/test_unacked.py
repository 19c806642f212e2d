"""Unacknowledged deliveries, as both scanners count them: against a broker's list of tags, and each other."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.datapath import reference
from amqpgate.datapath.tables import GETS, MOST_STRETCHES, SILENT_TAGS, ScanResult, Side
from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from tests.support.frames import content_frames
from tests.unit.datapath.test_scan import IMPLEMENTATIONS, PROPERTIES, Seen, compiled, drive

#: One channel of each scene, and its number on the other hop.
NUMBER, OTHER_HOP = 2, 77


@pytest.fixture(params=IMPLEMENTATIONS, ids=lambda module: module.__name__.rpartition(".")[2])
def scanner(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


class Scene:
    """One channel, with both its lanes."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.channels: reference.Channels = module.Channels()
        self.channels.open(NUMBER, OTHER_HOP)
        self.channels.open(1)
        self.channels.acks_deliveries(1)
        self.up: reference.Lane = module.Lane(Side.CLIENT, 4096, 4096, self.channels, None)
        self.down: reference.Lane = module.Lane(Side.UPSTREAM, 4096, 4096, self.channels, None)

    def says(self, *methods: Method, cuts: list[int] | None = None) -> Seen:
        """The client does."""
        return drive(self.module, self.up, b"".join(method_frame(NUMBER, method) for method in methods), cuts)

    def deliver(self, *tags: int, consumer: str = "c", cuts: list[int] | None = None) -> Seen:
        return drive(self.module, self.down, b"".join(delivery(tag, consumer, b"b") for tag in tags), cuts)

    @property
    def count(self) -> int | None:
        assert self.channels.unacked(1) == 0, "nothing has happened there"
        count = self.channels.unacked(NUMBER)
        tags = self.channels.unacked_tags(NUMBER)
        assert tags is None or sum(end - first for first, end in tags) == count
        return count


def delivery(tag: int, consumer: str, body: bytes) -> bytes:
    method = amqp.BasicDeliver(consumer, tag, False, "x", "k")
    return content_frames(NUMBER, method, PROPERTIES, body, 4096)


def got(tag: int) -> bytes:
    return content_frames(NUMBER, amqp.BasicGetOk(tag, False, "x", "k", 0), PROPERTIES, b"b", 4096)


@pytest.fixture
def scene(scanner: ModuleType) -> Scene:
    made = Scene(scanner)
    made.channels.acks_deliveries(NUMBER)
    return made


def test_nothing_is_counted_before_a_consumer_acks(scanner: ModuleType) -> None:
    scene = Scene(scanner)
    scene.deliver(1, 2, 3)
    assert scene.count == 0
    scene.channels.acks_deliveries(NUMBER)
    scene.deliver(4, 5)
    assert scene.count == 2


def test_each_way_to_settle(scene: Scene) -> None:
    scene.deliver(*range(1, 21))
    assert scene.count == 20
    scene.says(amqp.BasicAck(1))
    assert scene.count == 19
    scene.says(amqp.BasicAck(5, multiple=True))
    assert scene.count == 15
    scene.says(amqp.BasicNack(10), amqp.BasicNack(10))
    assert scene.count == 14
    scene.says(amqp.BasicNack(11, multiple=True))
    assert scene.count == 9
    # The bit of a reject is another one.
    scene.says(amqp.BasicReject(18, requeue=True))
    assert scene.count == 8
    scene.says(amqp.BasicAck(0))
    assert scene.count == 8
    scene.says(amqp.BasicAck(0, multiple=True))
    assert scene.count == 0
    scene.deliver(21)
    assert scene.count == 1


def test_a_new_channel_of_that_number_begins_with_none(scene: Scene) -> None:
    scene.deliver(1, 2)
    scene.channels.close(NUMBER)
    scene.channels.open(NUMBER)
    scene.deliver(1)
    assert scene.count == 0
    scene.channels.acks_deliveries(NUMBER)
    scene.deliver(1)
    scene.channels.open(NUMBER)
    assert scene.count == 0


def test_consumers_that_do_not_ack(scene: Scene) -> None:
    scene.channels.silence(NUMBER, b"quiet")
    scene.channels.silence(NUMBER, b"")
    scene.deliver(1, 2, consumer="quiet")
    scene.deliver(3, consumer="")
    scene.deliver(4, 5, consumer="c")
    scene.deliver(6, consumer="quie")
    assert scene.count == 3
    scene.says(amqp.BasicAck(5, multiple=True))
    assert scene.count == 1
    scene.channels.unsilence(NUMBER, b"quiet")
    scene.channels.unsilence(NUMBER, b"never there")
    scene.deliver(7, consumer="quiet")
    assert scene.count == 2


def test_of_too_many_silent_consumers_the_number_is_not_known(scene: Scene) -> None:
    for number in range(SILENT_TAGS):
        scene.channels.silence(NUMBER, b"%d" % number)
    scene.channels.silence(NUMBER, b"0")
    scene.deliver(1, consumer=str(SILENT_TAGS - 1))
    assert scene.count == 0
    scene.channels.silence(NUMBER, b"one more")
    assert scene.count is None


@pytest.mark.parametrize("shown", [False, True], ids=["unseen", "shown"])
def test_gets_are_told_apart(scene: Scene, shown: bool) -> None:
    scene.down.shows_content = shown
    for is_acked in (True, False, True, True):
        scene.channels.gets(NUMBER, is_acked)
    control = scene.channels
    frames = [got(1), method_frame(NUMBER, amqp.BasicGetEmpty()), got(2), got(3), got(4)]
    told = []
    for frame in frames:
        head = frame[: 8 + int.from_bytes(frame[3:7], "big")]
        drive(scene.module, scene.down, head)
        if shown and len(frame) > len(head):
            control.expect_header(Side.UPSTREAM, NUMBER, None)
        drive(scene.module, scene.down, frame[len(head) :])
        told.append(scene.count)
    # The last one nobody has asked for.
    assert told == [1, 1, 2, 3, 3]


def test_of_too_many_gets_at_once_the_number_is_not_known(scene: Scene) -> None:
    for _ in range(GETS):
        scene.channels.gets(NUMBER, True)
    assert scene.count == 0
    scene.channels.gets(NUMBER, True)
    assert scene.count is None


def test_what_is_shown_is_counted_when_it_goes_on(scene: Scene) -> None:
    scene.deliver(1, 2, 3)
    scene.channels.show_settles(NUMBER)
    seen = scene.says(amqp.BasicAck(2), amqp.BasicReject(3))
    assert [result for result, _ in seen.upcalls] == [ScanResult.METHOD] * 2
    assert scene.count == 3
    scene.channels.settled(NUMBER, 2, True)
    assert scene.count == 1
    scene.channels.show_settles(NUMBER, False)
    scene.says(amqp.BasicReject(3))
    assert scene.count == 0


def test_a_delivery_that_is_shown_counts_once(scanner: ModuleType) -> None:
    scene = Scene(scanner)
    scene.channels.acks_deliveries(NUMBER)
    scene.down.flows = scanner.FlowTable()
    flow = scanner.Flow(sample_every=2)
    bucket = scanner.Bucket(1.0, 3.0)
    flow.message_buckets = (bucket,)
    frames = b"".join(delivery(tag, "c", b"body") for tag in range(1, 7))
    frame = delivery(1, "c", b"")
    key = frame[1:3] + frame[11:13] + frame[22 : 7 + int.from_bytes(frame[3:7], "big")]
    first = drive(scanner, scene.down, frames, control={key: flow})
    # The miss is played as passed, and nobody counts it. Of the others one in two is shown; then the bucket
    # is empty before the fifth.
    assert [result for result, _ in first.upcalls] == [
        ScanResult.MISS,
        ScanResult.SHOWN,
        ScanResult.THROTTLED,
    ]
    assert scene.count == 3
    bucket.tokens = 100.0
    drive(scanner, scene.down, first.rest, control={key: flow})
    assert scene.count == 5


def test_transactions(scene: Scene) -> None:
    assert scene.channels.uncommitted(NUMBER) == 0
    scene.deliver(*range(1, 11))
    scene.says(amqp.BasicAck(2, multiple=True))
    assert scene.channels.uncommitted(NUMBER) == 2
    scene.channels.committed(NUMBER)
    assert scene.channels.uncommitted(NUMBER) == 0
    scene.channels.rolled_back(NUMBER)
    assert scene.count == 8
    scene.says(amqp.BasicAck(4), amqp.BasicAck(6, multiple=True), amqp.BasicReject(9))
    assert scene.count == 3
    scene.channels.rolled_back(NUMBER)
    assert scene.count == 8
    scene.deliver(11, 12)
    scene.says(amqp.BasicAck(9), amqp.BasicAck(12))
    assert scene.count == 8
    # How many of those that were rolled back are up to this one is not known any more.
    scene.says(amqp.BasicAck(8, multiple=True))
    assert scene.count is None
    assert scene.channels.uncommitted(NUMBER) is None
    scene.says(amqp.BasicAck(11, multiple=True))
    assert scene.count == 0
    scene.deliver(13)
    scene.channels.rolled_back(NUMBER)
    assert scene.count is None
    scene.says(amqp.BasicAck(0, multiple=True))
    assert scene.count == 0


def test_recovering(scene: Scene) -> None:
    scene.deliver(*range(1, 11))
    scene.channels.recovered(NUMBER)
    assert scene.count == 0
    scene.deliver(11, 12)
    assert scene.count == 2
    scene.channels.recovers_unheard(NUMBER)
    scene.deliver(13)
    scene.says(amqp.BasicAck(13))
    scene.says(amqp.BasicAck(12, multiple=True))
    assert scene.count is None
    scene.deliver(14)
    scene.says(amqp.BasicAck(14, multiple=True))
    assert scene.count == 0
    scene.channels.recovers_unheard(NUMBER)
    scene.deliver(15)
    scene.channels.recovered(NUMBER)
    scene.deliver(16)
    assert scene.count == 1
    scene.channels.recovered(7)


def test_tags_that_do_not_rise_are_not_counted_on(scene: Scene) -> None:
    scene.deliver(3, 4)
    scene.deliver(4)
    assert scene.count is None
    scene.says(amqp.BasicAck(0, multiple=True))
    scene.channels.recovered(NUMBER)
    assert scene.count is None


def test_what_cannot_be_told_stays_so(scene: Scene) -> None:
    scene.channels.lose_unacked(NUMBER)
    scene.deliver(1)
    scene.says(amqp.BasicAck(0, multiple=True))
    assert scene.count is None


def test_a_message_that_is_forgotten_costs_no_more_than_others(scene: Scene) -> None:
    scene.deliver(1)
    for tag in range(2, 10_000, 10):
        scene.deliver(*range(tag, tag + 10))
        scene.says(*(amqp.BasicAck(each) for each in range(tag + 9, tag - 1, -1)))
    assert scene.count == 1
    scene.deliver(20_000)
    scene.says(amqp.BasicAck(19_999, multiple=True))
    assert scene.count == 1


def test_what_is_too_scattered_is_known_by_number(scene: Scene) -> None:
    # Each of them a stretch: the others are not to be acked.
    tags = range(1, 6 * MOST_STRETCHES, 3)
    for tag in tags:
        scene.deliver(tag)
    assert scene.count == len(tags)
    # One by one, some of those that are a number by now, and some that are not.
    settled = [*tags[600:6:-1], *tags[-1:-300:-7]]
    for at, tag in enumerate(settled, 1):
        scene.says(amqp.BasicAck(tag))
        assert scene.count == len(tags) - at
    # Only a part: how many those are is not known.
    scene.says(amqp.BasicAck(tags[10], multiple=True))
    assert scene.count is None
    scene.says(amqp.BasicAck(tags[-3], multiple=True))
    # The last one was acked before.
    assert scene.count == 1


def test_many_holes_in_one_long_stretch(scene: Scene) -> None:
    size = 5 * MOST_STRETCHES
    scene.deliver(*range(1, size + 1))
    settled = list(range(2, size, 2))
    for at, tag in enumerate(settled, 1):
        scene.says(amqp.BasicAck(tag))
        assert scene.count == size - at


# -- any stream -------------------------------------------------------------------------------------------


@attrs.define
class Broker:
    """What a broker knows of the channel: it has each tag."""

    due: set[int] = attrs.field(factory=set)
    last: int = 0
    uncommitted: list[int] = attrs.field(factory=list)

    def delivers(self, is_acked: bool) -> int:
        self.last += 1
        if is_acked:
            self.due.add(self.last)
        return self.last

    def settles(self, tag: int, multiple: bool) -> None:
        settled = {one for one in self.due if one == tag or (multiple and (one < tag or not tag))}
        self.due -= settled
        self.uncommitted += settled


Step = Callable[["Play"], None]


class Play:
    """A broker and a client that keep to the rules, with a scanner of each kind in between."""

    def __init__(self, cut: int) -> None:
        self.scenes = [Scene(module) for module in IMPLEMENTATIONS]
        for scene in self.scenes:
            scene.channels.acks_deliveries(NUMBER)
            scene.channels.silence(NUMBER, b"quiet")
        self.broker = Broker()
        self.cut = cut

    def down(self, data: bytes) -> None:
        for scene in self.scenes:
            drive(scene.module, scene.down, data, list(range(0, len(data), self.cut)))

    def up(self, method: Method) -> None:
        data = method_frame(NUMBER, method)
        for scene in self.scenes:
            assert not drive(scene.module, scene.up, data, list(range(0, len(data), self.cut))).upcalls

    def check(self, is_exact: bool = True) -> None:
        counts = [scene.count for scene in self.scenes]
        assert len(set(counts)) == 1
        assert counts[0] == len(self.broker.due) or (counts[0] is None and not is_exact)


def deliveries(count: int, is_acked: bool) -> Step:
    def step(play: Play) -> None:
        consumer = "c" if is_acked else "quiet"
        play.down(
            b"".join(delivery(play.broker.delivers(is_acked), consumer, b"b" * (n % 3)) for n in range(count))
        )

    return step


def gets(answers: list[tuple[bool, bool]]) -> Step:
    """Each with acks or not, and whether there is a message."""

    def step(play: Play) -> None:
        data = b""
        for is_acked, is_there in answers:
            for scene in play.scenes:
                scene.channels.gets(NUMBER, is_acked)
            if is_there:
                data += got(play.broker.delivers(is_acked))
            else:
                data += method_frame(NUMBER, amqp.BasicGetEmpty())
        play.down(data)

    return step


def settle(kind: type[amqp.BasicAck | amqp.BasicNack | amqp.BasicReject], part: int, multiple: bool) -> Step:
    """Of one that is due, as far along as ``part`` of 100."""

    def step(play: Play) -> None:
        if not play.broker.due:
            return
        due = sorted(play.broker.due)
        tag = due[len(due) * part // 101]
        if kind is amqp.BasicReject:
            play.up(amqp.BasicReject(tag, requeue=True))
            play.broker.settles(tag, False)
        else:
            play.up(kind(tag, multiple=multiple))
            play.broker.settles(tag, multiple)

    return step


def settle_all(play: Play) -> None:
    play.up(amqp.BasicAck(0, multiple=True))
    play.broker.settles(0, True)


def recover(play: Play) -> None:
    for scene in play.scenes:
        scene.channels.recovered(NUMBER)
    play.broker.due.clear()


def commit(play: Play) -> None:
    for scene in play.scenes:
        scene.channels.committed(NUMBER)
    play.broker.uncommitted.clear()


def roll_back(play: Play) -> None:
    for scene in play.scenes:
        scene.channels.rolled_back(NUMBER)
    play.broker.due |= set(play.broker.uncommitted)
    play.broker.uncommitted.clear()


KINDS = [amqp.BasicAck, amqp.BasicNack, amqp.BasicReject]
exact = st.one_of(
    st.builds(deliveries, st.integers(1, 40), st.sampled_from([True, True, True, False])),
    st.builds(gets, st.lists(st.tuples(st.booleans(), st.booleans()), max_size=5)),
    st.builds(settle, st.sampled_from(KINDS), st.integers(0, 100), st.booleans()),
    st.builds(settle, st.sampled_from(KINDS), st.integers(0, 100), st.just(False)),
    st.sampled_from([settle_all, recover, commit]),
)


@given(st.lists(exact, max_size=40), st.integers(1, 60))
def test_the_number_is_the_broker_s(steps: list[Step], cut: int) -> None:
    play = Play(cut)
    for step in steps:
        step(play)
        play.check()


@given(st.lists(st.one_of(exact, st.just(roll_back)), max_size=40), st.integers(20, 60))
def test_the_number_is_the_broker_s_or_not_known(steps: list[Step], cut: int) -> None:
    play = Play(cut)
    for step in steps:
        step(play)
        play.check(is_exact=False)
    settle_all(play)
    play.check()


@pytest.mark.parametrize("multiples", [0, 3], ids=["one by one", "some of several"])
@pytest.mark.parametrize("seed", range(3))
def test_scattered_acks_are_the_broker_s_or_not_known(seed: int, multiples: int) -> None:
    chance = random.Random(seed)
    play = Play(1 << 20)
    deliveries(3 * MOST_STRETCHES, True)(play)
    for at in range(2 * MOST_STRETCHES):
        multiple = chance.randrange(1000) < multiples
        settle(amqp.BasicAck, chance.randrange(5 if multiple else 100), multiple)(play)
        if chance.randrange(10) == 0:
            deliveries(1 + chance.randrange(5), chance.random() < 0.8)(play)
        if not at % 20:
            play.check(is_exact=not multiples)
    settle_all(play)
    play.check()


@pytest.mark.skipif(compiled is None, reason="the compiled scanner was not built (no C compiler)")
@given(
    st.lists(
        st.tuples(
            st.sampled_from([amqp.BasicDeliver, amqp.BasicGetOk, *KINDS]),
            st.integers(0, 12) | st.sampled_from([1 << 62, (1 << 62) - 1, (1 << 64) - 1]),
            st.booleans(),
        ),
        max_size=30,
    )
)
def test_both_agree_on_peers_that_break_the_rules(said: list[tuple[type[Method], int, bool]]) -> None:
    scenes = [Scene(module) for module in IMPLEMENTATIONS]
    for scene in scenes:
        scene.channels.acks_deliveries(NUMBER)
        for _ in range(3):
            scene.channels.gets(NUMBER, True)
        for kind, tag, bit in said:
            if kind is amqp.BasicDeliver:
                scene.deliver(tag, min(tag + 1 if bit else tag * 2, (1 << 64) - 1))
            elif kind is amqp.BasicGetOk:
                drive(scene.module, scene.down, got(tag))
            elif kind is amqp.BasicReject:
                scene.says(amqp.BasicReject(tag, requeue=bit))
            else:
                scene.says(kind(tag, multiple=bit))  # type: ignore[call-arg]
    assert scenes[0].count == scenes[1].count
