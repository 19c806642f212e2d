"""Messages that the data path has captured for audit records: what is recorded of each, read by the writer's
thread."""

from __future__ import annotations

import functools
from typing import Final

import attrs

from amqpgate.gateway.observers.audit.columns import OperationKind, json_of
from amqpgate.policy.engine.from_method import content_of
from amqpgate.policy.engine.operations import MessageContent
from amqpgate.policy.kinds.audit import AuditDecision
from amqpgate.telemetry.audit.messages import Content
from amqpgate.telemetry.audit.pieces import EVENT_BYTES
from amqpgate.telemetry.audit.rows import Columns
from amqpgate.wire.codec import decode_header
from amqpgate.wire.generated import v0_9_1 as amqp

#: Content headers that are kept as what they became, and bytes of one, at most: many messages have the same,
#: their body's size apart.
_KEPT: Final = 256
_KEPT_BYTES: Final = 1024

#: Of the payload of a content header: class and weight, then the size of the body in 8 bytes, then what is
#: kept.
_SIZE: Final = slice(4, 12)
_NO_BODY: Final = amqp.BasicPublish.CLASS_ID.to_bytes(2, "big") + bytes(10)


@attrs.frozen(eq=False, weakref_slot=False)
class CapturedKind:
    """Publishes that pass under one flow, and whose headers or bodies are recorded."""

    decision: AuditDecision
    columns: Columns
    #: What one counts in the queue, its own bytes apart.
    byte_count: int

    @classmethod
    def of(cls, decision: AuditDecision, kind: OperationKind, digest: str) -> CapturedKind:
        """What is recorded alike of publishes of this kind, under policies with this digest."""
        columns: Columns = {
            **attrs.asdict(kind, recurse=False),  # type: ignore[typeddict-item]
            "audit_policy": decision.policy,
            "audit_rule": decision.rule,
            "policy_digest": digest,
        }
        texts = sum(len(value) for value in columns.values() if isinstance(value, str))
        return cls(decision, columns, EVENT_BYTES + texts)

    def read(self, header: bytes, body: bytes) -> Content:
        """What is recorded of a message."""
        size = int.from_bytes(header[_SIZE], "big")
        content, properties, headers = read_header(self.decision, header)
        if self.decision.level != "body":
            return size, properties, headers, None, False
        recorded = self.decision.body_of(content, body)
        return size, properties, headers, recorded, size > self.decision.max_body


def read_header(decision: AuditDecision, header: bytes) -> tuple[MessageContent, str, str]:
    """What the payload of a content header says, but for its body's size; and its properties and headers as
    they may be told. Raises `ProtocolViolation`."""
    read = _read if len(header) <= _KEPT_BYTES else _read.__wrapped__
    return read(decision, header[_SIZE.stop :])


@functools.lru_cache(_KEPT)
def _read(decision: AuditDecision, properties: bytes) -> tuple[MessageContent, str, str]:
    """Of the payload, what is behind the size."""
    content = content_of(decode_header(_NO_BODY + properties))
    return content, json_of(decision.properties_of(content)), json_of(decision.headers_of(content))
