"""One reference that comes for a client (`claim_delivery`), and what is known of it."""

from __future__ import annotations

from collections.abc import Callable

from amqpgate.datapath.tables import OPEN
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.objects.downloads import Download
from amqpgate.gateway.session.claim_reference import ClaimKeys, Reference, claim_of, restored
from amqpgate.gateway.session.held_deliveries import HeldDelivery
from amqpgate.gateway.session.observer import Sent
from amqpgate.gateway.session.session import Session
from amqpgate.protocol.frames import encode_frame
from amqpgate.values import define
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp


@define(eq=False)
class Restoring:
    """One reference."""

    channel: int
    method: Sent
    #: Passes the method on.
    begin: Callable[[], None]
    header: ContentHeader
    #: What is kept of it on a channel that is stopped or limited; None: it was neither when it came.
    held: HeldDelivery | None = None
    reference: Reference | None = None
    download: Download | None = None
    #: Bytes of the body that have been read of its file.
    read: int = 0
    #: Bytes of frames that are on their way by the data path.
    fed: int = 0
    #: Why the channel is closed for it.
    refusal: ProtocolViolation | None = None
    #: There is no such body, nor will be.
    is_lost: bool = False

    def lose(self) -> None:
        """There is no such body."""
        self.is_lost = True

    def keep_as(self, held: HeldDelivery | None) -> None:
        """Its channel is stopped or limited, and keeps it as this."""
        self.held = held

    def refuse_for(self, code: int, text: str) -> None:
        """It is not to be had, and its channel closes."""
        method = self.method
        self.refusal = ProtocolViolation(
            code, text, class_id=method.CLASS_ID, method_id=method.METHOD_ID, channel=self.channel
        )

    def fetch_by(self, reference: Reference, download: Download) -> None:
        """Its body is fetched."""
        self.reference, self.download = reference, download

    def feeds(self, body: int, frames: int) -> None:
        """So much is on its way to the client."""
        self.read += body
        self.fed = frames

    def passed(self, frame: int) -> None:
        """A frame has got there."""
        self.fed -= frame


def closes(session: Session, number: int) -> bool:
    """Whether a channel is closed, or about to be."""
    if session.relay.channels.state(number) != OPEN:
        return True
    state = session.channels.states.remembered(number)
    return state is not None and state.close is not None


def is_given_back(session: Session, one: Restoring) -> bool:
    """Whether the broker has it again, since its channel kept it and its consumer has had enough."""
    if one.held is None or session.bridge is None:
        return False
    held = session.bridge.channel_flows.get(one.channel)
    return held is None or held.fetching is not one.held


def is_acked(session: Session, one: Restoring) -> bool:
    """Whether the broker waits for an ack of it."""
    method = one.method
    if isinstance(method, amqp.BasicDeliver):
        state = session.channels.states.remembered(one.channel)
        consuming = None if state is None else state.consuming
        consumer = None if consuming is None else consuming.tags.get(method.consumer_tag)
        return consumer is None or not consumer.no_ack
    if isinstance(method, amqp.BasicReturn):
        return False
    unacked = session.relay.channels.unacked_tags(one.channel) or ()
    return any(first <= method.delivery_tag < end for first, end in unacked)


def header_of(session: Session, keys: ClaimKeys, one: Restoring) -> memoryview:
    """The frame of the message's header as it was published; of the reference's where that is forged."""
    reference = one.reference or keys.read(claim_of(one.header), session.principal.vhost)
    header = one.header if reference is None else restored(one.header, reference)
    return memoryview(encode_frame(amqp.FRAME_HEADER, one.channel, encode_header(header)))
