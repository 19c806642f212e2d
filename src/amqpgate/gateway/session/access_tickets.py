"""access.request where the broker has no class access: realms are paths, and what is asked for is a policy's.

By AMQP 0-8 and 0-9 a realm that is no path is 402, which closes the connection, and what the client may not
have is 403, which closes the channel. Which realms there are, neither RabbitMQ nor the gateway knows: a path
of any name is one. A ticket means nothing to the broker, and what is done with it is judged for itself; so it
is refused only where no rule allows anything that it is for.
"""

from __future__ import annotations

import re
from typing import Final

from amqpgate.errors import ProtocolViolation
from amqpgate.policy import SessionPolicy
from amqpgate.wire.generated import v0_9_1 as amqp

#: AMQP 0-8, domain path.
_PATH: Final = re.compile(r"(/[A-Za-z0-9][A-Za-z0-9.\-_+!=:]*)+")

_DECLARES: Final = ("exchange.declare", "queue.declare")
#: What each right is for (AMQP 0-8, access.request).
_RIGHTS: Final = (
    ("passive", _DECLARES),
    ("active", (*_DECLARES, "exchange.delete", "queue.delete", "queue.bind")),
    ("read", ("basic.consume", "basic.get")),
    ("write", ("basic.publish",)),
)


def check(channel: int, method: amqp.AccessRequest, policy: SessionPolicy) -> None:
    """Raises ``ProtocolViolation`` where the client gets no ticket."""
    ids = {"class_id": method.CLASS_ID, "method_id": method.METHOD_ID}
    if _PATH.fullmatch(method.realm) is None:
        raise ProtocolViolation(402, f"the realm '{method.realm}' is not a path", channel=channel, **ids)
    for right, operations in _RIGHTS:
        if getattr(method, right) and not policy.may_ever(operations):
            text = f"no policy allows what '{right}' access to the realm '{method.realm}' is for"
            raise ProtocolViolation(403, text, channel=channel, **ids)
