"""AMQP 0-8 to and from the canonical model.

======================  ==============================================================================
0-8                     canonical
======================  ==============================================================================
connection.redirect     10,50; canonical method
connection.close        10,60 and 10,61; 0-9-1 has them at 10,50 and 10,51, and blocked and unblocked here
channel.open-ok         empty: the field of the others is left out
channel.alert           canonical method
basic.consume           without a table; with one in Qpid's dialect
basic.recover 60,100    basic.recover-async; in Qpid's dialect, where 60,101 answers it, basic.recover
60,110 and 60,111       basic.recover and basic.recover-ok (RabbitMQ)
======================  ==============================================================================

There are two dialects under one header. A client tells by its product in start-ok that it is Qpid's, or else
by its first basic.consume: one with a table waits for 60,101 after basic.recover, one without would not know
it. Before that a client counts as one of the specification's; RabbitMQ's clients do not wait either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import attrs

from amqpgate.bridge.interpreter import Interpreter, UnsupportedInVersion, carried
from amqpgate.bridge.versions import VERSIONS, Version
from amqpgate.protocol.header import HEADER_0_8_AMQPLIB
from amqpgate.protocol.methods import Role
from amqpgate.wire.dialects import (
    HEADER_0_8,
    LEGACY_BROKER,
    LEGACY_CLIENT,
    QPID_0_8,
    QPID_PYTHON_0_8,
    RABBITMQ_0_8,
    Dialect,
)
from amqpgate.wire.generated import v0_8, v0_9
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import EMPTY_TABLE

_REPLY_CODES = frozenset(v0_8.REPLY_CODES)


class Interpreter08(Interpreter):
    """A peer of AMQP 0-8, of either dialect."""

    version: ClassVar[str] = "AMQP 0-8"
    redirects: ClassVar[bool] = True
    _INDEXES: ClassVar[Mapping[int, int]] = {
        amqp.ConnectionClose.INDEX: v0_8.ConnectionClose.INDEX,
        amqp.ConnectionCloseOk.INDEX: v0_8.ConnectionCloseOk.INDEX,
    }

    def __init__(self, dialect: Dialect = LEGACY_CLIENT) -> None:
        super().__init__(dialect)
        #: Whether the peer's basic.consume has a table at its end; a client tells by using it.
        self.has_consume_table = dialect.extensions == {"qpid"}
        #: The last recover was 60,110, and is answered by 60,111.
        self._recovers_by_110 = False

    @property
    def answers_every_recover(self) -> bool:
        return self.dialect.extensions == {"qpid"}

    def _reply_codes(self) -> frozenset[int]:
        return _REPLY_CODES

    # -- to the canonical model ------------------------------------------------------------------------

    def _heard(self, method: Method, sender: Role) -> Method:
        if isinstance(method, v0_8.ChannelOpenOk):
            return amqp.ChannelOpenOk()
        if isinstance(method, v0_8.BasicConsume):
            self.has_consume_table = method.arguments is not None
            method = attrs.evolve(method, arguments=method.arguments or EMPTY_TABLE)
        elif isinstance(method, v0_8.BasicRecoverAsync):
            self._recovers_by_110 = False
            if self.has_consume_table:
                return amqp.BasicRecover(method.requeue)
        elif isinstance(method, v0_8.BasicRecover):
            self._recovers_by_110 = True
        elif isinstance(method, v0_8.BasicRecoverSyncOk):
            return amqp.BasicRecoverOk()
        return super()._heard(method, sender)

    # -- from the canonical model ----------------------------------------------------------------------

    def _said(self, method: Method) -> Method:
        if isinstance(method, amqp.ConnectionStart):
            # RabbitMQ tells its clients of 0-8 no capabilities.
            method = amqp.ConnectionStart(
                8,
                0,
                method.server_properties.without("capabilities"),
                method.mechanisms,
                method.locales,
            )
        elif isinstance(method, amqp.ChannelOpenOk):
            return v0_8.ChannelOpenOk()
        if isinstance(method, amqp.BasicConsume):
            if method.arguments and not self.has_consume_table:
                raise UnsupportedInVersion(type(method), f"{self.version} with arguments")
            table = method.arguments if self.has_consume_table else None
            return attrs.evolve(carried(method, v0_8.BasicConsume), arguments=table)
        if isinstance(method, v0_9.FileConsume | v0_9.StreamConsume) and method.filter:
            raise UnsupportedInVersion(type(method), f"{self.version} with a filter")
        if isinstance(method, amqp.ConnectionClose | amqp.ChannelClose) and self._is_of_recover(method):
            method = attrs.evolve(method, method_id=v0_8.BasicRecoverAsync.METHOD_ID)
        if isinstance(method, amqp.BasicRecover) and self.answers_every_recover:
            return v0_8.BasicRecoverAsync(method.requeue)
        if isinstance(method, amqp.BasicRecoverOk) and not self._recovers_by_110:
            return v0_8.BasicRecoverSyncOk()
        return super()._said(method)

    def _is_of_recover(self, method: amqp.ConnectionClose | amqp.ChannelClose) -> bool:
        """Whether it names basic.recover as the canonical model has it, of a peer that said 60,100."""
        ids = method.class_id << 16 | method.method_id
        return ids == amqp.BasicRecover.INDEX and self.has_consume_table and not self._recovers_by_110

    def _counterpart(self, method: type[Method]) -> type[Method] | None:
        if self.dialect.extensions == {"qpid"}:
            if method is amqp.BasicRecover:
                return v0_8.BasicRecoverAsync
            if method is amqp.BasicRecoverOk:
                return v0_8.BasicRecoverSyncOk
        return super()._counterpart(method)


VERSION: Final = VERSIONS.register(
    Version(
        name="0-8",
        numbers=(0, 8, 0),
        header=HEADER_0_8,
        start=(8, 0),
        wire=v0_8,
        interpreter=Interpreter08,
        client=Interpreter08,
        broker=LEGACY_BROKER,
        client_products={"qpid python": QPID_PYTHON_0_8, "qpid": QPID_0_8},
        broker_products={"rabbit": RABBITMQ_0_8, "qpid": QPID_0_8},
        client_headers=frozenset({HEADER_0_8_AMQPLIB}),
        broker_headers=frozenset({HEADER_0_8_AMQPLIB}),
    )
)
