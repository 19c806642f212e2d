"""Whether a queue of the broker's takes basic.get.

A quorum queue of RabbitMQ with a single active consumer does not: 405, which closes the channel with all that
the client has of it. 0-9-1 has no question for that, but RabbitMQ says what a queue is where it refuses a
declaration. So it is asked for one that no queue has, and that none can get: the argument is a text, where
only a truth value is taken. It answers what differs first, in this order:

==============================  ==========================================================================
durable, auto-delete,           no quorum queue
exclusive
an argument before this one     what it is: asked once more, with that
x-single-active-consumer        whether the queue has it
==============================  ==========================================================================
"""

from __future__ import annotations

import re
from typing import Final

from amqpgate.bridge.v0_10.arguments import arguments_of
from amqpgate.bridge.v0_10.steps import Part, ask
from amqpgate.bridge.v0_10.topology import KnownTopology
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

_SINGLE_ACTIVE: Final = "x-single-active-consumer"
_QUESTION: Final = {_SINGLE_ACTIVE: "amqpgate asks whether there is one"}
_DIFFERS: Final = re.compile(
    r"inequivalent arg '([^']*)' .*current is (?:(none|'\w+')|the value '(.*)' of type '(\w+)')$",
    re.DOTALL,
)
_WHOLE: Final = re.compile("-?[0-9]{1,18}")
#: What no quorum queue is.
_FLAGS: Final = ("durable", "auto_delete", "exclusive")
#: Arguments that RabbitMQ compares before this one.
_MOST_ARGUMENTS: Final = 12


def takes_gets(queue: str, topology: KnownTopology) -> Part[bool | None]:
    """None: the broker does not tell. It is asked about what was not declared here, and once."""
    known = topology.queue(queue)
    if known is not None:
        return arguments_of(known.arguments).get(_SINGLE_ACTIVE) is not True
    takes = topology.takes_gets(queue)
    if takes is None:
        takes = yield from _ask(queue)
        if takes is not None:
            topology.put_gets(queue, takes=takes)
    return takes


def _ask(queue: str) -> Part[bool | None]:
    arguments: dict[str, object] = dict(_QUESTION)
    for _ in range(_MOST_ARGUMENTS):
        reply = yield from ask(amqp.QueueDeclare(queue=queue, durable=True, arguments=Table.of(arguments)))
        if not isinstance(reply, amqp.ChannelClose) or reply.reply_code in (404, 405):
            # It has no such thing, or it has gone, or it is exclusive, which no quorum queue is.
            return True
        told = _DIFFERS.search(reply.reply_text)
        if reply.reply_code != 406 or told is None:
            return None
        name, is_now, value, kind = told.groups()
        if name in _QUESTION:
            return is_now in ("none", "'false'")
        if name in _FLAGS:
            return True
        known = _value(value, kind)
        if known is None or name in arguments:
            return None
        arguments[name] = known
    return None


def _value(text: str | None, kind: str | None) -> object:
    """What RabbitMQ has named so; None: it is not said in words."""
    if kind == "longstr":
        return text
    if kind == "bool":
        return text == "true"
    return int(text) if text is not None and _WHOLE.fullmatch(text) else None
