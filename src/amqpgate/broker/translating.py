"""The translator of a client of AMQP 0-10. It knows all bindings, as the gateway's cannot."""

from __future__ import annotations

from collections.abc import Iterator

from amqpgate.bridge import Translator
from amqpgate.bridge.v0_10.client import ClientTranslator
from amqpgate.bridge.v0_10.topology import Binding, KnownTopology
from amqpgate.broker.session import BrokerSession
from amqpgate.wire.tables import Table


def translator_for(session: BrokerSession) -> Translator:
    """The translator between a client and its session."""
    return ClientTranslator(topology=BrokerTopology(session))


class BrokerTopology(KnownTopology):
    """What a client may know of the virtual host that it is in."""

    __slots__ = ("_session",)

    def __init__(self, session: BrokerSession) -> None:
        super().__init__()
        self._session = session

    def all_bindings_at(self, exchange: str) -> Iterator[tuple[Binding, Table]]:
        vhost = self._session.vhost
        found = None if vhost is None else vhost.exchanges.get(exchange)
        for binding in () if found is None else found.bindings:
            if binding.destination.kind == "queue":
                yield Binding(binding.destination.name, exchange, binding.routing_key), binding.arguments
