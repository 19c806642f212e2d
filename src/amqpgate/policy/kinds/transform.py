"""Transform policies: what is changed on the way.

`transform_document` has the types, `transform_set` the changes of one session.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from amqpgate.policy.engine.matching import MAX_BYTES, variables_in
from amqpgate.policy.kinds.finding import Finding
from amqpgate.policy.kinds.kind import FolderCheck, Placed, PolicyKind, Row, by_subjects
from amqpgate.policy.kinds.transform_document import RenamingSpec, TransformPolicy
from amqpgate.policy.kinds.transform_set import session_transform


def _findings(folder: FolderCheck[TransformPolicy]) -> Iterator[Finding]:
    """Prefixes that leave less room for names."""
    for placed in folder.documents:
        yield from _about_room(placed)


def _about_room(placed: Placed[TransformPolicy]) -> Iterator[Finding]:
    for key in ("exchanges", "queues", "both"):
        spec: RenamingSpec | None = getattr(placed.document.spec.names, key, None)
        if spec is None or not spec.prefix:
            continue
        what = "exchanges and queues" if key == "both" else key
        if variables_in(spec.prefix):
            room = f"{MAX_BYTES} bytes less those of the prefix '{spec.prefix}'"
        else:
            room = f"{MAX_BYTES - len(spec.prefix.encode())} bytes"
        yield Finding(
            "note",
            placed.mark("spec", "names", key, "prefix"),
            f"policy '{placed.name}' leaves names of {what} {room} at most: a longer one is denied with 406",
            "keep it if no client has longer names",
        )


def _row(policy: TransformPolicy) -> Row:
    return {
        "rules": [
            {"id": rule.id, "effect": "change", "operations": list(rule.operations)}
            for rule in policy.spec.arguments
        ]
    }


TRANSFORM: Final = PolicyKind(
    document=TransformPolicy,
    subjects=by_subjects,
    compile=session_transform,
    row=_row,
    findings=_findings,
)
