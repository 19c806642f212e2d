"""AMQP 0-9-1: the canonical model itself, and its dialects.

RabbitMQ and the clients made for it are the house; for another dialect (the letter of the standard, Qpid)
only the field table types and the extensions differ.
"""

from __future__ import annotations

from typing import ClassVar

from amqpgate.bridge.interpreter import Interpreter
from amqpgate.wire.dialects import RABBITMQ_0_9_1, Dialect
from amqpgate.wire.generated import v0_9_1 as amqp

_REPLY_CODES = frozenset(amqp.REPLY_CODES)


class Interpreter091(Interpreter):
    """A peer of AMQP 0-9-1."""

    version: ClassVar[str] = "AMQP 0-9-1"

    def __init__(self, dialect: Dialect = RABBITMQ_0_9_1) -> None:
        super().__init__(dialect)

    @property
    def is_native(self) -> bool:
        return self.dialect is RABBITMQ_0_9_1

    def _reply_codes(self) -> frozenset[int]:
        return _REPLY_CODES
