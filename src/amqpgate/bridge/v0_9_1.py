"""AMQP 0-9-1: the canonical model itself, and its dialects.

RabbitMQ and the clients made for it are native; for another dialect (the letter of the standard, Qpid) only
the field table types and the extensions differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import ClassVar, Final

from amqpgate.bridge.interpreter import Interpreter
from amqpgate.bridge.versions import VERSIONS, Version
from amqpgate.protocol.methods import Role
from amqpgate.wire.codec import decode_method, methods
from amqpgate.wire.dialects import HEADER_0_9_1, QPID_0_9_1, QPID_PYTHON_0_9_1, RABBITMQ_0_9_1, Dialect
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.primitives import Buffer

_REPLY_CODES = frozenset(amqp.REPLY_CODES)

#: Methods whose reply code may be one that only other versions have.
_WITH_CODE: Final = (amqp.ConnectionClose, amqp.ChannelClose, amqp.BasicReturn)


class Interpreter091(Interpreter):
    """A peer of AMQP 0-9-1."""

    version: ClassVar[str] = "AMQP 0-9-1"

    def __init__(self, dialect: Dialect = RABBITMQ_0_9_1) -> None:
        super().__init__(dialect)
        self.is_native = dialect is RABBITMQ_0_9_1

    def to_canonical(self, payload: Buffer, sender: Role) -> Method:
        return decode_method(payload, self.dialect)

    def from_canonical(self, method: Method) -> bytes:
        if _same(self.dialect).get(method.INDEX) is type(method):
            return method.encode(self.dialect)
        return super().from_canonical(method)

    def _reply_codes(self) -> frozenset[int]:
        return _REPLY_CODES


@cache
def _same(dialect: Dialect) -> Mapping[int, type[Method]]:
    """The methods that are what they are in the canonical model, by their index."""
    return {index: cls for index, cls in methods(dialect).items() if cls not in _WITH_CODE}


#: There is nothing to remember of a native peer: all share this one, and most sessions this pair.
NATIVE: Final = Interpreter091(RABBITMQ_0_9_1)
_BOTH_NATIVE: Final[tuple[Interpreter, Interpreter]] = (NATIVE, NATIVE)


def pair_of(client: Interpreter, broker: Interpreter) -> tuple[Interpreter, Interpreter]:
    """The interpreters of a session's two peers."""
    is_usual = client is NATIVE and broker is NATIVE
    return _BOTH_NATIVE if is_usual else (client, broker)


def _interpreter(dialect: Dialect) -> Interpreter:
    return NATIVE if dialect is RABBITMQ_0_9_1 else Interpreter091(dialect)


VERSION: Final = VERSIONS.register(
    Version(
        name="0-9-1",
        numbers=(0, 9, 1),
        header=HEADER_0_9_1,
        start=(0, 9),
        wire=amqp,
        interpreter=_interpreter,
        client=lambda: NATIVE,
        broker=RABBITMQ_0_9_1,
        client_products={"qpid python": QPID_PYTHON_0_9_1, "qpid": QPID_0_9_1},
        broker_products={"qpid": QPID_0_9_1},
    )
)
