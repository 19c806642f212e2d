"""Which interpreter a peer needs.

A client by its protocol header, and by its product in start-ok; a broker by its version and its start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from amqpgate.bridge.interpreter import Interpreter
from amqpgate.bridge.v0_9_1 import Interpreter091
from amqpgate.protocol.header import HEADER_0_8, HEADER_0_8_AMQPLIB, HEADER_0_9, HEADER_0_9_1
from amqpgate.wire import dialects
from amqpgate.wire.dialects import Dialect, Version
from amqpgate.wire.generated import v0_9_1 as amqp

#: Versions by the names that settings give them.
VERSIONS: Final[Mapping[str, Version]] = MappingProxyType(
    {"0-8": (0, 8, 0), "0-9": (0, 9, 0), "0-9-1": (0, 9, 1)}
)

#: Brokers by what their start says of their product, in small letters: theirs are the dialects. RabbitMQ
#: speaks 0-9-1 under the header of 0-9, too.
_BROKERS: Final[Mapping[Version, Mapping[str, Dialect]]] = {
    (0, 8, 0): {"rabbit": dialects.RABBITMQ_0_8, "qpid": dialects.QPID_0_8},
    (0, 9, 0): {"rabbit": dialects.RABBITMQ_0_9_1, "qpid": dialects.QPID_0_9},
    (0, 9, 1): {"qpid": dialects.QPID_0_9_1},
}
#: Qpid's clients, which say what they are in start-ok: those of Java, which have the broker's dialect, and
#: qpid-python.
_QPID: Final[Mapping[Version, Dialect]] = {
    (0, 8, 0): dialects.QPID_0_8,
    (0, 9, 0): dialects.QPID_0_9,
    (0, 9, 1): dialects.QPID_0_9_1,
}
_QPID_PYTHON: Final[Mapping[Version, Dialect]] = {
    (0, 8, 0): dialects.QPID_PYTHON_0_8,
    (0, 9, 0): dialects.QPID_PYTHON_0_9,
    (0, 9, 1): dialects.QPID_PYTHON_0_9_1,
}

_UNKNOWN: Final[Mapping[Version, Dialect]] = {
    (0, 8, 0): dialects.LEGACY_BROKER,
    (0, 9, 0): dialects.LEGACY_BROKER_0_9,
    (0, 9, 1): dialects.RABBITMQ_0_9_1,
}


#: 0-9-1 has nothing to remember of a peer, and most have this one; so do both peers of most sessions, of
#: which there may be many thousand.
_NATIVE: Final = Interpreter091(dialects.RABBITMQ_0_9_1)
_BOTH_NATIVE: Final[tuple[Interpreter, Interpreter]] = (_NATIVE, _NATIVE)


def interpreter_for(dialect: Dialect) -> Interpreter:
    """The interpreter of one peer that speaks this dialect: its own, where there is something to remember."""
    # The older versions are imported by those who meet them.
    if dialect is _NATIVE.dialect:
        return _NATIVE
    if dialect.version == (0, 9, 1):
        return Interpreter091(dialect)
    if dialect.version == (0, 9, 0):
        from amqpgate.bridge.v0_9 import Interpreter09

        return Interpreter09(dialect)
    from amqpgate.bridge.v0_8 import Interpreter08

    return Interpreter08(dialect)


def pair_of(client: Interpreter, broker: Interpreter) -> tuple[Interpreter, Interpreter]:
    """The interpreters of a session's two peers."""
    is_usual = client is _NATIVE and broker is _NATIVE
    return _BOTH_NATIVE if is_usual else (client, broker)


def _undecided() -> Interpreter:
    from amqpgate.bridge.undecided import UndecidedInterpreter

    return UndecidedInterpreter()


_CLIENTS: Final[Mapping[bytes, Callable[[], Interpreter]]] = {
    HEADER_0_9_1: lambda: interpreter_for(dialects.RABBITMQ_0_9_1),
    HEADER_0_9: _undecided,
    HEADER_0_8: lambda: interpreter_for(dialects.LEGACY_CLIENT),
    HEADER_0_8_AMQPLIB: lambda: interpreter_for(dialects.LEGACY_CLIENT),
}


def for_client(header: bytes) -> Interpreter | None:
    """The interpreter for the client that has sent these eight bytes, or None: they are refused."""
    make = _CLIENTS.get(header)
    return None if make is None else make()


def for_product(interpreter: Interpreter, start_ok: amqp.ConnectionStartOk) -> Interpreter:
    """The interpreter for the client that has said ``start_ok``, in the place of the one by its header."""
    product = str(start_ok.client_properties.get("product", "")).lower()
    if "qpid" not in product:
        return interpreter
    known = _QPID_PYTHON if "python" in product else _QPID
    from amqpgate.bridge.undecided import UndecidedInterpreter

    if isinstance(interpreter, UndecidedInterpreter) and interpreter.decided is None:
        return UndecidedInterpreter(known[0, 9, 0], known[0, 9, 1])
    return interpreter_for(known[interpreter.dialect.version])


def for_broker(version: Version, start: amqp.ConnectionStart) -> Interpreter:
    """The interpreter for the broker that has answered the header of ``version`` with ``start``.

    Up to start all versions are the same on the wire.
    """
    product = str(start.server_properties.get("product", "")).lower()
    known = (dialect for name, dialect in _BROKERS[version].items() if name in product)
    return interpreter_for(next(known, _UNKNOWN[version]))
