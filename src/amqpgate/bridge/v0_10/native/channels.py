"""The channels of a relayed connection: how far both sides are with each, and what waits there."""

from __future__ import annotations

from collections import deque
from typing import Final

from amqpgate.bridge.v0_10.native.build import Counter, Original, OriginalQueue, Outgoing
from amqpgate.bridge.v0_10.native.cutting import Assembly
from amqpgate.bridge.v0_10.native.settling import Unsettled
from amqpgate.bridge.v0_10.native.stages import BrokerStage, ClientStage
from amqpgate.wire.generated.v0_9_1 import BasicConsumeOk
from amqpgate.wire.generated.v0_10 import ExecutionException
from amqpgate.wire.method import Method

#: Commands of one session whose completion is waited for.
MOST_DUE: Final = 1024

_MASK: Final = 0xFFFF_FFFF
_HALF: Final = 1 << 31


class Due:
    """What the broker has yet to complete, before the copies that answer it may be said."""

    __slots__ = ("_consumers", "answers")

    def __init__(self) -> None:
        #: With the ids of the commands that they answer.
        self.answers: deque[tuple[int, tuple[Method, ...]]] = deque()
        #: Ids of subscriptions that are not complete, by consumer tag.
        self._consumers: dict[str, int] = {}

    def ask(self, command_id: int, answers: tuple[Method, ...]) -> list[Method]:
        """A command goes to the broker. Answers that are not waited for any more: a client need not ask, and
        then the broker need not say."""
        self.answers.append((command_id, answers))
        for answer in answers:
            if isinstance(answer, BasicConsumeOk):
                self._consumers[answer.consumer_tag] = command_id
        return self.until(self.answers[0][0]) if len(self.answers) > MOST_DUE else []

    def until(self, command_id: int) -> list[Method]:
        """The answers to all commands up to this one."""
        found: list[Method] = []
        while self.answers and (command_id - self.answers[0][0]) & _MASK < _HALF:
            found += self.answers.popleft()[1]
        if self._consumers:
            self._consumers = {
                tag: number
                for tag, number in self._consumers.items()
                if (command_id - number) & _MASK >= _HALF
            }
        return found

    def all(self) -> list[Method]:
        """The answers to all commands: the session ends without a word against them."""
        return self.until(self.answers[-1][0]) if self.answers else []

    def delivers(self, tag: str) -> list[Method]:
        """A subscription gets a message, so it is there: the answers up to its own."""
        command_id = self._consumers.get(tag)
        return [] if command_id is None else self.until(command_id)


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
        self.held: deque[Assembly] = deque()
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
        """The client begins a session. Its answer to the broker's detach may still be on its way."""
        self._begin(name)
        if self.up.is_dropping:
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

    def take_held(self) -> Assembly:
        """What has waited longest."""
        return self.held.popleft()
