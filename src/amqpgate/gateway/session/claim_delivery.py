"""References that come for the client of one session: it gets the messages that they stand for.

::

    deliver, get-ok, return ── has the header of a reference ──▶ the channel is held, its frames are kept
                                                                   │ the body is fetched, whole and compared
                                                                   ▼
              method, header, the body piece by piece as the client takes it ──▶ what was kept comes again

What cannot be had:

=================  ====================================================================================
object             what happens
=================  ====================================================================================
missing, other     it is rejected without requeue (the queue's dead-letter exchange has it); of basic.get
than was put,      and basic.return the channel is closed with 404
or no reference
of this gateway's
not now            the channel is closed with 406; the broker has the message again
=================  ====================================================================================

Pieces go by the data path (`Pump.feed`), which looks at no more of them while the client has enough to read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import attrs

from amqpgate.datapath.engine import End, PeerGoneError
from amqpgate.datapath.tables import HELD_NEXT, METHOD_NEXT, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.objects.downloads import WantedBody
from amqpgate.gateway.objects.store import ObjectLostError, StoreError
from amqpgate.gateway.objects.stores import ObjectStores
from amqpgate.gateway.session import settlement
from amqpgate.gateway.session.claim_publish import LONG
from amqpgate.gateway.session.claim_reference import ClaimKeys, claim_of
from amqpgate.gateway.session.claim_restoring import Restoring, closes, header_of, is_acked, is_given_back
from amqpgate.gateway.session.claim_room import KeptFrames
from amqpgate.gateway.session.claim_settlement import HiddenDeliveries
from amqpgate.gateway.session.claiming import owner_of
from amqpgate.gateway.session.content import pass_sent
from amqpgate.gateway.session.held_deliveries import HeldDelivery
from amqpgate.gateway.session.observer import Sent
from amqpgate.gateway.session.session import Session
from amqpgate.logs import about
from amqpgate.policy.kinds.rate import DELIVERED
from amqpgate.protocol.frames import body_frames, encode_frame
from amqpgate.values import define
from amqpgate.wire.codec import decode_header, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp

log = logging.getLogger(__name__)


@define(eq=False)
class ClaimedDeliveries:
    """Those of one session."""

    session: Session
    stores: ObjectStores
    keys: ClaimKeys
    kept: KeptFrames = attrs.field(factory=KeptFrames, init=False)
    hidden: HiddenDeliveries = attrs.field(
        default=attrs.Factory(lambda self: HiddenDeliveries(self.session), takes_self=True), init=False
    )
    #: Channel to the method whose content header comes next, and what passes it on.
    _waiting: dict[int, tuple[Sent, Callable[[], None]]] = attrs.field(factory=dict, init=False)
    _under_way: dict[int, Restoring] = attrs.field(factory=dict, init=False)

    # -- in upcalls ----------------------------------------------------------------------------

    def expect(self, channel: int, method: Sent, begin: Callable[[], None]) -> None:
        """A message for the client has begun; its header, which comes next, says if it is a reference.
        ``begin`` passes the method on."""
        self._waiting[channel] = method, begin
        self.hidden.hide(channel, method)

    def takes(self, channel: int, frame: memoryview) -> bool:
        """A header or body that is shown: whether it is of a reference. If not, the method that waited for
        it has been passed on."""
        waiting = self._waiting.pop(channel, None)
        if waiting is not None:
            method, begin = waiting
            header = decode_header(frame[7:-1])
            if claim_of(header) is None:
                self.hidden.show(channel)
                begin()
                return False
            one = Restoring(channel, method, begin, header)
            self._under_way[channel] = one
            self.session.relay.channels.show_rest(Side.UPSTREAM, channel)
        elif channel not in self._under_way:
            return False
        if self.session.relay.channels.due(Side.UPSTREAM, channel) == METHOD_NEXT:
            one = self._under_way.pop(channel)
            if self._kept(one) is None:
                self._wait_for(one)
        return True

    def keeps(self, channel: int, frame: memoryview) -> bool:
        """A frame on a channel that is held: whether it is looked at again."""
        one = self._under_way.get(channel)
        if one is not None and one.fed:
            one.passed(len(frame))
            self.session.relay.send(Side.CLIENT, frame)
            if not one.fed:
                self._go_on(one)
            return False
        if self.kept.keep(channel, frame):
            return False
        self.session.relay.down.ready_at = time.monotonic() + LONG
        return True

    def end(self) -> None:
        """The session is over."""
        for one in self._under_way.values():
            if one.download is not None:
                one.download.close()
        self._under_way.clear()

    def _kept(self, one: Restoring, *, is_here: bool = False) -> HeldDelivery | None:
        """What is kept of a reference on a channel that is stopped or limited, until its client may have it:
        then it is no more under way. ``is_here``: its body has been got."""
        bridge, method, channel = self.session.bridge, one.method, one.channel
        if bridge is None or not isinstance(method, amqp.BasicDeliver):
            return None
        header = encode_frame(amqp.FRAME_HEADER, channel, encode_header(one.header))

        def fetch(held: HeldDelivery) -> None:
            self._wait_for(
                Restoring(channel, method, one.begin, decode_header(memoryview(held.frames)[7:-1]), held)
            )

        held = bridge.flow_control.keep_reference(channel, method, memoryview(header), fetch, is_here=is_here)
        if held is not None:
            self.hidden.show(channel)
            self._tell_watchers(one)
        return held

    def _wait_for(self, one: Restoring) -> None:
        """Its channel waits for the body. This may be within an upcall: the scanner is about to count what it
        has shown, so the body is asked for in a later call."""
        self._under_way[one.channel] = one
        self.session.relay.channels.hold(Side.UPSTREAM, one.channel)
        self.stores.threads.soon(lambda: self._guarded(one, self._fetch))

    # -- outside of upcalls --------------------------------------------------------------------

    def _guarded(self, one: Restoring, act: Callable[[Restoring], None]) -> None:
        """Go on with a reference, if its channel still waits for it."""
        relay = self.session.relay
        is_held = relay.channels.due(Side.UPSTREAM, one.channel) == HELD_NEXT
        if not relay.active or not is_held or self._under_way.get(one.channel) is not one:
            if one.download is not None:
                one.download.close()
            return
        try:
            act(one)
        except PeerGoneError as gone:
            relay.pump.remove(relay, End.GONE, gone.side, gone)
        except ProtocolViolation as violation:
            self.session.fail(violation)

    def _fetch(self, one: Restoring) -> None:
        if self._is_in_vain(one):
            return
        compatibility = self.session.session_policies.compatibility
        claim_check = None if compatibility is None else compatibility.claim_check
        reference = self.keys.read(claim_of(one.header), self.session.principal.vhost)
        if claim_check is None or reference is None:
            self.stores.metrics.got(None)
            self._lose(one, "it refers to no body of this virtual host's")
            return
        wanted = WantedBody(reference.key, reference.byte_count, reference.digest)

        def done(error: StoreError | None) -> None:
            self._guarded(one, lambda one: self._fetched(one, error))

        try:
            download = self.stores.download(claim_check, wanted, done, owner_of(self.session.principal))
        except StoreError as error:
            self._fetched(one, error)
            return
        one.fetch_by(reference, download)
        download.start()

    def _is_in_vain(self, one: Restoring) -> bool:
        """Whether nobody waits for the message, nor for an ack: its channel closes, or the broker has it
        again. Then the channel goes on."""
        if not closes(self.session, one.channel) and not is_given_back(self.session, one):
            return False
        self._release(one)
        return True

    def _fetched(self, one: Restoring, error: StoreError | None) -> None:
        if self._is_in_vain(one):
            return
        if isinstance(error, ObjectLostError):
            self._lose(one, str(error))
        elif error is not None:
            one.refuse_for(406, f"the object store does not give the body of a message: {error}")
            self._conclude(one)
        else:
            self._begin(one)

    def _begin(self, one: Restoring) -> None:
        session, channel, bridge = self.session, one.channel, self.session.bridge
        if one.held is None:
            # The channel may have been stopped or limited since it came.
            one.keep_as(self._kept(one, is_here=True))
        if one.held is None or bridge is None:
            is_shown = True
            self._show(one)
            self._tell_watchers(one)
        else:
            is_shown = bridge.flow_control.shows(channel, one.held, lambda: self._show(one))
        if not is_shown:
            self._release(one)
            return
        assert one.reference is not None, "it has been read"
        more = one.reference.byte_count - one.header.body_size
        session.relay.down.add_body(more)
        for bucket in session.limits.buckets(DELIVERED[1]):
            bucket.take(more)
        self._go_on(one)

    def _show(self, one: Restoring) -> None:
        """Method and header go to the client."""
        self.hidden.show(one.channel)
        one.begin()
        pass_sent(self.session, one.channel, header_of(self.session, self.keys, one))

    def _tell_watchers(self, one: Restoring) -> None:
        frame = header_of(self.session, self.keys, one)
        for observer in self.session.session_policies.watchers:
            observer.content(Side.UPSTREAM, one.channel, frame)

    def _go_on(self, one: Restoring) -> None:
        """The next piece of the body, or the end."""
        assert one.reference is not None, "it has been read"
        assert one.download is not None, "it is here"
        if one.read < one.reference.byte_count:
            one.download.read(
                one.read, lambda result: self._guarded(one, lambda one: self._feed(one, result))
            )
        else:
            self.stores.threads.soon(lambda: self._guarded(one, self._release))

    def _feed(self, one: Restoring, piece: bytes | StoreError) -> None:
        if isinstance(piece, StoreError) or not piece:
            # A part of the message is there already: there is no other way to say that it will not end.
            raise ProtocolViolation(541, "the rest of a message's body cannot be read")
        relay = self.session.relay
        largest = min(relay.down.out_frame_max, relay.down.frame_max)
        frames = b"".join(body_frames(one.channel, piece, largest))
        one.feeds(len(piece), len(frames))
        relay.pump.feed(relay, Side.UPSTREAM, frames)
        relay.pump.retry(relay)

    def _lose(self, one: Restoring, why: str) -> None:
        """There is no such body, nor will be."""
        how = about(session=self.session.id, recurring=True)
        log.warning("session %s: a message whose body is lost: %s", self.session.id, why, extra=how)
        if not isinstance(one.method, amqp.BasicDeliver):
            one.refuse_for(404, f"the body of a message is lost: {why}")
        one.lose()
        self._conclude(one)

    def _conclude(self, one: Restoring) -> None:
        """It cannot be had. The broker is told, but not within a message of the client's: that is a 505."""
        session, channels = self.session, self.session.relay.channels
        if self._is_in_vain(one):
            return
        is_rejected = one.is_lost and is_acked(session, one)
        is_sending = channels.due(Side.CLIENT, one.channel) not in (METHOD_NEXT, HELD_NEXT)
        if is_sending and (is_rejected or one.refusal is not None):
            channels.show_rest(Side.CLIENT, one.channel)
            return
        if is_rejected and not isinstance(one.method, amqp.BasicReturn):
            # Whoever gets it next could not have it either.
            reject = amqp.BasicReject(one.method.delivery_tag, requeue=False)
            settlement.settled(channels, one.channel, reject)
            session.channels.send(Side.UPSTREAM, one.channel, reject)
        if one.held is not None and session.bridge is not None:
            session.bridge.flow_control.lose(one.channel, one.held)
        if one.refusal is not None:
            session.channels.refuse(one.channel, one.refusal)
        self._release(one)

    def message_ended(self, channel: int) -> None:
        """A frame of the client's was shown: if it was a message's last, what waited for that may go now."""
        one = self._under_way.get(channel)
        if one is not None and (one.is_lost or one.refusal is not None):
            self._conclude(one)

    def _release(self, one: Restoring) -> None:
        """The channel goes on."""
        session, channel = self.session, one.channel
        relay = session.relay
        del self._under_way[channel]
        self.hidden.show(channel)
        if one.download is not None:
            one.download.close()
        relay.channels.let_go(Side.UPSTREAM, channel)
        relay.pump.feed(relay, Side.UPSTREAM, self.kept.take(channel))
        relay.pump.retry(relay)
        if channel in session.channels.states:
            state = session.channels.states.remembered(channel)
            if state is not None and state.waiting:
                session.publishes.publish_denial.message_ended(channel)
            if session.bridge is not None and not closes(session, channel):
                session.bridge.flow_control.go_on(channel)
