"""What the audit of one channel waits for: answers of the broker; and of a message, its rest.

What changes the topology has done so when the broker says it::

    queue.declare ──▶ due ──▶ queue.declare-ok: the event, with the name that the broker gave
                      └────── the channel is closed instead: no event
    with no-wait ───▶ silent ──▶ the broker answers what was asked later, or the channel ends: the event
                      └───────── the channel is closed for it instead: no event

The same for consumers.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import Final

import attrs

from amqpgate.gateway.observers.audit.columns import OperationKind
from amqpgate.policy import Operation
from amqpgate.policy.kinds.audit import AuditDecision
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

_CHANGES: Final[tuple[type[Method], ...]] = (
    amqp.ExchangeDeclare,
    amqp.ExchangeDelete,
    amqp.ExchangeBind,
    amqp.ExchangeUnbind,
    amqp.QueueDeclare,
    amqp.QueueDelete,
    amqp.QueueBind,
    amqp.QueueUnbind,
    amqp.BasicConsume,
    amqp.BasicCancel,
)
#: Methods that change what there is. The broker answers each by its ``REPLIES``.
CHANGES: Final = frozenset(method.INDEX for method in _CHANGES)
_ANSWERS: Final = frozenset(answer for method in _CHANGES for answer in method.REPLIES)

#: Changes of one channel that are remembered while the broker does not answer. What is more is told once it
#: has passed.
MOST_CHANGES: Final = 256

#: Changes of one channel that the broker never answers, and that are remembered until it answers something
#: else. What is more is told, the first first.
MOST_SILENT: Final = 8

#: What an event says of a method beside its names.
_DETAILS: Final = (
    "type",
    "durable",
    "auto_delete",
    "internal",
    "exclusive",
    "no_ack",
    "consumer_tag",
)


@attrs.define(weakref_slot=False)
class Change:
    """A method that the broker has not answered yet."""

    #: 0: the broker does not answer it.
    answer: int
    #: None: nobody is told of it, as of a passive declare.
    kind: OperationKind | None
    detail: dict[str, object]
    #: The method, by its index.
    asked: int = 0

    def name_queue(self, kind: OperationKind, queue: str) -> None:
        """The broker tells the name of the queue."""
        self.kind = attrs.evolve(kind, queue=queue)


@attrs.define(weakref_slot=False)
class Reading:
    """A message whose body is being read along."""

    decision: AuditDecision
    operation: Operation
    kind: OperationKind
    #: Bytes that are kept, and that are still to come.
    wanted: int
    due: int
    data: bytearray = attrs.field(factory=bytearray)

    def take(self, piece: memoryview, room: int) -> bool:
        """More of the body has passed, of which so many bytes may be kept; whether that was all."""
        kept = piece[: max(0, self.wanted - len(self.data))]
        if len(kept) > room:
            kept = kept[:room]
            self.wanted = len(self.data) + room
        self.data += kept
        self.due -= len(piece)
        return self.due <= 0


@attrs.define(weakref_slot=False)
class ChannelAudit:
    """Of one channel. It goes with the channel, and what it waits for with it."""

    #: In the order asked; those that the broker has not answered.
    changes: deque[Change] = attrs.field(factory=deque)
    #: How many more of them are not answered, and were told, behind all that are remembered.
    told: int = 0

    def asked(self, method: Method, kind: OperationKind | None) -> Change | None:
        """A change has passed to the broker. One is returned that is told now."""
        is_silent = getattr(method, "no_wait", False)
        change = Change(0 if is_silent else method.REPLIES[0], kind, detail_of(method), method.INDEX)
        if self.told or len(self.changes) >= MOST_CHANGES:
            self.told += not is_silent
            return change
        self.changes.append(change)
        silent = [one for one in self.changes if not one.answer] if is_silent else []
        if len(silent) <= MOST_SILENT:
            return None
        self.changes.remove(silent[0])
        return silent[0]

    def answered(self, method: Method) -> list[Change]:
        """The changes that the broker's answer tells of. It answers in order, but for direct replies."""
        if isinstance(method, amqp.ChannelClose):
            return self._closed(method.class_id << 16 | method.method_id)
        for at, change in enumerate(self.changes):
            if not change.answer or change.answer != method.INDEX:
                continue
            if (
                isinstance(method, amqp.BasicCancelOk)
                and change.detail["consumer_tag"] != method.consumer_tag
            ):
                continue
            del self.changes[at]
            if isinstance(method, amqp.BasicConsumeOk):
                change.detail["consumer_tag"] = method.consumer_tag
            elif isinstance(method, amqp.QueueDeclareOk) and change.kind is not None:
                change.name_queue(change.kind, method.queue)
            return [*self._silent(at), change]
        if self.told and method.INDEX in _ANSWERS:
            self.told -= 1
        first = next((at for at, change in enumerate(self.changes) if change.answer), len(self.changes))
        return self._silent(first)

    def left(self) -> list[Change]:
        """Those that the broker would never answer, of a channel that is over, or whose session is."""
        return self._silent(len(self.changes))

    def _silent(self, end: int) -> list[Change]:
        """Those before ``end`` that the broker never answers, which are remembered no more."""
        found = [change for change in itertools.islice(self.changes, end) if not change.answer]
        for change in found:
            self.changes.remove(change)
        return found

    def _closed(self, method: int) -> list[Change]:
        """The broker refuses a method. Of several it is the last one, and all behind it were not read."""
        refused = [at for at, change in enumerate(self.changes) if change.asked == method]
        found = self._silent(refused[-1] if refused else len(self.changes))
        self.changes.clear()
        self.told = 0
        return found


def detail_of(method: Method) -> dict[str, object]:
    """What of a method has no column."""
    return {name: getattr(method, name) for name in _DETAILS if hasattr(method, name)}
