"""Compatibility policies: clients of an older broker on a newer one.

`compatibility_document` has the types. What a policy makes of a request is in the gateway
(`gateway.session.compatibility`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from amqpgate.policy.engine.matching import Matcher
from amqpgate.policy.engine.operations import DELAY_LADDER
from amqpgate.policy.kinds.claim_check import ClaimCheck
from amqpgate.policy.kinds.claim_findings import claim_findings
from amqpgate.policy.kinds.compatibility_document import (
    CompatibilityPolicy,
    DelayedExchangeRule,
    DeliveryLimitRule,
)
from amqpgate.policy.kinds.finding import Finding
from amqpgate.policy.kinds.kind import FolderCheck, Placed, PolicyKind, SessionSelection, by_subjects
from amqpgate.policy.kinds.quorum import CompiledQuorum, compiled_quorum
from amqpgate.values import frozen


@frozen
class CompiledLimit:
    """One delivery limit, for one session."""

    queue: Matcher | None
    limit: int


@frozen(eq=False)
class Compatibility:
    """What is changed for a session whose broker is one of these."""

    policy: str
    #: Names of clusters; empty: all.
    upstreams: frozenset[str]
    #: Milliseconds after which a queue that becomes durable expires; None: those that are transient stay so.
    transient_expiry: int | None
    drops_retired: bool
    delivery_limits: tuple[CompiledLimit, ...]
    quorum_queues: tuple[CompiledQuorum, ...]
    #: Whether ``x-death`` of a message that is published again counts on.
    counts_deaths: bool
    #: None: bodies pass as they are.
    claim_check: ClaimCheck | None = None
    #: Whether limits of whole channels are kept by the gateway.
    keeps_windows: bool = True
    #: Whether basic.nack with requeue is to count towards delivery limits.
    counts_nacks: bool = False
    #: Exchanges that delay; None: all.
    delayed_exchanges: tuple[Matcher | None, ...] = ()

    def delivery_limit(self, queue: str) -> int | None:
        """That of a quorum queue which does not say it itself."""
        for one in self.delivery_limits:
            if one.queue is None or one.queue.matches(queue):
                return one.limit
        return None

    def delays(self, exchange: str) -> bool:
        """Whether an exchange delays what says so. The default exchange never does, nor do the ladder's own,
        which would lead back into it."""
        if not exchange or exchange.startswith(DELAY_LADDER):
            return False
        return any(one is None or one.matches(exchange) for one in self.delayed_exchanges)


#: Those of one session, by the names of the policies.
Compatibilities: TypeAlias = tuple[Compatibility, ...]


def for_upstream(those: Compatibilities, upstream: str) -> Compatibility | None:
    """The one that holds where the session's broker is of this cluster: the first."""
    for one in those:
        if not one.upstreams or upstream in one.upstreams:
            return one
    return None


def session_compatibilities(session: SessionSelection[CompatibilityPolicy]) -> Compatibilities:
    """What may be changed for a session. Nothing for one whose user is not known, if that decides."""
    return tuple(
        Compatibility(
            policy.metadata.name,
            frozenset(policy.spec.upstreams),
            round(policy.spec.transient_queues.expire_after * 1000)
            if policy.spec.transient_queues.become == "durable"
            else None,
            policy.spec.retired_arguments == "drop",
            tuple(_limits(policy.spec.delivery_limits, session)),
            tuple(compiled_quorum(policy.spec.quorum_queues, session.values)),
            policy.spec.republished_deaths == "count",
            policy.spec.claim_check,
            keeps_windows=policy.spec.global_prefetch == "channel",
            counts_nacks=policy.spec.nacks == "count",
            delayed_exchanges=tuple(_delayed(policy.spec.delayed_exchanges, session)),
        )
        for policy in (one.policy for one in session.policies if one.is_sure)
    )


def _limits(
    rules: Iterable[DeliveryLimitRule], session: SessionSelection[CompatibilityPolicy]
) -> Iterator[CompiledLimit]:
    for rule in rules:
        matcher = None if rule.queue is None else rule.queue.compile(session.values)
        if rule.queue is None or matcher is not None:
            yield CompiledLimit(matcher, rule.limit)


def _unreached(placed: Placed[CompatibilityPolicy]) -> Iterator[Finding]:
    """A rule on quorum queues behind one that is for every queue, or one that says nothing."""
    rules = placed.document.spec.quorum_queues
    for index, rule in enumerate(rules):
        if rule.become == "classic" and (rule.auto_delete_after is not None or rule.max_priority is not None):
            yield Finding(
                "problem",
                placed.mark("spec", "quorum_queues", index),
                f"policy '{placed.name}': what stays classic needs no autoDeleteAfter and no maxPriority",
                "take them away, or say become: quorum",
            )
        if rule.queue is None and index + 1 < len(rules):
            yield Finding(
                "problem",
                placed.mark("spec", "quorum_queues", index + 1),
                f"policy '{placed.name}': the rule on quorum queues before this one is for every queue",
                "put the one for every queue last",
            )
            break


def _delayed(
    rules: Iterable[DelayedExchangeRule], session: SessionSelection[CompatibilityPolicy]
) -> Iterator[Matcher | None]:
    for rule in rules:
        matcher = None if rule.exchange is None else rule.exchange.compile(session.values)
        if rule.exchange is None or matcher is not None:
            yield matcher


def _findings(folder: FolderCheck[CompatibilityPolicy]) -> Iterator[Finding]:
    """Policies that change nothing, and rules behind one that takes all queues."""
    yield from claim_findings(folder)
    for placed in folder.documents:
        spec = placed.document.spec
        yield from _unreached(placed)
        for index, rule in enumerate(spec.delivery_limits[:-1]):
            if rule.queue is None:
                yield Finding(
                    "problem",
                    placed.mark("spec", "delivery_limits", index + 1),
                    f"policy '{placed.name}': the delivery limit before this one is for every queue",
                    "put the one for every queue last",
                )
                break
        if spec.nacks == "count" and any(
            rule.queue is None and rule.limit < 0 for rule in spec.delivery_limits
        ):
            yield Finding(
                "problem",
                placed.mark("spec", "nacks"),
                f"policy '{placed.name}': nacks count towards delivery limits, and there are none for the "
                "queues that it declares",
                "give these queues a limit, or keep nacks as they are",
            )
        if len(spec.delayed_exchanges) > 1 and any(one.exchange is None for one in spec.delayed_exchanges):
            yield Finding(
                "problem",
                placed.mark("spec", "delayed_exchanges"),
                f"policy '{placed.name}': one of the rules on delayed exchanges is for every exchange",
                "take the others away",
            )
        if (
            spec.transient_queues.become == "transient"
            and spec.retired_arguments == "keep"
            and not spec.delivery_limits
            and not spec.quorum_queues
            and spec.republished_deaths == "broker"
            and spec.claim_check is None
            and spec.global_prefetch == "keep"
            and spec.nacks == "keep"
            and not spec.delayed_exchanges
        ):
            yield Finding(
                "problem",
                placed.mark("spec"),
                f"policy '{placed.name}' changes nothing",
                "take it away, or switch an item on",
            )


COMPATIBILITY: Final = PolicyKind(
    document=CompatibilityPolicy,
    subjects=by_subjects,
    compile=session_compatibilities,
    row=lambda policy: {"as": policy.spec.profile},
    findings=_findings,
)
