"""What the scripted broker holds for all of its connections: exchanges, bindings, queues, messages.

Enough for an ordinary program. What queues and exchanges are declared with (expiry, limits, dead letters) is
taken and not acted on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, Protocol

import attrs

from amqpgate.wire.method import Properties
from amqpgate.wire.tables import EMPTY_TABLE, Table

#: Bytes of bodies, and entries of each kind, that are held; a program that needs more is no ordinary one.
MOST_BYTES: Final = 64 << 20
MOST_ENTRIES: Final = 10_000


@attrs.define(eq=False)
class HeldMessage:
    """One, as it was published."""

    exchange: str
    routing_key: str
    properties: Properties
    body: bytes
    is_redelivered: bool = False

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        return len(self.body) + 1000


class QueueReader(Protocol):
    """A consumer, as its queue sees it."""

    @property
    def has_room(self) -> bool:
        """Whether it takes a message now."""

    def take(self, queue: HeldQueue, message: HeldMessage) -> None:
        """A message is delivered."""


@attrs.define(eq=False)
class HeldQueue:
    """Messages in order, and who takes them in turn."""

    name: str
    owner: object = None
    auto_delete: bool = False
    messages: deque[HeldMessage] = attrs.field(factory=deque)
    readers: deque[QueueReader] = attrs.field(factory=deque)
    #: Bytes of all messages.
    size: int = 0

    def put(self, message: HeldMessage) -> None:
        """At the end."""
        self.messages.append(message)
        self.size += message.size

    def next(self) -> HeldMessage:
        """The first, which goes. Raises ``IndexError`` where there is none."""
        message = self.messages.popleft()
        self.size -= message.size
        return message

    def purge(self) -> int:
        """How many there were."""
        count = len(self.messages)
        self.messages.clear()
        self.size = 0
        return count

    def deliver(self) -> None:
        """Hand out what readers have room for."""
        while self.messages:
            reader = next((one for one in self.readers if one.has_room), None)
            if reader is None:
                return
            self.readers.remove(reader)
            self.readers.append(reader)
            reader.take(self, self.next())

    def put_back(self, message: HeldMessage) -> None:
        """At the front, and marked."""
        message.is_redelivered = True
        self.messages.appendleft(message)
        self.size += message.size


@attrs.define(eq=False)
class HeldExchange:
    """Where messages go: to queues and to other exchanges."""

    kind: str
    #: Target's kind and name, routing key, arguments.
    bindings: list[tuple[str, str, str, Table]] = attrs.field(factory=list)

    def targets(self, key: str, properties: Properties) -> Iterator[tuple[str, str]]:
        """Kind and name of each."""
        for kind, name, bound, arguments in self.bindings:
            if self._matches(bound, key, arguments, properties):
                yield kind, name

    def _matches(self, bound: str, key: str, arguments: Table, properties: Properties) -> bool:
        if self.kind == "fanout":
            return True
        if self.kind == "topic":
            return topic_matches(bound.split("."), key.split("."))
        if self.kind == "headers":
            said = getattr(properties, "headers", None) or EMPTY_TABLE
            wanted = [(name, field) for name, field in arguments if not name.startswith("x-")]
            found = [said.field(name) is not None and said.get(name) == field.plain for name, field in wanted]
            return any(found) if arguments.get("x-match") in ("any", "any-with-x") else all(found)
        return bound == key


def topic_matches(pattern: list[str], words: list[str]) -> bool:
    """``*`` is a word, ``#`` any number of them. A row says which beginnings match so far."""
    row = [True] + [False] * len(words)
    for part in pattern:
        if part == "#":
            seen = False
            row = [seen := seen or one for one in row]
        else:
            row = [False] + [before and part in ("*", word) for before, word in zip(row, words, strict=False)]
    return row[-1]


_BUILT_IN: Final = {
    "": "direct",
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.topic": "topic",
    "amq.headers": "headers",
    "amq.match": "headers",
}


@attrs.define(eq=False)
class BrokerStore:
    """All of it; one for a run, whatever the virtual host."""

    exchanges: dict[str, HeldExchange] = attrs.field(
        factory=lambda: {name: HeldExchange(kind) for name, kind in _BUILT_IN.items()}
    )
    queues: dict[str, HeldQueue] = attrs.field(factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether nothing more is taken."""
        if len(self.queues) + len(self.exchanges) > MOST_ENTRIES:
            return True
        return sum(queue.size for queue in self.queues.values()) > MOST_BYTES

    def route(self, exchange: str, key: str, properties: Properties) -> list[HeldQueue]:
        """The queues that get a message, each once."""
        if exchange == "":
            return [self.queues[key]] if key in self.queues else []
        found: dict[str, HeldQueue] = {}
        seen, left = {exchange}, [exchange]
        while left:
            held = self.exchanges.get(left.pop())
            for kind, name in held.targets(key, properties) if held is not None else ():
                if kind == "queue" and name in self.queues:
                    found[name] = self.queues[name]
                elif kind == "exchange" and name not in seen:
                    seen.add(name)
                    left.append(name)
        return list(found.values())

    def delete_queue(self, name: str) -> int:
        """How many messages it had."""
        queue = self.queues.pop(name, None)
        for exchange in self.exchanges.values():
            exchange.bindings[:] = [one for one in exchange.bindings if one[:2] != ("queue", name)]
        return len(queue.messages) if queue is not None else 0

    def left_by(self, owner: object) -> None:
        """Its exclusive queues go."""
        for name in [name for name, queue in self.queues.items() if queue.owner is owner]:
            self.delete_queue(name)
