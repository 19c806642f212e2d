"""What a compatibility policy makes of a client's method: a pure function, after names are mapped.

Each declare of a queue is changed in the same way, whoever declares it: so it is the same queue for all whose
declares are changed.

====================  =======================================================================================
item                  what is changed, where the client's method asks for it
====================  =======================================================================================
``transient-queue``   a classic queue, neither durable nor exclusive, becomes durable and gets ``x-expires``
``retired-argument``  arguments that RabbitMQ 4 does not know are left out, or have the name that it knows
``delivery-limit``    a quorum queue gets ``x-delivery-limit``
``delayed-exchange``  an exchange ``x-delayed-message`` gets its ``x-delayed-type`` for a type; `delays` has
                      the messages
====================  =======================================================================================
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import attrs

from amqpgate.policy.engine.naming import precondition_failed
from amqpgate.policy.kinds.compatibility import Compatibility
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

#: What was changed, as audit records, metrics and the documents name it.
Item: TypeAlias = Literal["transient-queue", "retired-argument", "delivery-limit", "delayed-exchange"]

_TYPE: Final = "x-queue-type"
_MASTER_LOCATOR: Final = "x-queue-master-locator"
_LEADER_LOCATOR: Final = "x-queue-leader-locator"
#: What the values of the former mean as those of the latter (RabbitMQ: queue leader location).
_LOCATORS: Final = {"min-masters": "balanced", "random": "balanced", "client-local": "client-local"}
_IGNORED: Final = ("x-queue-mode", "x-queue-version")
_MIRRORED: Final = "x-ha-"
_DELAYED: Final = "x-delayed-message"
_DELAYED_TYPE: Final = "x-delayed-type"


@attrs.frozen
class Adapted:
    """A method as the broker gets it."""

    method: Method
    #: Empty: it is the client's.
    items: tuple[Item, ...] = ()


def adapted(profile: Compatibility, method: Method, vhost: str) -> Adapted:
    """What the broker gets for a client's method. Raises `NotTransformedError` where RabbitMQ 3 closes the
    channel, and the newer broker would close the connection.
    """
    if isinstance(method, amqp.QueueDeclare) and not method.passive:
        return _declare(profile, method, vhost)
    if isinstance(method, amqp.ExchangeDeclare) and not method.passive:
        return _declare_exchange(profile, method)
    return Adapted(method)


def _declare(profile: Compatibility, method: amqp.QueueDeclare, vhost: str) -> Adapted:
    items: list[Item] = []
    table = method.arguments
    kind = table.get(_TYPE)
    is_classic = kind is None or kind == "classic"
    if profile.drops_retired and is_classic:
        # Quorum queues and streams never took them: they are refused as ever.
        table = _without_retired(table)
        if table is not method.arguments:
            items.append("retired-argument")
    durable = method.durable
    if profile.transient_expiry is not None and not durable and not method.exclusive:
        if not is_classic:
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
    limit = profile.delivery_limit(method.queue) if kind == "quorum" else None
    if limit is not None and "x-delivery-limit" not in table:
        table = table.with_("x-delivery-limit", limit)
        items.append("delivery-limit")
    if not items:
        return Adapted(method)
    return Adapted(attrs.evolve(method, durable=durable, arguments=table), tuple(items))


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
