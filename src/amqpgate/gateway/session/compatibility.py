"""What a compatibility policy makes of a client's method: a pure function, after names are mapped.

Each declare of a queue is changed in the same way, whoever declares it: so it is the same queue for all whose
declares are changed.

====================  =======================================================================================
item                  what is changed, where the client's method asks for it
====================  =======================================================================================
``transient-queue``   a classic queue, neither durable nor exclusive, becomes durable and gets ``x-expires``
``retired-argument``  arguments that RabbitMQ 4 does not know are left out, or have the name that it knows
``delivery-limit``    a quorum queue gets ``x-delivery-limit``
``quorum-queue``      a queue that is to be one becomes a quorum queue (`quorum_queues`)
``classic-queue``     a queue that is to be classic becomes so
``left-classic``      nothing: a queue that is to be a quorum queue cannot be one
``x-death``           what a message has died of is kept for the next time (`deaths`)
``conditional-delete``
                      a delete has no conditions: the broker was asked before (`conditional_delete`)
``quorum-prefetch``   where there are such rules, and limits of channels are left to the broker, basic.qos for
                      the channel is for each consumer: quorum queues know no other
``claim-check``       a publish's body goes to an object store (``claims``), and not here
``global-prefetch``   basic.qos of a whole channel is kept by the gateway (`channel_windows`)
``requeue``           basic.nack with requeue becomes basic.reject, one for each message (`requeue`)
``delayed-exchange``  an exchange ``x-delayed-message`` gets its ``x-delayed-type`` for a type; `delays` has
                      the messages
====================  =======================================================================================
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import attrs

from amqpgate.gateway.session import quorum_queues
from amqpgate.policy.engine.naming import precondition_failed
from amqpgate.policy.kinds.compatibility import Compatibility
from amqpgate.policy.kinds.quorum import quorum_for
from amqpgate.values import frozen
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

#: What was changed, as audit records, metrics and the documents name it.
Item: TypeAlias = Literal[
    "transient-queue",
    "retired-argument",
    "delivery-limit",
    "quorum-queue",
    "classic-queue",
    "left-classic",
    "quorum-prefetch",
    "conditional-delete",
    "x-death",
    "claim-check",
    "global-prefetch",
    "requeue",
    "delayed-exchange",
]

_TYPE: Final = quorum_queues.TYPE
_MASTER_LOCATOR: Final = "x-queue-master-locator"
_LEADER_LOCATOR: Final = "x-queue-leader-locator"
#: What the values of the former mean as those of the latter (RabbitMQ: queue leader location).
_LOCATORS: Final = {"min-masters": "balanced", "random": "balanced", "client-local": "client-local"}
_IGNORED: Final = ("x-queue-mode", "x-queue-version")
_MIRRORED: Final = "x-ha-"
_DELAYED: Final = "x-delayed-message"
_DELAYED_TYPE: Final = "x-delayed-type"


@frozen
class Adapted:
    """A method as the broker gets it."""

    method: Method
    #: Empty: it is the client's.
    items: tuple[Item, ...] = ()
    #: Why it is not what a rule wants; empty: it is.
    left: str = ""


def adapted(profile: Compatibility, method: Method, vhost: str) -> Adapted:
    """What the broker gets for a client's method. Raises `NotTransformedError` where RabbitMQ 3 closes the
    channel, and the newer broker would close the connection.
    """
    if isinstance(method, amqp.QueueDeclare) and not method.passive:
        return _declare(profile, method, vhost)
    is_left_to_broker = profile.quorum_queues and not profile.keeps_windows
    if is_left_to_broker and isinstance(method, amqp.BasicQos) and method.global_:
        return Adapted(attrs.evolve(method, global_=False), ("quorum-prefetch",))
    if isinstance(method, amqp.ExchangeDeclare) and not method.passive:
        return _declare_exchange(profile, method)
    return Adapted(method)


def _declare(profile: Compatibility, method: amqp.QueueDeclare, vhost: str) -> Adapted:
    items: list[Item] = []
    table = method.arguments
    kind = table.get(_TYPE)
    is_classic = kind is None or kind == "classic"
    if is_classic and profile.drops_retired:
        # Quorum queues and streams never took them: they are refused as ever.
        table = _without_retired(table)
        if table is not method.arguments:
            items.append("retired-argument")
    durable, auto_delete, left = method.durable, method.auto_delete, ""
    limit = None
    rule = quorum_for(profile.quorum_queues, method.queue) if is_classic or kind == "quorum" else None
    if rule is not None:
        made = quorum_queues.typed(rule, method, table)
        if made.is_made_quorum:
            items.append("quorum-queue")
            limit = -1
        elif made.left:
            items.append("left-classic")
        elif made.arguments is not table:
            items.append("classic-queue")
        table, auto_delete, left = made.arguments, made.auto_delete, made.left
        if made.is_made_quorum:
            table = _without_retired(table)
        kind = table.get(_TYPE)
    if profile.transient_expiry is not None and not durable and not method.exclusive:
        if not (kind is None or kind == "classic"):
            raise precondition_failed(
                f"invalid property 'non-durable' for queue '{method.queue}' in vhost '{vhost}'"
            )
        durable = True
        # The default type of a virtual host is for durable queues alone, and may lack what this one asks for.
        if kind is None:
            table = table.with_(_TYPE, "classic")
        if "x-expires" not in table:
            table = table.with_("x-expires", profile.transient_expiry)
        items.append("transient-queue")
    if kind == "quorum":
        limit = _first(profile.delivery_limit(method.queue), limit)
    if limit is not None and "x-delivery-limit" not in table:
        table = table.with_("x-delivery-limit", limit)
        items.append("delivery-limit")
    if not items:
        return Adapted(method)
    if (durable, auto_delete) == (method.durable, method.auto_delete) and table is method.arguments:
        return Adapted(method, tuple(items), left)
    changed = attrs.evolve(method, durable=durable, auto_delete=auto_delete, arguments=table)
    return Adapted(changed, tuple(items), left)


def _first(*limits: int | None) -> int | None:
    return next((one for one in limits if one is not None), None)


def _declare_exchange(profile: Compatibility, method: amqp.ExchangeDeclare) -> Adapted:
    if method.type != _DELAYED or not profile.delays(method.exchange):
        return Adapted(method)
    changed = without_delay(method)
    if changed.type == _DELAYED:
        # In the plugin's words.
        if method.arguments.get(_DELAYED_TYPE) == _DELAYED:
            why = f"'{_DELAYED}' can't be used for '{_DELAYED_TYPE}'"
        else:
            why = f"'{_DELAYED_TYPE}' must be an existing exchange type"
        raise precondition_failed(f"Invalid argument, {why}")
    return Adapted(changed, ("delayed-exchange",))


def without_delay(method: amqp.ExchangeDeclare) -> amqp.ExchangeDeclare:
    """The declare of an exchange that does not delay itself; the same where it says no type for that."""
    kind = method.arguments.get(_DELAYED_TYPE)
    if method.type != _DELAYED or not isinstance(kind, str) or kind == _DELAYED:
        return method
    return attrs.evolve(method, type=kind, arguments=method.arguments.without(_DELAYED_TYPE))


def _without_retired(table: Table) -> Table:
    for name in [name for name, _ in table]:
        if name.startswith(_MIRRORED) or name in _IGNORED:
            table = table.without(name)
    if _MASTER_LOCATOR in table:
        said = table.get(_MASTER_LOCATOR)
        leader = _LOCATORS.get(said) if isinstance(said, str) else None
        table = table.without(_MASTER_LOCATOR)
        if leader is not None and _LEADER_LOCATOR not in table:
            table = table.with_(_LEADER_LOCATOR, leader)
    return table
