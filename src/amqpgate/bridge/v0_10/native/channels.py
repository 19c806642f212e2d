"""What waits on the channels of a relayed connection: originals, each for its copies.

A :class:`OriginalQueue` is one direction of one channel. What has a copy is put into it by the end that has
read it, and taken out by the other end, when the copy comes out of the gateway there. What has no copy goes
at once, or behind what it came behind.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Final

from amqpgate.bridge.v0_10.native.assemblies import Assembly
from amqpgate.bridge.v0_10.native.settling import Unsettled
from amqpgate.wire.generated.v0_9_1 import BasicConsumeOk
from amqpgate.wire.generated.v0_10 import ExecutionException
from amqpgate.wire.method import Method

#: Commands of one session whose completion is waited for.
MOST_DUE: Final = 1024

#: Bytes that are counted of each assembly that waits, beside its own.
EACH: Final = 64

_MASK: Final = 0xFFFF_FFFF
_HALF: Final = 1 << 31


class Outgoing:
    """Bytes for one peer."""

    __slots__ = ("_parts", "size", "waiting")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        #: Bytes that may go.
        self.size = 0
        #: Bytes that wait for copies.
        self.waiting = 0

    def wait(self, size: int) -> None:
        """So many more bytes wait, or fewer."""
        self.waiting += size

    def put(self, data: bytes) -> None:
        """These come next."""
        self._parts.append(data)
        self.size += len(data)

    def take(self) -> bytes:
        """All of it; it is not given again."""
        if not self._parts:
            return b""
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self.size = 0
        return data


class Original:
    """An assembly, and the payloads of the method frames that are its copies."""

    __slots__ = ("answers", "behind", "code", "command_id", "copies", "data", "header", "size")

    def __init__(
        self,
        data: bytes,
        copies: list[bytes],
        *,
        header: bytes | None = None,
        command_id: int | None = None,
        code: int = 0,
        answers: tuple[Method, ...] = (),
    ) -> None:
        self.data = data
        #: Those that have not come out yet, the next one last.
        self.copies = copies
        #: Of a message the payload of the header frame.
        self.header = header
        #: Of a command, and its class and code.
        self.command_id = command_id
        self.code = code
        #: What its copies are answered with when it is complete.
        self.answers = answers
        #: What came behind it and has no copy.
        self.behind: list[bytes] = []
        #: Bytes of all that.
        self.size = len(data) + EACH

    def follow(self, data: bytes) -> None:
        """It goes behind this one."""
        self.behind.append(data)
        self.size += len(data) + EACH


class OriginalQueue:
    """One direction of one channel."""

    __slots__ = ("_out", "is_dropping", "waiting")

    def __init__(self, out: Outgoing) -> None:
        self._out = out
        self.waiting: deque[Original] = deque()
        #: Its session is over: nothing more of it goes to the peer.
        self.is_dropping = False

    def wait(self, original: Original) -> None:
        """It goes when its copies have come out."""
        if not self.is_dropping:
            self.waiting.append(original)
            self._out.wait(original.size)

    def follow(self, data: bytes) -> None:
        """It goes behind what waits."""
        if self.is_dropping:
            return
        if self.waiting:
            self.waiting[-1].follow(data)
            self._out.wait(len(data) + EACH)
        else:
            self._out.put(data)

    def release(self, data: bytes | None = None) -> None:
        """All copies of the first one have come out; ``data`` is what goes in its place."""
        original = self.waiting.popleft()
        self._out.wait(-original.size)
        if self.is_dropping:
            return
        self._out.put(original.data if data is None else data)
        for one in original.behind:
            self._out.put(one)

    def drop(self) -> Original | None:
        """Its session is over. The first of those that waited."""
        first = self.waiting[0] if self.waiting else None
        self._forget()
        self.is_dropping = True
        return first

    def reopen(self) -> None:
        """Another session begins."""
        self._forget()
        self.is_dropping = False

    def _forget(self) -> None:
        self._out.wait(-sum(original.size for original in self.waiting))
        self.waiting.clear()


class Counter:
    """Numbers of the commands of one direction of one session: serial numbers, from command-point on."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next = 0

    def point(self, command_id: int) -> None:
        """The next command has this one."""
        self._next = command_id & _MASK

    def take(self) -> int:
        """The number of the command that comes now."""
        number = self._next
        self._next = number + 1 & _MASK
        return number


class Due:
    """What the broker has yet to complete, before the copies that answer it may be said."""

    __slots__ = ("_answers", "_consumers")

    def __init__(self) -> None:
        self._answers: deque[tuple[int, tuple[Method, ...]]] = deque()
        #: Ids of subscriptions that are not complete, by consumer tag.
        self._consumers: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._answers)

    def ask(self, command_id: int, answers: tuple[Method, ...]) -> list[Method]:
        """A command goes to the broker. Answers that are not waited for any more: a client need not ask, and
        then the broker need not say."""
        self._answers.append((command_id, answers))
        for answer in answers:
            if isinstance(answer, BasicConsumeOk):
                self._consumers[answer.consumer_tag] = command_id
        return self.until(self._answers[0][0]) if len(self._answers) > MOST_DUE else []

    def until(self, command_id: int) -> list[Method]:
        """The answers to all commands up to this one."""
        found: list[Method] = []
        while self._answers and (command_id - self._answers[0][0]) & _MASK < _HALF:
            found += self._answers.popleft()[1]
        if self._consumers:
            self._consumers = {
                tag: number
                for tag, number in self._consumers.items()
                if (command_id - number) & _MASK >= _HALF
            }
        return found

    def all(self) -> list[Method]:
        """The answers to all commands: the session ends without a word against them."""
        return self.until(self._answers[-1][0]) if self._answers else []

    def delivers(self, tag: str) -> list[Method]:
        """A subscription gets a message, so it is there: the answers up to its own."""
        command_id = self._consumers.get(tag)
        return [] if command_id is None else self.until(command_id)


class ClientStage(Enum):
    """How far the client is with a channel."""

    #: No session; what is said here goes to the broker, which answers as it likes.
    FREE = "free"
    #: attach waits for its copy, and what follows for it.
    ATTACHING = "attaching"
    ATTACHED = "attached"
    #: It has sent detach.
    DETACHING = "detaching"
    #: It was sent detach, by the broker or for a denial: its detached is waited for.
    TOLD = "told"
    #: Its session was ended here: its detached is waited for, and the gateway's close-ok.
    FAILED = "failed"


class BrokerStage(Enum):
    """How far the broker is with a channel."""

    FREE = "free"
    #: It was sent attach; whether it has answered is the client's business.
    ATTACHED = "attached"
    #: It was sent detach, by the client or for a denial.
    TOLD = "told"
    #: It has sent detach, or has ended the session by itself: the gateway's close-ok is waited for.
    OVER = "over"


class RelayedChannel:
    """One channel: its session, if there is one, and what waits in both directions."""

    __slots__ = (
        "broker",
        "client",
        "denied",
        "down",
        "down_ids",
        "due",
        "exception",
        "held",
        "name",
        "number",
        "unsettled",
        "up",
        "up_ids",
    )

    def __init__(self, number: int, to_broker: Outgoing, to_client: Outgoing) -> None:
        self.number = number
        self.up = OriginalQueue(to_broker)
        self.down = OriginalQueue(to_client)
        self.client = ClientStage.FREE
        self.broker = BrokerStage.FREE
        #: What the client has sent behind its attach, or behind the end of a session, and waits.
        self.held: list[Assembly] = []
        self._begin(b"")

    def _begin(self, name: bytes) -> None:
        self.name = name
        self.up_ids, self.down_ids = Counter(), Counter()
        self.due = Due()
        self.unsettled = Unsettled()
        #: The broker's last words in the session.
        self.exception: ExecutionException | None = None
        #: The first original that did not pass, where the gateway has denied one.
        self.denied: Original | None = None

    def attach(self, name: bytes) -> None:
        """The client begins a session."""
        self._begin(name)
        self.up.reopen()
        self.down.reopen()
        self.client = ClientStage.ATTACHING

    def client_is(self, stage: ClientStage) -> None:
        """What the client's end says."""
        self.client = stage

    def broker_is(self, stage: BrokerStage) -> None:
        """What the broker's end says."""
        self.broker = stage

    def deny(self) -> None:
        """The gateway ends the session towards the broker: what waits never goes there."""
        self.denied = self.up.drop()
        self.broker = BrokerStage.TOLD

    def failed(self, exception: ExecutionException) -> None:
        """The broker says why it is about to end the session."""
        self.exception = exception

    def hold(self, assembly: Assembly) -> None:
        """It waits until its session may begin, or go on."""
        self.held.append(assembly)

    def take_held(self) -> list[Assembly]:
        """What waited."""
        held, self.held = self.held, []
        return held
