"""The API server's question whether a pod may be made, and the answer (``admission.k8s.io/v1``).

::

    API server                                      webhook
        │ AdmissionReview: request.uid, request.object ─▶ │
        │                                                 │ inject
        │ ◀─ AdmissionReview: response.uid, allowed, patch │

A question is answered or refused with `BadReviewError`, HTTP status 400. That a pod cannot be injected is an
answer: no (``closed``), or yes with a warning (``open``).
"""

from __future__ import annotations

import base64
import json
from typing import Final

import attrs

from amqpgate.inject.admission import BadReviewError, answer_to, quoted, refusal, request_in, shown
from amqpgate.inject.patch import difference
from amqpgate.inject.pods import inject
from amqpgate.inject.settings import Injector
from amqpgate.inject.values import NotInjectedError
from amqpgate.yamldoc.schema import Json

_POD: Final[dict[str, Json]] = {"group": "", "version": "v1", "kind": "Pod"}
#: Of the reason why a pod has no sidecar, in the log.
_LONGEST_REASON: Final = 1024
#: What the API server may cut from a warning, it says itself: "recommended to be 120 characters or fewer".
_WARNING_MAX: Final = 256


@attrs.frozen
class ReviewAnswer:
    """The review to send back, and what to write to the log about it."""

    review: dict[str, Json]
    #: Namespace and name of the pod, as far as they are known before it is made.
    pod: str
    #: Whether it gets a sidecar.
    is_changed: bool = False
    #: The variables that lead to it.
    variables: tuple[str, ...] = ()
    #: Why a sidecar that is wanted cannot be had.
    why_not: str | None = None


def answer(body: bytes, settings: Injector) -> ReviewAnswer:
    """The answer to the review in ``body`` (JSON). Raises ``BadReviewError``."""
    request = request_in(body)
    kind = request.get("kind")
    if kind != _POD:
        named = kind.get("kind") if isinstance(kind, dict) else kind
        raise BadReviewError(f"request.kind is {quoted(named)}: this webhook is for pods (version v1)")
    # What is changed later has its containers; what is not the pod itself (its status, its binding) has none.
    if request.get("operation") != "CREATE" or request.get("subResource"):
        return ReviewAnswer(answer_to(request, {"allowed": True}), shown(request, {}))
    pod = request.get("object")
    if not isinstance(pod, dict):
        raise BadReviewError("request.object is missing, or is no object")
    name = shown(request, pod)
    try:
        injection = inject(pod, settings)
    except NotInjectedError as error:
        return ReviewAnswer(
            answer_to(request, _without(error, settings)), name, why_not=str(error)[:_LONGEST_REASON]
        )
    if injection is None:
        return ReviewAnswer(answer_to(request, {"allowed": True}), name)
    patch = json.dumps(list(difference(pod, injection.pod))).encode()
    response: dict[str, Json] = {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(patch).decode(),
    }
    return ReviewAnswer(answer_to(request, response), name, True, injection.variables)


def _without(error: NotInjectedError, settings: Injector) -> dict[str, Json]:
    """The answer about a pod that cannot be injected."""
    why = f"amqpgate: {error}"
    if settings.on_error == "open":
        return {"allowed": True, "warnings": [f"no sidecar: {why}"[:_WARNING_MAX]]}
    return refusal(why)
