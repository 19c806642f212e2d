"""What a client settles while the body of a message for it is on its way from the object store.

The broker has delivered that message, and maybe more behind it, and the client has seen none of them. To the
broker an ack of all would mean them, too; so it is told the last tag that the client has.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session.observer import Sees, Sent
from amqpgate.gateway.session.session import Session
from amqpgate.gateway.session.settlement import Settling
from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp


@define(eq=False)
class HiddenDeliveries:
    """Those of one session: one at most on each channel."""

    session: Session
    #: Channel to delivery tag.
    _tags: dict[int, int] = attrs.field(factory=dict, init=False)

    def __contains__(self, channel: int) -> bool:
        """Whether there is one on a channel."""
        return channel in self._tags

    def first(self, channel: int) -> int | None:
        """Its delivery tag; None: there is none on this channel."""
        return self._tags.get(channel)

    def hide(self, channel: int, method: Sent) -> None:
        """A message has come, and its client is not shown it yet."""
        if not isinstance(method, amqp.BasicReturn):
            self._tags[channel] = method.delivery_tag
            self.session.relay.channels.show_settles(channel)

    def show(self, channel: int) -> None:
        """The client gets the message, or will not."""
        session = self.session
        if self._tags.pop(channel, None) is None or Sees.SETTLES in session.session_policies.sees:
            return
        if session.bridge is None or channel not in session.bridge.channel_flows:
            session.relay.channels.show_settles(channel, False)

    def settles(self, channel: int, method: Settling) -> Settling | None:
        """What the broker is told of it; None: nothing. Raises ``ProtocolViolation``."""
        hidden = self._tags.get(channel)
        if hidden is None:
            return method
        channels, bridge = self.session.relay.channels, self.session.bridge
        # Somebody else may have had enough of them.
        channels.show_settles(channel)
        held = None if bridge is None else bridge.channel_flows.get(channel)
        # Of a channel that keeps deliveries, its holder names what the client has.
        is_named = held is not None and bool(held.kept.waiting)
        return told(method, channel, hidden, None if is_named else channels.unacked_tags(channel))


def told(
    method: Settling, channel: int, hidden: int, unsettled: Sequence[tuple[int, int]] | None
) -> Settling | None:
    """What the broker is told; None: nothing. Raises ``ProtocolViolation`` 406 for a tag that was not shown.

    ``hidden`` is the delivery tag of the message whose body is on its way, ``unsettled`` are stretches of
    those that are not settled. Where they are not known, an ack of all passes as it is.
    """
    tag = method.delivery_tag
    if tag >= hidden:
        raise ProtocolViolation(
            406,
            f"unknown delivery tag {tag}",
            class_id=method.CLASS_ID,
            method_id=method.METHOD_ID,
            channel=channel,
        )
    if tag or isinstance(method, amqp.BasicReject) or not method.multiple or unsettled is None:
        return method
    # Tags rise: the last stretch that begins below it ends with the last one that the client has.
    ends = [min(end, hidden) for first, end in unsettled if first < hidden]
    return attrs.evolve(method, delivery_tag=ends[-1] - 1) if ends else None
