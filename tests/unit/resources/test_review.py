"""What the API server is answered about a policy that somebody applies."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from amqpgate.inject import BadReviewError
from amqpgate.resources.in_force import ResourceJudge
from amqpgate.resources.review import PolicyAnswer, answer
from amqpgate.resources.settings import parse

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
SETTINGS = """\
gateway: {upstreams: [rabbit]}
tenants: [{namespace: shop, subjects: [{user: "shop-*"}]}]
"""
JUDGE = ResourceJudge.of(parse(SETTINGS, {}), "mq")
POLICY: dict[str, Any] = {
    "apiVersion": "amqpgate.io/v1alpha1",
    "kind": "AccessPolicy",
    "metadata": {"name": "orders"},
    "spec": {
        "subjects": [{"user": "shop-web"}],
        "rules": [{"id": "a", "effect": "allow", "operations": ["basic.publish"], "exchange": "orders"}],
    },
}


def review(thing: object, namespace: str = "mq", kind: str = "AccessPolicy", **more: Any) -> dict[str, Any]:
    request = {
        "uid": UID,
        "kind": {"group": "amqpgate.io", "version": "v1alpha1", "kind": kind},
        "operation": "CREATE",
        "namespace": namespace,
        "object": thing,
        **more,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def asked(thing: object, *args: str, **more: Any) -> PolicyAnswer:
    given = answer(json.dumps(review(thing, *args, **more)).encode(), JUDGE)
    assert given.review["apiVersion"] == "admission.k8s.io/v1"
    return given


def response(thing: object, *args: str, **more: Any) -> dict[str, Any]:
    given: Any = asked(thing, *args, **more).review["response"]
    assert given["uid"] == UID
    return dict(given)


def policy(**spec: Any) -> dict[str, Any]:
    made = copy.deepcopy(POLICY)
    made["spec"] |= spec
    return made


def test_what_is_valid_is_stored() -> None:
    assert response(POLICY) == {"uid": UID, "allowed": True}
    assert response(POLICY, "shop") == {"uid": UID, "allowed": True}
    named = policy()
    named["metadata"] = {"generateName": "orders-"}
    assert response(named)["allowed"]


def test_all_that_is_wrong_is_told_by_path_with_the_nearest_key() -> None:
    wrong = policy(mod="enforce", rules=[{"id": "a", "effect": "allow", "operations": ["basic.publsh"]}])
    given = asked(wrong)
    told: Any = given.review["response"]
    assert (told["allowed"], told["status"]["code"], given.reason) == (False, 422, "Invalid")
    message = told["status"]["message"]
    assert "spec.mod: unknown key 'mod' (did you mean 'mode'?)" in message
    assert "spec.rules[0].operations[0]: " in message
    assert "did you mean 'basic.publish'?" in message
    assert given.name == "mq/orders"


def test_a_name_that_is_too_long_is_told_at_its_place() -> None:
    rule = {"id": "a", "effect": "allow", "operations": ["basic.publish"], "exchange": "e" * 256}
    told = response(policy(rules=[rule]))
    assert told["status"]["message"] == "spec.rules[0].exchange: longer than 255 bytes: no name is"


def test_bounds_of_a_tenant_and_what_gateways_lack() -> None:
    assert asked(policy(subjects=[{"user": "*"}]), "shop").reason == "OutOfBounds"
    routes = [{"id": "a", "upstream": {"cluster": "rabit"}}]
    route = POLICY | {"kind": "RoutePolicy", "spec": {"routes": routes}}
    told = response(route, "mq", "RoutePolicy")
    assert "no upstream 'rabit' (did you mean 'rabbit'?)" in told["status"]["message"]
    assert asked(route, "shop", "RoutePolicy").reason == "OutOfBounds"


def test_what_cannot_be_meant_so_is_a_warning() -> None:
    told = response(policy(rules=[{"id": "a", "effect": "allow", "operations": ["basic.publish"]}]))
    assert told["allowed"]
    (warning,) = told["warnings"]
    assert warning.startswith("spec.rules[0]: rule 'orders/a' lets publish to every queue")


def test_who_removes_or_labels_what_was_wrong_before_is_let() -> None:
    wrong = policy(mod="enforce")
    labelled = copy.deepcopy(wrong)
    labelled["metadata"]["labels"] = {"a": "b"}
    assert response(labelled, operation="UPDATE", oldObject=wrong)["allowed"]
    assert not response(wrong, operation="UPDATE", oldObject=POLICY)["allowed"]
    assert response(None, operation="DELETE", oldObject=wrong)["allowed"]
    assert response(wrong, operation="UPDATE", oldObject=POLICY, subResource="status")["allowed"]


def test_other_releases_policies_are_not_judged_here() -> None:
    assert response(policy(mod="enforce"), "elsewhere")["allowed"]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"{}", "no AdmissionReview"),
        (json.dumps(review(POLICY, kind="PolicyTest")).encode(), "for policies"),
        (json.dumps(review(POLICY) | {"request": {"uid": UID, "kind": "Pod"}}).encode(), "for policies"),
        (json.dumps(review(7)).encode(), "request.object"),
        (json.dumps(review(POLICY, namespace=None)).encode(), "request.namespace"),
    ],
)
def test_what_is_no_question(body: bytes, word: str) -> None:
    with pytest.raises(BadReviewError, match=word):
        answer(body, JUDGE)


def test_huge_and_deep_resources_are_refused_in_few_words() -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    for odd in (deep, "x" * 1_400_000, ["x"] * 100_000, {"\ud800": 1}, [{"mod" * 20: 1}] * 500):
        told = response(policy(rules=odd))
        assert not told["allowed"]
        assert len(json.dumps(told)) < 20_000
