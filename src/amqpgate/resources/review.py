"""The API server's question whether a policy may be stored, and the answer (``admission.k8s.io/v1``).

::

    kubectl apply ─▶ API server                              webhook
                         │ AdmissionReview: request.object ─▶ │
                         │                                    │ judged by itself
                         │ ◀─ allowed, warnings, or a message │

What is wrong with a resource by itself is refused, so that who applies it is told at once. Whether it goes
together with all others, and whether there is room, is told by its status alone.
"""

from __future__ import annotations

from typing import Final

import attrs

from amqpgate.inject.admission import BadReviewError, answer_to, quoted, refusal, request_in, shown
from amqpgate.policy.kinds.kind import FolderCheck
from amqpgate.policy.kinds.registry import POLICY_KINDS
from amqpgate.policy.tools.selection import users_in
from amqpgate.resources.definitions import GROUP, RESOURCE_KINDS
from amqpgate.resources.documents import Json, RefusedResource, Resource, ResourceKey, WrittenResource
from amqpgate.resources.in_force import ResourceJudge

_KINDS: Final = {kind.name for kind in RESOURCE_KINDS}
#: Characters of a refusal that are told. What a status says may be longer.
_MOST_MESSAGE: Final = 4000
#: Warnings, and characters of each: the API server cuts what is longer, and drops what is too much.
_MOST_WARNINGS: Final = 10
_WARNING_MAX: Final = 256


@attrs.frozen
class PolicyAnswer:
    """The review to send back, and what to write to the log about it."""

    review: Resource
    #: Namespace and name.
    name: str
    #: Why it is not stored, as a word.
    reason: str | None = None


def answer(body: bytes, judge: ResourceJudge) -> PolicyAnswer:
    """The answer to the review in ``body`` (JSON). Raises `BadReviewError`."""
    request = request_in(body)
    kind = request.get("kind")
    kind_name = kind.get("kind") if isinstance(kind, dict) and kind.get("group") == GROUP else None
    if not isinstance(kind_name, str) or kind_name not in _KINDS:
        raise BadReviewError(f"request.kind is {quoted(kind)}: this webhook is for policies of {GROUP}")
    allowed: Resource = {"allowed": True}
    resource, namespace = request.get("object"), request.get("namespace")
    if request.get("operation") not in ("CREATE", "UPDATE") or request.get("subResource"):
        return PolicyAnswer(answer_to(request, allowed), shown(request, {}))
    if not isinstance(resource, dict) or not isinstance(namespace, str):
        raise BadReviewError("request.object or request.namespace is missing")
    name = shown(request, resource)
    old = request.get("oldObject")
    is_changed = not isinstance(old, dict) or old.get("spec") != resource.get("spec")
    # Others' are not judged here; and who only labels, or removes, what was wrong before is let.
    if namespace not in judge.namespaces or not is_changed:
        return PolicyAnswer(answer_to(request, allowed), name)
    # Of a `generateName` the rest is not known yet.
    key = ResourceKey(kind_name, namespace, name.partition("/")[2].rstrip("-."))
    judged = judge.judged(key, resource, 0)
    if isinstance(judged, RefusedResource):
        message = judged.message[:_MOST_MESSAGE]
        return PolicyAnswer(answer_to(request, refusal(message)), name, judged.reason)
    warnings = _warnings(judged)
    return PolicyAnswer(answer_to(request, allowed | ({"warnings": warnings} if warnings else {})), name)


def _warnings(made: WrittenResource) -> list[Json]:
    """What cannot be meant so, as `amqpgate policy check` has it."""
    users = users_in([made.placed])
    found = [
        one
        for kind in POLICY_KINDS
        if kind.name == made.key.kind
        for one in kind.findings(FolderCheck([made.placed], users, False))
    ]
    return [f"{one.mark.file}: {one.text}"[:_WARNING_MAX] for one in found[:_MOST_WARNINGS]]
