"""The frozen types of access policies, in the manner of Kubernetes.

The loader rejects a document that says anything which this version would not enforce.
"""

from __future__ import annotations

from typing import Literal

import attrs

from amqpgate.policy.engine.access_rule import OnDenied, Rule
from amqpgate.policy.engine.subjects import Subject
from amqpgate.policy.kinds.common import Metadata, Mode, check_ids, check_mode
from amqpgate.values import frozen
from amqpgate.yamldoc import Percent, between, doc, not_empty


@frozen(kw_only=True)
class OnDeny:
    """What a denial does, and how much it tells."""

    publish: OnDenied = attrs.field(
        default="channel-close",
        metadata=doc(
            "a publish that is denied closes the channel, as RabbitMQ does it; or, with `nack`, is denied "
            "by a confirm; with `return`, comes back; with `drop`, is lost and confirmed. Where the channel "
            "has no confirms, `nack` closes it; so do they all in a transaction. Of several policies, the "
            "first of these holds"
        ),
    )
    disclose: Literal["nothing", "rule-id"] = attrs.field(
        default="nothing", metadata=doc("`rule-id`: the client's error names the policy and the rule")
    )


@frozen(kw_only=True)
class AccessSpec:
    """Who may do what."""

    subjects: tuple[Subject, ...] = attrs.field(
        validator=not_empty(), metadata=doc("whom the policy selects; one that fits is enough")
    )
    rules: tuple[Rule, ...] = attrs.field(
        metadata=doc("in any order: a deny wins, then an allow; what none allows is denied")
    )
    mode: Mode = attrs.field(
        default="enforce",
        metadata=doc(
            "`shadow`: where the verdict would differ it is counted; `off`: as if the policy were not there"
        ),
    )
    enforce_percent: Percent = attrs.field(
        default=Percent(0.0),
        validator=between(0, 100),
        metadata=doc("in mode `shadow`: of so many sessions in a hundred, chosen by hash, it is enforced"),
    )
    on_deny: OnDeny = attrs.field(default=OnDeny(), metadata=doc("what a denial does"))

    def __attrs_post_init__(self) -> None:
        check_mode(self.mode, self.enforce_percent)
        check_ids([rule.id for rule in self.rules], "rule")


@frozen(kw_only=True)
class AccessPolicy:
    """Who may do what. Sessions that an access policy selects may do only what a rule allows."""

    api_version: Literal["amqpgate.io/v1alpha1"] = attrs.field(
        metadata=doc("version of the document's format")
    )
    kind: Literal["AccessPolicy"] = attrs.field(metadata=doc("kind of document"))
    metadata: Metadata = attrs.field(metadata=doc("what the document is called"))
    spec: AccessSpec = attrs.field(metadata=doc("what the document says"))
