"""What of a RabbitMQ 3 fails, or changes, on RabbitMQ 4: queues, exchanges, policies and requests.

Each check was run on RabbitMQ 3.10.8, 4.0.5 and 4.3.6. What 4.0.5 takes and 4.3.6 does not is said of 4.3
alone, since 4.1 and 4.2 were not tried; but small frames of 4.1, which its release notes name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

import attrs

#: Where clients are to go.
Target: TypeAlias = Literal["4.0", "4.1", "4.2", "4.3"]

#: ``lost``: the connection ends. ``closed``: the channel does. ``refused``: it cannot be imported.
#: ``may-be-lost``, ``may-differ``: only where the broker denies the feature, or clients do what is not known.
#: ``differs``: it passes, and means something else.
Outcome: TypeAlias = Literal["lost", "closed", "refused", "may-be-lost", "may-differ", "differs"]

#: Those of which a client, or an import, hears.
FAILS: Final[frozenset[Outcome]] = frozenset({"lost", "closed", "refused", "may-be-lost"})

#: What is tried, as RabbitMQ's definitions and audit records name it.
Kind: TypeAlias = Literal[
    "connection.open",
    "queue.declare",
    "queue.delete",
    "exchange.declare",
    "basic.qos",
    "basic.publish",
    "policy",
]

#: Bytes of a body that RabbitMQ 4 takes, unless its ``max_message_size`` says otherwise.
LARGEST_BODY: Final = 16 << 20

#: The smallest frames that RabbitMQ 4.1 lets a client agree to, in bytes.
SMALLEST_FRAME: Final = 8192

#: Of AMQP, which RabbitMQ 4 no longer speaks.
OLD_VERSION: Final = "0-8"


@attrs.frozen(kw_only=True)
class BrokerRequest:
    """What was declared, or asked for."""

    kind: Kind
    vhost: str
    #: Of the queue, the exchange or the policy; of a connection, the client's product.
    name: str
    durable: bool = True
    exclusive: bool = False
    #: Of an exchange.
    type: str = ""
    #: basic.qos: of the whole channel.
    is_global: bool = False
    #: queue.delete: if unused, or if empty.
    is_conditional: bool = False
    #: Bytes of the largest body that was published so; 0: it is not known.
    largest_body: int = 0
    #: Of a connection; empty, 0: it is not known.
    amqp_version: str = ""
    frame_max: int = 0
    #: Of a declare.
    auto_delete: bool = False
    #: Whether its queue is to be a quorum queue, which its client need not know.
    becomes_quorum: bool = False
    #: Of a declare; or what a policy defines.
    arguments: Mapping[str, object] = attrs.field(factory=dict)

    @property
    def is_classic(self) -> bool:
        """Whether a queue is classic, or of the virtual host's default type."""
        return self.arguments.get("x-queue-type") in (None, "classic")


@attrs.frozen(kw_only=True)
class UpgradeCheck:
    """One thing that RabbitMQ 4 does otherwise."""

    #: As the documents name it.
    item: str
    kind: Kind
    asks: Callable[[BrokerRequest], bool]
    #: What comes of it, by the version from which on it does.
    since: Mapping[Target, Outcome]
    says: str
    #: What mends it; empty: nothing that amqpgate has.
    mended_by: str = ""

    def outcome(self, target: Target) -> Outcome | None:
        """What comes of it there; None: nothing."""
        found = None
        for version, outcome in self.since.items():
            if version <= target:
                found = outcome
        return found


@attrs.frozen(kw_only=True)
class Trouble:
    """A request that fails, or changes."""

    request: BrokerRequest
    item: str
    outcome: Outcome
    says: str
    mended_by: str


def _is_transient(request: BrokerRequest) -> bool:
    return not request.durable and not request.exclusive


_PROFILE: Final = "CompatibilityPolicy"

#: What mends it whatever the policies say.
_GATEWAY: Final = "any gateway"

#: Arguments that quorum queues refuse.
_NOT_QUORUM: Final = frozenset({"x-max-priority", "x-queue-mode", "x-queue-version"})

#: Versions in ascending order.
CHECKS: Final[tuple[UpgradeCheck, ...]] = (
    UpgradeCheck(
        item="old-version",
        kind="connection.open",
        asks=lambda request: request.amqp_version == OLD_VERSION,
        since={"4.0": "lost"},
        says="AMQP 0-8: the broker hangs up",
        mended_by=_GATEWAY,
    ),
    UpgradeCheck(
        item="small-frames",
        kind="connection.open",
        asks=lambda request: 0 < request.frame_max < SMALLEST_FRAME,
        since={"4.1": "lost"},
        says="frames of less than 8,192 bytes: the broker hangs up",
        mended_by=_GATEWAY,
    ),
    UpgradeCheck(
        item="transient-queue",
        kind="queue.declare",
        asks=_is_transient,
        since={"4.0": "may-be-lost"},
        says="a queue that is neither durable nor exclusive: 541 where transient_nonexcl_queues is denied",
        mended_by=f"{_PROFILE} transientQueues",
    ),
    UpgradeCheck(
        item="master-locator",
        kind="queue.declare",
        asks=lambda request: request.is_classic and "x-queue-master-locator" in request.arguments,
        since={"4.3": "lost"},
        says="x-queue-master-locator: 541",
        mended_by=f"{_PROFILE} retiredArguments",
    ),
    UpgradeCheck(
        item="queue-version",
        kind="queue.declare",
        asks=lambda request: request.is_classic and request.arguments.get("x-queue-version") == 1,
        since={"4.3": "closed"},
        says="x-queue-version 1: 406",
        mended_by=f"{_PROFILE} retiredArguments",
    ),
    UpgradeCheck(
        item="delayed-exchange",
        kind="exchange.declare",
        asks=lambda request: request.type == "x-delayed-message",
        since={"4.3": "closed"},
        says="x-delayed-message: 406, there is no plugin for it",
        mended_by=f"{_PROFILE} delayedExchanges",
    ),
    UpgradeCheck(
        item="message-size",
        kind="basic.publish",
        asks=lambda request: request.largest_body > LARGEST_BODY,
        since={"4.0": "closed"},
        says="a message above 16 MiB: 406, unless max_message_size is set",
        mended_by=f"{_PROFILE} claimCheck",
    ),
    UpgradeCheck(
        item="x-death",
        kind="queue.declare",
        asks=lambda request: {"x-message-ttl", "x-dead-letter-exchange"} <= request.arguments.keys(),
        since={"4.0": "may-differ"},
        says="messages wait here to be tried again: x-death of those that clients publish again stays at 1",
        mended_by=f"{_PROFILE} republishedDeaths",
    ),
    UpgradeCheck(
        item="nack-requeue",
        kind="queue.declare",
        asks=lambda request: (
            request.arguments.get("x-queue-type") == "quorum" and "x-delivery-limit" in request.arguments
        ),
        since={"4.3": "differs"},
        says="a quorum queue with a delivery limit: what basic.nack gives back does not count",
        mended_by=f"{_PROFILE} nacks: count",
    ),
    UpgradeCheck(
        item="delivery-count",
        kind="queue.declare",
        asks=lambda request: request.arguments.get("x-queue-type") == "quorum",
        since={"4.3": "may-differ"},
        says="a quorum queue: x-delivery-count no longer rises for what basic.nack gives back; who reads it",
        mended_by=f"{_PROFILE} nacks: count",
    ),
    UpgradeCheck(
        item="quorum-exclusive",
        kind="queue.declare",
        asks=lambda request: request.becomes_quorum and request.exclusive,
        since={"4.0": "closed"},
        says="exclusive, which a quorum queue cannot be: 406",
        mended_by=f"{_PROFILE} quorumQueues: it stays classic",
    ),
    UpgradeCheck(
        item="quorum-auto-delete",
        kind="queue.declare",
        asks=lambda request: request.becomes_quorum and request.auto_delete and not request.exclusive,
        since={"4.0": "closed"},
        says="auto-delete, which a quorum queue cannot be: 406",
        mended_by=f"{_PROFILE} quorumQueues: it stays classic, or autoDeleteAfter",
    ),
    UpgradeCheck(
        item="quorum-argument",
        kind="queue.declare",
        asks=lambda request: request.becomes_quorum and not _NOT_QUORUM.isdisjoint(request.arguments),
        since={"4.0": "closed"},
        says="x-max-priority, x-queue-mode or x-queue-version: 406 of a quorum queue",
        mended_by=f"{_PROFILE} quorumQueues",
    ),
    UpgradeCheck(
        item="quorum-type",
        kind="queue.declare",
        asks=lambda request: request.becomes_quorum and request.is_classic,
        since={"4.0": "closed"},
        says="a classic queue is declared, and there is a quorum queue: 406",
        mended_by=f"{_PROFILE} quorumQueues",
    ),
    UpgradeCheck(
        item="conditional-delete",
        kind="queue.delete",
        asks=lambda request: request.becomes_quorum and request.is_conditional,
        since={"4.0": "lost"},
        says="deleted if unused, or if empty: 540 of a quorum queue",
        mended_by=f"{_PROFILE} quorumQueues",
    ),
    UpgradeCheck(
        item="delivery-limit",
        kind="queue.declare",
        asks=lambda request: (
            request.arguments.get("x-queue-type") == "quorum" and "x-delivery-limit" not in request.arguments
        ),
        since={"4.0": "differs"},
        says="a quorum queue without a delivery limit: messages go after 21 deliveries",
        mended_by=f"{_PROFILE} deliveryLimits",
    ),
    UpgradeCheck(
        item="global-prefetch",
        kind="basic.qos",
        asks=lambda request: request.is_global,
        since={"4.0": "may-differ", "4.3": "differs"},
        says="basic.qos for the whole channel: it holds for each consumer alone",
        mended_by=f"{_PROFILE} globalPrefetch",
    ),
    UpgradeCheck(
        item="mirrored-queue",
        kind="policy",
        asks=lambda request: any(name.startswith("ha-") for name in request.arguments),
        since={"4.0": "refused"},
        says="a policy that mirrors classic queues: it cannot be imported; take quorum queues",
        mended_by=f"{_PROFILE} quorumQueues",
    ),
    UpgradeCheck(
        item="master-locator",
        kind="policy",
        asks=lambda request: "queue-master-locator" in request.arguments,
        since={"4.3": "refused"},
        says="a policy with queue-master-locator: it cannot be imported; take queue-leader-locator",
    ),
)


def troubles(request: BrokerRequest, target: Target) -> Iterator[Trouble]:
    """What fails of a request there, or changes."""
    for check in CHECKS:
        outcome = check.outcome(target) if check.kind == request.kind and check.asks(request) else None
        if outcome is not None:
            yield Trouble(
                request=request, item=check.item, outcome=outcome, says=check.says, mended_by=check.mended_by
            )
