"""What the broker would get for a request that nobody has made: names, arguments and items of compatibility.

By the functions that sessions use, so that operators are told what would happen.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import attrs

from amqpgate.gateway.session import deaths
from amqpgate.gateway.session.compatibility import Adapted, adapted
from amqpgate.gateway.session.transform import header_up, method_up, publish_up
from amqpgate.policy import Operation, PolicySet
from amqpgate.policy.engine.from_method import content_of, operation_of
from amqpgate.policy.engine.naming import NotTransformedError
from amqpgate.policy.engine.requests import words_for
from amqpgate.policy.kinds.compatibility import Compatibility
from amqpgate.policy.kinds.transform_set import SessionDeniedError, Transform
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

#: What a declare may be beside its arguments, and the field that says so.
_FLAGS: Final = {"durable": "durable", "exclusive": "exclusive", "auto-delete": "auto_delete"}


@attrs.frozen
class BrokerSide:
    """The request as the broker gets it, in words; or why it gets none."""

    request: str
    #: The compatibility policy that holds, and what it changes.
    policy: str = ""
    items: tuple[str, ...] = ()
    #: Why it is not what the policy wants; empty: it is.
    left: str = ""
    #: Why nothing passes; empty: it does.
    refused: str = ""


def broker_side(policies: PolicySet, operation: Operation, flags: Collection[str] = ()) -> BrokerSide | None:
    """Of declares and publishes; None for all else. ``flags``: what a declare of a queue is to be."""
    choice = policies.route_of(operation.principal).choice
    policy = policies.compatibility_for(operation.principal, "" if choice is None else choice.cluster)
    try:
        transform = policies.transform_for(operation.principal)
        if operation.name == "basic.publish":
            return _published(transform, policy, operation)
        if operation.name in ("queue.declare", "exchange.declare"):
            return _declared(transform, policy, operation, flags)
    except (NotTransformedError, SessionDeniedError, TypeError, ValueError) as error:
        return BrokerSide("", refused=str(error))
    return None


def _declared(
    transform: Transform | None, policy: Compatibility | None, operation: Operation, flags: Collection[str]
) -> BrokerSide:
    arguments, passive = Table.of(operation.arguments), operation.passive
    said = {field: name in flags for name, field in _FLAGS.items()}
    method: amqp.QueueDeclare | amqp.ExchangeDeclare
    if operation.name == "queue.declare":
        method = amqp.QueueDeclare(queue=operation.queue or "", passive=passive, arguments=arguments, **said)
    else:
        method = amqp.ExchangeDeclare(exchange=operation.exchange or "", passive=passive, arguments=arguments)
    changed = method if transform is None else method_up(transform, method, operation, "")
    result = Adapted(changed) if policy is None else adapted(policy, changed, operation.principal.vhost)
    words = words_for(operation_of(result.method, operation.principal, ""))
    if isinstance(result.method, amqp.QueueDeclare):
        words += "".join(f", {name}" for name, field in _FLAGS.items() if getattr(result.method, field))
    return BrokerSide(words, policy.policy if policy and result.items else "", result.items, result.left)


def _published(transform: Transform | None, policy: Compatibility | None, operation: Operation) -> BrokerSide:
    method = amqp.BasicPublish(exchange=operation.exchange or "", routing_key=operation.routing_key or "")
    header = _header_of(operation)
    changed, content = method, header
    if transform is not None:
        changed, content = publish_up(transform, method), header_up(transform, method, header)
    items: tuple[str, ...] = ()
    if deaths.are_counted(policy) and (kept := deaths.saved(content)) is not content:
        content, items = kept, ("x-death",)
    passes = attrs.evolve(operation_of(changed, operation.principal, ""), content=content_of(content))
    return BrokerSide(words_for(passes), policy.policy if policy and items else "", items)


def _header_of(operation: Operation) -> ContentHeader:
    """Raises ``TypeError`` and ``ValueError`` where there is no such message."""
    said = operation.content
    if said is None:
        return ContentHeader(amqp.BasicPublish.CLASS_ID, 0, amqp.BasicProperties())
    headers = Table.of(said.headers) if said.headers else None
    properties = amqp.BasicProperties(headers=headers, **said.properties)  # type: ignore[arg-type]
    return ContentHeader(amqp.BasicPublish.CLASS_ID, said.body_size, properties)
