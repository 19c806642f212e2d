"""What a client can ask for that a policy judges, and which attributes each request has."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

#: The attributes that rules can name. ``exchange`` is where messages come from or are published to;
#: ``destination`` is the exchange that an exchange binding feeds.
Attribute: TypeAlias = Literal["exchange", "queue", "destination", "routing_key"]

#: What a server-named queue is judged as when it is declared: the start of every name that RabbitMQ gives.
SERVER_NAMED = "amq.gen-"


@attrs.frozen
class Principal:
    """Who asks: fixed for the life of one client connection."""

    #: None where the gateway cannot tell (a SASL mechanism whose answers only the broker understands).
    user: str | None
    vhost: str
    #: The client's IP address as text.
    source: str | None = None
    #: The listener's name.
    listener: str | None = None
    #: The subject of the client's certificate (RFC 4514), if it showed one.
    tls_subject: str | None = None


@attrs.frozen
class Operation:
    """One request of a client, in the names of AMQP 0-9-1.

    Every attribute that `OPERATIONS` lists for ``name`` must be given, the others stay None. ``queue`` is
    the name that the broker will use: the empty name, but for queue.declare, has been replaced by
    the queue declared last on the channel, and so has the empty routing key that goes with it (queue.bind).
    """

    principal: Principal
    #: Such as ``basic.publish``.
    name: str
    exchange: str | None = None
    routing_key: str | None = None
    queue: str | None = None
    #: exchange.bind and exchange.unbind: the exchange that receives; ``exchange`` is the source.
    destination: str | None = None


@attrs.frozen
class OperationKind:
    """One row of the table below."""

    name: str
    #: In the order in which RabbitMQ checks its permissions: the first that fails is named in the refusal.
    attributes: tuple[Attribute, ...]
    #: Whether the routing key is a binding key, whose ``*`` and ``#`` may catch many routing keys.
    binds: bool = False


#: The operations that exist for policies. Order of attributes: rabbit_channel.erl of RabbitMQ 3.10.
#: Passive declares are judged as declares: they tell whether a name exists.
OPERATIONS: dict[str, OperationKind] = {
    kind.name: kind
    for kind in (
        OperationKind("exchange.declare", ("exchange",)),
        OperationKind("exchange.delete", ("exchange",)),
        OperationKind("exchange.bind", ("destination", "exchange", "routing_key"), binds=True),
        OperationKind("exchange.unbind", ("destination", "exchange", "routing_key"), binds=True),
        OperationKind("queue.declare", ("queue",)),
        OperationKind("queue.bind", ("queue", "exchange", "routing_key"), binds=True),
        OperationKind("queue.unbind", ("queue", "exchange", "routing_key"), binds=True),
        OperationKind("queue.purge", ("queue",)),
        OperationKind("queue.delete", ("queue",)),
        OperationKind("basic.publish", ("exchange", "routing_key")),
        OperationKind("basic.consume", ("queue",)),
        OperationKind("basic.get", ("queue",)),
    )
}
