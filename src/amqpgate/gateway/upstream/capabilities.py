"""Which capabilities of the two peers can be told in the version that the broker speaks."""

from __future__ import annotations

from typing import Final

from amqpgate.bridge import Interpreter
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import EMPTY_TABLE, Table

#: What a peer understands can be told in the versions that have this method.
_NEEDED: Final[dict[str, type[Method]]] = {
    "basic.nack": amqp.BasicNack,
    "connection.blocked": amqp.ConnectionBlocked,
    "exchange_exchange_bindings": amqp.ExchangeBind,
    "publisher_confirms": amqp.ConfirmSelect,
}


def of_client(broker: Interpreter, properties: Table) -> Table:
    """What the client says of itself, without what this broker, which is not native, would say in words that
    its version lacks."""
    found = properties.field("capabilities")
    if found is None or not isinstance(found.value, Table):
        return properties
    return properties.with_("capabilities", _spoken(broker, found.value).to_python())


def of_broker(broker: Interpreter, properties: Table) -> Table:
    """What a broker that is not native says of itself, without what its version has no words for: there are
    capabilities then, if only to say that there are none.
    """
    found = properties.field("capabilities")
    said = found.value if found is not None and isinstance(found.value, Table) else EMPTY_TABLE
    return properties.with_("capabilities", _spoken(broker, said).to_python())


def _spoken(broker: Interpreter, said: Table) -> Table:
    return Table(
        tuple(
            [
                (name, value)
                for name, value in said
                if (needed := _NEEDED.get(name)) is None or broker.speaks(needed)
            ]
        )
    )
