"""AMQP 0-9 to and from the canonical model.

======================  ==============================================================================
0-9                     canonical
======================  ==============================================================================
connection.redirect     canonical method
channel.open-ok         its channel-id is 0-9-1's reserved field
channel.resume, ping,   canonical methods
pong, ok
basic.recover 60,100    basic.recover-async: no answer
60,102 (Qpid)           basic.recover, and 60,101 its answer, basic.recover-ok
basic.consume: filter   arguments: the same bytes
======================  ==============================================================================

A method of 0-9-1 that is not in this table and that 0-9 has no method of the same name for (exchange.bind,
confirm.select, basic.nack, connection.blocked ...) is `UnsupportedInVersion`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from amqpgate.bridge.interpreter import Interpreter
from amqpgate.bridge.undecided import UndecidedInterpreter
from amqpgate.bridge.v0_9_1 import NATIVE
from amqpgate.bridge.versions import VERSIONS, Version
from amqpgate.protocol.header import HEADER_0_9_PLAIN
from amqpgate.protocol.methods import Role
from amqpgate.wire.dialects import (
    HEADER_0_9,
    LEGACY_BROKER_0_9,
    LEGACY_CLIENT_0_9,
    QPID_0_9,
    QPID_PYTHON_0_9,
    RABBITMQ_0_9_1,
    Dialect,
)
from amqpgate.wire.generated import v0_9
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

_REPLY_CODES = frozenset(v0_9.REPLY_CODES)


class Interpreter09(Interpreter):
    """A peer of AMQP 0-9."""

    version: ClassVar[str] = "AMQP 0-9"
    redirects: ClassVar[bool] = True
    _INDEXES: ClassVar[Mapping[int, int]] = {
        amqp.BasicRecover.INDEX: v0_9.BasicRecoverSync.INDEX,
        amqp.BasicRecoverOk.INDEX: v0_9.BasicRecoverSyncOk.INDEX,
    }

    def __init__(self, dialect: Dialect = LEGACY_CLIENT_0_9) -> None:
        super().__init__(dialect)

    def _reply_codes(self) -> frozenset[int]:
        return _REPLY_CODES

    def _heard(self, method: Method, sender: Role) -> Method:
        if isinstance(method, v0_9.BasicRecoverSync):
            return amqp.BasicRecover(method.requeue)
        if isinstance(method, v0_9.BasicRecoverSyncOk):
            return amqp.BasicRecoverOk()
        return super()._heard(method, sender)

    def _counterpart(self, method: type[Method]) -> type[Method] | None:
        if "qpid" in self.dialect.extensions:
            if method is amqp.BasicRecover:
                return v0_9.BasicRecoverSync
            if method is amqp.BasicRecoverOk:
                return v0_9.BasicRecoverSyncOk
        return super()._counterpart(method)


VERSION: Final = VERSIONS.register(
    Version(
        name="0-9",
        numbers=(0, 9, 0),
        header=HEADER_0_9,
        start=(0, 9),
        wire=v0_9,
        interpreter=Interpreter09,
        # Clients of 0-9-1 send its header, too.
        client=lambda: UndecidedInterpreter(Interpreter09(LEGACY_CLIENT_0_9), NATIVE),
        broker=LEGACY_BROKER_0_9,
        client_products={"qpid python": QPID_PYTHON_0_9, "qpid": QPID_0_9},
        # RabbitMQ speaks 0-9-1 under this header.
        broker_products={"rabbit": RABBITMQ_0_9_1, "qpid": QPID_0_9},
        broker_headers=frozenset({HEADER_0_9_PLAIN}),
    )
)
