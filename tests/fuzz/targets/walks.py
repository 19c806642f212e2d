"""How far a client's bytes may go to a shared link: the compiled walk against the plain one, as channels open
and close meanwhile; and what is quiet has nothing wrong in it."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import attrs

from amqpgate.datapath import reference, whole
from amqpgate.datapath.tables import LAST_HARMLESS, ScanResult, Side
from tests.fuzz.choices import Choices
from tests.fuzz.frames import FRAME_MAX, Writer

try:
    from amqpgate.datapath import _scan as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]

MOST = 400
TOKENS = (b"\0\x06\x01\x05", b"\x06\x01\x01\0")
WHOLE = (100, 0, 5000)
STEPS = 30
#: What is not a message's, or not to be known without its channel: the scanner says it.
_OTHERS = {ScanResult.NOT_OPEN, ScanResult.MALFORMED, ScanResult.HEADER_UNASKED, ScanResult.BODY_UNASKED}


def seeds() -> Iterator[bytes]:
    """A few of each kind of frame."""
    for step in range(16):
        yield bytes((0, 0, 1, step, 0, 5, 1, 1, 0)) * 6
        yield bytes((0, 1, 3, step, 6, 1, 1, 1, 5)) * 6


@attrs.define(eq=False)
class World:
    """One walk and its lane; the bytes that have not been passed on."""

    scanner: ModuleType
    walk: whole.Walk
    lane: reference.Lane
    most: int
    data: bytes = b""
    told: list[tuple[object, ...]] = attrs.field(factory=list)
    is_over: bool = False

    @classmethod
    def of(cls, is_plain: bool, most: int, out: int) -> World:
        """With channels 1 and 2 open, and 3 refused."""
        scanner = reference if is_plain else compiled
        channels = scanner.Channels()
        for number in (1, 2, 3):
            channels.open(number, number + 10)
        channels.discard(3)
        lane = scanner.Lane(Side.CLIENT, 4096, out, channels)
        return cls(scanner, (whole if is_plain else compiled).Walk(), lane, most)

    def look(self, more: bytes) -> None:
        """Go on with more bytes."""
        self.data += more
        result, first, stop = self.walk.look(self.lane, bytearray(self.data), 0, len(self.data), self.most)
        is_end = result is not ScanResult.MORE
        frame = self.data[first:stop] if result is ScanResult.LARGE else b""
        self.told.append((self.walk.quiet, self.walk.at, result, first if is_end else 0, frame))
        assert 0 <= self.walk.quiet <= self.walk.at <= len(self.data)
        self.is_over = is_end

    def passes(self, count: int) -> None:
        """The scanner deals with some of what is quiet."""
        chunk, spans = bytearray(self.data), list[tuple[int, int]]()
        count = min(count, self.walk.quiet)
        at, result, _ = self.scanner.scan(self.lane, chunk, 0, count, 1.0, spans)
        self.told.append((at, result, spans))
        assert result <= LAST_HARMLESS or result in _OTHERS, result
        self.walk.passed(at)
        self.data = self.data[at:]
        # The pump would take the frame away, or end the session.
        self.is_over = result is not ScanResult.MORE

    def control(self, what: int, number: int) -> None:
        """A channel opens, closes, or is refused; then all is looked at again."""
        channels = self.lane.channels
        if what == 0:
            channels.close(number)
        elif what == 1 and number:
            channels.open(number, number + 10)
        elif what == 2 and channels.state(number):
            channels.discard(number)
        self.walk.restart()


def play(is_plain: bool, data: bytes) -> World:
    """The world as it is in the end."""
    choices = Choices(data)
    world = World.of(is_plain, choices.pick(WHOLE), choices.pick(FRAME_MAX))
    writer = Writer(choices)
    for _ in range(STEPS):
        if world.is_over or not choices:
            break
        what = choices.below(8)
        if what < 5:
            world.look(writer.some(Side.CLIENT))
        elif what == 5:
            piece = writer.some(Side.CLIENT)
            cut = choices.below(len(piece) + 1)
            world.look(piece[:cut])
            if not world.is_over:
                world.look(piece[cut:])
        elif what == 6:
            world.passes(world.walk.quiet if choices.flag() else choices.number(2))
        else:
            world.control(choices.below(3), choices.below(5))
    return world


def check(data: bytes) -> None:
    """Both walks say the same."""
    plain = play(True, data)
    if compiled is not None:
        other = play(False, data)
        assert other.told == plain.told, (other.told, plain.told)
