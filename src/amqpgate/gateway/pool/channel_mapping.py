"""Which channel of a shared connection a client's channel is, and what is under way on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sized
from typing import Final

import attrs

from amqpgate.gateway.pool.exclusive_queues import is_exclusive
from amqpgate.gateway.pool.queue_types import type_of
from amqpgate.gateway.session.channel_close import check_unanswered
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Methods of one kind that the broker has not answered on a channel. More is remembered of each than on a
#: connection of the session's own.
MOST_UNANSWERED: Final = 1024

#: Methods after which a channel can still be closed without asking the broker.
_TRACELESS: Final = frozenset({amqp.ChannelOpen.INDEX, amqp.ConfirmSelect.INDEX, amqp.ChannelClose.INDEX})

#: What the broker may ask of a client, and the answer.
_ANSWERS: Final[Mapping[type[Method], type[Method]]] = {
    amqp.ChannelFlow: amqp.ChannelFlowOk,
    amqp.BasicCancel: amqp.BasicCancelOk,
}


@attrs.frozen
class PendingDeclare:
    """What counts of a queue.declare: arguments may be as long as a frame."""

    queue: str
    passive: bool
    #: `queue_types.type_of` its arguments.
    type: str | None
    #: As it was asked, where it asks for an exclusive queue: those are declared again, and the broker has as
    #: much of each.
    exclusive: amqp.QueueDeclare | None

    @classmethod
    def of(cls, declare: amqp.QueueDeclare) -> PendingDeclare:
        """That of a method."""
        kept = declare if is_exclusive(declare) else None
        return cls(declare.queue, declare.passive, type_of(declare.arguments), kept)


@attrs.define(weakref_slot=False)
class PendingDeclares:
    """queue.declare that the broker has not answered, in the order asked.

    A client chooses how many there are, so those of one name are found without a look at the others.
    """

    _asked: deque[PendingDeclare] = attrs.field(factory=deque, init=False)
    #: By queue, those that may make one.
    _making: dict[str, deque[PendingDeclare]] = attrs.field(factory=dict, init=False)

    def __len__(self) -> int:
        return len(self._asked)

    def __iter__(self) -> Iterator[PendingDeclare]:
        return iter(self._asked)

    def add(self, declare: PendingDeclare) -> None:
        """The broker is asked."""
        self._asked.append(declare)
        if not declare.passive:
            self._making.setdefault(declare.queue, deque()).append(declare)

    def answered(self) -> PendingDeclare | None:
        """The broker has answered the one that was asked first: which that is."""
        if not self._asked:
            return None
        declare = self._asked.popleft()
        if not declare.passive:
            making = self._making[declare.queue]
            making.popleft()
            if not making:
                del self._making[declare.queue]
        return declare

    def making(self, queue: str) -> PendingDeclare | None:
        """The first that may make a queue of that name."""
        making = self._making.get(queue)
        return None if making is None else making[0]


@attrs.define(weakref_slot=False)
class ChannelMapping:
    """One channel of a session.

    The methods for what the client says are called as it goes to the broker, those for answers as they come.
    """

    #: Its number on the shared connection.
    number: int
    #: The broker had opened it before, and it does not confirm.
    is_spare: bool
    #: The broker has opened it, and the client knows.
    is_open: bool = False
    #: Methods have passed of which the broker's work may not be done yet.
    is_used: bool = False
    #: The method that the broker was asked last: what it closes the connection for, if it does.
    asked: int = 0
    #: basic.qos that the broker has not answered: whether the client waits for it.
    limits_due: deque[bool] | None = None
    #: queue.declare and queue.delete that the broker has not answered; of these the names.
    declares_due: PendingDeclares | None = None
    deletes_due: deque[str] | None = None
    #: Tags of consumers that the broker has not named in an answer.
    tags_due: list[str] | None = None
    #: What the broker has asked for, and the client has not answered.
    owed: list[type[Method]] | None = None
    #: What the client wants for each consumer, and for the channel (RabbitMQ: global).
    each: amqp.BasicQos | None = None
    all: amqp.BasicQos | None = None

    @property
    def has_prefetch(self) -> bool:
        """Whether the broker sends only so much that is not acknowledged."""
        return any(limit is not None and limit.prefetch_count > 0 for limit in (self.each, self.all))

    @property
    def is_limited(self) -> bool:
        """Whether it has a global qos."""
        return self.all is not None and self.all.prefetch_count > 0

    def asks(self, method: Method) -> None:
        """The broker has said something; maybe the client owes an answer."""
        answer = _ANSWERS.get(type(method))
        if answer is not None and not getattr(method, "no_wait", False):
            self.owed = self.owed or []
            self.owed.append(answer)

    def answers(self, method: Method) -> bool:
        """Whether the broker waits for what the client says, if it is an answer."""
        if type(method) not in _ANSWERS.values():
            return True
        if not self.owed or type(method) not in self.owed:
            return False
        self.owed.remove(type(method))
        return True

    def awaits_name(self, method: Method) -> bool:
        """Whether it cancels a consumer that RabbitMQ has not said consume-ok for. It would take the consumer
        for one that is there, and ends the connection when its tag is used again (541)."""
        return isinstance(method, amqp.BasicCancel) and method.consumer_tag in (self.tags_due or ())

    def pending_type(self, queue: str) -> str | None:
        """The type of a queue that is asked for, and that the broker has not agreed to."""
        declare = None if self.declares_due is None else self.declares_due.making(queue)
        return None if declare is None else declare.type

    def is_pending(self, queue: str) -> bool:
        """Whether a queue is asked for: if the broker does not agree, it ignores what comes behind."""
        return self.declares_due is not None and self.declares_due.making(queue) is not None

    def passes(self, method: Method) -> None:
        """The client's method goes to the broker."""
        self.asked = method.INDEX
        self.is_used = self.is_used or method.INDEX not in _TRACELESS

    def opened(self) -> None:
        """The broker has opened it."""
        self.is_open = True

    def selects(self, *, is_traceless: bool) -> None:
        """The client selects confirms. After that it is no spare channel for anybody; ``is_traceless``: the
        broker need not do it."""
        self.is_spare = False
        self.is_used = self.is_used or not is_traceless

    def move(self, number: int) -> None:
        """It is another channel of the connection now."""
        self.number = number

    def check(self, channel: int, method: Method) -> None:
        """Raises ``ProtocolViolation`` where the client asks for more than can be remembered."""
        due: Sized | None = None
        match method:
            case amqp.BasicQos():
                due = self.limits_due
            case amqp.QueueDeclare():
                due = self.declares_due
            case amqp.QueueDelete():
                due = self.deletes_due
            case amqp.BasicConsume():
                due = self.tags_due
        if due is not None:
            check_unanswered(len(due), MOST_UNANSWERED, channel, method)

    def requests(self, method: Method) -> None:
        """The client's method goes to the broker, with the broker's names."""
        match method:
            case amqp.BasicQos():
                self.limits_due = self.limits_due or deque()
                self.limits_due.append(True)
                if method.global_:
                    self.all = method
                else:
                    self.each = method
            case amqp.QueueDeclare(no_wait=False):
                self.declares_due = self.declares_due or PendingDeclares()
                self.declares_due.add(PendingDeclare.of(method))
            case amqp.QueueDelete(no_wait=False):
                self.deletes_due = self.deletes_due or deque()
                self.deletes_due.append(method.queue)
            case amqp.BasicConsume(no_wait=False, consumer_tag=tag) if tag:
                self.tags_due = self.tags_due or []
                self.tags_due.append(tag)

    def repeat_limit(self) -> amqp.BasicQos:
        """The channel's limit as it is, to be told once more; its answer is not the client's."""
        self.limits_due = self.limits_due or deque()
        self.limits_due.append(False)
        return self.all or amqp.BasicQos(0, 0, global_=True)

    def hears(self, method: Method) -> bool:
        """The broker has said something: whether that is for the client."""
        self.asked = 0
        self.asks(method)
        if isinstance(method, amqp.BasicQosOk) and self.limits_due:
            return self.limits_due.popleft()
        return True

    def closes(self) -> None:
        """Either side has closed it: no consumer is named any more."""
        self.tags_due = None

    def names(self, tag: str) -> bool:
        """The broker names a consumer. Whether the client has chosen that name."""
        if tag not in (self.tags_due or ()):
            return False
        assert self.tags_due is not None, "it has been found there"
        self.tags_due.remove(tag)
        return True
