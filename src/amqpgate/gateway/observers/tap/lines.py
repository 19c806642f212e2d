"""What a tap says of one operation: as JSON, and the same as AMQP frames.

Columns are those of audit records (`amqpgate.records`) where there are such, but that ``client`` is the
client's address. A body is base64, as there. No line is longer than some 128 KiB: lines wait in memory.
"""

from __future__ import annotations

import base64
import functools
from typing import Final

import attrs

from amqpgate.bridge import Interpreter
from amqpgate.gateway.observers.audit.columns import json_of, kind_of
from amqpgate.gateway.observers.audit.messages import read_header
from amqpgate.gateway.session.compatibility import Adapted
from amqpgate.policy import Operation, Verdict
from amqpgate.policy.kinds.audit import AuditDecision, Audited
from amqpgate.policy.kinds.audit_document import REDACTED
from amqpgate.protocol.frames import FRAME_HEADER, encode_frame, method_frame
from amqpgate.telemetry.answers import JSON
from amqpgate.telemetry.events import members_of
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

#: Bytes of a body that are told, and of a table. Audit records have more.
LONGEST: Final = 16 << 10

#: Properties and headers that are kept as they stand in a line, and characters of both, at most.
_KEPT: Final = 256
_KEPT_BYTES: Final = 4096
#: Of the payload of a content header: the size of the body.
_SIZE: Final = slice(4, 12)


@attrs.frozen
class Told:
    """One operation."""

    #: In seconds since 1970.
    at: float
    session: str
    channel: int
    operation: Operation
    verdict: Verdict
    #: None: there is none, or its arguments are nobody's business.
    method: Method | None
    #: The client's.
    interpreter: Interpreter
    #: Bytes of its body; None: it has none, or it is not known.
    body_size: int | None = None
    #: Of a message whose properties may be told.
    header: ContentHeader | None = None
    #: What the audit policy lets out of the message; None: nothing.
    said: Audited | None = None
    #: What a compatibility policy has the broker get in its place, as `broker_of` tells; None: the same.
    broker: JSON = None


@attrs.frozen(eq=False, weakref_slot=False)
class FlowLine:
    """What lines say of all messages of a flow, as JSON: each of them adds what is its own."""

    #: Members that stand between ``time`` and ``channel``, and between that and ``body_size``.
    _session: str
    _deed: str

    @classmethod
    def of(cls, told: Told) -> FlowLine:
        """Of one of them, whose time, channel and body do not matter."""
        line = line_of(attrs.evolve(told, body_size=None, said=None))
        names = [*line]
        at, channel = names.index("time"), names.index("channel")
        session = {name: line[name] for name in names[at + 1 : channel]}
        return cls(members_of(session), members_of({name: line[name] for name in names[channel + 1 :]}))

    def text(self, at: str, channel: int, body_size: int, said: str = "") -> str:
        """The members of a line; ``at`` is its time, ``said`` as of `said_in`."""
        return f'"time":{at},{self._session},"channel":{channel},{self._deed},"body_size":{body_size}{said}'


def said_in(decision: AuditDecision, header: bytes, body: bytes) -> str:
    """What an audit policy lets out of a message: members of a line, each with a comma before it.

    ``header`` is the payload of its content header, and ``body`` begins so. Raises `ProtocolViolation`.
    """
    content, properties, headers = read_header(decision, header)
    quoted = _quoted if len(properties) + len(headers) <= _KEPT_BYTES else _quoted.__wrapped__
    text, size = quoted(properties, headers), size_in(header)
    if decision.level != "body" or not size:
        return text
    shown = decision.body_of(content, body)
    is_cut = size > decision.max_body or len(body) < min(size, decision.max_body) or len(shown) > LONGEST
    told = base64.b64encode(shown[:LONGEST]).decode()
    return f'{text},"body":"{told}","body_cut":{"true" if is_cut else "false"}'


@functools.lru_cache(_KEPT)
def _quoted(properties: str, headers: str) -> str:
    return "," + members_of({"properties": _cut(properties), "headers": _cut(headers)})


def size_in(header: bytes) -> int:
    """Bytes of the body, of the payload of its content header."""
    return int.from_bytes(header[_SIZE], "big")


def broker_of(policy: str, result: Adapted) -> JSON:
    """What the broker gets, and why it is not what the client asked for."""
    said: dict[str, JSON] = {"policy": policy, "items": [*result.items]}
    if result.left:
        said["left"] = result.left
    method = result.method
    if isinstance(method, amqp.QueueDeclare):
        said |= {
            "queue": method.queue,
            "durable": method.durable,
            "auto_delete": method.auto_delete,
            "arguments": _cut(json_of(dict(method.arguments.to_python()))),
        }
    return said


def line_of(told: Told, *, frames: bool = False) -> dict[str, JSON]:
    """As JSON. ``frames``: with ``frames``, base64 of its method and header frames."""
    principal, said = told.operation.principal, told.said
    line: dict[str, JSON] = {
        "time": round(told.at, 6),
        "session": told.session,
        "user": principal.user,
        "upstream_user": principal.upstream_user,
        "vhost": principal.vhost,
        "client": principal.source,
        "amqp_version": told.interpreter.version.removeprefix("AMQP "),
        "channel": told.channel,
    }
    for name, value in attrs.asdict(kind_of(told.operation, told.verdict), recurse=False).items():
        if value is not None and value is not False:
            line[name] = _cut(value) if isinstance(value, str) else value
    if told.body_size is not None:
        line["body_size"] = told.body_size
    if said is not None:
        line |= _said_of(said)
    if told.broker is not None:
        line["broker"] = told.broker
    if frames:
        line["frames"] = base64.b64encode(frames_of(told)).decode()
    return line


def _said_of(said: Audited) -> dict[str, JSON]:
    """What an audit policy lets out of a message."""
    line: dict[str, JSON] = {}
    if said.headers is not None:
        line["properties"] = _cut(json_of(said.properties or {}))
        line["headers"] = _cut(json_of(said.headers))
    if said.body is not None:
        line["body"] = base64.b64encode(said.body[:LONGEST]).decode()
        line["body_cut"] = said.is_cut or len(said.body) > LONGEST
    return line


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def frames_of(told: Told) -> bytes:
    """The method, and a content header with what may be told of it, as its client has them where their frames
    are others. Empty for what has no frames here."""
    # Methods of the connection are about secrets (connection.update-secret).
    if told.method is None or not told.channel:
        return b""
    frames = method_frame(told.channel, told.method)
    if len(frames) > LONGEST:
        return b""
    header = None if told.body_size is None else _header_of(told, told.body_size)
    captured = told.interpreter.captured(told.channel, told.method, header)
    if captured is not None:
        return captured
    if header is None:
        return frames
    return frames + encode_frame(FRAME_HEADER, told.channel, encode_header(header))


def _header_of(told: Told, size: int) -> ContentHeader:
    properties = amqp.BasicProperties()
    if told.header is not None and told.said is not None:
        properties = _shown(told.header, told.said)
    header = ContentHeader(amqp.BasicPublish.CLASS_ID, size, properties)
    if len(encode_header(header)) > LONGEST:
        return attrs.evolve(header, properties=amqp.BasicProperties())
    return header


def _shown(header: ContentHeader, said: Audited) -> amqp.BasicProperties:
    """What is redacted is text that says so, where there can be text, and else left out."""
    properties = header.properties
    assert isinstance(properties, amqp.BasicProperties)
    changes: dict[str, object] = {}
    for name, value in (said.properties or {}).items():
        if value == REDACTED:
            changes[name] = REDACTED if isinstance(getattr(properties, name), str) else None
    if properties.headers is not None:
        try:
            changes["headers"] = Table.of(said.headers or {})
        except (TypeError, ValueError):
            # Values that no client of RabbitMQ's would send, such as times before 1970.
            changes["headers"] = None
    return attrs.evolve(properties, **changes)  # type: ignore[arg-type]
