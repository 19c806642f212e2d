"""Audit policies: how much of a request is written down, and what of it never is.

`audit_document` has the types of the document; here are the level that one operation gets, and the redaction
of what is then recorded.
Levels, each with what those before it have::

    none      nothing
    metadata  who, what, exchange, routing key, queue, and how large the body is
    headers   the properties and headers of the message
    body      the body, up to a limit

What no rule speaks of is counted in the records of usage, as by level `metadata`: their sums are those
of all that passed; `none` leaves an operation out of all records, its denials included. Without `audit` in
the settings nothing is written at all. Nothing is written here: what decides and redacts is the same whoever
writes the records.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import attrs

from amqpgate.policy.engine.conditions import PropertyName
from amqpgate.policy.engine.first_match import FirstMatch
from amqpgate.policy.engine.operations import MessageContent, Operation
from amqpgate.policy.engine.regular_expressions import of_bytes
from amqpgate.policy.kinds.audit_document import (
    REDACTED,
    AuditLevel,
    AuditPolicy,
    AuditRule,
    Redact,
)
from amqpgate.policy.kinds.audit_findings import findings
from amqpgate.policy.kinds.kind import PolicyKind, Row, SessionSelection, by_subjects, rule_variables
from amqpgate.values import frozen

if TYPE_CHECKING:
    from re2 import _Regexp as Regex

#: Bytes of a body behind what is recorded that patterns are looked for in as well, since what matches may
#: begin before the end and end behind it. Of a match that ends later still, the beginning may be recorded.
BEYOND: Final = 64 << 10

#: Content encodings (MIME) that leave a text as it is. Patterns find nothing in any other.
_PLAIN: Final = frozenset({"", "identity", "binary", "7bit", "8bit", "utf-8", "utf8", "us-ascii", "ascii"})


@frozen(eq=False)
class AuditDecision:
    """How much of one operation is written down."""

    level: AuditLevel
    #: The policy and rule that decided; None where none did.
    policy: str | None = None
    rule: str | None = None
    max_body: int = 0
    redact: Redact = attrs.field(factory=Redact)
    _patterns: tuple[tuple[Regex[bytes], bytes], ...] = ()

    @property
    def is_silent(self) -> bool:
        """Whether a rule says that there is no record at all."""
        return self.level == "none" and self.policy is not None

    @property
    def reads_messages(self) -> bool:
        """Whether each message is written down, with its headers at least."""
        return self.level in ("headers", "body")

    def record(self, operation: Operation, body: bytes = b"") -> Audited | None:
        """What may be written down of an operation: nothing but this leaves the gateway.

        ``operation.content`` is the message's header, if there is one. Of ``body`` more than
        ``max_body`` and 64 KiB is not looked at.
        """
        if self.level == "none":
            return None
        content = operation.content
        audited = Audited(self.level, self.policy, self.rule, attrs.evolve(operation, content=None))
        if content is None:
            return audited
        audited = attrs.evolve(audited, body_size=content.body_size)
        if self.level == "metadata":
            return audited
        audited = attrs.evolve(
            audited, properties=self.properties_of(content), headers=self.headers_of(content)
        )
        if self.level == "headers":
            return audited
        shown = self.body_of(content, body)
        return attrs.evolve(audited, body=shown, is_cut=content.body_size > self.max_body)

    @property
    def reads_body(self) -> int:
        """Bytes of a body that are looked at."""
        if self.level != "body":
            return 0
        return self.max_body + BEYOND if self._patterns else self.max_body

    def properties_of(self, content: MessageContent) -> dict[str, str | int]:
        """The properties as they may be written down."""
        hidden = {_attribute(name) for name in self.redact.properties}
        return {name: REDACTED if name in hidden else value for name, value in content.properties.items()}

    def headers_of(self, content: MessageContent) -> dict[str, object]:
        """The headers as they may be written down."""
        return self._table(content.headers)

    def _table(self, table: Mapping[str, object]) -> dict[str, object]:
        return {
            name: REDACTED if self._is_hidden(name) else self._value(value) for name, value in table.items()
        }

    def _value(self, value: object) -> object:
        if isinstance(value, Mapping):
            return self._table(value)
        if isinstance(value, list | tuple):
            return [self._value(item) for item in value]
        return value

    def _is_hidden(self, header: str) -> bool:
        name = header.casefold()
        return any(
            name.startswith(pattern.text.casefold()) if pattern.is_prefix else name == pattern.text.casefold()
            for pattern in self.redact.headers
        )

    def body_of(self, content: MessageContent, body: bytes) -> bytes:
        """What may be written down of a body that begins so."""
        if not self._patterns:
            return body[: self.max_body]
        encoding = content.properties.get("content_encoding", "")
        if str(encoding).strip().lower() not in _PLAIN:
            return REDACTED.encode()
        window = body[: self.max_body + BEYOND]
        found = sorted(
            (match.start(), match.end(), replacement)
            for regex, replacement in self._patterns
            for match in regex.finditer(window)
            if match.start() < self.max_body
        )
        pieces: list[bytes] = []
        at = 0
        for start, end, replacement in found:
            if start >= at:
                pieces += [window[at:start], replacement]
            at = max(at, end)
        pieces.append(window[at : self.max_body])
        return b"".join(pieces)


@frozen
class Audited:
    """What may be written down of one operation."""

    level: AuditLevel
    policy: str | None
    rule: str | None
    #: Without its content.
    operation: Operation
    #: None where the operation has no message.
    body_size: int | None = None
    #: None below level ``headers``.
    properties: Mapping[str, str | int] | None = None
    headers: Mapping[str, object] | None = None
    #: None below level ``body``. Longer than the limit only by what replacements add.
    body: bytes | None = None
    #: Whether there was more body than the rule allows.
    is_cut: bool = False


#: Of what no rule speaks: it is counted, and no more.
NOT_AUDITED: Final = AuditDecision("none")


@frozen(eq=False)
class SessionAudit:
    """The audit rules of one session; make it once, when the session opens."""

    _rules: FirstMatch[AuditDecision]

    def decide(self, operation: Operation) -> AuditDecision:
        """How much of it is written down."""
        return self._rules.decide(operation) or NOT_AUDITED


def session_audit(session: SessionSelection[AuditPolicy]) -> SessionAudit:
    """The audit rules of the policies that select a session, in order.

    Where something is not known (the user, the value of a variable, which keys a binding catches), a rule
    that says `none` does not match, and one that says more does.
    """
    rules = [
        (rule, _decision(one.policy, rule), rule.level == "none")
        for one in session.policies
        for rule in one.policy.spec.rules
        if one.is_sure or rule.level != "none"
    ]
    return SessionAudit(FirstMatch.of(rules, session.values))


def _decision(policy: AuditPolicy, rule: AuditRule) -> AuditDecision:
    patterns = tuple((of_bytes(one.regex), one.replacement.encode()) for one in rule.redact.body_patterns)
    return AuditDecision(
        rule.level, policy.metadata.name, rule.id, rule.max_body_bytes, rule.redact, patterns
    )


def _row(policy: AuditPolicy) -> Row:
    return {
        "rules": [
            {"id": rule.id, "effect": rule.level, "operations": [str(one) for one in rule.operations]}
            for rule in policy.spec.rules
        ]
    }


def _attribute(name: PropertyName) -> str:
    """``contentType`` to ``content_type``."""
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


AUDIT: Final = PolicyKind(
    document=AuditPolicy,
    subjects=by_subjects,
    compile=session_audit,
    variables=rule_variables,
    row=_row,
    findings=findings,
)
