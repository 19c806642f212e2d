"""A session leaves the link that it shares for a connection of its own, and its client does not notice.

::

    client's next method waits
      │ on every channel: basic.qos as it is ──▶ link      its answer comes behind all others,
      │ ◀── answers, confirms, qos-ok                      and all that was published has been routed
      │ dial, log in, open every channel, in confirm mode or not, with its limit
      │ link: channel.close for every channel
      ▼ the relay's upstream is the new socket; the client's method is looked at again

Confirms go on with the client's numbers (`ledger`), and an empty queue name means the queue that was declared
last, whatever has become of it (`closes.Channel.named`). A channel that the broker has closed does not come
along: the broker has its answer at once, and the client's is waited for. What cannot be moved so that nobody
notices is not moved: `sharing.why_fixed`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import attrs
import trio

from amqpgate.datapath.tables import Side
from amqpgate.errors import AmqpgateError, ProtocolViolation, UpstreamLost
from amqpgate.gateway.pool.dial import Opened
from amqpgate.gateway.pool.shared_connection import LEFT
from amqpgate.gateway.session.confirm_numbers import ConfirmNumbers
from amqpgate.gateway.session.established import hand_over
from amqpgate.gateway.transport.method_stream import MethodStream
from amqpgate.protocol.frames import FRAME_METHOD
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.gateway.pool.channel_mapping import ChannelMapping
    from amqpgate.gateway.pool.pooled_session import PooledSession

log = logging.getLogger(__name__)

#: Seconds between looks whether the broker has answered all.
_LOOK: Final = 0.002
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
    """Of one session, once."""

    riding: PooledSession
    #: Channels of the new connection.
    _opened: set[int] = attrs.field(factory=set, init=False)

    async def run(self) -> None:
        """Whatever happens, the client's method does not wait for ever."""
        session = self.riding.session
        opened: Opened | None = None
        try:
            with trio.fail_after(_PATIENCE):
                await self._finish_closes()
                self._ask()
                opened = await self.riding.pool.open_connection(session.id)
                await self._settle()
                await self._prepare(opened.hop)
            self._change(opened)
            opened = None
        except (AmqpgateError, OSError, trio.TooSlowError) as error:
            log.warning("session %s could not get a connection of its own: %s", session.id, error)
            if isinstance(error, _ClosedError):
                # As it would have been told had it had one from the start.
                self.riding.guilty(error.close)
            elif session.relay.active:
                session.fail(UpstreamLost(320, f"a connection of its own was needed: {error}"))
        finally:
            self.riding.moving = None
            if opened is not None:
                opened.hop.close()
            if session.relay.active:
                session.relay.pump.retry(session.relay)

    async def _finish_closes(self) -> None:
        """Wait until the broker has answered every close. On a channel that is closed nothing can be said."""
        while self._is_closing():  # noqa: ASYNC110
            await trio.sleep(_LOOK)

    def _is_closing(self) -> bool:
        """Whether the broker is to answer a close. What it has closed itself is left behind."""
        riding, channels = self.riding, self.riding.session.closes.channels
        for channel in list(riding.seats):
            state = channels[channel]
            if state.closing_up is not None or state.answers_due:
                return True
            if state.closing_down is not None:
                riding.hand_back(channel)
                state.closing_down = Side.CLIENT
        return False

    def _ask(self) -> None:
        for channel in self.riding.seats:
            self.riding.ask(channel)

    async def _settle(self) -> None:
        """Wait until the broker has answered all that the session has said."""
        riding = self.riding
        # A few looks at a rare event: nothing on the way of the answers has to know of it.
        while self._is_closing() or riding.waits_for_answers:  # noqa: ASYNC110
            await trio.sleep(_LOOK)
        if not riding.session.relay.active:
            raise _CannotMoveError("the session is over")
        why_not = riding.why_fixed()
        if why_not is not None:
            raise _CannotMoveError(why_not)

    # -- the new connection -------------------------------------------------------------------

    async def _prepare(self, hop: MethodStream) -> None:
        # Meanwhile the link may be lost, and all seats with it; or the broker closes a channel.
        opened = list(self.riding.seats.items())
        for channel, seat in opened:
            if channel in self.riding.seats:
                for method in self._state_of(channel, seat):
                    await hop.send_method(method, channel)
                    await _answer(hop, channel)
                self._opened.add(channel)
        await self._finish_closes()
        while self._opened - self.riding.seats.keys():
            channel = self._opened.difference(self.riding.seats).pop()
            await hop.send_method(LEFT, channel)
            await _answer(hop, channel)
            self._opened.remove(channel)
            await self._finish_closes()

    def _state_of(self, channel: int, seat: ChannelMapping) -> list[Method]:
        """What a new channel must be told to be as the old one."""
        state = self.riding.session.closes.channels[channel]
        told: list[Method] = [amqp.ChannelOpen()]
        told += [limit for limit in (seat.each, seat.all) if limit is not None]
        if state.confirms_from is not None:
            told.append(amqp.ConfirmSelect())
        return told

    def _change(self, opened: Opened) -> None:
        """From here on nothing waits."""
        riding, session = self.riding, self.riding.session
        if not session.relay.active or (riding.link is None and riding.seats):
            raise _CannotMoveError("the session has lost its link")
        channels = session.relay.channels
        numbers = list(riding.seats)
        riding.leave()
        session.riding = session.closes.shared = None
        session.relay.pump.exchange(session.relay, hand_over(opened.hop, opened.tune))
        for observer in session.observers:
            observer.moved()
        for channel in numbers:
            channels.remap(channel, channel)
            state = session.closes.channels[channel]
            state.is_moved = True
            if state.confirms_from is not None:
                channels.count_confirms(channel)
                published = channels.messages(Side.CLIENT, channel)
                if published > state.confirms_from:
                    state.ledger = ConfirmNumbers.continued(published, published - state.confirms_from)
                    channels.show_acks(channel)
        log.info("session %s has a connection of its own now, to %s", session.id, opened.address)


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
