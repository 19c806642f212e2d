"""What ``amqpgate policy check`` says of the item ``claimCheck``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from amqpgate.policy.engine.subjects import NamePattern, Subject
from amqpgate.policy.kinds.finding import Finding
from amqpgate.policy.kinds.kind import FolderCheck

if TYPE_CHECKING:
    from amqpgate.policy.kinds.compatibility_document import CompatibilityPolicy

#: What RabbitMQ 4 takes (`max_message_size`).
BROKER_TAKES: Final = 16 << 20

_ANYBODY: Final = NamePattern("", True)


def claim_findings(folder: FolderCheck[CompatibilityPolicy]) -> Iterator[Finding]:
    """Consumers that would get references, bodies that the broker refuses, and stores that differ."""
    for placed in folder.documents:
        spec = placed.document.spec
        if spec.claim_check is None or spec.mode == "off":
            continue
        for index, subject in enumerate(spec.subjects):
            if not _is_of_vhosts(subject):
                yield Finding(
                    "note",
                    placed.mark("spec", "subjects", index),
                    f"policy '{placed.name}': only those whom this selects get bodies from the store; "
                    "others who consume the same queues get references",
                    "select whole virtual hosts where claimCheck is used",
                )
        if spec.claim_check.above > BROKER_TAKES:
            yield Finding(
                "note",
                placed.mark("spec", "claim_check", "above"),
                f"policy '{placed.name}': RabbitMQ 4 refuses bodies of more than 16 MiB, unless its "
                "max_message_size says otherwise",
                "set above to 16Mi or less",
            )
    stores = {
        (claim.store.bucket, claim.store.prefix, claim.store.endpoint): placed
        for placed in folder.documents
        if (claim := placed.document.spec.claim_check) is not None and placed.document.spec.mode != "off"
    }
    for placed in list(stores.values())[1:]:
        yield Finding(
            "problem",
            placed.mark("spec", "claim_check", "store"),
            f"policy '{placed.name}': another policy has another store; who publishes under one "
            "and consumes under the other gets no bodies",
            "give all the same store, or see to it that they are about different virtual hosts",
        )


def _is_of_vhosts(subject: Subject) -> bool:
    """Whether it selects whole virtual hosts, by whatever listener or address."""
    narrows = (subject.source_cidr, subject.listeners, subject.tls)
    return subject.user == _ANYBODY and not subject.client and all(one is None for one in narrows)
