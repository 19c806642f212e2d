"""How much of which request is written down, and that what is redacted never is."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.policy import MessageContent, Operation, PolicySet, Principal, load_folder
from amqpgate.policy.kinds.audit import AuditDecision, Audited
from amqpgate.policy.kinds.audit_document import REDACTED
from tests.unit.policy.audits import CARDS, policies, policy

BOB = Principal("bob", "prod")
NOBODY_KNOWS = Principal(None, "prod")


def decide(found: PolicySet, name: str, principal: Principal = BOB, **attributes: str) -> AuditDecision:
    return found.audit_of(principal).decide(Operation(principal, name, **attributes))  # type: ignore[arg-type]


def publish(exchange: str = "e", key: str = "k", content: MessageContent | None = None) -> Operation:
    return Operation(BOB, "basic.publish", exchange=exchange, routing_key=key, content=content)


def test_the_first_rule_that_matches_decides() -> None:
    found = policies(
        policy(
            "operations: [basic.publish], exchange: {literal: quiet}, level: none",
            "operations: [basic.publish], routingKey: {topic: 'order.#'}, level: body, maxBodyBytes: 7",
            "operations: ['basic.*'], level: headers",
        )
    )
    for exchange, key, level, rule in [
        ("quiet", "order.1", "none", "r0"),
        ("loud", "order.1", "body", "r1"),
        ("loud", "other", "headers", "r2"),
    ]:
        decision = decide(found, "basic.publish", exchange=exchange, routing_key=key)
        assert (decision.level, decision.policy, decision.rule) == (level, "p", rule)
    assert decide(found, "basic.get", queue="q").rule == "r2"
    nothing = decide(found, "queue.declare", queue="q")
    assert (nothing.level, nothing.policy, nothing.rule) == ("none", None, None)
    assert decide(found, "basic.get", Principal("eve", "prod"), queue="q").level == "none"


def test_policies_come_in_the_order_of_their_names() -> None:
    one = policy("operations: ['*'], level: headers", name="b")
    other = policy("operations: ['*'], level: metadata", name="a")
    assert decide(policies(one, other), "basic.get", queue="q").policy == "a"


def test_what_is_not_known_is_written_down() -> None:
    found = policies(
        policy(
            "operations: ['*'], queue: {literal: 'of.{user}'}, level: none",
            "operations: [queue.bind], routingKey: {literal: secret}, level: body",
            "operations: [queue.bind], routingKey: {topic: 'dull.*'}, level: none",
            "operations: ['*'], level: metadata",
            subjects="{user: '*'}",
        )
    )
    assert decide(found, "basic.get", queue="of.bob").level == "none"
    assert decide(found, "basic.get", NOBODY_KNOWS, queue="of.bob").level == "metadata"
    # A binding that can catch what is to be written down is; one that can catch more than what is not, too.
    bound = {"queue": "q", "exchange": "e"}
    assert decide(found, "queue.bind", routing_key="#", **bound).level == "body"
    assert decide(found, "queue.bind", routing_key="dull.*", **bound).level == "none"
    assert decide(found, "queue.bind", routing_key="dull.#", **bound).level == "metadata"
    # A policy about somebody who this may be.
    perhaps = policies(
        policy("operations: [basic.get], level: none", "operations: ['*'], level: headers"),
    )
    assert decide(perhaps, "basic.get", NOBODY_KNOWS, queue="q").level == "headers"


def content(body: bytes, **properties: str | int) -> MessageContent:
    headers = {
        "Authorization": "Bearer abc",
        "x-secret-key": 7,
        "plain": "shown",
        "x-death": [{"queue": "q", "authorization": "nested"}],
    }
    return MessageContent(len(body), {"user_id": "bob", "type": "t", **properties}, headers)


def audited(found: PolicySet, body: bytes, **properties: str | int) -> Audited:
    operation = publish(content=content(body, **properties))
    record = found.audit_of(BOB).decide(operation).record(operation, body)
    assert record is not None
    return record


@pytest.mark.parametrize("level", ["metadata", "headers", "body"])
def test_each_level_has_so_much(level: str) -> None:
    record = audited(policies(policy(f"operations: ['*'], level: {level}")), b"text")
    assert record.operation == publish()
    assert record.operation.content is None
    assert record.body_size == 4
    assert (record.properties is not None) == (record.headers is not None) == (level != "metadata")
    assert record.body == (b"text" if level == "body" else None)


def test_nothing_is_recorded_at_level_none() -> None:
    operation = publish(content=content(b"text"))
    assert AuditDecision("none").record(operation, b"text") is None


def test_without_a_message_there_is_only_metadata() -> None:
    record = decide(policies(policy("operations: ['*'], level: body")), "basic.get", queue="q").record(
        Operation(BOB, "basic.get", queue="q")
    )
    assert record is not None
    assert (record.body_size, record.properties, record.body) == (None, None, None)


def test_headers_and_properties_are_redacted_at_any_depth() -> None:
    record = audited(
        policies(
            policy(
                "operations: ['*'], level: headers, "
                "redact: {headers: [authorization, 'X-SECRET-*'], properties: [userId]}"
            )
        ),
        b"",
    )
    assert record.properties == {"user_id": REDACTED, "type": "t"}
    assert record.headers == {
        "Authorization": REDACTED,
        "x-secret-key": REDACTED,
        "plain": "shown",
        "x-death": [{"queue": "q", "authorization": REDACTED}],
    }
    everything = repr(attrs.asdict(record, recurse=False))
    for secret in ("Bearer", "nested", "'bob', 'type'"):
        assert secret not in everything


CARD = '{regex: "[0-9]{13,19}", replacement: "[card]"}'
PASSWORD = """{regex: '"password": *"[^"]*"'}"""


@pytest.mark.parametrize(
    ("limit", "body", "shown"),
    [
        (100, b"pay 4111111111111111 now", b"pay [card] now"),
        (24, b"pay 4111111111111111 now, and more", b"pay [card] now"),
        # A secret that begins before the end and ends behind it.
        (10, b"pay 4111111111111111 now", b"pay [card]"),
        (4, b"pay 4111111111111111 now", b"pay "),
        (100, b'{"password": "a\xff\0b", "x": 1}', b'{[redacted], "x": 1}'),
        # Two that overlap are one.
        (100, b'{"password": "4111111111111111"}', b"{[redacted]}"),
    ],
)
def test_bodies_are_redacted_before_they_are_cut(limit: int, body: bytes, shown: bytes) -> None:
    record = audited(policies(policy(CARDS % (limit, f"{CARD}, {PASSWORD}"))), body)
    assert record.body is not None
    assert record.body.startswith(shown)
    assert b"4111" not in record.body
    assert record.is_cut == (len(body) > limit)


@given(st.binary(max_size=40), st.binary(max_size=40), st.integers(1, 100))
def test_no_part_of_a_secret_is_shown_whatever_is_around_it(before: bytes, after: bytes, limit: int) -> None:
    body = before + b"SECRET=abcdef;" + after
    found = policies(policy(CARDS % (limit, '{regex: "SECRET=[^;]*;", replacement: ""}')))
    shown = audited(found, body).body
    assert shown is not None
    assert shown == (before + after)[: len(shown)] or b"SECRET=" in after
    assert b"SECRET=a" not in shown


@pytest.mark.parametrize(("encoding", "is_shown"), [("gzip", False), ("UTF-8", True), ("br", False)])
def test_what_patterns_cannot_read_is_not_shown(encoding: str, is_shown: bool) -> None:
    found = policies(policy(CARDS % (100, CARD)))
    assert audited(found, b"\x1f\x8b", content_encoding=encoding).body == (
        b"\x1f\x8b" if is_shown else REDACTED.encode()
    )
    # Without patterns it is what it is.
    assert audited(policies(policy("operations: ['*'], level: body")), b"\x1f", content_encoding="gzip").body


def test_a_pattern_that_backtracking_would_never_finish() -> None:
    found = policies(policy(CARDS % (1 << 20, '{regex: "(a+)+$"}, {regex: "(x|xx)+y"}')))
    body = b"a" * 200_000 + b"!" + b"x" * 200_000
    assert audited(found, body).body == body


def test_what_no_rule_speaks_of_is_counted_and_none_is_not() -> None:
    audit = policies(policy("operations: [basic.get], level: none")).audit_of(BOB)
    assert audit.decide(Operation(BOB, "basic.get", queue="q")).is_silent
    other = audit.decide(Operation(BOB, "basic.publish", exchange="", routing_key="q"))
    assert not other.is_silent
    assert not other.reads_messages


def test_the_example(tmp_path: Path) -> None:
    source = Path(__file__).parents[4] / "policies" / "audit.yaml"
    (tmp_path / "audit.yaml").write_text(source.read_text())
    found = load_folder(tmp_path)
    operation = publish("orders", content=content(b'card 4111111111111111, "password": "p" .'))
    record = (
        found.audit_of(BOB).decide(operation).record(operation, b'card 4111111111111111, "password": "p" .')
    )
    assert record is not None
    assert record.body == b"card [card], [redacted] ."
    assert record.headers is not None
    assert record.headers["Authorization"] == record.headers["x-secret-key"] == REDACTED
    for name, attributes, level in [
        ("basic.publish", {"exchange": "monitoring", "routing_key": "k"}, "none"),
        ("basic.publish", {"exchange": "", "routing_key": "k"}, "headers"),
        ("queue.delete", {"queue": "q"}, "metadata"),
        ("connection.open", {}, "metadata"),
    ]:
        assert decide(found, name, **attributes).level == level
