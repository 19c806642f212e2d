"""Publishes of one session whose bodies go to an object store; what the broker gets is a reference.

::

    header ──▶ allowed ──▶ the body's frames, to the store as they come
                              │ all of it has come: the channel is held, its frames are kept
                              ▼
             the store has it ──▶ the reference goes to the broker ──▶ what was kept comes again
             it does not      ──▶ basic.nack, or channel.close 406  ──▶ likewise

So the broker confirms, commits or returns the reference, and nothing that the client says later on the
channel comes before. Other channels go on, until `claim_room.ROOM` bytes are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import attrs

from amqpgate.datapath.engine import End, PeerGoneError
from amqpgate.datapath.tables import METHOD_NEXT, OPEN, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.objects.store import StoreError
from amqpgate.gateway.objects.stores import ObjectStores
from amqpgate.gateway.objects.uploads import Upload, Uploaded
from amqpgate.gateway.session.channel_close import SessionChannel
from amqpgate.gateway.session.claim_reference import (
    BODY,
    ClaimKeys,
    Reference,
    has_headers,
    new_key,
    referring,
)
from amqpgate.gateway.session.claim_room import KeptFrames
from amqpgate.gateway.session.claiming import owner_of
from amqpgate.gateway.session.compatibility import Adapted
from amqpgate.gateway.session.content import publish_passed
from amqpgate.gateway.session.flow_control import frames_of
from amqpgate.gateway.session.publish_denial import HeldPublish
from amqpgate.gateway.session.rewriter import fitting
from amqpgate.gateway.session.session import Session
from amqpgate.policy import Compatibility
from amqpgate.protocol.frames import encode_frame
from amqpgate.values import define
from amqpgate.wire.codec import ContentHeader, decode_header, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

#: Seconds that the client's side waits for at most; it is told when it may go on.
LONG: Final = 60.0

#: Bytes of body in a second. Who gives less for ``timeout`` has no place any more, if others wait for one:
#: a byte now and then would keep it for ever.
LEAST_RATE: Final = 64 * 1024

_TOO_SLOW: Final = "the client, or others before it, did not give the message's body in time"


@define(eq=False)
class PublishClaim:
    """One publish."""

    channel: int
    held: HeldPublish
    #: The client's header frame, and the method's frame and the header as the broker would get them.
    frame: bytes
    method_frame: bytes
    header: ContentHeader
    compatibility: Compatibility
    #: Its channel, as long as that is open.
    state: SessionChannel
    #: Since when its client is expected to say more; of one that says little, earlier.
    heard_at: float
    _claims: PublishClaims
    upload: Upload | None = None
    is_whole: bool = False

    @property
    def owner(self) -> object:
        """Whose it is."""
        return owner_of(self._claims.session.principal)

    @property
    def waits(self) -> bool:
        """Whether nothing of the body should come now."""
        return self.upload is None or self.upload.is_full or not self._claims.stores.slots.has(self)

    def take(self, body: memoryview, now: float) -> None:
        """More of the body has come."""
        self.heard_at = min(now, self.heard_at + len(body) / LEAST_RATE)
        if self.upload is not None:
            self.upload.add(body)

    def finish(self) -> None:
        """All of it has."""
        self.is_whole = True
        if self.upload is not None:
            self.upload.finish()

    # -- what the slots ask (`uploads.UploadSlots`) ------------------------------------------------

    def on_turn(self) -> None:
        """It may upload now."""
        self.on_room()

    def on_room(self) -> None:
        """There is room for more."""
        self.heard_at = time.monotonic()
        self._claims.wake()

    def is_late(self, now: float) -> bool:
        """Whether others need not wait for it any more, nor it for them."""
        claim_check = self.compatibility.claim_check
        is_busy = self.is_whole or (self.upload is not None and self.upload.is_full)
        return not is_busy and claim_check is not None and now - self.heard_at > claim_check.timeout

    def expire(self) -> None:
        """It is."""
        self._claims.stores.metrics.put(None)
        self._claims.failed(self, _TOO_SLOW)


@define(eq=False)
class PublishClaims:
    """Those of one session."""

    session: Session
    stores: ObjectStores
    keys: ClaimKeys
    kept: KeptFrames = attrs.field(factory=KeptFrames, init=False)
    _under_way: dict[int, PublishClaim] = attrs.field(factory=dict, init=False)

    # -- in upcalls ----------------------------------------------------------------------------

    def begin(self, channel: int, held: HeldPublish, frame: memoryview, frames: bytes) -> None:
        """A publish may pass whose body is too large: ``frames`` are its method and header for the broker."""
        compatibility = self.session.session_policies.compatibility
        assert compatibility is not None, "it says what is too large"
        assert compatibility.claim_check is not None, "likewise"
        method_frame, header_frame = (bytes(one) for one in frames_of(frames))
        header = decode_header(header_frame[7:-1])
        now = time.monotonic()
        state = self.session.channels.states[channel]
        one = PublishClaim(channel, held, bytes(frame), method_frame, header, compatibility, state, now, self)
        # Of an earlier channel with this number, which was closed amid a publish.
        self.kept.take(channel)
        if (earlier := self._under_way.get(channel)) is not None:
            self._abandon(earlier)
        try:
            one.upload = self.stores.upload(
                compatibility.claim_check,
                new_key(self.session.principal.vhost),
                one.on_room,
                lambda result: self._done(one, result),
            )
        except StoreError as error:
            self.session.publishes.refuse_claim(channel, held, frame, _text(str(error)), compatibility.policy)
            return
        self._under_way[channel] = one
        self.session.relay.channels.show_rest(Side.CLIENT, channel)
        self.stores.slots.take(one)
        if one.waits:
            self._wait(now)

    def takes(self, channel: int, frame: memoryview) -> bool:
        """A body that is shown: whether it is of such a publish."""
        one = self._under_way.get(channel)
        if one is None or frame[0] != amqp.FRAME_BODY or not self._is_open(one):
            return False
        now, channels = time.monotonic(), self.session.relay.channels
        one.take(frame[7:-1], now)
        for observer in self.session.session_policies.watchers:
            observer.content(Side.CLIENT, channel, frame)
        if channels.due(Side.CLIENT, channel) == METHOD_NEXT:
            channels.hold(Side.CLIENT, channel)
            one.finish()
        elif one.waits:
            self._wait(now)
        return True

    def keeps(self, channel: int, frame: memoryview) -> bool:
        """A frame on a channel that is held: whether it is looked at again."""
        if self.kept.keep(channel, frame):
            return False
        self._wait(time.monotonic())
        return True

    def holds_up(self, method: Method) -> bool:
        """Whether the client's method waits: what it published before has not gone to the broker yet."""
        if not isinstance(method, amqp.ConnectionClose):
            return False
        if any(one.is_whole for one in self._under_way.values()):
            self._wait(time.monotonic())
            return True
        return False

    def end(self) -> None:
        """The session is over: nothing of what is under way will be referred to."""
        for one in list(self._under_way.values()):
            self._abandon(one)

    def _wait(self, now: float) -> None:
        self.session.relay.up.ready_at = now + LONG

    # -- outside of upcalls --------------------------------------------------------------------

    def wake(self) -> None:
        """The client need not wait any more."""
        relay = self.session.relay
        if relay.active:
            relay.pump.retry(relay)

    def failed(self, one: PublishClaim, why: str) -> None:
        """Its body will not be in the store."""
        self._abandon(one)
        self._after(one, lambda: self._refuse(one, _text(why)))

    def _done(self, one: PublishClaim, result: Uploaded | StoreError) -> None:
        if isinstance(result, StoreError):
            self.failed(one, str(result))
            return
        self._forget(one)
        if not self.session.relay.active or not self._is_open(one):
            assert one.upload is not None, "it has done its work"
            one.upload.discard()
        self._after(one, lambda: self._refer(one, result))

    def _is_open(self, one: PublishClaim) -> bool:
        """Whether its channel still waits for it, and is no other one with its number."""
        table = self.session.relay.channels
        return table.state(one.channel) == OPEN and self._is_there(one)

    def _is_there(self, one: PublishClaim) -> bool:
        """Whether its channel is, be it that all but closes are dropped there."""
        states = self.session.channels.states
        return one.channel in states and states.remembered(one.channel) is one.state

    def _abandon(self, one: PublishClaim) -> None:
        if one.upload is not None:
            one.upload.abandon()
        self._forget(one)

    def _forget(self, one: PublishClaim) -> None:
        if self._under_way.get(one.channel) is one:
            del self._under_way[one.channel]
        self.stores.slots.give_back(one)

    def _after(self, one: PublishClaim, act: Callable[[], None]) -> None:
        """The channel goes on, after this."""
        session, relay, channel = self.session, self.session.relay, one.channel
        if not relay.active or not self._is_there(one):
            # Closed meanwhile: nobody waits for what the client said there.
            return
        try:
            if self._is_open(one):
                relay.channels.let_go(Side.CLIENT, channel)
                act()
            relay.pump.feed(relay, Side.CLIENT, self.kept.take(channel))
            if one.is_whole:
                publish_passed(session, channel)
        except PeerGoneError as gone:
            relay.pump.remove(relay, End.GONE, gone.side, gone)
        except ProtocolViolation as violation:
            session.fail(violation)
        self.wake()

    def _refuse(self, one: PublishClaim, text: str) -> None:
        self.session.publishes.refuse_claim(
            one.channel, one.held, memoryview(one.frame), text, one.compatibility.policy
        )

    def _refer(self, one: PublishClaim, uploaded: Uploaded) -> None:
        session, channel = self.session, one.channel
        reference = Reference(uploaded.key, uploaded.byte_count, uploaded.digest, has_headers(one.header))
        value = self.keys.sign(reference, session.principal.vhost)
        largest = session.relay.up.out_frame_max
        header = encode_header(referring(one.header, reference, value))
        try:
            header_frame = fitting(largest, channel, encode_frame(amqp.FRAME_HEADER, channel, header))
        except ProtocolViolation as violation:
            assert one.upload is not None, "it has done its work"
            one.upload.discard()
            self._refuse(one, violation.text)
            return
        body = encode_frame(amqp.FRAME_BODY, channel, BODY)
        session.relay.send(Side.UPSTREAM, one.method_frame + header_frame + body)
        result = Adapted(one.held.method, ("claim-check",))
        for observer in session.session_policies.observers:
            observer.adapted(channel, one.held.method, one.compatibility.policy, result)


def _text(why: str) -> str:
    """What the client reads."""
    return f"the body is too large for the broker, and the object store does not take it: {why}"
