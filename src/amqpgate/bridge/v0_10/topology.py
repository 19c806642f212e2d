"""What is known of exchanges, queues and bindings: 0-10 asks about more than 0-9-1 can tell.

Known is what passed through here. Somebody else may have changed it since, so it is used only where 0-9-1 has
no answer at all.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Final, Generic, TypeVar

from attrs import frozen

from amqpgate.protocol.frames import method_frame
from amqpgate.wire.generated.v0_9_1 import QueueBind
from amqpgate.wire.tables import Table
from amqpgate.wire.v0_10.types import Map, put_map

#: As many exchanges, queues and bindings are remembered each, and of each as many bytes of arguments as they
#: are on the wire, or those of one alone; the oldest are forgotten first.
MOST_KNOWN: Final = 4096
MOST_ARGUMENTS: Final = 256 * 1024

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Recent(Generic[K, V]):
    """A mapping of `MOST_KNOWN` entries at most, whose arguments have `MOST_ARGUMENTS` bytes."""

    __slots__ = ("_byte_count", "_entries")

    def __init__(self) -> None:
        #: Each with the bytes of its arguments.
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._byte_count = 0

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def get(self, key: K) -> V | None:
        found = self._entries.get(key)
        return None if found is None else found[0]

    def items(self) -> Iterator[tuple[K, V]]:
        return ((key, value) for key, (value, _) in self._entries.items())

    def put(self, key: K, value: V, arguments: Map | Table | None = None) -> None:
        self.drop(key)
        byte_count = _byte_count(arguments)
        self._entries[key] = value, byte_count
        self._byte_count += byte_count
        while len(self._entries) > MOST_KNOWN or (
            self._byte_count > MOST_ARGUMENTS and len(self._entries) > 1
        ):
            self.drop(next(iter(self._entries)))

    def drop(self, key: K) -> None:
        _, byte_count = self._entries.pop(key, (None, 0))
        self._byte_count -= byte_count


def _byte_count(arguments: Map | Table | None) -> int:
    if arguments is None:
        return 0
    if isinstance(arguments, Map):
        return len(put_map(arguments))
    return len(method_frame(0, QueueBind(arguments=arguments))) if arguments else 0


@frozen
class KnownExchange:
    """An exchange as it was declared."""

    type: bytes
    durable: bool = False
    arguments: Map | None = None
    alternate_exchange: bytes | None = None


@frozen
class KnownQueue:
    """A queue as it was declared."""

    durable: bool
    exclusive: bool
    auto_delete: bool
    alternate_exchange: bytes | None
    arguments: Map | None

    @property
    def ends_unused(self) -> bool:
        """Whether it is deleted with its last subscription, whoever has that."""
        return self.auto_delete and not self.exclusive


@frozen
class Binding:
    """What binds a queue to an exchange, but for the arguments."""

    queue: str
    exchange: str
    key: str


#: What every broker has.
STANDARD: Final = {
    "": KnownExchange(b"direct", durable=True),
    "amq.direct": KnownExchange(b"direct", durable=True),
    "amq.fanout": KnownExchange(b"fanout", durable=True),
    "amq.topic": KnownExchange(b"topic", durable=True),
    "amq.headers": KnownExchange(b"headers", durable=True),
    "amq.match": KnownExchange(b"headers", durable=True),
}


class KnownTopology:
    """What is known of one virtual host. It may be shared by the connections to it."""

    __slots__ = ("_bindings", "_exchanges", "_gets", "_owners", "_queues", "_undone")

    def __init__(self) -> None:
        self._exchanges: _Recent[str, KnownExchange] = _Recent()
        self._queues: _Recent[str, KnownQueue] = _Recent()
        #: Queues that were asked about: see ``gets``.
        self._gets: _Recent[str, bool] = _Recent()
        #: Arguments of bindings that were made.
        self._bindings: _Recent[Binding, Table] = _Recent()
        self._undone: _Recent[Binding, None] = _Recent()
        #: Who has locked a queue: in 0-10 a session does, not a connection.
        self._owners: dict[str, object] = {}

    def exchange(self, name: str) -> KnownExchange | None:
        """An exchange that every broker has, or that was declared."""
        return STANDARD.get(name) or self._exchanges.get(name)

    def put_exchange(self, name: str, exchange: KnownExchange) -> None:
        """It was declared so."""
        self._exchanges.put(name, exchange, exchange.arguments)

    def drop_exchange(self, name: str) -> None:
        """It is there no more."""
        self._exchanges.drop(name)

    def queue(self, name: str) -> KnownQueue | None:
        """A queue that was declared."""
        return self._queues.get(name)

    def put_queue(self, name: str, queue: KnownQueue) -> None:
        """It was declared so."""
        self._queues.put(name, queue, queue.arguments)
        self._gets.drop(name)

    def drop_queue(self, name: str) -> None:
        """It is there no more."""
        self._queues.drop(name)
        self._gets.drop(name)
        self._owners.pop(name, None)

    def takes_gets(self, queue: str) -> bool | None:
        """Whether it takes basic.get, as the broker has said; None: it was not asked."""
        return self._gets.get(queue)

    def put_gets(self, queue: str, *, takes: bool) -> None:
        """The broker has said whether it takes basic.get."""
        self._gets.put(queue, takes)

    def with_alternate(self, exchange: str) -> tuple[list[str], list[str]]:
        """Exchanges and queues that were declared with this alternate exchange."""
        name = exchange.encode()
        return (
            [each for each, known in self._exchanges.items() if known.alternate_exchange == name],
            [each for each, known in self._queues.items() if known.alternate_exchange == name],
        )

    def bind(self, binding: Binding, arguments: Table) -> None:
        """It was made."""
        self._bindings.put(binding, arguments, arguments)
        self._undone.drop(binding)

    def unbind(self, binding: Binding) -> None:
        """It was undone."""
        self._bindings.drop(binding)
        self._undone.put(binding, None)

    def arguments_of(self, binding: Binding) -> Table | None:
        """What the binding was made with; None if it was not made here, or undone."""
        return self._bindings.get(binding)

    def bindings_of(self, queue: str, exchange: str) -> Mapping[str, Table]:
        """Arguments of the bindings between the two that were made here, by key."""
        return {
            binding.key: arguments
            for binding, arguments in self._bindings.items()
            if binding.queue == queue and binding.exchange == exchange
        }

    def all_bindings_at(self, exchange: str) -> Iterable[tuple[Binding, Table]] | None:
        """The bindings of queues to an exchange, with their arguments; None: there may be others'."""
        return None

    def is_undone(self, binding: Binding) -> bool:
        """Whether the last that was heard of it is that it is gone."""
        return binding in self._undone

    def lock(self, queue: str, owner: object) -> None:
        """Take a queue for one's own that is not locked."""
        self._owners[queue] = owner

    def is_locked(self, queue: str, owner: object) -> bool:
        """Whether another one has it for its own."""
        return self._owners.get(queue, owner) is not owner

    def is_owner(self, queue: str, owner: object) -> bool:
        """Whether it has it for its own."""
        return self._owners.get(queue) is owner

    def unlock(self, owner: object) -> None:
        """``owner`` is gone."""
        for queue in [queue for queue, holder in self._owners.items() if holder is owner]:
            del self._owners[queue]
