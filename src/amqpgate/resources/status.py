"""What a resource's status says: whether it is accepted, why not, and what of it is in force."""

from __future__ import annotations

from typing import Final

from amqpgate.resources.documents import Json, RefusedResource, Resource, WrittenResource

#: Characters of a message; Kubernetes takes 32 KiB, and nobody reads that.
_MOST_MESSAGE: Final = 1500
#: And of the note of an event, which has 1 KiB.
MOST_NOTE: Final = 1000


def status_of(
    generation: int,
    refused: RefusedResource | None,
    in_force: WrittenResource | None,
    before: Json,
    now: str,
) -> Resource:
    """The status of a resource of which ``before`` was said; ``now`` is RFC 3339."""
    accepted = "True" if refused is None else "False"
    condition: Resource = {
        "type": "Accepted",
        "status": accepted,
        "observedGeneration": generation,
        "reason": "Accepted" if refused is None else refused.reason,
        "message": message_of(refused, in_force),
        "lastTransitionTime": now,
    }
    old = _condition(before)
    if old.get("status") == accepted and isinstance(old.get("lastTransitionTime"), str):
        condition["lastTransitionTime"] = old["lastTransitionTime"]
    status: Resource = {"observedGeneration": generation, "conditions": [condition]}
    # As a merge patch: what is null is taken away.
    status["digest"] = None if in_force is None else in_force.digest
    status["inForceGeneration"] = None if in_force is None else in_force.generation
    return status


def is_said(status: Resource, before: Json) -> bool:
    """Whether a status says nothing new."""
    if not isinstance(before, dict):
        return False
    return all(before.get(key) == value for key, value in status.items())


def is_turned(status: Resource, before: Json) -> bool:
    """Whether the answer, or its reason, is another one than before: that is an event."""
    old, new = _condition(before), _condition(status)
    return any(old.get(key) != new.get(key) for key in ("status", "reason", "message"))


def message_of(refused: RefusedResource | None, in_force: WrittenResource | None) -> str:
    """What is told of a resource."""
    if refused is None:
        return "in force"
    what = "nothing of it is in force"
    if in_force is not None:
        what = f"generation {in_force.generation} stays in force"
    message = refused.message
    if len(message) > _MOST_MESSAGE:
        message = f"{message[:_MOST_MESSAGE]}..."
    return f"{message}\n({what})"


def _condition(status: Json) -> Resource:
    conditions = status.get("conditions") if isinstance(status, dict) else None
    for one in conditions if isinstance(conditions, list) else ():
        if isinstance(one, dict) and one.get("type") == "Accepted":
            return one
    return {}
