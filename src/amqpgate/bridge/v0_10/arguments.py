"""Stand-in: arguments of declarations as they are."""

from __future__ import annotations

from amqpgate.bridge.v0_10.tables import to_table
from amqpgate.wire.tables import Field, Table
from amqpgate.wire.v0_10.types import Map


def queue_arguments(arguments: Map | None, alternate_exchange: bytes | None) -> Table:
    """Of queue.declare."""
    return _with(to_table(arguments), "x-dead-letter-exchange", alternate_exchange)


def exchange_arguments(arguments: Map | None, alternate_exchange: bytes | None) -> Table:
    """Of exchange.declare."""
    return _with(to_table(arguments), "alternate-exchange", alternate_exchange)


def _with(table: Table, name: str, value: bytes | None) -> Table:
    if not value:
        return table
    return Table((*table.entries, (name, Field("S", value.decode()))))
