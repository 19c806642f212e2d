"""What in a folder of policies cannot be meant so.

Each kind says what is its own; `selection` says what all kinds have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from amqpgate.policy.kinds.finding import Finding
from amqpgate.policy.kinds.kind import AnyPolicyKind, Document, FolderCheck, Placed
from amqpgate.policy.kinds.registry import POLICY_KINDS
from amqpgate.policy.tools.selection import about_groups, about_selection, users_in


def findings(
    documents: Iterable[Placed[Document]],
    *,
    overlaps: bool = False,
    kinds: Sequence[AnyPolicyKind] = POLICY_KINDS,
) -> list[Finding]:
    """All findings, in the order of files and lines; with ``overlaps``, what denies take of allows."""
    documents = list(documents)
    users = users_in(documents)
    found = list(about_groups(documents, kinds))
    for kind in kinds:
        of_kind = [placed for placed in documents if placed.document.kind == kind.name]
        found += about_selection(kind, of_kind)
        found += kind.findings(FolderCheck(of_kind, users, overlaps))
    return sorted(found, key=lambda one: (one.mark.file, one.mark.line, one.mark.column, one.text))
