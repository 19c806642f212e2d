"""One session's transform on the data path: which messages it is shown, and the frames that come of it.

To the broker, a publish that may change waits for its content header as one that is judged by its header does
(`publishing`); to the client, the method of a message waits here. Bodies never wait: the data path has them.

::

    publish ── its names change ────────────▶ every one is shown: method and header are made anew
                                              or the data path does that (`publish_rewrite`)
            ── its header could change ─────▶ those are shown that have such a header (`Peek`)
            ── neither ─────────────────────▶ a flow of the data path

    deliver ── likewise, by `delivery_rewrite` ·  get-ok, return ── every one is shown

A session keeps the names that it was opened with; all else follows the policies.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from amqpgate.datapath.relay import Relay
from amqpgate.datapath.scanner import Rewrite
from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session.observer import RuleKey
from amqpgate.gateway.session.publish_rewrite import delivery_rewrite, publish_rewrite
from amqpgate.gateway.session.transform import (
    Sent,
    header_up,
    message_down,
    method_down,
    method_up,
    publish_up,
    renames_message,
)
from amqpgate.policy import Peek, Principal, Transform
from amqpgate.policy.engine.from_method import operation_of
from amqpgate.policy.engine.naming import NotTransformedError
from amqpgate.policy.kinds.transform import TRANSFORM
from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.values import define
from amqpgate.wire.codec import ContentHeader, decode_header, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method


@define(eq=False)
class Rewriter:
    """Changes the methods and headers of one session. Bounded by its channels: one method waits on each."""

    transform: Transform
    principal: Principal
    #: Told of the channel and the method that the transform denies, and why.
    on_denied: Callable[[int, Method, NotTransformedError], None]
    #: Told of each rule that is about a method.
    on_used: Callable[[RuleKey], None]
    _relay: Relay = attrs.field(init=False)
    #: Channel number to the method whose content header comes next from the broker.
    _waiting: dict[int, Sent] = attrs.field(factory=dict, init=False)

    def enter(self, relay: Relay) -> None:
        """The session goes on the data path."""
        self._relay = relay

    def release(self) -> None:
        """The session is over: what is told of it leads back to it, and is not told any more."""
        del self.on_denied, self.on_used

    def follow(self, transform: Transform | None) -> None:
        """Other policies hold; the names stay."""
        naming = self.transform.naming
        self.transform = attrs.evolve(transform or Transform(self.principal.user), naming=naming)

    # -- to the broker -----------------------------------------------------------------------

    def method(self, channel: int, method: Method, last_queue: str) -> Method:
        """What the broker gets for a method, which is no publish.

        Raises `ProtocolViolation` where that is nothing.
        """
        operation = None
        if self.transform.arguments and isinstance(
            method, amqp.QueueDeclare | amqp.ExchangeDeclare | amqp.BasicConsume
        ):
            operation = operation_of(method, self.principal, last_queue)
        try:
            changed = method_up(self.transform, method, operation, last_queue)
        except NotTransformedError as error:
            raise self._refused(error, channel, method) from None
        if operation is not None and not operation.passive:
            for one in self.transform.arguments_for(operation):
                self.on_used((TRANSFORM.name, one.policy, one.rule.id))
        return changed

    def admit(self, channel: int, method: amqp.BasicPublish) -> Peek:
        """Which messages like this one must be shown. Raises `ProtocolViolation` if none may pass."""
        try:
            renamed = renames_message(self.transform, method)
        except NotTransformedError as error:
            raise self._refused(error, channel, method) from None
        return Peek(always=True) if renamed else self.transform.peek_published

    def compile(self, channel: int, method: amqp.BasicPublish) -> tuple[Peek, Rewrite | None]:
        """Likewise, where the data path may make the changes of the others; None: it makes none."""
        try:
            compiled = publish_rewrite(self.transform, method)
        except NotTransformedError as error:
            raise self._refused(error, channel, method) from None
        return (self.admit(channel, method), None) if compiled is None else compiled

    def publish(
        self, channel: int, method: amqp.BasicPublish, header: ContentHeader
    ) -> tuple[amqp.BasicPublish, ContentHeader]:
        """The method and the header that the broker gets.

        Raises `ProtocolViolation` where there are none.
        """
        try:
            return publish_up(self.transform, method), header_up(self.transform, method, header)
        except NotTransformedError as error:
            raise self._refused(error, channel, method) from None

    def _refused(self, error: NotTransformedError, channel: int, method: Method) -> ProtocolViolation:
        self.on_denied(channel, method, error)
        return refusal_of(error, channel, method)

    # -- to the client -----------------------------------------------------------------------

    def admit_delivery(self, method: amqp.BasicDeliver) -> Peek:
        """Which deliveries like this one must be shown."""
        renamed = renames_message(self.transform, method)
        return Peek(always=True) if renamed else self.transform.peek_delivered

    def compile_delivery(self, method: amqp.BasicDeliver) -> tuple[Peek, Rewrite | None]:
        """Likewise, where the data path gives the others their names; None: they have them."""
        return self.transform.peek_delivered, delivery_rewrite(self.transform, method)

    def answer(self, channel: int, method: Method, frame: memoryview) -> tuple[Method, bytes | memoryview]:
        """A method of the broker's without content, and its frame, for the client."""
        changed = method_down(self.transform, method)
        return (method, frame) if changed is method else (changed, method_frame(channel, changed))

    def hold(self, channel: int, method: Sent) -> bool:
        """A message to the client, whose header comes next: whether its method waits for that."""
        if self.transform.naming is None:
            return False
        self._waiting[channel] = method
        return True

    def pass_header(self, channel: int, frame: memoryview) -> bool:
        """Send the header of a message to the client, and the method that waited for it. False: none did."""
        method = self._waiting.pop(channel, None)
        if method is None or frame[0] != amqp.FRAME_HEADER:
            return False
        header = decode_header(frame[7:-1])
        changed, content = message_down(self.transform, method, header)
        header_frame = bytes(frame)
        if content is not header:
            header_frame = encode_frame(amqp.FRAME_HEADER, channel, encode_header(content))
        self._relay.send(Side.CLIENT, method_frame(channel, changed) + header_frame)
        return True


def fitting(largest: int, channel: int, frame: bytes) -> bytes:
    """The frame. Raises `ProtocolViolation` where it has more bytes than the broker takes."""
    if len(frame) > largest:
        text = f"a frame of {len(frame)} bytes is more than the broker takes, and cannot be split"
        raise ProtocolViolation(501, text, channel=channel)
    return frame


def refusal_of(error: NotTransformedError, channel: int, method: Method) -> ProtocolViolation:
    """What the client hears of it."""
    return ProtocolViolation(
        error.code, error.text, class_id=method.CLASS_ID, method_id=method.METHOD_ID, channel=channel
    )
