"""What a kind of policy consists of: no kind forgets a part, and what others read of its documents."""

from __future__ import annotations

import attrs
import pytest

from amqpgate.policy import Source
from amqpgate.policy.kinds.access import ACCESS
from amqpgate.policy.kinds.audit import AUDIT
from amqpgate.policy.kinds.kind import AnyPolicyKind, PolicyKind, by_subjects, mode_of, row_of, rule_variables
from amqpgate.policy.kinds.registry import POLICY_KINDS
from amqpgate.policy.loader import documents_of
from tests.unit.policy import audits
from tests.unit.policy.build_set import document, policies

NEEDED = [field.name for field in attrs.fields(PolicyKind) if field.default is attrs.NOTHING]
each_kind = pytest.mark.parametrize("kind", POLICY_KINDS, ids=lambda kind: kind.name)


def test_what_is_needed() -> None:
    assert NEEDED == ["document", "subjects", "compile", "row", "findings"]


@each_kind
@pytest.mark.parametrize("part", NEEDED)
def test_no_kind_is_made_without_a_part(kind: AnyPolicyKind, part: str) -> None:
    parts = {name: getattr(kind, name) for name in NEEDED}
    PolicyKind(**parts)
    del parts[part]
    with pytest.raises(TypeError, match=part):
        PolicyKind(**parts)


# -- what others read of documents ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "where"),
    [
        (("spec", "rules", 1, "operations"), (8, 41)),
        (("spec", "rules", 1), (8, 5)),
        (("metadata", "name"), (3, 18)),
        # What is not written stands where it would.
        (("spec", "rules", 0, "queue"), (7, 5)),
        (("spec", "on_deny", "publish"), (5, 3)),
        (("spec", "rules", 9), (7, 3)),
    ],
)
def test_a_value_has_its_place_or_that_of_what_is_around_it(
    path: tuple[str | int, ...], where: tuple[int, int]
) -> None:
    text = document(*["effect: allow, operations: ['*']"] * 2)
    (placed,) = documents_of([Source("p.yaml", text.encode())])
    mark = placed.mark(*path)
    assert (placed.name, mark.file) == ("p", "p.yaml")
    assert (mark.line, mark.column) == where


def test_a_kind_is_called_as_its_documents_are() -> None:
    assert (ACCESS.name, ACCESS.schema_file) == ("AccessPolicy", "access-policy.json")


def test_whom_a_document_is_about_and_where_it_says_so() -> None:
    (one,) = policies(document(subjects="{user: bob}, {vhosts: [test]}")).access
    assert [(path, subject.user.text) for path, subject in by_subjects(one)] == [
        (("spec", "subjects", 0), "bob"),
        (("spec", "subjects", 1), ""),
    ]


def test_variables_are_those_of_all_its_rules() -> None:
    (one,) = policies(
        document(
            "effect: allow, operations: [queue.declare], queue: {prefix: '{user}.'}",
            "effect: allow, operations: [basic.publish], exchange: x, routingKey: {literal: '{vhost}'}",
        )
    ).access
    assert rule_variables(one) == {"user", "vhost"}
    (plain,) = policies(document("effect: deny, operations: ['*']")).access
    assert rule_variables(plain) == frozenset()


def test_a_document_without_modes_is_enforced() -> None:
    (audit,) = audits.policies(audits.policy("operations: ['*'], level: none")).audits
    assert mode_of(audit) == ("enforce", 0.0)
    assert row_of(AUDIT, audit)["mode"] == "enforce"
    shadow = document().replace("spec:\n", "spec:\n  mode: shadow\n  enforcePercent: 5\n")
    assert mode_of(policies(shadow).access[0]) == ("shadow", 5.0)
