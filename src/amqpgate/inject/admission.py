"""The API server's questions before it stores an object, and the form of answers (``admission.k8s.io/v1``).

A question is answered, or refused with `BadReviewError`, HTTP status 400.
"""

from __future__ import annotations

import json
from typing import Final, NoReturn

from amqpgate.errors import AmqpgateError
from amqpgate.yamldoc.schema import Json

VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
#: Characters of what was sent that are quoted: anybody may have sent it.
_QUOTED: Final = 64
#: Of a namespace, and of an object's name (RFC 1123, as Kubernetes has it).
_LONGEST_NAME: Final = 253


class BadReviewError(AmqpgateError):
    """What was sent is no question that can be answered."""


def request_in(body: bytes) -> dict[str, Json]:
    """The ``request`` of the review in ``body`` (JSON), with a ``uid``. Raises `BadReviewError`."""
    try:
        review: Json = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise BadReviewError(f"the body is not JSON: {error}") from None
    if not isinstance(review, dict) or review.get("kind") != KIND:
        raise BadReviewError(f"the body is no {KIND}")
    if review.get("apiVersion") != VERSION:
        raise BadReviewError(f"apiVersion is {quoted(review.get('apiVersion'))}: {VERSION} is understood")
    request = review.get("request")
    if not isinstance(request, dict):
        raise BadReviewError("request is missing, or is no object")
    if not isinstance(request.get("uid"), str) or not request["uid"]:
        raise BadReviewError("request.uid is missing")
    return request


def answer_to(request: dict[str, Json], response: dict[str, Json]) -> dict[str, Json]:
    """The review to send back."""
    return {"apiVersion": VERSION, "kind": KIND, "response": {"uid": request["uid"], **response}}


def refusal(message: str) -> dict[str, Json]:
    """The response that the object may not be stored."""
    return {"allowed": False, "status": {"code": 422, "reason": "Invalid", "message": message}}


def shown(request: dict[str, Json], thing: dict[str, Json]) -> str:
    """Namespace and name of an object, as far as they are known before it is made."""
    metadata = thing.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    name = request.get("name") or names.get("name") or names.get("generateName") or "?"
    namespace = request.get("namespace") or "?"
    return "/".join(str(one)[:_LONGEST_NAME] for one in (namespace, name))


def quoted(said: Json) -> str:
    """As JSON, as much of it as is told."""
    text = json.dumps(said)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}..."


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")
