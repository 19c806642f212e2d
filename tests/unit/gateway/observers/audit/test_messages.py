"""Of what the data path has captured is recorded what is recorded of messages that are shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amqpgate.gateway.observers.audit.columns import OperationKind, json_of
from amqpgate.gateway.observers.audit.messages import _KEPT_BYTES, CapturedKind, _read
from amqpgate.policy import Operation, Principal
from amqpgate.policy.engine.from_method import content_of
from amqpgate.policy.engine.regular_expressions import of_bytes
from amqpgate.policy.engine.subjects import NamePattern
from amqpgate.policy.kinds.audit import AuditDecision
from amqpgate.policy.kinds.audit_document import Redact
from amqpgate.telemetry.audit.pieces import EVENT_BYTES
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

KIND = OperationKind(operation="basic.publish", exchange="x", routing_key="k", verdict="allow")
REDACT = Redact(properties=("appId",), headers=(NamePattern("se", is_prefix=True),))
PATTERNS = ((of_bytes("[0-9]+"), b"#"),)

decisions = st.sampled_from(
    [
        AuditDecision("headers", "policy", "rule"),
        AuditDecision("headers", "policy", "rule", redact=REDACT),
        AuditDecision("body", "policy", "rule", 4),
        AuditDecision("body", "policy", "rule", 4, REDACT, PATTERNS),
        AuditDecision("body", "policy", "rule", 0),
    ]
)
texts = st.sampled_from(["", "secret", "a", "gzip", "identity"])
properties = st.builds(
    amqp.BasicProperties,
    content_encoding=st.none() | texts,
    app_id=st.none() | texts,
    timestamp=st.none() | st.integers(0, 9),
    headers=st.none() | st.dictionaries(texts, st.integers(-5, 5) | texts).map(Table.of),
)


@given(decisions, st.lists(st.tuples(properties, st.binary(max_size=9)), min_size=1, max_size=9))
def test_it_is_what_the_policy_says(
    decision: AuditDecision, messages: list[tuple[amqp.BasicProperties, bytes]]
) -> None:
    captured = CapturedKind.of(decision, KIND, "digest")
    for one, body in messages:
        header = ContentHeader(60, len(body), one)
        operation = Operation(Principal("guest", "/"), "basic.publish", content=content_of(header))
        said = decision.record(operation, body)
        assert said is not None
        assert captured.read(encode_header(header), body[: decision.reads_body]) == (
            len(body),
            json_of(said.properties or {}),
            json_of(said.headers or {}),
            said.body,
            said.is_cut,
        )


def test_what_they_have_in_common() -> None:
    captured = CapturedKind.of(AuditDecision("headers", "policy", "rule"), KIND, "digest")
    said = {name: value for name, value in captured.columns.items() if value}
    assert said == {
        "operation": "basic.publish",
        "exchange": "x",
        "routing_key": "k",
        "verdict": "allow",
        "policy_digest": "digest",
        "audit_policy": "policy",
        "audit_rule": "rule",
    }
    assert captured.byte_count == EVENT_BYTES + sum(len(str(value)) for value in said.values())


def test_large_headers_are_not_kept() -> None:
    captured = CapturedKind.of(AuditDecision("headers", "policy", "rule"), KIND, "digest")
    _read.cache_clear()
    for size in (100, _KEPT_BYTES):
        one = amqp.BasicProperties(headers=Table.of({"h": "x" * size}))
        for _ in range(2):
            assert captured.read(encode_header(ContentHeader(60, 0, one)), b"")[2]
    assert _read.cache_info().currsize == 1
