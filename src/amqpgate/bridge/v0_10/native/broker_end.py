"""The broker's end of a relayed connection: originals whose copies have passed, and what it says, as copies.

::

             channel.open           channel.close          detached
    FREE ─────────────▶ ATTACHED ───────────────▶ TOLD ─────────────▶ FREE
                           │ detach, or detached
                           └───────▶ OVER ──────────────── close-ok ──▶ FREE

channel.close is the copy of the client's detach; or the gateway's own, where it denies something: then the
broker is sent a detach, and what waits on that channel never leaves.
"""

from __future__ import annotations

from typing import Final

from amqpgate.bridge.v0_10.native.build import Original
from amqpgate.bridge.v0_10.native.channels import RelayedChannel
from amqpgate.bridge.v0_10.native.copies import NAMELESS, text
from amqpgate.bridge.v0_10.native.cutting import Assembly
from amqpgate.bridge.v0_10.native.end import NativeEnd
from amqpgate.bridge.v0_10.native.relay import NativeRelay
from amqpgate.bridge.v0_10.native.stages import BrokerStage, ClientStage
from amqpgate.errors import ProtocolViolation, cut_reply
from amqpgate.protocol.v0_10.codes import violation_of_exception
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import DetachCode
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.codec import decode_command, decode_control

_TRANSFER: Final = amqp10.MessageTransfer.CLASS_CODE << 8 | amqp10.MessageTransfer.CODE
_EXCEPTION: Final = amqp10.ExecutionException.CLASS_CODE << 8 | amqp10.ExecutionException.CODE
_SESSION: Final = amqp10.SessionAttach.CLASS_CODE
_LOOKED_AT: Final = frozenset(
    control.CODE
    for control in (
        amqp10.SessionDetach,
        amqp10.SessionDetached,
        amqp10.SessionCommandPoint,
    )
)
_OPEN: Final = amqp.ChannelOpen.INDEX.to_bytes(4, "big")
_CLOSE: Final = amqp.ChannelClose.INDEX.to_bytes(4, "big")
_CLOSE_OK: Final = amqp.ChannelCloseOk.INDEX.to_bytes(4, "big")
_S: Final = BrokerStage
_WITH_SESSION: Final = frozenset({_S.ATTACHED, _S.TOLD})

#: RESOURCE_LOCKED: somebody else has the session (AMQP 0-9-1, section 1.2).
_BUSY: Final = 405


class BrokerEnd(NativeEnd):
    """See the module."""

    __slots__ = ("_changed", "_denied")

    def __init__(self, relay: NativeRelay) -> None:
        super().__init__(
            relay,
            relay.to_broker,
            relay.to_client,
            most=relay.most_to_client,
            takes=relay.most_to_broker,
            is_delivery=True,
        )
        #: Channels whose session the gateway has ended.
        self._denied: set[int] = set()
        #: Channels whose session was ended here, as the gateway has changed a command.
        self._changed: set[int] = set()

    # From the broker.

    def _control(self, channel: RelayedChannel, assembly: Assembly) -> None:
        segment = assembly.segment
        if len(segment) < 2 or segment[0] != _SESSION:
            control = decode_control(segment)
            raise ProtocolViolation(501, f"unexpected {control.NAME}", channel=channel.number)
        if segment[1] in _LOOKED_AT:
            self._look(channel, assembly)
            return
        if segment[1] == amqp10.SessionCompleted.CODE and channel.due.answers:
            self._completed(channel, assembly)
        channel.down.follow(assembly.original)

    def _look(self, channel: RelayedChannel, assembly: Assembly) -> None:
        control = decode_control(assembly.segment)
        stage, data = channel.broker, assembly.original
        match control:
            case amqp10.SessionDetach() if stage is _S.ATTACHED:
                self._reader.abandon(channel.number)
                channel.broker_is(_S.OVER)
                self._wait(channel, data, self._why(channel), amqp10.SessionDetach.CODE)
            case amqp10.SessionDetach() if channel.number in self._denied:
                # It has ended the session for a reason of its own, and has not heard of ours.
                self._put(channel.number, amqp10.SessionDetached(channel.name, DetachCode.NORMAL))
                self._gone(channel, data)
            case amqp10.SessionDetached() if channel.number in self._changed:
                self._changed.discard(channel.number)
            case amqp10.SessionDetached(name=name) if stage in _WITH_SESSION:
                if name and name != channel.name:
                    # It answers something else, such as a second attach.
                    channel.down.follow(data)
                else:
                    self._gone(channel, data, control.code)
            case amqp10.SessionCommandPoint(command_id=command_id):
                channel.down_ids.point(command_id or 0)
                channel.down.follow(data)
            case _ if stage is not _S.FREE or channel.client is ClientStage.FREE:
                channel.down.follow(data)

    def _gone(self, channel: RelayedChannel, data: bytes, code: int | None = None) -> None:
        """The broker says that the session is not attached."""
        self._reader.abandon(channel.number)
        if channel.number in self._denied:
            self._denied.discard(channel.number)
            channel.broker_is(_S.FREE)
            self._say(channel.number + 1, amqp.ChannelCloseOk())
        elif channel.broker is _S.TOLD:
            channel.broker_is(_S.FREE)
            self._answer(channel, channel.due.all())
            self._wait(channel, data, amqp.ChannelCloseOk())
        else:
            channel.broker_is(_S.OVER)
            close = amqp.ChannelClose(_BUSY, f"the broker says: detached, {code or 0}")
            self._wait(channel, data, close, amqp10.SessionDetached.CODE)

    @staticmethod
    def _why(channel: RelayedChannel) -> amqp.ChannelClose:
        """Why the broker ends a session."""
        if channel.exception is None:
            return amqp.ChannelClose(200, "detached")
        why = violation_of_exception(channel.exception, channel.number + 1)
        return amqp.ChannelClose(why.code, cut_reply(why.text))

    def _completed(self, channel: RelayedChannel, assembly: Assembly) -> None:
        """Some of what the client has asked for is done."""
        control = decode_control(assembly.segment)
        assert isinstance(control, amqp10.SessionCompleted)
        if control.commands is not None and control.commands.ranges:
            self._answer(channel, channel.due.until(control.commands.ranges[-1][1]))

    def _command(self, channel: RelayedChannel, assembly: Assembly) -> None:
        if channel.broker not in _WITH_SESSION:
            return
        command_id = channel.down_ids.take()
        segment = assembly.segment
        code = segment[0] << 8 | segment[1] if len(segment) > 1 else 0
        if code == _TRANSFER:
            self._transfer(channel, assembly, command_id)
            return
        if code == _EXCEPTION:
            exception, _ = decode_command(segment)
            assert isinstance(exception, amqp10.ExecutionException)
            channel.failed(exception)
        channel.down.follow(assembly.original)

    def _transfer(self, channel: RelayedChannel, assembly: Assembly, command_id: int) -> None:
        kind = self._copier.kind(assembly.segment, assembly.header)
        if channel.due.answers:
            self._answer(channel, channel.due.delivers(text(kind.transfer.destination) or NAMELESS))
        tag = channel.unsettled.tag(command_id)
        if not kind.transfer.is_silent:
            channel.unsettled.delivered(command_id)
        frames, method, header = self._copier.delivery(channel.number + 1, kind, assembly.body, tag)
        self.give(frames)
        channel.down.wait(Original(assembly.original, [method], header=header))

    def _wait(self, channel: RelayedChannel, data: bytes, method: Method, code: int = 0) -> None:
        """A control goes to the client once this has passed."""
        channel.down.wait(Original(data, [self._say(channel.number + 1, method)], code=code))

    def _answer(self, channel: RelayedChannel, methods: list[Method]) -> None:
        for method in methods:
            self._say(channel.number + 1, method)

    # From the gateway.

    def _method(self, channel: RelayedChannel, payload: bytes) -> None:
        kind, up = payload[:4], channel.up
        is_next = bool(up.waiting) and up.waiting[0].copies[-1] == payload
        if kind == _OPEN and is_next:
            channel.broker_is(_S.ATTACHED)
            up.release()
            # What the client has sent behind its attach need not wait for the broker's answer.
            self._say(channel.number + 1, amqp.ChannelOpenOk())
        elif kind == _CLOSE:
            self._closed(channel, is_next=is_next)
        elif kind == _CLOSE_OK:
            if is_next:
                up.release()
            if channel.broker is _S.OVER:
                channel.broker_is(_S.FREE)
        elif is_next:
            original = up.waiting[0]
            original.copies.pop()
            if not original.copies:
                if original.answers and original.command_id is not None:
                    self._answer(channel, channel.due.ask(original.command_id, original.answers))
                up.release()
        elif not up.is_dropping:
            if not up.waiting or up.waiting[0].copies[-1][:4] != kind:
                raise ValueError("a method that is no copy of the next command")
            self._refuse(channel)

    def _refuse(self, channel: RelayedChannel) -> None:
        """The gateway has changed a command: only policies that came later than the session do."""
        channel.deny()
        channel.broker_is(_S.OVER)
        self._changed.add(channel.number)
        self._put(channel.number, amqp10.SessionDetach(channel.name))
        self._say(channel.number + 1, amqp.ChannelClose(540, "commands cannot be changed on this connection"))

    def _closed(self, channel: RelayedChannel, *, is_next: bool) -> None:
        is_over = channel.broker is _S.OVER
        if is_next:
            channel.up.release()
            if not is_over:
                channel.broker_is(_S.TOLD)
        else:
            channel.deny()
            if not is_over:
                self._denied.add(channel.number)
                self._put(channel.number, amqp10.SessionDetach(channel.name))
        if is_over:
            channel.broker_is(_S.OVER)
            self._say(channel.number + 1, amqp.ChannelCloseOk())
