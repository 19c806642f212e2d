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
from typing import Final, NoReturn

import attrs

from amqpgate.errors import AmqpgateError
from amqpgate.inject.patch import difference
from amqpgate.inject.pods import inject
from amqpgate.inject.settings import Injector
from amqpgate.inject.values import NotInjectedError
from amqpgate.yamldoc.schema import Json

VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
_POD: Final[dict[str, Json]] = {"group": "", "version": "v1", "kind": "Pod"}
#: Characters of what was sent that are quoted: anybody may have sent it.
_QUOTED: Final = 64
#: Of the reason why a pod has no sidecar, in the log.
_LONGEST_REASON: Final = 1024
#: Of a namespace, and of a pod's name (RFC 1123, as Kubernetes has it).
_LONGEST_NAME: Final = 253
#: What the API server may cut from a warning, it says itself: "recommended to be 120 characters or fewer".
_WARNING_MAX: Final = 256


class BadReviewError(AmqpgateError):
    """What was sent is no question that can be answered."""


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
    request = _request_in(body)
    uid = request.get("uid")
    if not isinstance(uid, str) or not uid:
        raise BadReviewError("request.uid is missing")
    kind = request.get("kind")
    if kind != _POD:
        shown = kind.get("kind") if isinstance(kind, dict) else kind
        raise BadReviewError(f"request.kind is {_quoted(shown)}: this webhook is for pods (version v1)")
    # What is changed later has its containers; what is not the pod itself (its status, its binding) has none.
    if request.get("operation") != "CREATE" or request.get("subResource"):
        return ReviewAnswer(_review(uid, {"allowed": True}), _shown(request, {}))
    pod = request.get("object")
    if not isinstance(pod, dict):
        raise BadReviewError("request.object is missing, or is no object")
    shown = _shown(request, pod)
    try:
        injection = inject(pod, settings)
    except NotInjectedError as error:
        return ReviewAnswer(
            _review(uid, _without(error, settings)), shown, why_not=str(error)[:_LONGEST_REASON]
        )
    if injection is None:
        return ReviewAnswer(_review(uid, {"allowed": True}), shown)
    patch = json.dumps(list(difference(pod, injection.pod))).encode()
    response: dict[str, Json] = {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(patch).decode(),
    }
    return ReviewAnswer(_review(uid, response), shown, True, injection.variables)


def _request_in(body: bytes) -> dict[str, Json]:
    try:
        review: Json = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise BadReviewError(f"the body is not JSON: {error}") from None
    if not isinstance(review, dict) or review.get("kind") != KIND:
        raise BadReviewError(f"the body is no {KIND}")
    if review.get("apiVersion") != VERSION:
        raise BadReviewError(f"apiVersion is {_quoted(review.get('apiVersion'))}: {VERSION} is understood")
    request = review.get("request")
    if not isinstance(request, dict):
        raise BadReviewError("request is missing, or is no object")
    return request


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _without(error: NotInjectedError, settings: Injector) -> dict[str, Json]:
    """The answer about a pod that cannot be injected."""
    why = f"amqpgate: {error}"
    if settings.on_error == "open":
        return {"allowed": True, "warnings": [f"no sidecar: {why}"[:_WARNING_MAX]]}
    return {"allowed": False, "status": {"code": 422, "reason": "Invalid", "message": why}}


def _review(uid: str, response: dict[str, Json]) -> dict[str, Json]:
    return {"apiVersion": VERSION, "kind": KIND, "response": {"uid": uid, **response}}


def _shown(request: dict[str, Json], pod: dict[str, Json]) -> str:
    metadata = pod.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    name = request.get("name") or names.get("name") or names.get("generateName") or "?"
    namespace = request.get("namespace") or "?"
    return "/".join(str(one)[:_LONGEST_NAME] for one in (namespace, name))


def _quoted(said: Json) -> str:
    """As JSON, as much of it as is told."""
    text = json.dumps(said)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}..."
