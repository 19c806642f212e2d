"""The frozen types of compatibility policies: which habits of an older broker a newer one is given back."""

from __future__ import annotations

from typing import ClassVar, Final, Literal, TypeAlias

import attrs

from amqpgate.policy.engine.conditions import Match
from amqpgate.policy.engine.subjects import Subject
from amqpgate.policy.kinds.claim_check import ClaimCheck
from amqpgate.policy.kinds.common import Metadata
from amqpgate.policy.kinds.quorum_document import LONGEST_EXPIRY, QuorumQueueRule
from amqpgate.values import frozen
from amqpgate.yamldoc import Seconds, between, doc, not_empty

#: What clients were written for.
Profile: TypeAlias = Literal["rabbitmq-3.13"]

#: The largest `x-delivery-limit`: a number of 64 bits.
LARGEST_LIMIT: Final = 2**63 - 1

_NO_SHADOW = "is not for compatibility policies: nothing is changed for show; take mode enforce or off"


@frozen(kw_only=True)
class TransientQueues:
    """Queues that are neither durable nor exclusive, which RabbitMQ 4.3 may deny."""

    become: Literal["durable", "transient"] = attrs.field(
        default="durable",
        metadata=doc("`durable`: the broker keeps them over its restart; `transient`: they stay as they are"),
    )
    expire_after: Seconds = attrs.field(
        default=Seconds(24 * 3600),
        validator=between(0.001, LONGEST_EXPIRY),
        metadata=doc(
            "those that become durable are deleted when nobody has used them for so long, unless they say "
            "`x-expires` themselves",
            default="24h",
        ),
    )


@frozen(kw_only=True)
class DeliveryLimitRule:
    """How often the messages of some quorum queues may be delivered."""

    queue: Match | None = attrs.field(
        default=None, metadata=doc("the queue, as the broker calls it", default="any")
    )
    limit: int = attrs.field(
        validator=between(-1, LARGEST_LIMIT),
        metadata=doc("`x-delivery-limit` of those that do not say it; -1: none, as RabbitMQ 3 has it"),
    )


@frozen(kw_only=True)
class DelayedExchangeRule:
    """Exchanges that delay messages, as the plugin of RabbitMQ 3 made them."""

    exchange: Match | None = attrs.field(
        default=None, metadata=doc("the exchange, as the broker calls it", default="any")
    )


@frozen(kw_only=True)
class CompatibilitySpec:
    """Whose requests are changed, and how."""

    subjects: tuple[Subject, ...] = attrs.field(
        validator=not_empty(), metadata=doc("whom the policy selects; one that fits is enough")
    )
    mode: Literal["enforce", "off"] = attrs.field(
        default="enforce", metadata=doc("`off`: as if the policy were not there")
    )
    profile: Profile = attrs.field(
        metadata=doc("the broker that clients were written for; it says what the items below are", key="as")
    )
    upstreams: tuple[str, ...] = attrs.field(
        default=(), metadata=doc("sessions with these upstreams only", default="every upstream")
    )
    transient_queues: TransientQueues = attrs.field(
        default=TransientQueues(),
        metadata=doc("queues that are neither durable nor exclusive", default="they become durable"),
    )
    retired_arguments: Literal["drop", "keep"] = attrs.field(
        default="drop",
        metadata=doc(
            "arguments of classic queues that RabbitMQ 4 does not know any more: `x-queue-version`, "
            "`x-queue-mode` and `x-ha-...` are left out, `x-queue-master-locator` becomes "
            "`x-queue-leader-locator`"
        ),
    )
    delivery_limits: tuple[DeliveryLimitRule, ...] = attrs.field(
        default=(),
        metadata=doc(
            "delivery limits of quorum queues; of several rules for a queue the first holds",
            default="the broker's, which is 20 in RabbitMQ 4",
        ),
    )
    claim_check: ClaimCheck | None = attrs.field(
        default=None,
        metadata=doc(
            "bodies that are too large for the broker, which takes 16 MiB, go to an object store; whoever "
            "consumes through a gateway gets them",
            default="the broker refuses them",
        ),
    )

    quorum_queues: tuple[QuorumQueueRule, ...] = attrs.field(
        default=(),
        metadata=doc(
            "queues that are quorum queues though their clients never asked for it; of several rules for a "
            "queue the first holds. Without a delivery limit of theirs they have none, as on RabbitMQ 3",
            default="those that clients ask for",
        ),
    )
    republished_deaths: Literal["count", "broker"] = attrs.field(
        default="count",
        metadata=doc(
            "`count`: `x-death` of a message that is published again counts on, as on RabbitMQ 3; `broker`: "
            "as the broker counts, which begins anew"
        ),
    )

    global_prefetch: Literal["channel", "keep"] = attrs.field(
        default="channel",
        metadata=doc(
            "`basic.qos` with `global`; `channel`: the gateway keeps the limit over all consumers of the "
            "channel; `keep`: the broker gets it as it is, and RabbitMQ 4 takes it for each consumer's"
        ),
    )
    nacks: Literal["keep", "count"] = attrs.field(
        default="keep",
        metadata=doc(
            "`basic.nack` with requeue; `count`: the broker gets `basic.reject`, which counts towards the "
            "delivery limit of quorum queues; `keep`: it gets what the client says, which does not count in "
            "RabbitMQ 4.3"
        ),
    )

    delayed_exchanges: tuple[DelayedExchangeRule, ...] = attrs.field(
        default=(),
        metadata=doc(
            "exchanges of the type `x-delayed-message`: they are declared as their `x-delayed-type`; what is "
            "published there with `x-delay` waits in queues on the broker",
            default="none: the broker refuses them",
        ),
    )

    RESERVED_KEYS: ClassVar[dict[str, str]] = {"enforcePercent": _NO_SHADOW}


@frozen(kw_only=True)
class CompatibilityPolicy:
    """Requests that are changed so that clients of an older broker work with a newer one."""

    api_version: Literal["amqpgate.io/v1alpha1"] = attrs.field(
        metadata=doc("version of the document's format")
    )
    kind: Literal["CompatibilityPolicy"] = attrs.field(metadata=doc("kind of document"))
    metadata: Metadata = attrs.field(metadata=doc("what the document is called"))
    spec: CompatibilitySpec = attrs.field(metadata=doc("what the document says"))
