"""One session whose peers speak different versions, or in whose broker's place the gateway does something.

What a peer says is translated where it comes in (`hear`), what it is told where it goes out (`outgoing`,
which the relay calls for all that the control plane sends). In between all is the canonical model. Methods
whose bytes are the same in all versions are not touched, and neither is what the data path forwards itself.

::

    client (0-8) ──▶ hear ──▶ policies, transforms, closes ──▶ crossing ──▶ outgoing ──▶ broker (0-9-1)
                                      0-9-1

A session between two native peers has none of this, until its client does what takes a `Crossing`:
channel.flow, or basic.recover.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import attrs

from amqpgate.bridge import Crossing, Interpreter
from amqpgate.bridge.crossing import Sent
from amqpgate.datapath.engine import Bytes
from amqpgate.datapath.relay import Relay
from amqpgate.datapath.scanner import reframe
from amqpgate.datapath.tables import HEADER_NEXT, OPEN, Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session.channel_flow import ChannelFlows
from amqpgate.gateway.session.flow_control import INDEXES, FlowControl, behind, frames_of, method_index
from amqpgate.gateway.session.old_clients import OldClients
from amqpgate.gateway.session.publish_denial import PublishDenials
from amqpgate.policy import Peek
from amqpgate.policy.engine.operations import PROPERTY_FLAGS
from amqpgate.protocol import methods as protocol
from amqpgate.protocol.frames import (
    FRAME_HEAD,
    FRAME_HEADER,
    FRAME_METHOD,
    encode_frame,
    method_frame,
)
from amqpgate.values import define
from amqpgate.wire.codec import decode_header, decode_method, encode_header, methods
from amqpgate.wire.dialects import RABBITMQ_0_9_1
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

log = logging.getLogger(__name__)

#: Methods with the same bytes, and the same meaning, in every version.
SAME: Final = frozenset(
    method.INDEX
    for method in (
        amqp.BasicPublish,
        amqp.BasicDeliver,
        amqp.BasicGetOk,
        amqp.BasicGetEmpty,
        amqp.BasicAck,
        amqp.BasicReject,
    )
)

_CANONICAL: Final = frozenset(methods(RABBITMQ_0_9_1).values())

#: Bytes for the broker that wait for the end of a message to it, on one channel.
LONGEST_WAIT: Final = 4096

#: Messages with a table among their properties.
_WITH_TABLE: Final = Peek(flags=PROPERTY_FLAGS["headers"])

#: Messages that RabbitMQ refuses: old clients say 0 for not persistent, which is 1.
_WITHOUT_MODE: Final = Peek(mode_0=True)

_SENDERS: Final = {Side.CLIENT: protocol.Role.CLIENT, Side.UPSTREAM: protocol.Role.SERVER}
_RECEIVERS: Final = {sender: side for side, sender in _SENDERS.items()}


@define(eq=False)
class VersionBridge:
    """Translates for one session. ``interpreters`` are the client's and the broker's."""

    relay: Relay
    interpreters: tuple[Interpreter, Interpreter]
    publish_denial: PublishDenials
    channel_flows: ChannelFlows
    #: Whether the broker has a part of a message of the client's on this channel, and waits for the rest.
    is_sending: Callable[[int], bool]
    #: Whether channel.flow off is done here for a native client, too.
    keeps_deliveries: bool = False
    crossing: Crossing = attrs.field(init=False)
    #: What comes next of content that the data path does not know: HEADER_NEXT, or bytes of body.
    _contents: dict[tuple[Side, int], int] = attrs.field(factory=dict, init=False)
    #: Frames for the broker that wait for the end of a message to it, by channel.
    _late: dict[int, bytes] = attrs.field(factory=dict, init=False)
    flow_control: FlowControl = attrs.field(init=False)
    old_clients: OldClients = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.crossing = Crossing(*self.interpreters, lambda channel: self.flow_control.recovered(channel))
        self.flow_control = FlowControl(
            self.relay,
            self.crossing,
            self.channel_flows,
            self.publish_denial,
            self.keeps_deliveries or not self.interpreters[Side.CLIENT].is_native,
            self.tell_broker,
            self.is_sending,
        )
        self.old_clients = OldClients(self.crossing, self.channel_flows.channels)
        self.relay.outgoing = self.outgoing
        if not self.interpreters[Side.UPSTREAM].speaks(amqp.BasicNack):
            self.relay.up.shows_nacks = True

    def release(self) -> None:
        """The session is over: what does its work, and leads back here, is nobody's any more."""
        self.flow_control.release()
        del self.crossing, self.flow_control, self.old_clients

    @property
    def refuses_immediate(self) -> bool:
        """Whether a publish with immediate is refused here: RabbitMQ would close the whole connection."""
        return self.crossing.is_patient

    def admit(self, channel: int, method: amqp.BasicPublish) -> Peek | None:
        """Which publishes like this one must be shown. Raises `ProtocolViolation` if none may pass."""
        if method.immediate and self.refuses_immediate:
            # The usual stand-in, a time to live of 0, returns nothing: its sender would take the message
            # for delivered.
            raise ProtocolViolation(
                406,
                "immediate is not implemented by the broker",
                class_id=method.CLASS_ID,
                method_id=method.METHOD_ID,
                channel=channel,
            )
        peek = self.peek(Side.CLIENT, None)
        return (peek or Peek()) | _WITHOUT_MODE if self.crossing.is_patient else peek

    @property
    def is_same(self) -> bool:
        """Whether messages to the client are what the broker has sent."""
        return all(one.is_native for one in self.interpreters) and not self.maps(Side.UPSTREAM)

    def maps(self, side: Side) -> bool:
        """Whether the other side cannot read every table of ``side``'s as it is."""
        reader, writer = self.interpreters[side.other], self.interpreters[side]
        return not reader.reads_tables_of(writer)

    def peek(self, side: Side, peek: Peek | None) -> Peek | None:
        """Which messages of ``side``'s must be shown besides."""
        return (peek or Peek()) | _WITH_TABLE if self.maps(side) else peek

    def asks(self, channel: int, method: Method) -> None:
        """The client's method is about to pass."""
        self.old_clients.asks(channel, method)
        self.flow_control.asks(channel, method)

    # -- in ----------------------------------------------------------------------------------

    def hear(self, side: Side, frame: memoryview) -> tuple[Method, memoryview]:
        """A method frame of a peer's in the canonical model."""
        payload = frame[7:-1]
        interpreter = self.interpreters[side]
        if interpreter.is_native or int.from_bytes(payload[:4], "big") in SAME:
            method = decode_method(payload)
            if isinstance(method, amqp.BasicDeliver):
                method = self.channel_flows.for_client(int.from_bytes(frame[1:3], "big"), method)
            return method, frame
        method = interpreter.to_canonical(payload, _SENDERS[side])
        if type(method) not in _CANONICAL:
            return method, frame
        return method, memoryview(method_frame(int.from_bytes(frame[1:3], "big"), method))

    def hear_header(self, side: Side, frame: memoryview) -> memoryview:
        """A header frame of a peer's in the canonical model."""
        is_patient = side is Side.CLIENT and self.crossing.is_patient
        if not self.maps(side) and not is_patient:
            return frame
        header = self.interpreters[side].header_to_canonical(frame[7:-1])
        said = header.properties
        if is_patient and isinstance(said, amqp.BasicProperties) and said.delivery_mode == 0:
            header = attrs.evolve(header, properties=attrs.evolve(said, delivery_mode=1))
        channel = int.from_bytes(frame[1:3], "big")
        return memoryview(encode_frame(FRAME_HEADER, channel, encode_header(header)))

    def takes(self, side: Side, channel: int, method: Method, *, is_unrestricted: bool) -> bool:
        """Whether a method on an open channel is not a canonical one, and so has been dealt with.

        ``is_unrestricted``: no policy says anything of the session. Such methods are judged by none.
        Raises `ProtocolViolation` 540 where it is, and where the other side does not have the method.
        """
        if type(method) in _CANONICAL or not channel:
            return False
        answers = self.crossing.answered(channel, _SENDERS[side], method)
        if answers is not None:
            for answer in answers:
                self._tell(side, channel, answer)
            return True
        cross = self.crossing.to_broker if side is Side.CLIENT else self.crossing.to_client
        sent = cross(channel, method)
        if not sent:
            log.info("left out, since the client's version lacks it: %s", method.NAME)
        for to, told in sent:
            if not is_unrestricted and told.CLASS_ID != amqp.ChannelOpen.CLASS_ID:
                raise ProtocolViolation(
                    540,
                    f"'{told.NAME}' cannot be judged by the policies that are in force",
                    class_id=told.CLASS_ID,
                    method_id=told.METHOD_ID,
                )
            if told.CONTENT:
                self._contents[side, channel] = HEADER_NEXT
            self._tell(_RECEIVERS[to], channel, told)
        return True

    def _tell(self, side: Side, channel: int, method: Method) -> None:
        """Say what the canonical model has no bytes for, but not within a message."""
        frame = encode_frame(FRAME_METHOD, channel, self.interpreters[side].from_canonical(method))
        if side is Side.CLIENT:
            self.publish_denial.tell(channel, frame)
        elif len(self._late.get(channel, b"")) + len(frame) > LONGEST_WAIT:
            raise ProtocolViolation(506, "too many pings within a message", channel=channel)
        else:
            self.tell_broker(channel, frame)

    def tell_broker(self, channel: int, frames: bytes) -> None:
        """Say something of the gateway's own, but not within a message."""
        if channel in self._late or self.is_sending(channel):
            self._late[channel] = self._late.get(channel, b"") + frames
            self.relay.channels.show_rest(Side.CLIENT, channel)
        else:
            self.relay.send(Side.UPSTREAM, frames)

    def message_ended(self, channel: int) -> None:
        """A frame of the client's was shown: if it was a message's last, what waited for that follows."""
        if channel in self._late and not self.is_sending(channel):
            late = self._late.pop(channel)
            if self.relay.channels.state(channel) == OPEN:
                self.relay.send(Side.UPSTREAM, late)
        self.flow_control.published(channel)

    def takes_content(self, side: Side, frame: memoryview) -> bool:
        """Whether a header or body that no canonical method announced belongs to another one's."""
        kind, channel, size = FRAME_HEAD.unpack_from(frame)
        due = self._contents.get((side, channel))
        if due is None or (kind == FRAME_HEADER) != (due == HEADER_NEXT):
            return False
        if kind == FRAME_HEADER:
            header = self.interpreters[side].header_to_canonical(frame[7:-1])
            due = header.body_size
            payload = self.interpreters[side.other].header_from_canonical(header)
            self.relay.send(side.other, encode_frame(FRAME_HEADER, channel, payload))
        else:
            if size > due:
                return False
            due -= size
            self.relay.send(side.other, reframe(frame, self.relay.endpoints[side].lane.out_frame_max))
        if due:
            self._contents[side, channel] = due
        else:
            del self._contents[side, channel]
        return True

    # -- out ---------------------------------------------------------------------------------

    def outgoing(self, side: Side, data: Bytes) -> bytes:
        """Whole frames for ``side``, in the canonical model, as it gets them now."""
        if side is Side.CLIENT and self.flow_control.is_releasing and self.is_same:
            # There may be thousands of messages, and others wait.
            return bytes(data)
        out = bytearray()
        for frame in frames_of(data):
            for passed in self.flow_control.released(frame) if side is Side.CLIENT else (frame,):
                out += self._translated(side, passed)
        return bytes(out)

    def rest(self) -> bytes:
        """What the client gets before the gateway's own connection.close.

        Of consumers that do not acknowledge the broker does not have it any more.
        """
        return b"".join(self._translated(Side.CLIENT, frame) for frame in self.flow_control.rest())

    def _translated(self, side: Side, frame: Bytes) -> Bytes:
        kind, number, _ = FRAME_HEAD.unpack_from(frame)
        if kind == FRAME_METHOD:
            # What the canonical model does not have is the peer's own, and has been translated.
            if method_index(frame) in SAME or method_index(frame) not in INDEXES:
                return frame
            return self._crossed(side, number, decode_method(frame[7:-1]), frame)
        if kind == FRAME_HEADER and self.maps(side.other) and frame[8] == amqp.BasicProperties.CLASS_ID:
            header = decode_header(frame[7:-1])
            return encode_frame(FRAME_HEADER, number, self.interpreters[side].header_from_canonical(header))
        return frame

    def _crossed(self, side: Side, number: int, method: Method, frame: Bytes) -> bytes:
        """The frames for ``side`` that come of a method for it; what the other side hears is sent."""
        interpreter = self.interpreters[side]
        if side is Side.CLIENT:
            sent = self.crossing.to_client(number, method)
            if isinstance(method, amqp.ChannelClose | amqp.ChannelCloseOk):
                # The channel's next use has other deliveries under the same tags.
                self._late.pop(number, None)
        else:
            told_instead = self.old_clients.instead(number, method)
            if len(told_instead) == 1:
                # A recover behind it gives all back.
                told_instead += (*behind(self.channel_flows, self.crossing, number, method),)
            sent = tuple([one for passed in told_instead for one in self._sent(number, passed)])
        out = b""
        for to, told in sent:
            if told is method and interpreter.is_native:
                out += frame
            elif _RECEIVERS[to] is side:
                out += encode_frame(FRAME_METHOD, number, interpreter.from_canonical(told))
            else:
                self.publish_denial.tell(number, method_frame(number, told))
        return out

    def _sent(self, number: int, method: Method) -> Sent:
        """What comes of a method for the broker."""
        if isinstance(method, amqp.BasicRecoverAsync) and number in self.channel_flows:
            # What was kept is dropped when the broker has recovered, which it would not say.
            return self.crossing.recover(number, requeue=method.requeue, tells=False)
        sent = self.crossing.to_broker(number, method)
        if self.crossing.is_patient and isinstance(method, amqp.BasicQos | amqp.BasicConsume):
            self.flow_control.limit(number, is_global=isinstance(method, amqp.BasicQos) and method.global_)
        return sent
