"""What taps are about in one session, and how much of it they may be told.

What may be told is what audit records may say of the same operation (`AuditDecision.record`). Without an
audit policy that is metadata: nobody has allowed more. What a rule leaves out of all records is not seen here
either.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from amqpgate.bridge import Interpreter
from amqpgate.datapath.captures import Captured
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.observers.tap.flows import Watched
from amqpgate.gateway.observers.tap.lines import FlowLine, Told, line_of, said_in, size_in
from amqpgate.gateway.observers.tap.taps import Tap, TapRegistry
from amqpgate.gateway.session.session_policies import SessionPolicies
from amqpgate.policy import Operation, PolicySet, Principal, Verdict
from amqpgate.policy.engine.from_method import content_of
from amqpgate.policy.engine.taps import DELIVER, GOT, RETURNED
from amqpgate.policy.engine.verdicts import UNRESTRICTED
from amqpgate.policy.kinds.audit import NOT_AUDITED, AuditDecision, SessionAudit
from amqpgate.telemetry.answers import JSON
from amqpgate.wire.codec import ContentHeader, decode_header
from amqpgate.wire.method import Method

_OF_MESSAGES: Final[dict[str, str | None]] = {"verdict": UNRESTRICTED.effect, "destination": None}
#: What is known of messages to a client before there is one.
_SENT: Final[Mapping[str, dict[str, str | None]]] = {
    DELIVER: _OF_MESSAGES,
    GOT: _OF_MESSAGES,
    RETURNED: {**_OF_MESSAGES, "queue": None},
}


@attrs.define(eq=False, weakref_slot=False)
class Scope:
    """Of one session."""

    tapping: TapRegistry
    session: str
    session_policies: SessionPolicies
    #: The client's.
    interpreter: Interpreter
    #: Those that it may concern.
    taps: tuple[Tap, ...] = attrs.field(default=(), init=False)
    #: None: there are no audit policies.
    audits: SessionAudit | None = attrs.field(default=None, init=False)

    def follow(self, taps: tuple[Tap, ...], policies: PolicySet) -> None:
        """These taps and these policies hold from now on."""
        self.taps = taps
        self.audits = policies.audit_of(self.principal) if policies.audits else None

    @property
    def principal(self) -> Principal:
        return self.session_policies.principal

    def is_about(self, operation: str) -> bool:
        """Whether such an operation may match."""
        known = known_of(self.principal) | {"operation": operation} | _SENT.get(operation, {})
        return any(tap.order.match.holds(known) is not False for tap in self.taps)

    def decide(self, operation: Operation) -> AuditDecision:
        """How much of an operation may be told."""
        return NOT_AUDITED if self.audits is None else self.audits.decide(operation)

    def is_silent(self, asked: Operation | None) -> bool:
        """Whether messages to the client are not seen that it asked for so; None: it is not known how."""
        # An audit policy may leave out of all records what they were asked for with.
        return self.audits is not None if asked is None else self.decide(asked).is_silent

    def verdict(self, operation: Operation) -> Verdict:
        """What has been said of an operation that passes."""
        access = self.session_policies.access
        return UNRESTRICTED if access.is_unrestricted else access.enforced.decide(operation)

    def matching(self, operation: Operation, verdict: Verdict) -> tuple[Tap, ...]:
        """The taps that are about it."""
        values = known_of(self.principal) | {
            "operation": operation.name,
            "exchange": operation.exchange,
            "routing_key": operation.routing_key,
            "queue": operation.queue,
            "destination": operation.destination,
            "verdict": verdict.effect,
        }
        return tuple([tap for tap in self.taps if tap.order.match.holds(values)])

    def happened(
        self,
        channel: int,
        operation: Operation,
        verdict: Verdict,
        method: Method | None,
        size: int | None = None,
        broker: JSON = None,
    ) -> None:
        """An operation that no flow counts: it is counted here, and told. ``broker``: as in `Told`."""
        taps = () if self.decide(operation).is_silent else self.matching(operation, verdict)
        for tap in taps:
            tap.matches()
        taps = tuple([tap for tap in taps if self.tapping.spend(tap)])
        if taps:
            told = self.told(channel, operation, verdict, method, size)
            tell(taps, told if broker is None else attrs.evolve(told, broker=broker))

    def told(
        self, channel: int, operation: Operation, verdict: Verdict, method: Method | None, size: int | None
    ) -> Told:
        """Its metadata."""
        return Told(time.time(), self.session, channel, operation, verdict, method, self.interpreter, size)

    def captured(self, watched: Watched, taps: Sequence[Tap], message: Captured, at: str) -> None:
        """Tell of a message that has passed; ``at`` as `FlowLine.text` is given it."""
        _flow, channel, payload, body, _sample = message
        said = ""
        if watched.tells_more:
            if any(tap.order.frames for tap in taps):
                self._framed(watched, taps, message)
                return
            if watched.decision.reads_messages:
                # The data path has looked whether it is well-formed, but not at what it says.
                with contextlib.suppress(ProtocolViolation):
                    said = said_in(watched.decision, payload, body)
        line = watched.line
        if line is None:
            told = self.told(channel, watched.operation, watched.verdict, None, None)
            line = watched.says(FlowLine.of(told))
        text = line.text(at, channel, size_in(payload), said)
        for tap in taps:
            tap.put_text(text)

    def _framed(self, watched: Watched, taps: Sequence[Tap], message: Captured) -> None:
        """Likewise, where some want its frames."""
        _flow, channel, payload, body, _sample = message
        size, decision, said = size_in(payload), watched.decision, None
        header = None
        with contextlib.suppress(ProtocolViolation):
            header = decode_header(payload)
        if header is not None and decision.reads_messages:
            operation = attrs.evolve(watched.operation, content=content_of(header))
            said = decision.record(operation, body)
            if said is not None and decision.level == "body" and size:
                is_cut = said.is_cut or len(body) < min(size, decision.max_body)
                said = attrs.evolve(said, is_cut=is_cut)
            elif said is not None:
                said = attrs.evolve(said, body=None)
        told = self.told(channel, watched.operation, watched.verdict, watched.method, size)
        tell(taps, attrs.evolve(told, header=None if said is None else header, said=said))


def tell(taps: Sequence[Tap], told: Told) -> None:
    """Show it to them."""
    for tap in taps:
        tap.put(line_of(told, frames=tap.order.frames))


def known_of(principal: Principal) -> dict[str, str | None]:
    """What a match is told of a session."""
    return {"vhost": principal.vhost, "user": principal.user, "client": principal.source}


def header_in(frame: memoryview) -> ContentHeader | None:
    """None where it cannot be read: whoever gets it will say what is wrong with it."""
    try:
        return decode_header(frame[7:-1])
    except ProtocolViolation:
        return None
