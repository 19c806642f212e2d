"""What a document of policy tests may say."""

from __future__ import annotations

import pytest

from amqpgate.errors import ConfigError
from amqpgate.policy import Source, build
from amqpgate.policy.kinds.policy_test import PolicyTest
from amqpgate.policy.loader import documents_of
from tests.unit.policy.build_set import BOB, document

TEST = """
apiVersion: amqpgate.io/v1alpha1
kind: PolicyTest
metadata: {name: t}
spec:
  %s
  cases: [%s]
"""
CASE = "{as: {user: bob}, op: queue.delete, queue: a, expect: deny}"


def load(cases: str, more: str = "judge: enforced") -> PolicyTest:
    (placed,) = documents_of([Source("t.yaml", (TEST % (more, cases)).encode())])
    assert isinstance(placed.document, PolicyTest)
    return placed.document


def test_what_holds_unless_it_is_said() -> None:
    test = load(CASE, "")
    (case,) = test.spec.cases
    assert (test.spec.judge, case.by, case.name) == ("enforced", None, None)


@pytest.mark.parametrize(
    ("case", "title"),
    [
        (CASE, "bob: queue.delete queue 'a'"),
        (CASE.replace("expect", "name: nobody deletes, expect"), "nobody deletes"),
        (CASE.replace("bob", "null"), "a user who is not known: queue.delete queue 'a'"),
    ],
)
def test_what_a_case_is_called(case: str, title: str) -> None:
    assert load(case).spec.cases[0].title == title


@pytest.mark.parametrize(
    ("cases", "more", "words"),
    [
        ("", "judge: all", "must not be empty"),
        (CASE, "judge: shadow", "expected one of enforced, all; not 'shadow'"),
        (CASE.replace("deny", "denied"), "judge: all", "expected one of allow, deny; not 'denied'"),
        (CASE.replace(", expect: deny", ""), "judge: all", "key 'expect' is missing"),
        (CASE.replace("queue: a", "exchange: a"), "judge: all", "queue.delete has no exchange"),
        (CASE.replace("as: {user: bob}, ", ""), "judge: all", "key 'as' is missing"),
    ],
)
def test_what_makes_no_sense_is_refused(cases: str, more: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        load(cases, more)
    assert (refused.value.file, refused.value.line) == ("t.yaml", 6 + (more != "judge: shadow"))


def test_it_is_never_enforced() -> None:
    sources = [
        Source("p.yaml", document("effect: allow, operations: ['*']").encode()),
        Source("t.yaml", (TEST % ("", CASE)).encode()),
    ]
    policies = build(sources)
    assert [one.metadata.name for one in policies.selecting(BOB)] == ["p"]
    assert [row["kind"] for row in policies.rows()] == ["AccessPolicy"]
