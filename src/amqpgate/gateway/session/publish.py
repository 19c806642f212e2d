"""The publishes of one session that the data path shows: judged, and passed on, denied or rejected.

A denial is answered first, by what `publish_denial` can, or by channel.close; then observers are told.
"""

from __future__ import annotations

from typing import Final

import attrs

from amqpgate.datapath.relay import Relay
from amqpgate.datapath.scanner import Flow
from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session import deaths
from amqpgate.gateway.session.blocked_notices import BLOCKING, NOT_BLOCKED, BlockedNotice
from amqpgate.gateway.session.channel_close import SessionChannels
from amqpgate.gateway.session.claiming import Claiming
from amqpgate.gateway.session.compatibility import Adapted
from amqpgate.gateway.session.declared_here import ask_broker
from amqpgate.gateway.session.delays import PUBLISHED as DELAYED
from amqpgate.gateway.session.delays import Delays
from amqpgate.gateway.session.observer import Denial, Message, Release
from amqpgate.gateway.session.operation_limits import DRAWS, OperationLimits, Turn, drawn, message_refusal
from amqpgate.gateway.session.publish_denial import (
    LARGEST_RETURN,
    HeldPublish,
    PublishDenials,
    ReturnedPublish,
)
from amqpgate.gateway.session.rewriter import fitting, refusal_of
from amqpgate.gateway.session.session_policies import SessionPolicies, may_delay, tell_adapted, tell_used
from amqpgate.policy import Operation, Peek, Verdict, denial_text
from amqpgate.policy.engine.conditions import ALWAYS_PEEKED
from amqpgate.policy.engine.from_method import content_of
from amqpgate.policy.engine.naming import NotTransformedError
from amqpgate.policy.engine.verdicts import UNRESTRICTED
from amqpgate.policy.kinds.access import ACCESS
from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.values import define
from amqpgate.wire.codec import ContentHeader, decode_header, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: What is said of a publish beyond ``limits.maxMessageBytes``.
TOO_LARGE: Final = Verdict("deny", None, "maxMessageBytes")


# To look a member of an enum up takes Python 3.11 a detour each time.
_GO: Final = Turn.GO


@define(eq=False, weakref_slot=False)
class PublishHandler:
    """Of one session."""

    channels: SessionChannels
    session_policies: SessionPolicies
    #: Whether a denial always closes its channel, whatever the policy says.
    closes: bool = False
    #: What the client has been told of why its publishes wait.
    notice: BlockedNotice = attrs.field(default=NOT_BLOCKED, init=False)
    #: None: nothing has been limited yet that is not the data path's.
    _operation_limits: OperationLimits | None = attrs.field(default=None, init=False)
    #: Publishes that were refused.
    refused: int = attrs.field(default=0, init=False)

    @property
    def relay(self) -> Relay:
        return self.channels.relay

    @property
    def publish_denial(self) -> PublishDenials:
        """It remembers nothing, so most sessions need none."""
        return PublishDenials(self.relay, self.channels.states)

    @property
    def operation_limits(self) -> OperationLimits:
        """The limits of all its operations."""
        if self._operation_limits is None:
            session_policies = self.session_policies
            self._operation_limits = OperationLimits(
                session_policies.limits, self.channels, session_policies, self.relay.up
            )
        return self._operation_limits

    @property
    def claims(self) -> Claiming | None:
        """None: no body goes to an object store."""
        return self.session_policies.claims

    def follow_limits(self) -> None:
        """The session's limits are others from now on."""
        self._operation_limits = None

    def turn(self, channel: int, method: Method) -> Turn:
        """May the client do this now? Raises `OverLimit` where that ends the connection."""
        if method.INDEX not in DRAWS or not drawn(self.session_policies.limits, method):
            return _GO
        return self.operation_limits.turn(channel, method)

    def hears(self, method: Method) -> bool:
        """Whether a method of the broker goes on to the client, which may know already that it is blocked."""
        if not isinstance(method, BLOCKING):
            return True
        self.notice = self.notice.heard(method)
        return not self.notice.is_given

    def look(self, *, waits: bool) -> Method | None:
        """The client's messages wait now, or not; what it must be told, if anything."""
        self.notice, told = self.notice.looked(waits=waits)
        return told

    def _operation(self, method: amqp.BasicPublish) -> Operation:
        """What a policy judges of a publish, as `operation_of` has it: there is nothing to find out first."""
        return Operation(
            self.session_policies.principal,
            method.NAME,
            exchange=method.exchange,
            routing_key=method.routing_key,
        )

    def flow(
        self, channel: int, method: amqp.BasicPublish, peek: Peek | None = None, *, is_bridged: bool = False
    ) -> Flow | None:
        """The flow of those with these arguments. None: they are refused, and the client is told.

        ``peek`` says which must be shown in any case. ``is_bridged``: the client speaks another version.
        """
        session_policies = self.session_policies
        verdict, judged, rules = UNRESTRICTED, None, None
        operation = self._operation(method)
        if not session_policies.access.is_unrestricted:
            verdict, judged, rules = session_policies.admit(operation)
            if is_bridged:
                # What is judged is not what is on the wire.
                rules = None
            if judged is not None:
                judged = judged if rules is None else ALWAYS_PEEKED
                peek = judged if peek is None else peek | judged
            if not verdict.allowed:
                text = denial_text(operation, verdict)
                self._refuse(Denial(channel, method, operation, verdict, text))
                return None
        rewriter, rewrite = session_policies.rewriter, None
        if rewriter is not None and is_bridged:
            peek = (peek or Peek()) | rewriter.admit(channel, method)
        elif rewriter is not None and rewriter.transform.changes_messages:
            seen, rewrite = rewriter.compile(channel, method)
            peek = seen if peek is None else peek | seen
        compatibility = session_policies.compatibility
        if compatibility is not None and compatibility.counts_deaths:
            peek = (peek or Peek()) | deaths.PEEK_PUBLISHED
        if session_policies.delays is not None and may_delay(session_policies, method.exchange):
            peek = (peek or Peek()) | DELAYED
        message = Message(channel, method, operation, verdict)
        if session_policies.watchers:
            peek = session_policies.peek(message, peek)
        # Where each is judged by itself, or by rules of the data path, the flow has no rule of its own.
        is_alike = rules is None and (judged is None or not judged.always)
        flow = session_policies.limits.flow(peek, rules)
        if is_alike and verdict.policy is not None:
            tell_used(session_policies, (ACCESS.name, verdict.policy, verdict.rule), flow)
        if rewrite is not None:
            flow.rewrite_by(rewrite)
        if session_policies.watchers:
            session_policies.meter(message, flow)
        return flow

    def hold(
        self,
        channel: int,
        method: amqp.BasicPublish,
        frame: memoryview,
        flow: Flow | None,
        *,
        is_apart: bool = False,
    ) -> None:
        """A publish that is shown. Its method waits for the content header.

        ``is_apart``: it is, but not because its flow says so.
        """
        if flow is None:
            flow = Flow()
        operation = self._operation(method)
        weight, is_read = 0, False
        if self.session_policies.watchers:
            message = Message(channel, method, operation)
            weight, is_read = self.session_policies.show(message, flow, is_apart=is_apart)
        self.channels.states[channel].hold(
            HeldPublish(method, bytes(frame), operation, flow, weight, is_read, self.relay.up.held_since)
        )

    def take_content(self, channel: int, frame: memoryview) -> bool:
        """A header or body that is shown: whether it is of a publish that is held, or refused."""
        state = self.channels.states.remembered(channel)
        if state is None:
            return False
        if state.returning is not None:
            self._collect(channel, state.returning, frame)
            return True
        if self.claims is not None and self.claims.publishes.takes(channel, frame):
            return True
        held = state.take_held()
        if held is not None:
            self._release(channel, held, frame)
            return True
        return False

    def refuses_size(self, channel: int, frame: memoryview) -> bool:
        """Whether a content header declares more than a message may have; then the client is told.

        In RabbitMQ's words, which it says once it has got the whole of such a message.
        """
        size = size_of(frame)
        most = self.relay.up.most_body if self.claims is None else self.claims.most_body
        if size <= most:
            return False
        state = self.channels.states[channel]
        held, is_told = state.take_held(), state.take_returning() is not None
        self.refused += 1
        text = f"message size {size} is larger than configured max size {most}"
        if not is_told:
            self._tell_size(channel, held, frame, text)
        self.channels.refuse(
            channel, ProtocolViolation(406, text, class_id=60, method_id=40, channel=channel)
        )
        return True

    def _tell_size(self, channel: int, held: HeldPublish | None, frame: memoryview, why: str) -> None:
        """A publish is too large. ``held`` is None on a link that is shared: its method was not shown."""
        session_policies = self.session_policies
        operation = Operation(session_policies.principal, "basic.publish") if held is None else held.operation
        method = None if held is None else held.method
        session_policies.denied(Denial(channel, method, operation, TOO_LARGE, why, held, frame, True))

    def _release(self, channel: int, held: HeldPublish, frame: memoryview) -> None:
        """The header of a publish that was held: does it go on?"""
        session_policies = self.session_policies
        operation, verdict = held.operation, UNRESTRICTED
        header = None
        if (
            not session_policies.access.is_unrestricted
            or session_policies.rewriter is not None
            or held.is_read
            or (deaths.are_counted(session_policies.compatibility) and deaths.is_published_again(frame))
        ):
            header = decode_header(frame[7:-1])
        if header is not None and not session_policies.access.is_unrestricted:
            operation = attrs.evolve(held.operation, content=content_of(header))
            verdict = session_policies.judge(operation)
        over = self.operation_limits.publish(channel) if verdict.allowed else None
        if not verdict.allowed or over is not None:
            text = denial_text(operation, verdict) if over is None else ""
            self._refuse(
                Denial(channel, held.method, operation, over or verdict, text, held, frame, over is not None)
            )
            return
        frames = held.frame + bytes(frame)
        if header is not None:
            frames = self._changed(channel, held.method, header, frames)
        if session_policies.watchers:
            release = Release(channel, held, verdict, frame, header)
            for observer in session_policies.watchers:
                frames = observer.released(release, frames)
        if session_policies.delays is not None:
            frames = self._delayed(session_policies.delays, channel, held.method, frames)
        if self.claims is not None and self.claims.takes(size_of(frame)):
            self.claims.publishes.begin(channel, held, frame, frames)
        else:
            self.relay.send(Side.UPSTREAM, frames)

    def refuse_claim(
        self, channel: int, held: HeldPublish, frame: memoryview, text: str, policy: str
    ) -> None:
        """A publish whose body the object store does not take: by basic.nack, or by channel.close 406.

        ``frame`` is its header's, ``text`` for the client. What is left of the body is dropped.
        """
        self.refused += 1
        verdict, denials = Verdict("deny", policy, "claimCheck", on_denied="nack"), self.publish_denial
        try:
            if not self.closes and denials.can_answer(channel, verdict, size_of(frame)):
                denials.at_header(channel, held.method, frame, verdict, text)
            else:
                why = ProtocolViolation(406, text, class_id=60, method_id=40, channel=channel)
                self.channels.refuse(channel, why)
        finally:
            denial = Denial(channel, held.method, held.operation, verdict, text, held, frame, True)
            self.session_policies.denied(denial)

    def _changed(
        self, channel: int, method: amqp.BasicPublish, header: ContentHeader, frames: bytes
    ) -> bytes:
        """The method and header frames that the broker gets; ``frames`` are the client's. Raises
        `ProtocolViolation` where there are none."""
        session_policies, largest = self.session_policies, self.relay.up.out_frame_max
        changed, content = method, header
        if session_policies.rewriter is not None:
            changed, content = session_policies.rewriter.publish(channel, method, header)
        kept = deaths.saved(content) if deaths.are_counted(session_policies.compatibility) else content
        if kept is not content:
            saved = encode_frame(amqp.FRAME_HEADER, channel, encode_header(kept))
            # It is longer by some bytes. Where there is no room for them, the broker counts alone.
            if len(saved) <= largest:
                tell_adapted(session_policies, channel, method, Adapted(changed, ("x-death",)))
                return method_frame(channel, changed) + saved
        if changed is not method or content is not header:
            header_frame = encode_frame(amqp.FRAME_HEADER, channel, encode_header(content))
            return fitting(largest, channel, method_frame(channel, changed)) + fitting(
                largest, channel, header_frame
            )
        return frames

    def _delayed(self, delays: Delays, channel: int, method: amqp.BasicPublish, frames: bytes) -> bytes:
        """What the broker gets in the place of a message's method and header, which have its names. What is
        needed of the ladder goes ahead.

        Raises `ProtocolViolation`.
        """
        session_policies = self.session_policies
        try:
            delayed = delays.publish(channel, self.channels.states[channel].declaring().ladder, frames)
        except NotTransformedError as error:
            session_policies.not_transformed(channel, method, error)
            raise refusal_of(error, channel, method) from None
        if delayed is None:
            return frames
        if delayed.ladder:
            ask_broker(self.channels, channel, delayed.answers)
            self.relay.send(Side.UPSTREAM, delayed.ladder)
        if delayed.adapted is not None:
            tell_adapted(session_policies, channel, method, delayed.adapted)
        largest = self.relay.up.out_frame_max
        return fitting(largest, channel, delayed.method) + fitting(largest, channel, delayed.header)

    def _refuse(self, denial: Denial) -> None:
        """Answer the client, and tell the observers. A method alone has come, or its header, too."""
        channel, method, verdict, header = denial.channel, denial.method, denial.verdict, denial.header
        assert isinstance(method, amqp.BasicPublish)
        self.refused += 1
        closes = False
        try:
            size = None if header is None else size_of(header)
            if (
                self.closes
                or verdict.on_denied == "channel-close"
                or not (denials := self.publish_denial).can_answer(channel, verdict, size)
            ):
                closes, is_limit = True, denial.is_limit
                why = (
                    message_refusal(channel)
                    if is_limit
                    else self.session_policies.channel_error(denial, method)
                )
                self.channels.refuse(channel, why)
            elif header is None:
                denials.at_method(channel, method, verdict, denial.text)
            else:
                denials.at_header(channel, method, header, verdict, denial.text)
        finally:
            self.session_policies.denied(denial if closes else attrs.evolve(denial, closes=False))

    def _collect(self, channel: int, returning: ReturnedPublish, frame: memoryview) -> None:
        """A piece of a message that is refused and given back whole."""
        if frame[0] == amqp.FRAME_HEADER and size_of(frame) > LARGEST_RETURN:
            why = ProtocolViolation(403, returning.why, class_id=60, method_id=40, channel=channel)
            self.channels.refuse(channel, why)
            return
        self.publish_denial.collect(channel, frame)


def size_of(header: memoryview) -> int:
    """Bytes of body, by the frame of its content header (AMQP 0-9-1, section 4.2.6.1)."""
    return int.from_bytes(header[11:19], "big")
