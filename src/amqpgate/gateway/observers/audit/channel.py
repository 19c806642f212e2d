"""What the audit of one channel waits for: answers of the broker; and of a message, its rest.

What changes the topology has done so when the broker says it; where the client wants no answer, when it has
passed::

    queue.declare ──▶ due ──▶ queue.declare-ok: the event, with the name that the broker gave
                      └────── the channel is closed instead: no event

The same for consumers.
"""

from __future__ import annotations

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

    answer: int
    #: None: nobody is told of it, as of a passive declare.
    kind: OperationKind | None
    detail: dict[str, object]

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
        """A change has passed to the broker. It is returned where nobody waits for the answer."""
        change = Change(method.REPLIES[0], kind, detail_of(method))
        if getattr(method, "no_wait", False):
            return change
        if self.told or len(self.changes) >= MOST_CHANGES:
            self.told += 1
            return change
        self.changes.append(change)
        return None

    def answered(self, method: Method) -> Change | None:
        """The change that the broker's answer is about. It answers in order, but for direct replies."""
        for at, change in enumerate(self.changes):
            if change.answer != method.INDEX:
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
            return change
        if self.told and method.INDEX in _ANSWERS:
            self.told -= 1
        return None


def detail_of(method: Method) -> dict[str, object]:
    """What of a method has no column."""
    return {name: getattr(method, name) for name in _DETAILS if hasattr(method, name)}
