"""Questions of the API server, and answers."""

from __future__ import annotations

import base64
import json

import jsonpatch
import pytest

from amqpgate.inject import BadReviewError, Injector, answer, inject
from amqpgate.yamldoc.schema import Json

from .pods import URL, container, env, pod

SETTINGS = Injector()
UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def review(content: Json, **more: Json) -> dict[str, Json]:
    """An AdmissionReview as an API server sends it."""
    request: dict[str, Json] = {
        "uid": UID,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
        "requestResource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "shop",
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller"},
        "object": content,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**request, **more}}


def response(content: Json, settings: Injector = SETTINGS, **more: Json) -> dict[str, Json]:
    given = answer(json.dumps(review(content, **more)).encode(), settings).review
    assert (given["apiVersion"], given["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert given["response"]["uid"] == UID
    return given["response"]


def test_the_patch_makes_the_injected_pod() -> None:
    before = pod(
        container(env("AMQP_URL", URL)),
        annotations={"policies": "shop"},
        initContainers=[container(env("AMQP_URL", URL), name="migrate")],
    )
    said = response(before)
    assert (said["allowed"], said["patchType"]) == (True, "JSONPatch")
    patch = json.loads(base64.b64decode(said["patch"], validate=True))
    injection = inject(before, SETTINGS)
    assert injection is not None
    assert jsonpatch.apply_patch(before, patch) == injection.pod


def test_a_pod_without_need_is_allowed_as_it_is() -> None:
    assert response(pod(container())) == {"uid": UID, "allowed": True}


def test_a_pod_that_cannot_have_one() -> None:
    broken = pod(container(env("AMQP_URL", URL)), hostNetwork=True)
    closed = response(broken)
    assert closed["allowed"] is False
    assert closed["status"]["code"] == 422
    assert "hostNetwork" in closed["status"]["message"]
    opened = response(broken, Injector(on_error="open"))
    assert opened["allowed"] is True
    assert "patch" not in opened
    (warning,) = opened["warnings"]
    assert "hostNetwork" in warning


@pytest.mark.parametrize(
    "more", [{"operation": "UPDATE"}, {"operation": "DELETE"}, {"subResource": "ephemeralcontainers"}]
)
def test_other_operations_are_allowed(more: dict[str, Json]) -> None:
    assert response(pod(container(env("AMQP_URL", URL))), **more) == {"uid": UID, "allowed": True}


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no AdmissionReview"),
        (b'{"kind": "Pod"}', "no AdmissionReview"),
        (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}', "v1beta1"),
        (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}', "request is missing"),
        (json.dumps(review({}, uid="")).encode(), "request.uid"),
        (json.dumps(review({}, uid=5)).encode(), "request.uid"),
        (json.dumps(review(None)).encode(), "request.object"),
        (
            json.dumps(review({}, kind={"group": "apps", "version": "v1", "kind": "Deployment"})).encode(),
            "Deployment",
        ),
        (json.dumps(review({}, kind=None)).encode(), "request.kind"),
        (json.dumps(review({"x": float("inf")})).encode(), "Infinity"),
    ],
)
def test_what_is_no_question(body: bytes, word: str) -> None:
    with pytest.raises(BadReviewError, match=word):
        answer(body, SETTINGS)


def test_what_is_logged_of_it() -> None:
    given = answer(json.dumps(review(pod(container(env("AMQP_URL", URL))))).encode(), SETTINGS)
    assert (given.pod, given.is_changed, given.variables) == (
        "shop/shop",
        True,
        ("AMQP_URL of container app",),
    )
    nameless = pod(container())
    nameless["metadata"] = {"generateName": "shop-"}
    assert answer(json.dumps(review(nameless)).encode(), SETTINGS).pod == "shop/shop-"


def test_what_anybody_may_send_is_quoted_in_part() -> None:
    """It goes into the log."""
    long = "\u202ex" * 100_000
    for sent in (review({}, kind={"kind": long}), {**review({}), "apiVersion": {long: long}}):
        with pytest.raises(BadReviewError) as refused:
            answer(json.dumps(sent).encode(), SETTINGS)
        assert len(str(refused.value)) < 200
    named = pod(container(), name=long)
    assert len(answer(json.dumps(review(named, namespace=long)).encode(), SETTINGS).pod) < 600
    assert len(answer(json.dumps(review(pod(container()), name={long: 1})).encode(), SETTINGS).pod) < 600
