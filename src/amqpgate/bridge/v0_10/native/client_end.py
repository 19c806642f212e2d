"""The client's end of a relayed connection: what it says, as copies; what comes back, as originals.

::

             attach            open-ok                   detach                detached
    FREE ─────────────▶ ATTACHING ─────▶ ATTACHED ─────────────────▶ DETACHING ─────────────▶ FREE
                                            │ detach of the broker's, or the gateway denies
                                            ├────────▶ TOLD ───────────────────── detached ──▶ FREE
                                            │ the client breaks the protocol
                                            └────────▶ FAILED ─────── detached, close-ok ────▶ FREE

A denial is execution.exception with the id of the command, and session.detach; until the client has
answered, what it says on that channel is dropped. That is also how a session ends that breaks the protocol.
"""

from __future__ import annotations

from typing import Final

from amqpgate.bridge.v0_10.codes import violation_of_channel_close
from amqpgate.bridge.v0_10.native.build import Original
from amqpgate.bridge.v0_10.native.channels import RelayedChannel
from amqpgate.bridge.v0_10.native.copies import Copy, copy_of
from amqpgate.bridge.v0_10.native.cutting import Assembly
from amqpgate.bridge.v0_10.native.end import NativeEnd
from amqpgate.bridge.v0_10.native.limits import MOST_UNSENT
from amqpgate.bridge.v0_10.native.relay import NativeRelay
from amqpgate.bridge.v0_10.native.settling import Settling
from amqpgate.bridge.v0_10.native.stages import ClientStage
from amqpgate.errors import ProtocolViolation, cut_reply
from amqpgate.protocol.v0_10.codes import TO_ERROR_CODE
from amqpgate.protocol.v0_10.frames import MOST_FRAME_SIZE, command_frames, control_frame
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.generated.v0_10 import CONTROLS, DetachCode, ErrorCode
from amqpgate.wire.method import Method
from amqpgate.wire.v0_10.codec import decode_command, decode_control
from amqpgate.wire.v0_10.structs import Control

_TRANSFER: Final = amqp10.MessageTransfer.CLASS_CODE << 8 | amqp10.MessageTransfer.CODE
#: How controls of a session begin.
_SESSION: Final = frozenset(
    bytes((control.CLASS_CODE, control.CODE))
    for control in CONTROLS.values()
    if control.CLASS_CODE == amqp10.SessionAttach.CLASS_CODE
)
_ATTACH: Final = bytes((amqp10.SessionAttach.CLASS_CODE, amqp10.SessionAttach.CODE))
_LAST: Final = bytes((amqp10.ConnectionClose.CLASS_CODE, amqp10.ConnectionClose.CODE))
_CLOSE: Final = amqp.ChannelClose.INDEX.to_bytes(4, "big")
_CLOSE_OK: Final = amqp.ChannelCloseOk.INDEX.to_bytes(4, "big")
_OPEN_OK: Final = amqp.ChannelOpenOk.INDEX.to_bytes(4, "big")
_S: Final = ClientStage
_ENDED: Final = frozenset({_S.DETACHING, _S.TOLD, _S.FAILED})


class ClientEnd(NativeEnd):
    """See the module."""

    __slots__ = ("_denied", "_last", "_owed")

    def __init__(self, relay: NativeRelay) -> None:
        super().__init__(
            relay,
            relay.to_client,
            relay.to_broker,
            most=relay.most_to_broker,
            takes=relay.most_to_client,
            is_delivery=False,
        )
        #: The client's connection.close, while anything does.
        self._last: Assembly | None = None
        #: Channels whose session the gateway has ended: their broker need not hear of the answer.
        self._denied: set[int] = set()
        #: Of channels whose session was ended here, whose answers are due: the client's, and the gateway's.
        self._owed: dict[int, set[str]] = {}

    # From the client.

    def _connection(self, assembly: Assembly) -> None:
        if self._held and assembly.segment[:2] == _LAST:
            self._last = assembly
        else:
            super()._connection(assembly)

    def _control(self, channel: RelayedChannel, assembly: Assembly) -> None:
        stage = channel.client
        try:
            control = decode_control(assembly.segment)
            if control.CLASS_CODE != amqp10.SessionAttach.CLASS_CODE:
                raise ProtocolViolation(501, f"unexpected {control.NAME}", channel=channel.number)
        except ProtocolViolation as violation:
            if stage is not _S.ATTACHED or assembly.segment[:2] not in _SESSION:
                raise
            self._fail(channel, ProtocolViolation(503, violation.text), None, 0)
            return
        is_answer = isinstance(control, amqp10.SessionDetached) and stage in _ENDED
        if not is_answer and (channel.held or _waits(channel, assembly)):
            self._hold(channel, assembly)
        else:
            self._take_control(channel, assembly, control)

    def _take_control(self, channel: RelayedChannel, assembly: Assembly, control: Control) -> None:
        """A control that need not wait."""
        stage = channel.client
        if isinstance(control, amqp10.SessionDetached) and stage in _ENDED:
            self._detached(channel, assembly)
        elif stage in _ENDED:
            if isinstance(control, amqp10.SessionDetach):
                # It meets one that it has been sent.
                self._put(channel.number, amqp10.SessionDetached(channel.name, DetachCode.NORMAL))
        elif isinstance(control, amqp10.SessionAttach) and stage is _S.FREE:
            channel.attach(control.name or b"")
            self._wait(channel, assembly.original, amqp.ChannelOpen())
        elif isinstance(control, amqp10.SessionDetach) and stage is _S.ATTACHED:
            channel.client_is(_S.DETACHING)
            self._reader.abandon(channel.number)
            self._wait(channel, assembly.original, amqp.ChannelClose(200, "detached"))
        else:
            if isinstance(control, amqp10.SessionCommandPoint):
                channel.up_ids.point(control.command_id or 0)
            channel.up.follow(assembly.original)

    def _detached(self, channel: RelayedChannel, assembly: Assembly) -> None:
        """The client answers a detach."""
        number = channel.number
        if channel.client is _S.DETACHING:
            channel.up.follow(assembly.original)
        elif channel.client is _S.FAILED:
            self._settle(channel, "client")
        elif number in self._denied:
            self._denied.discard(number)
            self._say(number + 1, amqp.ChannelCloseOk())
            self._free(channel)
        else:
            self._wait(channel, assembly.original, amqp.ChannelCloseOk())
            self._free(channel, reopens=False)

    def _command(self, channel: RelayedChannel, assembly: Assembly) -> None:
        if channel.held or channel.client is _S.ATTACHING:
            self._hold(channel, assembly)
        else:
            self._take_command(channel, assembly)

    def _take_command(self, channel: RelayedChannel, assembly: Assembly) -> None:
        """A command that need not wait."""
        if channel.client is not _S.ATTACHED:
            # Of no session: a broker drops it, too.
            return
        command_id = channel.up_ids.take()
        segment = assembly.segment
        code = segment[0] << 8 | segment[1] if len(segment) > 1 else 0
        try:
            if code == _TRANSFER:
                kind = self._copier.kind(segment, assembly.header)
                frames, header = self._copier.copy(channel.number + 1, kind, assembly.body)
                self.give(frames)
                channel.up.wait(
                    Original(
                        assembly.original, [kind.method], header=header, command_id=command_id, code=code
                    )
                )
                return
            self._judged(channel, assembly, command_id, code)
        except ProtocolViolation as violation:
            self._fail(channel, violation, command_id, code)

    def _judged(self, channel: RelayedChannel, assembly: Assembly, command_id: int, code: int) -> None:
        command, _ = decode_command(assembly.segment)
        if (assembly.header is not None or assembly.body is not None) and not command.CONTENT:
            raise ProtocolViolation(503, f"{command.NAME} carries no content")
        copy = copy_of(command)
        if isinstance(command, Settling):
            copy = Copy(tuple(channel.unsettled.settle(command)))
        if copy is None or not copy.methods:
            channel.up.follow(assembly.original)
            return
        copies = [self._say(channel.number + 1, method) for method in copy.methods]
        copies.reverse()
        channel.up.wait(
            Original(assembly.original, copies, command_id=command_id, code=code, answers=copy.answers)
        )

    def _wait(self, channel: RelayedChannel, data: bytes, method: Method) -> None:
        """A control goes to the broker once this has passed."""
        channel.up.wait(Original(data, [self._say(channel.number + 1, method)]))

    def _hold(self, channel: RelayedChannel, assembly: Assembly) -> None:
        if channel.client in (_S.TOLD, _S.FAILED) and self._held > MOST_UNSENT:
            raise ProtocolViolation(506, "too much behind a detach", channel=channel.number)
        channel.hold(assembly)
        self.hold(len(assembly.original))

    def _go_on(self, channel: RelayedChannel) -> None:
        """What was held is looked at, as far as it need not wait any more."""
        while channel.held and not _waits(channel, channel.held[0]):
            assembly = channel.take_held()
            self.hold(-len(assembly.original))
            if assembly.kind:
                self._take_command(channel, assembly)
            else:
                self._take_control(channel, assembly, decode_control(assembly.segment))
        if self._last is not None and not self._held:
            last, self._last = self._last, None
            super()._connection(last)

    def _free(self, channel: RelayedChannel, *, reopens: bool = True) -> None:
        """No session is attached any more. ``reopens``: nothing more is on its way."""
        channel.client_is(_S.FREE)
        if reopens:
            channel.up.reopen()
            channel.down.reopen()
        self._go_on(channel)

    # The end of a session.

    def _fail(
        self, channel: RelayedChannel, why: ProtocolViolation, command_id: int | None, code: int
    ) -> None:
        """The client broke the protocol, by what only this session need end."""
        if why.code not in TO_ERROR_CODE:
            raise why
        self._end(channel, why, command_id, code)
        channel.client_is(_S.FAILED)
        channel.down.drop()
        self._owed[channel.number] = {"client", "gateway"}
        detach = control_frame(channel.number, amqp10.SessionDetach(channel.name).encode(), MOST_FRAME_SIZE)
        self._wait(channel, detach, amqp.ChannelClose(why.code, cut_reply(why.text)))

    def _settle(self, channel: RelayedChannel, whose: str) -> None:
        owed = self._owed.get(channel.number)
        if owed is not None:
            owed.discard(whose)
            if not owed:
                del self._owed[channel.number]
                self._free(channel)

    def _end(
        self,
        channel: RelayedChannel,
        why: ProtocolViolation,
        command_id: int | None,
        code: int,
        *,
        detaches: bool = True,
    ) -> None:
        """Tell the client why its session ends."""
        self._reader.abandon(channel.number)
        exception = amqp10.ExecutionException(
            error_code=TO_ERROR_CODE.get(why.code, ErrorCode.INTERNAL_ERROR),
            command_id=command_id,
            class_code=code >> 8,
            command_code=code & 0xFF,
            description=cut_reply(why.text).encode("utf-8", "replace"),
        )
        self._out.put(command_frames(channel.number, exception.encode(), max_frame_size=MOST_FRAME_SIZE))
        if detaches:
            self._put(channel.number, amqp10.SessionDetach(channel.name))

    # From the gateway.

    def _method(self, channel: RelayedChannel, payload: bytes) -> None:
        kind = payload[:4]
        waiting = channel.down.waiting
        is_next = bool(waiting) and waiting[0].copies[-1] == payload
        if kind == _OPEN_OK:
            channel.client_is(_S.ATTACHED)
            self._go_on(channel)
        elif kind == _CLOSE_OK:
            if is_next:
                channel.down.release()
                self._free(channel)
            elif channel.client is _S.FAILED:
                self._settle(channel, "gateway")
            elif channel.client is _S.DETACHING:
                self._put(channel.number, amqp10.SessionDetached(channel.name, DetachCode.NORMAL))
                self._free(channel)
        elif kind == _CLOSE:
            if is_next:
                self._broker_ends(channel)
            else:
                close = decode_method(payload)
                assert isinstance(close, amqp.ChannelClose)
                self._denies(channel, close)
        # Everything else answers a copy: the broker's own answer has come, or comes, as it is.

    def _broker_ends(self, channel: RelayedChannel) -> None:
        """The broker has ended the session, or has not begun it."""
        is_asked = channel.down.waiting[0].code == amqp10.SessionDetach.CODE
        channel.down.release()
        self._reader.abandon(channel.number)
        if channel.client is _S.FAILED or not is_asked:
            self._say(channel.number + 1, amqp.ChannelCloseOk())
        if channel.client is _S.FAILED:
            return
        if is_asked:
            channel.client_is(_S.TOLD)
        else:
            self._free(channel)

    def _denies(self, channel: RelayedChannel, close: amqp.ChannelClose) -> None:
        """The gateway ends the session: a policy denies something, or a limit rejects it."""
        why = violation_of_channel_close(close)
        first = channel.denied
        command_id, code = (None, 0) if first is None else (first.command_id, first.code)
        match channel.client:
            case _S.ATTACHED:
                self._end(channel, why, command_id, code)
                channel.down.drop()
                channel.client_is(_S.TOLD)
                self._denied.add(channel.number)
            case _S.DETACHING:
                self._end(channel, why, command_id, code, detaches=False)
                channel.down.drop()
                self._say(channel.number + 1, amqp.ChannelCloseOk())
            case _S.ATTACHING:
                self._put(channel.number, amqp10.SessionDetached(channel.name, DetachCode.SESSION_BUSY))
                self._say(channel.number + 1, amqp.ChannelCloseOk())
                self._free(channel)
            case _:
                self._say(channel.number + 1, amqp.ChannelCloseOk())


def _waits(channel: RelayedChannel, assembly: Assembly) -> bool:
    """Whether the client's session has to begin first, or the last one to end."""
    if channel.client is _S.ATTACHING:
        return True
    return channel.client in _ENDED and not assembly.kind and assembly.segment[:2] == _ATTACH
