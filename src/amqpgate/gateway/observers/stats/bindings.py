"""Bindings that were made through this gateway, and not taken back since: for the picture of who sends what
to whom (`operator.graph`).

One has been made when the broker says so, as for audit records (`audit.channel`)::

    queue.bind ──▶ due ──▶ queue.bind-ok: it is there
                   └────── the channel is closed instead: it is not

What the broker removes by itself is heard of nowhere: queues that expire, or that end with a consumer or a
connection. Of those it is known only which queues it has named itself for a session that is over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

import attrs

from amqpgate.policy import Operation, Principal
from amqpgate.policy.engine.from_method import operation_of
from amqpgate.policy.engine.operations import SERVER_NAMED
from amqpgate.values import define, frozen
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Bindings that are remembered: of more, those made last. Each is some hundred bytes, at most 1.5 KiB.
MOST: Final = 4096

#: Changes of one session that the broker has not answered; those that are more are left out.
MOST_DUE: Final = 1024

_CHANGES: Final[tuple[type[Method], ...]] = (
    amqp.QueueBind,
    amqp.QueueUnbind,
    amqp.QueueDelete,
    amqp.ExchangeBind,
    amqp.ExchangeUnbind,
    amqp.ExchangeDelete,
)
#: Methods that make or take back bindings, and what the broker answers them.
CHANGES: Final = frozenset(method.INDEX for method in _CHANGES)
_ANSWERS: Final = frozenset(answer for method in _CHANGES for answer in method.REPLIES)

Kind: TypeAlias = Literal["exchange", "queue"]
#: Virtual host, kind and name of one end of a binding.
End: TypeAlias = "tuple[str, Kind, str]"


@frozen
class SeenBinding:
    """What is routed from an exchange to a queue, or to another exchange."""

    source: End
    target: End
    key: str


@define(weakref_slot=False)
class DueBinding:
    """A change that the broker has not answered yet."""

    answer: int
    operation: Operation


@define(eq=False)
class Bindings:
    """Of one gateway."""

    #: How many there was no room for.
    left_out: int = attrs.field(default=0, init=False)
    #: Those made last at the end.
    _all: dict[SeenBinding, None] = attrs.field(factory=dict, init=False)
    #: By either end.
    _of: dict[End, set[SeenBinding]] = attrs.field(factory=dict, init=False)

    def __iter__(self) -> Iterator[SeenBinding]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def forget(self, vhost: str, queues: Iterable[str]) -> None:
        """These are no more."""
        for queue in queues:
            self._ended((vhost, "queue", queue))

    def change(self, operation: Operation) -> None:
        """The broker has made it, or taken it back."""
        vhost = operation.principal.vhost
        if operation.queue == SERVER_NAMED:
            # The client has not waited for the name that the broker gives.
            return
        exchange: End = vhost, "exchange", operation.exchange or ""
        queue: End = vhost, "queue", operation.queue or ""
        if operation.name == amqp.QueueDelete.NAME:
            self._ended(queue)
        elif operation.name == amqp.ExchangeDelete.NAME:
            self._ended(exchange)
        else:
            target: End = (
                queue if operation.destination is None else (vhost, "exchange", operation.destination)
            )
            binding = SeenBinding(exchange, target, operation.routing_key or "")
            self._remove(binding)
            if operation.name in (amqp.QueueBind.NAME, amqp.ExchangeBind.NAME):
                self._add(binding)

    def _add(self, binding: SeenBinding) -> None:
        self._all[binding] = None
        for end in (binding.source, binding.target):
            self._of.setdefault(end, set()).add(binding)
        if len(self._all) > MOST:
            self._remove(next(iter(self._all)))
            self.leave_out()

    def leave_out(self) -> None:
        """There is no room for one."""
        self.left_out += 1

    def _remove(self, binding: SeenBinding) -> None:
        if binding not in self._all:
            return
        del self._all[binding]
        for end in {binding.source, binding.target}:
            self._of[end].remove(binding)
            if not self._of[end]:
                del self._of[end]

    def _ended(self, end: End) -> None:
        for binding in list(self._of.get(end, ())):
            self._remove(binding)


@define(eq=False, weakref_slot=False)
class SessionBindings:
    """The changes of one session that the broker has not answered yet."""

    bindings: Bindings
    #: By channel, in the order asked.
    _due: dict[int, deque[DueBinding]] = attrs.field(factory=dict, init=False)
    #: By channel: those behind them that are not remembered.
    _more: dict[int, int] = attrs.field(factory=dict, init=False)

    def passed(self, channel: int, method: Method, principal: Principal, last_queue: str) -> None:
        """One of `CHANGES` has gone to the broker."""
        # Its arguments say nothing of what is bound, and may be as long as a frame.
        operation = attrs.evolve(operation_of(method, principal, last_queue), arguments={})
        if getattr(method, "no_wait", False):
            self.bindings.change(operation)
            return
        if channel in self._more or sum(map(len, self._due.values())) >= MOST_DUE:
            # The answers come in order: none of a channel's is taken for that of another.
            self._more[channel] = self._more.get(channel, 0) + 1
            self.bindings.leave_out()
        else:
            self._due.setdefault(channel, deque()).append(DueBinding(method.REPLIES[0], operation))

    def answered(self, channel: int, method: Method) -> None:
        """The broker has said something. It answers in order."""
        due = self._due.get(channel)
        if due and due[0].answer == method.INDEX:
            self.bindings.change(due.popleft().operation)
            if not due:
                del self._due[channel]
        elif not due and channel in self._more and method.INDEX in _ANSWERS:
            self._more[channel] -= 1
            if not self._more[channel]:
                del self._more[channel]

    def opens(self, channel: int) -> None:
        """A channel opens: there is nothing of its last use."""
        self._due.pop(channel, None)
        self._more.pop(channel, None)
