"""Queues that a session declares as transient, and a compatibility policy as durable (`compatibility`).

Where such a queue is there already, and another one, the broker's 406 may name an argument that the client
has not said. RabbitMQ 3 compares ``durable`` first, so that is what it would have said.

====================  ================  =====================================================================
the broker names      it has            why RabbitMQ 3 would have named ``durable``
====================  ================  =====================================================================
``x-expires``         none              flags are compared before arguments, and agreed: it is durable
``x-queue-type``      quorum, stream    those are durable
====================  ================  =====================================================================

All else the client hears in the broker's words.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Declares of one session that are remembered, the oldest are forgotten first.
MOST: Final = 64

#: RabbitMQ's words: before the argument, its name, behind it, the queue, what the queue has.
_TEXT: Final = re.compile(
    r"(PRECONDITION_FAILED - inequivalent arg )'(x-expires|x-queue-type)'( for queue '(.*)' in vhost '.*': )"
    r"received .* but current is (.*)",
    re.DOTALL,
)
_QUORUM: Final = re.compile(r"(the value )?'(quorum|stream)'.*", re.DOTALL)


@define(eq=False)
class DurableInstead:
    """Of one session."""

    #: Channel and queue of each, with the names of the arguments that were added.
    _declares: dict[tuple[int, str], frozenset[str]] = attrs.field(factory=dict, init=False)

    def declared(self, channel: int, method: Method, told: Method) -> None:
        """A client's method passes, and the broker is told something else."""
        if not isinstance(method, amqp.QueueDeclare) or method.passive:
            return
        key = channel, method.queue
        self._declares.pop(key, None)
        if isinstance(told, amqp.QueueDeclare) and told.durable and not method.durable:
            said = {name for name, _ in method.arguments}
            self._declares[key] = frozenset(name for name, _ in told.arguments if name not in said)
            if len(self._declares) > MOST:
                del self._declares[next(iter(self._declares))]

    def heard(self, channel: int, close: amqp.ChannelClose) -> amqp.ChannelClose:
        """The broker closes a channel: what the client hears."""
        if (close.reply_code, close.class_id, close.method_id) != (406, 50, 10):
            return close
        found = _TEXT.fullmatch(close.reply_text)
        if found is None:
            return close
        begin, argument, where, queue, current = found.groups()
        is_durable = current == "none" if argument == "x-expires" else bool(_QUORUM.fullmatch(current))
        if not is_durable or argument not in self._declares.get((channel, queue), ()):
            return close
        text = f"{begin}'durable'{where}received 'false' but current is 'true'"
        return attrs.evolve(close, reply_text=text)
