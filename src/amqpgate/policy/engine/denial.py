"""The sentence that a denied client reads, as RabbitMQ 3.10 writes it for the same denial.

Checked word for word against RabbitMQ 3.10.8 (rabbit_access_control:check_resource_access and
check_topic_access): a client, or the person who reads its log, cannot tell who denied it.
"""

from __future__ import annotations

from typing import Final

from amqpgate.policy.engine.operations import OPERATIONS, SERVER_NAMED, Operation
from amqpgate.policy.engine.rules import Verdict

#: ACCESS_REFUSED, which closes the channel (AMQP 0-9-1, section 1.2 "Protocol constants").
ACCESS_REFUSED = 403

#: The default exchange, whose name is empty, as RabbitMQ's permissions know it.
DEFAULT_EXCHANGE: Final = "amq.default"


def denial_text(operation: Operation, verdict: Verdict) -> str:
    """The reply text of channel.close 403, without the ``ACCESS_REFUSED - `` in front."""
    operation = verdict.about or operation
    vhost = operation.principal.vhost
    kind = OPERATIONS.get(operation.name)
    attribute = verdict.attribute or (kind.attributes[0] if kind is not None and kind.attributes else None)
    exchange = f"exchange '{operation.exchange or DEFAULT_EXCHANGE}' in vhost '{vhost}'"
    if attribute == "queue":
        what = f"queue '{operation.queue or SERVER_NAMED}' in vhost '{vhost}'"
    elif attribute == "destination":
        what = f"exchange '{operation.destination or DEFAULT_EXCHANGE}' in vhost '{vhost}'"
    elif attribute == "exchange":
        what = exchange
    elif attribute == "routing_key":
        what = f"topic '{operation.routing_key or ''}' in {exchange}"
    elif operation.name == "connection.open":
        what = f"vhost '{vhost}'"
    else:
        what = f"{operation.name} in vhost '{vhost}'"
    why = f" by {verdict.name}" if verdict.disclosed else ""
    return f"access to {what} refused for user '{operation.principal.user or ''}'{why}"
