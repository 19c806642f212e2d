"""What is written of operations: as much as the audit policies say, under the policies in force."""

from __future__ import annotations

import json

import pytest

from amqpgate.gateway.observers.audit.audit import AuditTrail
from amqpgate.gateway.observers.audit.columns import kind_of, origin_of
from amqpgate.gateway.observers.audit.writer import AuditWriter
from amqpgate.policy import Operation, PolicySet, Principal, Source, Verdict, build
from tests.support.audit_log import Kept

WHO = Principal("guest", "/")
DENY = Verdict("deny", "access", "no")
SILENT = b"""
apiVersion: amqpgate.io/v1alpha1
kind: AuditPolicy
metadata: {name: audit}
spec:
  subjects: [{user: guest}]
  rules: [{id: r, operations: [basic.publish], exchange: quiet, level: none}]
"""


class Written:
    """A writer, and what it has written."""

    def __init__(self, policies: PolicySet) -> None:
        self.kept = Kept()
        self.trail = AuditTrail(self.kept.log, 60.0, lambda: None)
        self.writer = AuditWriter(self.trail, origin_of("s", WHO), WHO)
        self.writer.follow(policies)

    def events(self) -> list[dict[str, object]]:
        return self.kept.told("events")


def operation(name: str = "basic.publish", exchange: str | None = "x") -> Operation:
    return Operation(WHO, name, exchange=exchange)


@pytest.mark.parametrize(
    ("name", "on_denied", "closes", "code"),
    [
        ("connection.open", "channel-close", True, 530),
        ("channel.open", "channel-close", True, 530),
        ("queue.declare", "channel-close", True, 403),
        # What is said of publishes does not hold for others.
        ("queue.declare", "nack", True, 403),
        ("basic.publish", "channel-close", True, 403),
        ("basic.publish", "nack", False, None),
        ("basic.publish", "drop", False, None),
        # There are no confirms.
        ("basic.publish", "nack", True, 403),
    ],
)
def test_a_denial_is_told_with_the_code_that_closes(
    name: str, on_denied: str, closes: bool, code: int | None
) -> None:
    it = Written(PolicySet.empty())
    verdict = Verdict("deny", "access", "no", on_denied=on_denied)  # type: ignore[arg-type]
    it.writer.denied(verdict, operation(name), closes=closes)
    [event] = it.events()
    assert (event["kind"], event["operation"], event["reply_code"]) == ("denied", name, code)
    assert (event["policy"], event["rule"], event["verdict"]) == ("access", "no", "deny")
    detail = None if event["detail"] is None else json.loads(str(event["detail"]))
    assert detail == (None if code else {"on_denied": on_denied})


def test_a_denial_is_counted_too() -> None:
    it = Written(PolicySet.empty())
    for _ in range(3):
        it.writer.denied(DENY, operation())
    it.trail.close_window(is_last=True)
    assert [row["requests"] for row in it.kept.told("usage")] == [3]


def test_what_an_audit_policy_leaves_out_is_not_written_of_at_all() -> None:
    it = Written(build([Source("p.yaml", SILENT)]))
    it.writer.denied(DENY, operation(exchange="quiet"))
    it.writer.denied(DENY, operation(exchange="loud"))
    it.trail.close_window(is_last=True)
    assert [event["exchange"] for event in it.events()] == ["loud"]
    it = Written(build([Source("p.yaml", SILENT)]))
    assert it.writer.decide(operation(exchange="quiet")).is_silent
    it.writer.follow(PolicySet.empty())
    assert not it.writer.decide(operation(exchange="quiet")).is_silent


def test_what_was_counted_under_other_policies_stays_theirs() -> None:
    first, second = PolicySet.empty(), build([Source("p.yaml", SILENT)])
    it = Written(first)
    kind = kind_of(operation("queue.declare"), None)
    it.writer.count(kind)
    it.writer.follow(second)
    it.writer.count(kind)
    it.writer.count(kind)
    it.writer.event("topology", kind)
    it.trail.close_window(is_last=True)
    usage = it.kept.told("usage")
    assert {row["policy_digest"]: row["requests"] for row in usage} == {first.digest: 1, second.digest: 2}
    [event] = [record for piece in it.kept.pieces if piece.sort == "events" for record in [piece.columns]]
    assert event["policy_digest"] == [second.digest]
