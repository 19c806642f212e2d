"""The compiled scanner against the plain one: both ways of a session, with a control plane that decides by
the fuzzer's bytes; and the same bytes one by one."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import attrs

from amqpgate.datapath import framing, reference
from amqpgate.datapath.flows import flow_key
from amqpgate.datapath.tables import DISCARD, LAST_HARMLESS, OPEN, ScanResult, Show, Side
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.fuzz.choices import Choices
from tests.fuzz.frames import FRAME_MAX, Writer

try:
    from amqpgate.datapath import _scan as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]

MOST = 600
TOKENS = (b"\x0f\xff", b"\0\0\0\0\0\0")
#: Steps of one input.
STEPS = 40
_METHOD = 7


def seeds() -> Iterator[bytes]:
    """A few of each kind of step."""
    for features in range(0, 256, 37):
        for step in range(16):
            yield bytes((features, step, 3, 7)) + bytes((step, 0, step, 1, 1, 2, 3)) * 8


@attrs.define(eq=False)
class World:
    """One scanner with all that it looks at, and what was seen of it."""

    module: ModuleType
    script: bytes
    features: int
    lanes: dict[Side, reference.Lane] = attrs.field(init=False)
    flows: list[reference.Flow] = attrs.field(init=False)
    book: list[reference.Meter] = attrs.field(factory=list)
    kept: dict[Side, bytes] = attrs.field(factory=lambda: dict.fromkeys(Side, b""))
    ended: set[Side] = attrs.field(factory=set)
    counted: set[int] = attrs.field(factory=set)
    now: float = 1.0
    upcalls: int = 0
    forwarded: dict[Side, bytearray] = attrs.field(factory=lambda: {side: bytearray() for side in Side})
    told: list[tuple[object, ...]] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        module, features = self.module, self.features
        channels = module.Channels()
        channels.open(1)
        channels.open(2, 77)
        channels.open(3)
        channels.discard(3)
        tables = [module.FlowTable() if features & 1 else None, module.FlowTable() if features & 2 else None]
        out = FRAME_MAX[features >> 2 & 1], FRAME_MAX[features >> 3 & 1]
        self.lanes = {side: module.Lane(side, 4096, out[side], channels, tables[side]) for side in Side}
        self.lanes[Side.UPSTREAM].shows_content = bool(features & 16)
        self.lanes[Side.CLIENT].shows_nacks = bool(features & 32)
        if features & 64:
            channels.count_confirms(1)
            self.counted.add(1)
        if features & 128:
            channels.acks_deliveries(1)
        bucket, wide = module.Bucket(1.0, 3.0), (module.Bucket(50.0, 100.0),)
        shared = module.Meter("some", self.book)
        self.flows = [
            module.Flow(),
            module.Flow(drop=True),
            module.Flow((), (), 2, Show.HEADER),
            module.Flow((bucket,), wide),
            module.Flow((bucket,), (), 1, Show.METHOD),
            module.Flow((), wide, 3, Show.BODY),
            module.Flow(show=Show.HEADER, peek_flags=1 << 9, peek_headers=(b"CC",), peek_body=30),
            module.Flow(show=Show.HEADER, peek_mode_0=True),
            module.Flow((), (), 3, Show.HEADER, peek_headers=(b"CC", b"BCC")),
        ]
        for flow in self.flows[:6]:
            flow.meter = shared if flow.drop or flow.sample_every else module.Meter("one", self.book)

    @property
    def channels(self) -> reference.Channels:
        return self.lanes[Side.CLIENT].channels

    def decision(self, count: int) -> int:
        """The control plane's next."""
        self.upcalls += 1
        return self.script[self.upcalls % len(self.script)] % count if self.script else 0

    # -- bytes ---------------------------------------------------------------------------------------------

    def feed(self, side: Side, data: bytes) -> None:
        """Bytes of one side have come."""
        if side in self.ended:
            return
        lane = self.lanes[side]
        chunk = bytearray(self.kept[side] + data)
        pos = throttled = 0
        while True:
            spans: list[tuple[int, int]] = []
            at, result, stop = self.module.scan(lane, chunk, pos, len(chunk), self.now, spans)
            assert pos <= at <= len(chunk)
            for first, last in spans:
                assert pos <= first < last <= at
                self.forwarded[side] += chunk[first:last]
            if result is ScanResult.THROTTLED and throttled < 8:
                throttled += 1
                assert lane.ready_at > self.now
                self.now = lane.ready_at
                pos = at
                continue
            if result is ScanResult.MORE:
                self.kept[side] = bytes(chunk[at:])
                return
            is_end = result is ScanResult.THROTTLED or result > LAST_HARMLESS
            frame = b"" if is_end else bytes(chunk[at:stop])
            self.told.append((side, result, frame))
            if is_end:
                self.ended.add(side)
                self.kept[side] = b""
                return
            self._upcall(side, lane, result, frame)
            if result is ScanResult.HEADER:
                lane.settle(int.from_bytes(frame[1:3], "big"), self.now)
            pos = stop

    def _upcall(self, side: Side, lane: reference.Lane, result: ScanResult, frame: bytes) -> None:
        channels = self.channels
        number = int.from_bytes(frame[1:3], "big")
        if result in (ScanResult.MISS, ScanResult.SHOWN):
            key = flow_key(side, frame)
            what = self.decision(len(self.flows) + 3)
            if what >= len(self.flows):
                (channels.drop_next, self._pass, self._refuse)[what - len(self.flows)](side, number)
                return
            flow = self.flows[what]
            if result is ScanResult.MISS and lane.flows is not None:
                lane.flows.install(key, flow)
            channels.expect_header(side, number, flow, self.decision(4))
        elif result is ScanResult.HEADER:
            what = self.decision(4)
            if what == 1:
                channels.uncount(side, number)
                channels.drop_rest(side, number)
            elif what == 2:
                channels.show_rest(side, number)
        elif result is ScanResult.BODY and self.decision(3) == 1:
            channels.drop_rest(side, number)
        elif result is ScanResult.REFRAME:
            self.forwarded[side] += framing.reframe(frame, lane.out_frame_max)
        elif result is ScanResult.METHOD:
            self._method(side, number, int.from_bytes(frame[_METHOD : _METHOD + 4], "big"))

    def _pass(self, side: Side, number: int) -> None:
        self.channels.expect_header(side, number, None, self.decision(4))

    def _refuse(self, side: Side, number: int) -> None:
        if side is Side.CLIENT:
            self.channels.discard(number)
        else:
            self.channels.drop_next(side, number)

    def _method(self, side: Side, number: int, index: int) -> None:
        channels = self.channels
        if index == amqp.ChannelOpen.INDEX and side is Side.CLIENT:
            if number and not channels.state(number):
                channels.open(number)
        elif index == amqp.ChannelCloseOk.INDEX:
            channels.close(number)
            self.counted.discard(number)
        elif index == amqp.ChannelClose.INDEX and channels.state(number) == OPEN:
            channels.discard(number)
        elif channels.state(number) and not channels.due(side, number):
            content = (amqp.BasicGetOk.INDEX, amqp.BasicReturn.INDEX)
            if index in content and side is Side.UPSTREAM:
                channels.expect_header(side, number, None, self.decision(4))

    # -- what the control plane does on its own ------------------------------------------------------------

    def control(self, what: int, number: int, arg: int) -> None:
        """One step of the control plane; nothing where the channel is closed."""
        channels = self.channels
        if what == 0:
            for lane in self.lanes.values():
                if lane.flows is not None:
                    lane.flows.flush()
        elif what == 1:
            self.now += arg / 16
        elif not channels.state(number):
            if what == 2 and number:
                channels.open(number, number + arg)
        elif what == 3:
            channels.close(number)
            self.counted.discard(number)
        elif what == 4 and channels.state(number) != DISCARD:
            channels.discard(number)
        elif what == 5:
            channels.remap(number, arg + 1)
        elif what == 6:
            channels.show_acks(number, bool(arg & 1))
        elif what == 7:
            channels.show_settles(number, bool(arg & 1))
        elif what == 8:
            channels.count_confirms(number)
            self.counted.add(number)
        elif what == 9:
            channels.acks_deliveries(number)
        elif what == 10:
            (channels.silence if arg & 1 else channels.unsilence)(number, b"a" if arg & 2 else b"b")
        elif what == 11:
            channels.gets(number, bool(arg & 1))
        elif what == 12:
            steps = (
                channels.recovered,
                channels.recovers_unheard,
                channels.committed,
                channels.rolled_back,
                channels.lose_unacked,
            )
            steps[arg % len(steps)](number)
        elif what == 13:
            channels.time_confirm(number, channels.messages(Side.CLIENT, number))
        elif what == 14:
            channels.settled(number, arg, bool(arg & 1))

    def state(self) -> tuple[object, ...]:
        """All that the control plane can see."""
        channels = self.channels
        return (
            self.told,
            {side: bytes(data) for side, data in self.forwarded.items()},
            self.kept,
            self.now,
            [
                (lane.messages, lane.body_bytes, lane.frames, lane.ready_at, lane.held_since)
                for lane in self.lanes.values()
            ],
            [(channels.state(n), channels.to(n)) for n in range(8)],
            [
                (
                    [(channels.due(side, n), channels.messages(side, n)) for side in Side],
                    [channels.is_dropping(side, n) for side in Side],
                    channels.unacked(n),
                    channels.unconfirmed(n) if n in self.counted else None,
                )
                for n in range(8)
                if channels.state(n)
            ],
            [channels.is_half_way(side) for side in Side],
            (channels.got, channels.got_bytes, channels.returned, channels.returned_bytes),
            (channels.timed, channels.is_timing, channels.confirm_seconds),
            [(flow.messages, flow.body_bytes) for flow in self.flows],
            [bucket.tokens for flow in self.flows for bucket in flow.message_buckets + flow.byte_buckets],
            [(meter.row, meter.messages, meter.body_bytes, meter.first, meter.last) for meter in self.book],
        )


#: ``data`` and a side and bytes; or ``control`` and three numbers.
Step = tuple[str, Side, bytes] | tuple[str, int, int, int]


def story(choices: Choices) -> list[Step]:
    """What happens, step by step."""
    writers = {side: Writer(choices) for side in Side}
    steps: list[Step] = []
    while choices and len(steps) < STEPS:
        what = choices.below(8)
        if what < 3:
            steps.append(("data", Side.CLIENT, writers[Side.CLIENT].some(Side.CLIENT)))
        elif what < 6:
            steps.append(("data", Side.UPSTREAM, writers[Side.UPSTREAM].some(Side.UPSTREAM)))
        elif what == 6:
            steps.append(("control", choices.below(15), choices.below(6), choices.byte()))
        elif steps and steps[-1][0] == "data":
            # What was written last comes in two pieces.
            _, side, data = steps.pop()  # type: ignore[misc]
            cut = choices.below(len(data) + 1)
            steps += [("data", side, data[:cut]), ("data", side, data[cut:])]
    return steps


def play(module: ModuleType, features: int, script: bytes, steps: list[Step], *, bytewise: bool) -> World:
    """The world as it is in the end."""
    world = World(module, script, features)
    for step in steps:
        if step[0] == "control":
            _, what, number, arg = step  # type: ignore[misc]
            world.control(what, number, arg)
            continue
        _, side, data = step  # type: ignore[misc]
        for piece in (data[at : at + 1] for at in range(len(data))) if bytewise else (data,):
            world.feed(side, piece)
    return world


def check(data: bytes) -> None:
    """Whatever the scanner and whatever the split, the same."""
    choices = Choices(data)
    features, script = choices.byte(), choices.some(15)
    steps = story(choices)
    plain = play(reference, features, script, steps, bytewise=False)
    modules = [reference] if compiled is None else [compiled, reference]
    if compiled is not None:
        compare(play(compiled, features, script, steps, bytewise=False), plain)
    size = sum(len(step[2]) for step in steps if step[0] == "data")  # type: ignore[arg-type,misc]
    if size < 400:
        compare(play(modules[0], features, script, steps, bytewise=True), plain)


def compare(one: World, other: World) -> None:
    """Every part of what they show."""
    for part, counterpart in zip(one.state(), other.state(), strict=True):
        assert part == counterpart, f"{part}\n{counterpart}"
