"""What policy check says of whom documents select, and of their modes."""

from __future__ import annotations

import pytest

from tests.unit.policy.build_set import document, found


@pytest.mark.parametrize(
    "subject",
    [
        "{user: ''}",
        "{sourceCIDR: ['::ffff:10.0.0.0/104']}",
        "{tls: {san: orders.corp}}",
        "{tls: {san: 'URI:spiffe://corp/a', spiffe: 'spiffe://corp/b'}}",
        "{tls: {subject: 'CN=a,O=x', commonName: b}}",
    ],
)
def test_subjects_that_nobody_can_be(subject: str) -> None:
    (one,) = found(document("effect: allow, operations: [queue.delete]", subjects=subject))
    assert one.startswith("5 problem nobody can be this subject: ")


def test_subjects_that_somebody_can_be() -> None:
    subjects = (
        "{user: bob}, {user: al, sourceCIDR: ['::/0', '10.0.0.0/8']},"
        " {user: x, tls: {san: 'DNS:a', commonName: b}}, {user: y, tls: {san: 'D*'}},"
        " {user: z, tls: {subject: 'CN=a,O=x', commonName: 'a*', spiffe: 'spiffe://a'}}"
    )
    assert found(document("effect: allow, operations: [queue.delete]", subjects=subjects)) == []


def test_a_subject_within_another_is_noted() -> None:
    text = found(document("effect: allow, operations: [queue.delete]", subjects="{user: 'b*'}, {user: bob}"))
    assert text == ["5 note subject 1 of the policy takes in this one"]


def test_modes_and_empty_policies_are_noted() -> None:
    off = document(name="a").replace("  rules", "  mode: off\n  rules")
    assert found(off) == [
        "6 note policy 'a' is off",
        "7 note policy 'a' has no rules: whom it selects may do only what other policies allow",
    ]


RATES = """
apiVersion: amqpgate.io/v1alpha1
kind: RatePolicy
metadata: {name: r}
spec:
  mode: off
  subjects: [{user: '*'}, {user: ''}]
  limits: [{id: all, messages: 1/s}]
"""


def test_subjects_and_modes_of_other_kinds() -> None:
    assert found(RATES) == [
        "6 note policy 'r' is off",
        "7 problem nobody can be this subject: no user has an empty name",
        "7 note subject 1 of the policy takes in this one",
    ]
