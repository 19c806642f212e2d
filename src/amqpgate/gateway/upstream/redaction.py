"""What a broker says of a login is not repeated where it may quote the login."""

from __future__ import annotations

from typing import Final

import attrs

from amqpgate.errors import REPLY_NAMES
from amqpgate.wire.generated import v0_9_1 as amqp

#: Codes with which brokers judge who comes, or say that they take nobody now. With the others they find fault
#: with what they were sent, and quote it: RabbitMQ a response that it cannot read (502), and a mechanism that
#: it does not know (503).
_JUDGEMENTS: Final = frozenset({320, 402, 403, 506, 530, 541})


def without_login(refusal: amqp.ConnectionClose) -> amqp.ConnectionClose:
    """A broker's close before its open-ok, as it may be logged and passed on."""
    code = refusal.reply_code
    if code in _JUDGEMENTS:
        return refusal
    text = f"{REPLY_NAMES.get(code, code)} - the broker's text is withheld, since it may quote the login"
    return attrs.evolve(refusal, reply_text=text)
