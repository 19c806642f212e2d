"""What becomes of a broker's objects on a newer one.

Queues and exchanges are declared there as the gateway would declare them for a client under the same
`CompatibilityPolicy` (`gateway.session.compatibility`), so that a client which comes back finds its own.
Whether the newer broker takes them, `policy.tools.preflight` knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from amqpgate.gateway.session.compatibility import adapted
from amqpgate.move.objects import BrokerObject
from amqpgate.policy.engine.naming import NotTransformedError
from amqpgate.policy.engine.operations import Principal
from amqpgate.policy.kinds.compatibility import Compatibility
from amqpgate.policy.policy_set import PolicySet
from amqpgate.policy.tools.preflight import FAILS, BrokerRequest, Kind, Target, troubles
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

#: Versions that `preflight` knows, ascending.
_TARGETS: Final[tuple[Target, ...]] = ("4.0", "4.1", "4.2", "4.3")
_REQUESTS: Final[Mapping[str, Kind]] = {
    "queue": "queue.declare",
    "exchange": "exchange.declare",
    "policy": "policy",
}
_MASTER_LOCATOR: Final = "queue-master-locator"
#: What the values of the former mean as those of `queue-leader-locator` (RabbitMQ: queue leader location).
_LOCATORS: Final = {"min-masters": "balanced", "random": "balanced", "client-local": "client-local"}


@attrs.frozen
class ObjectNote:
    """What happens to one object, or why it cannot be made."""

    object: BrokerObject
    says: str
    #: Whether the newer broker refuses it.
    is_refused: bool = False
    #: What mends it; empty: nothing that amqpgate has.
    mended_by: str = ""


@attrs.frozen
class Rewritten:
    """What the other broker should have."""

    objects: tuple[BrokerObject, ...]
    notes: tuple[ObjectNote, ...]


def target_of(version: str) -> Target | None:
    """The version of RabbitMQ as `preflight` counts them; None: one of before 4."""
    numbers = version.split(".")
    if not numbers[0].isdigit() or int(numbers[0]) < 4:
        return None
    name = ".".join(numbers[:2])
    for target in _TARGETS:
        if name == target:
            return target
    return _TARGETS[-1]


def profiles_of(
    policies: PolicySet, upstream: str, objects: Iterable[BrokerObject]
) -> Mapping[str, Compatibility]:
    """By virtual host, what clients with this upstream are given: the profile of any user, else that of the
    first user with permissions there who has one."""
    users: dict[str, list[str]] = {}
    for one in objects:
        if one.kind == "vhost":
            users.setdefault(one.name, [])
        elif one.kind == "permission":
            users.setdefault(one.vhost, []).append(one.name)
    found = {}
    for vhost, names in users.items():
        for user in (None, *names):
            profile = policies.compatibility_for(Principal(user=user, vhost=vhost), upstream)
            if profile is not None:
                found[vhost] = profile
                break
    return found


def rewritten(
    objects: Iterable[BrokerObject], target: Target | None, profiles: Mapping[str, Compatibility]
) -> Rewritten:
    """What a broker of that version should have so that clients find what they had."""
    kept: list[BrokerObject] = []
    notes: list[ObjectNote] = []
    for one in objects:
        made = _on_newer(one, target, profiles.get(one.vhost), notes)
        if made is None:
            continue
        kept.append(made)
        if target is not None:
            notes += _troubles(made, target)
    return Rewritten(tuple(kept), tuple(notes))


def _on_newer(
    one: BrokerObject, target: Target | None, profile: Compatibility | None, notes: list[ObjectNote]
) -> BrokerObject | None:
    if one.kind == "policy" and target is not None:
        return _policy(one, notes)
    if profile is None or one.kind not in ("queue", "exchange"):
        return one
    try:
        made, items = _declared(one, profile)
    except (NotTransformedError, ValueError, TypeError):
        # No client could declare it through the gateway; whether the broker takes it is seen below.
        return one
    if items:
        notes.append(ObjectNote(one, f"{', '.join(items)}: as policy '{profile.policy}' has it"))
    return made


def _declared(one: BrokerObject, profile: Compatibility) -> tuple[BrokerObject, tuple[str, ...]]:
    """The object as a client's declare of it reaches the broker."""
    body = one.body
    durable, auto_delete = bool(body.get("durable", True)), bool(body.get("auto_delete"))
    table = Table.of(dict(one.arguments))
    if one.kind == "exchange":
        declare = amqp.ExchangeDeclare(
            exchange=one.name,
            type=str(body.get("type", "direct")),
            durable=durable,
            auto_delete=auto_delete,
            internal=bool(body.get("internal")),
            arguments=table,
        )
        change = adapted(profile, declare, one.vhost)
        if not isinstance(change.method, amqp.ExchangeDeclare) or not change.items:
            return one, ()
        method = change.method
        said = {"type": method.type, "arguments": method.arguments.to_python(), "durable": method.durable}
        return one.with_body(**said), change.items
    change = adapted(
        profile,
        amqp.QueueDeclare(queue=one.name, durable=durable, auto_delete=auto_delete, arguments=table),
        one.vhost,
    )
    if not isinstance(change.method, amqp.QueueDeclare) or not change.items:
        return one, ()
    queue = change.method
    return one.with_body(durable=queue.durable, arguments=queue.arguments.to_python()), change.items


def _policy(one: BrokerObject, notes: list[ObjectNote]) -> BrokerObject | None:
    said = one.body.get("definition")
    definition = dict(said) if isinstance(said, dict) else {}
    mirrors = [key for key in definition if key.startswith("ha-")]
    for key in mirrors:
        del definition[key]
    if mirrors:
        notes.append(ObjectNote(one, "its queues are not mirrored any more; quorum queues are replicated"))
    if _MASTER_LOCATOR in definition:
        leader = _LOCATORS.get(str(definition.pop(_MASTER_LOCATOR)))
        if leader is not None:
            definition.setdefault("queue-leader-locator", leader)
    if not definition:
        notes.append(ObjectNote(one, "left out: nothing in it means anything there"))
        return None
    return one if definition == said else one.with_body(definition=definition)


def _troubles(one: BrokerObject, target: Target) -> Iterator[ObjectNote]:
    kind = _REQUESTS.get(one.kind)
    if kind is None:
        return
    arguments = one.body.get("definition") if kind == "policy" else one.arguments
    request = BrokerRequest(
        kind=kind,
        vhost=one.vhost,
        name=one.name,
        durable=one.body.get("durable") is not False,
        type=str(one.body.get("type", "")) if kind == "exchange.declare" else "",
        arguments=arguments if isinstance(arguments, dict) else {},
    )
    for trouble in troubles(request, target):
        yield ObjectNote(
            one,
            trouble.says,
            # Where the broker denies it only, that is heard when it is made.
            is_refused=trouble.outcome in FAILS and trouble.outcome != "may-be-lost",
            mended_by=trouble.mended_by,
        )
