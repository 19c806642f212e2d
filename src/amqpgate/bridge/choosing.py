"""Which interpreter a peer needs.

A client by its protocol header, and by its product in start-ok; a broker by its version and its start.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from amqpgate.bridge.interpreter import Interpreter
from amqpgate.bridge.translator import Translator
from amqpgate.bridge.undecided import UndecidedInterpreter
from amqpgate.bridge.v0_9_1 import NATIVE
from amqpgate.bridge.versions import VERSIONS, Version
from amqpgate.protocol.header import HEADER_0_10, HEADER_MAGIC
from amqpgate.wire.dialects import Dialect
from amqpgate.wire.generated import v0_9_1 as amqp

#: Most sessions have this pair; there may be many thousand.
_BOTH_NATIVE: Final[tuple[Interpreter, Interpreter]] = (NATIVE, NATIVE)


def interpreter_for(dialect: Dialect) -> Interpreter:
    """The interpreter of one peer that speaks this dialect: its own, where there is something to remember.

    Raises `UnsupportedVersionError` for a dialect of an unknown version.
    """
    if dialect is NATIVE.dialect:
        return NATIVE
    return VERSIONS.numbered(dialect.version).interpreter(dialect)


def pair_of(client: Interpreter, broker: Interpreter) -> tuple[Interpreter, Interpreter]:
    """The interpreters of a session's two peers."""
    is_usual = client is NATIVE and broker is NATIVE
    return _BOTH_NATIVE if is_usual else (client, broker)


def for_client(header: bytes) -> Interpreter | None:
    """The interpreter for the client that has sent this protocol header; None: no version has it."""
    version = VERSIONS.of_client(header) if header.startswith(HEADER_MAGIC) else None
    return None if version is None else version.client()


def translator_for(header: bytes) -> Translator | None:
    """The translator for the client that has sent this protocol header, which it answers.

    Its interpreter is ``NATIVE`` then. None: an interpreter is all that it needs, or no version has it.
    """
    if header != HEADER_0_10:
        return None
    # What it needs takes a tenth of a second to import.
    translator: Translator = import_module("amqpgate.bridge.v0_10.client").ClientTranslator()
    return translator


def for_product(interpreter: Interpreter, start_ok: amqp.ConnectionStartOk) -> Interpreter:
    """The interpreter for the client that has said ``start_ok``, in the place of the one by its header."""
    product = str(start_ok.client_properties.get("product", ""))
    if isinstance(interpreter, UndecidedInterpreter) and interpreter.decided is None:
        old, new = (_for_product(each, product) for each in (interpreter.old, interpreter.new))
        is_same = old is interpreter.old and new is interpreter.new
        return interpreter if is_same else UndecidedInterpreter(old, new)
    return _for_product(interpreter, product)


def _for_product(interpreter: Interpreter, product: str) -> Interpreter:
    dialect = VERSIONS.numbered(interpreter.dialect.version).client_dialect(product)
    return interpreter if dialect is None else interpreter_for(dialect)


def for_broker(version: Version, start: amqp.ConnectionStart) -> Interpreter:
    """The interpreter for the broker that has answered the header of ``version`` with ``start``.

    Up to start all versions are the same on the wire. Raises `UnsupportedVersionError`.
    """
    product = str(start.server_properties.get("product", ""))
    return interpreter_for(version.broker_dialect(product))
