"""A session leaves the connection that it shares for one of its own, and its client does not notice.

::

    client's next method waits
      │ on every channel: basic.qos as it is ──▶ shared    its answer comes behind all others,
      │ ◀── answers, confirms, qos-ok                      and all that was published has been routed
      │ dial, log in, open every channel, in confirm mode or not, with its limit
      │ shared connection: channel.close for every channel
      ▼ the relay's upstream is the new socket; the client's method is looked at again

Confirms go on with the client's numbers (``confirm_numbers``), and an empty queue name means the queue that
was declared last, whatever has become of it (``SessionChannel.named``). A channel that the broker has closed
does not come along: the broker has its answer at once, and the client's is waited for. What cannot be moved
so that nobody notices is not moved: `unsupported.why_fixed`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import attrs
import trio

from amqpgate.datapath.tables import Side
from amqpgate.errors import AmqpgateError, ProtocolViolation, UpstreamLost
from amqpgate.gateway.pool.connection_channels import LEFT
from amqpgate.gateway.pool.dial import Opened
from amqpgate.gateway.pool.pooled_session import PooledSession
from amqpgate.gateway.transport.method_stream import MethodStream, hand_over
from amqpgate.logs import about
from amqpgate.protocol.frames import FRAME_METHOD, method_frame
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.gateway.pool.channel_mapping import ChannelMapping

log = logging.getLogger(__name__)

#: Seconds for the broker to answer what was said before the move, and after.
_PATIENCE: Final = 30.0


class _CannotMoveError(AmqpgateError):
    """Something has come up."""


class _ClosedError(AmqpgateError):
    """The broker has closed the new connection."""

    def __init__(self, close: amqp.ConnectionClose) -> None:
        self.close = close
        super().__init__(f"{close.reply_code} {close.reply_text}")


@attrs.define(eq=False)
class Migration:
    """The migration of one session."""

    member: PooledSession
    #: Channels of the new connection.
    _opened: set[int] = attrs.field(factory=set, init=False)
    is_over: bool = attrs.field(default=False, init=False)

    async def run(self) -> None:
        """Where it fails, the session ends: the client's method does not wait for ever."""
        session = self.member.session
        opened: Opened | None = None
        try:
            with trio.fail_after(_PATIENCE):
                await self._finish_closes()
                self._ask()
                opened = await self.member.pool.open_connection(session.id)
                await self._settle()
                await self._prepare(opened.hop)
            self._change(opened)
            opened = None
        except (AmqpgateError, OSError, trio.TooSlowError) as error:
            how = about(session=session.id, user=session.principal.user)
            log.warning("session %s could not get a connection of its own: %s", session.id, error, extra=how)
            if isinstance(error, _ClosedError):
                # As it would have been told had it had one from the start.
                self.member.blamed(error.close)
            elif session.relay.active:
                session.fail(UpstreamLost(320, f"a connection of its own was needed: {error}"))
        finally:
            self.is_over = True
            if opened is not None:
                opened.hop.close()
            if session.relay.active:
                session.relay.pump.retry(session.relay)

    async def _finish_closes(self) -> None:
        """Wait until the broker has answered every close. On a channel that is closed nothing can be said."""
        await self.member.changes.until(lambda: not self._is_closing())

    def _is_closing(self) -> bool:
        """Whether the broker is to answer a close. What it has closed itself is left behind."""
        member, states = self.member, self.member.session.channels.states
        for channel in list(member.channels):
            state = states[channel]
            if state.close is None:
                continue
            if state.close.awaits_broker:
                return True
            if state.close.down is not None:
                member.release(channel)
                state.close.left_to_client()
        return False

    def _ask(self) -> None:
        """Tell the broker each channel's limit. Its answer comes behind all others, and not to the client."""
        for channel, mapping in self.member.channels.items():
            limit = method_frame(channel, mapping.repeat_limit())
            self.member.session.relay.send(Side.UPSTREAM, limit)

    async def _settle(self) -> None:
        """Wait until the broker has answered all that the session has said."""
        await self.member.changes.until(lambda: not (self._is_closing() or self._awaits_answers()))
        if not self.member.session.relay.active:
            raise _CannotMoveError("the session is over")
        why_not = self.member.why_fixed()
        if why_not is not None:
            raise _CannotMoveError(why_not)

    def _awaits_answers(self) -> bool:
        """Whether the broker owes an answer; confirms are shown then, so that each is looked at."""
        session = self.member.session
        for channel in self.member.channels:
            if session.channels.states[channel].confirms_from is not None:
                session.relay.channels.show_acks(channel)
        return self.member.awaits_answers

    # -- the new connection -------------------------------------------------------------------

    async def _prepare(self, hop: MethodStream) -> None:
        # Meanwhile the connection may be lost, and all channels with it; or the broker closes a channel.
        opened = list(self.member.channels.items())
        for channel, mapping in opened:
            if channel in self.member.channels:
                for method in self._state_of(channel, mapping):
                    await hop.send_method(method, channel)
                    await _answer(hop, channel)
                self._opened.add(channel)
        await self._finish_closes()
        while left := self._opened - self.member.channels.keys():
            channel = left.pop()
            await hop.send_method(LEFT, channel)
            await _answer(hop, channel)
            self._opened.remove(channel)
            await self._finish_closes()

    def _state_of(self, channel: int, mapping: ChannelMapping) -> list[Method]:
        """What a new channel must be told to be as the old one."""
        state = self.member.session.channels.states[channel]
        told: list[Method] = [amqp.ChannelOpen()]
        told += [limit for limit in (mapping.each, mapping.all) if limit is not None]
        if state.confirms_from is not None:
            told.append(amqp.ConfirmSelect())
        return told

    def _change(self, opened: Opened) -> None:
        """From here on nothing waits."""
        member, session = self.member, self.member.session
        if not session.relay.active or (member.connection is None and member.channels):
            raise _CannotMoveError("the session has lost its link")
        session.move_to_own(hand_over(opened.hop, opened.tune), list(member.channels))
        how = about(session=session.id, user=session.principal.user)
        log.info("session %s has a connection of its own now, to %s", session.id, opened.address, extra=how)


async def _answer(hop: MethodStream, channel: int) -> None:
    """The broker's next method on the channel. Raises where it is a refusal."""
    while True:
        frame = await hop.next_frame()
        if frame.type != FRAME_METHOD:
            continue
        method = decode_method(frame.payload)
        if isinstance(method, amqp.ConnectionClose):
            raise _ClosedError(method)
        if isinstance(method, amqp.ChannelClose):
            raise ProtocolViolation(method.reply_code, method.reply_text)
        if frame.channel == channel:
            return
