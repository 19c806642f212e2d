"""A session leaves the link that it shares for a connection of its own, and its client does not notice.

::

    client's next method waits
      │ on every channel: basic.qos as it is ──▶ link      its answer comes behind all others,
      │ ◀── answers, confirms, qos-ok                      and all that was published has been routed
      │ dial, log in, open every channel, in confirm mode or not, with its limit and its last queue
      │ link: channel.close for every channel
      ▼ the relay's upstream is the new socket; the client's method is looked at again

Confirms go on with the client's numbers (`ledger`). What cannot be moved so that nobody notices is not moved:
`sharing.why_fixed`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import attrs
import trio

from amqpgate.datapath.tables import Side
from amqpgate.errors import AmqpgateError, ProtocolViolation, UpstreamLost
from amqpgate.gateway.hop import Hop
from amqpgate.gateway.ledger import Ledger
from amqpgate.gateway.linkdial import Opened
from amqpgate.gateway.setup import hand_over
from amqpgate.protocol.frames import FRAME_METHOD
from amqpgate.wire.codec import decode_method
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.gateway.riding import Riding
    from amqpgate.gateway.seats import Seat

log = logging.getLogger(__name__)

#: Seconds between looks whether the broker has answered all.
_LOOK: Final = 0.002
#: Seconds for the broker to answer what was said before the move, and after.
_PATIENCE: Final = 30.0


class _CannotMoveError(AmqpgateError):
    """Something has come up."""


@attrs.define(eq=False)
class Moving:
    """Of one session, once."""

    riding: Riding

    async def run(self) -> None:
        """Whatever happens, the client's method does not wait for ever."""
        session = self.riding.session
        opened: Opened | None = None
        try:
            with trio.fail_after(_PATIENCE):
                self._ask()
                opened = await self.riding.pool.open_connection(session.id)
                await self._settle()
                await self._prepare(opened.hop)
            self._change(opened)
            opened = None
        except (AmqpgateError, OSError, trio.TooSlowError) as error:
            log.warning("session %s could not get a connection of its own: %s", session.id, error)
            if session.relay.active:
                session.fail(UpstreamLost(320, f"a connection of its own was needed: {error}"))
        finally:
            self.riding.moving = None
            if opened is not None:
                opened.hop.close()
            if session.relay.active:
                session.relay.pump.retry(session.relay)

    def _ask(self) -> None:
        for channel in self.riding.seats:
            self.riding.ask(channel)

    async def _settle(self) -> None:
        """Wait until the broker has answered all that the session has said."""
        riding = self.riding
        # A few looks at a rare event: nothing on the way of the answers has to know of it.
        while riding.waits_for_answers:  # noqa: ASYNC110
            await trio.sleep(_LOOK)
        if not riding.session.relay.active:
            raise _CannotMoveError("the session is over")
        why_not = riding.why_fixed()
        if why_not is not None:
            raise _CannotMoveError(why_not)

    # -- the new connection -------------------------------------------------------------------

    async def _prepare(self, hop: Hop) -> None:
        # Meanwhile the link may be lost, and all seats with it.
        for channel, seat in list(self.riding.seats.items()):
            for method in self._state_of(channel, seat):
                await hop.send_method(method, channel)
                await _answer(hop, channel)

    def _state_of(self, channel: int, seat: Seat) -> list[Method]:
        """What a new channel must be told to be as the old one."""
        state = self.riding.session.closes.channels[channel]
        told: list[Method] = [amqp.ChannelOpen()]
        told += [limit for limit in (seat.each, seat.all) if limit is not None]
        if state.confirms_from is not None:
            told.append(amqp.ConfirmSelect())
        if state.last_queue:
            told.append(amqp.QueueDeclare(queue=state.last_queue, passive=True))
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
        # The new connection numbers confirms anew.
        session.probe = None
        session.relay.pump.exchange(session.relay, hand_over(opened.hop, opened.tune))
        for channel in numbers:
            channels.remap(channel, channel)
            state = session.closes.channels[channel]
            if state.confirms_from is not None:
                channels.count_confirms(channel)
                published = channels.messages(Side.CLIENT, channel)
                if published > state.confirms_from:
                    state.ledger = Ledger.continued(published, published - state.confirms_from)
                    channels.show_acks(channel)
        log.info("session %s has a connection of its own now, to %s", session.id, opened.address)


async def _answer(hop: Hop, channel: int) -> None:
    """The broker's next method on the channel. Raises ``ProtocolViolation`` where it is a refusal."""
    while True:
        frame = await hop.next_frame()
        if frame.type != FRAME_METHOD:
            continue
        method = decode_method(frame.payload)
        if isinstance(method, amqp.ChannelClose | amqp.ConnectionClose):
            raise ProtocolViolation(method.reply_code, method.reply_text)
        if frame.channel == channel:
            return
