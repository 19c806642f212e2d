"""The words of the data path's contract: sides, results of a scan, states, what each method means.

The tables name only what the scanner must treat on its own; every method that they do not name is
an upcall, so an unknown method can never pass unseen. Both scanners, the compiled and the plain
one, take their numbers from here.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from amqpgate.wire.generated import v0_9_1 as amqp


class Side(IntEnum):
    """The two ends of a session, as seen from the gateway."""

    CLIENT = 0
    UPSTREAM = 1

    @property
    def other(self) -> Side:
        return _OTHERS[self]


#: The other of each.
_OTHERS: Final = (Side.UPSTREAM, Side.CLIENT)


class Action(IntEnum):
    """What the scanner does with a method frame."""

    #: Forward; the method stands alone.
    FORWARD = 0
    #: Forward; a content header and its bodies follow on the channel.
    CONTENT = 1
    #: basic.publish: what its flow says, and an upcall where it has none.
    PUBLISH = 2
    #: basic.deliver: likewise where the lane has flows, else as ``CONTENT``.
    DELIVER = 3


class ScanResult(IntEnum):
    """Why a scan stopped."""

    #: Nothing is wrong; the bytes that are left are not a whole frame yet.
    MORE = 0
    #: A method that the control plane handles.
    METHOD = 1
    #: A publish (or deliver) whose arguments hit no flow, or one of an older generation.
    MISS = 2
    #: A publish whose flow wants this one shown: its method, and then as much as ``Show`` says.
    SHOWN = 3
    #: The header of a message that is shown.
    HEADER = 4
    #: A body frame of a message that is shown.
    BODY = 5
    #: A body frame larger than the other hop takes.
    REFRAME = 6
    #: A publish whose bucket is empty: nothing is wrong, but not before ``Lane.ready_at``.
    THROTTLED = 7
    #: The method of a message that is too large to wait for its end before a link; none of it has passed.
    LARGE = 8
    #: The method of a publish whose content header does not follow at once, or declares more body than
    #: ``Lane.most_body``.
    APART = 9
    #: The content header of a message that declares more body than that, on its way to a link; none of the
    #: message has passed.
    OVERSIZE = 10
    #: A message whose flow has rules on headers, or captures, after a scan has asked such rules or captured
    #: enough: nothing is wrong, and others may have their turn first.
    JUDGED = 11
    #: A frame on a channel that is held: nothing of it has been checked but its type, size and end.
    HELD = 12
    # From here on: violations, in the order in which a frame is checked.
    #: A frame type that AMQP 0-9-1 does not have (section 4.2.3).
    BAD_TYPE = 13
    #: A frame larger than was negotiated (section 4.2.3, connection.tune).
    TOO_LARGE = 14
    #: The last byte of the frame is not 0xCE.
    BAD_END = 15
    #: A frame on a channel that is not open.
    NOT_OPEN = 16
    #: Too short for what its type must hold, or lengths inside that do not add up.
    MALFORMED = 17
    #: A method while a content header was due.
    HEADER_DUE = 18
    #: Something else while a content body was due.
    BODY_DUE = 19
    #: A content header that no method announced.
    HEADER_UNASKED = 20
    #: A content body that no header announced.
    BODY_UNASKED = 21
    #: A content header of another class than its method.
    CLASS_DIFFERS = 22
    #: More body than the header declared.
    BODY_OVERRUN = 23
    #: A method or header frame that does not fit the other hop's frame-max.
    UNSPLITTABLE = 24
    #: A heartbeat on a channel other than 0, or with a payload.
    BAD_HEARTBEAT = 25


#: Verdicts above this one are violations.
LAST_HARMLESS = ScanResult.HELD


class Show(IntEnum):
    """How much of a message the control plane sees. Each one includes those before it."""

    NOTHING = 0
    METHOD = 1
    HEADER = 2
    BODY = 3


class Contexts(IntEnum):
    """Which messages of a flow are shown for the trace context that they carry."""

    NONE = 0
    #: Those whose trace may be sampled; the others that carry one are no samples either.
    SAMPLED = 1
    ALL = 2


#: A channel that carries frames, and one whose client is being refused: what it sends is dropped
#: until both closes are answered. A channel in neither state is closed.
OPEN = 1
DISCARD = 2

#: ``Channels.due`` of a channel whose next frame must be a method, or a content header; above
#: zero it is the bytes of body that are still to come.
METHOD_NEXT = 0
HEADER_NEXT = -1
#: Whatever comes on it from that side is the control plane's (``Channels.hold``).
HELD_NEXT = -2

#: Flows per session; then a new one takes the place of an old one. The compiled table doubles up to that
#: number as it fills, and 2,000 keys that come in turn all stay.
FLOWS = 16384
#: Bytes of keys per session; a key that would exceed it empties the table first. So a session's
#: flows cost at most 4 MiB whatever its client publishes to.
FLOW_KEY_BYTES = 512 * 1024

#: Bytes of a content header that a scanner waits for before it passes the method; the control plane holds
#: the method of a message with a larger one. Properties and a few headers are some hundred bytes.
PEEKED_HEADER = 4096

#: Messages that one scan captures, at most, and bytes of one that is captured, its frames included. Of those
#: who capture a flow's messages, larger ones, and those that do not come as one body frame, are shown to.
CAPTURED_MESSAGES = 256
CAPTURED_BYTES = 64 * 1024

#: Messages of one client that may be half there at once, before a link that is shared. Threads that share a
#: connection begin one each.
HALF_MESSAGES = 16
#: Tables and arrays within each other that a content header may have on its way to such a link.
NESTED = 64
#: How many confirms ahead of the oldest one that is still due are known one by one.
CONFIRM_WINDOW = 1024

#: Stretches of delivery tags that are due on one channel, each of 16 bytes: threads that acknowledge out of
#: order, each message on its own, have at most one for every two of the prefetch count.
MOST_STRETCHES = 512
#: Gets of one channel that wait for their answers, and are told apart.
GETS = 64
#: Consumers without acks on a channel where others ack.
SILENT_TAGS = 256

#: Client to broker. basic.ack, nack and reject stand alone and concern nobody's policy.
UP_ACTIONS: dict[int, Action] = {
    amqp.BasicPublish.INDEX: Action.PUBLISH,
    amqp.BasicAck.INDEX: Action.FORWARD,
    amqp.BasicNack.INDEX: Action.FORWARD,
    amqp.BasicReject.INDEX: Action.FORWARD,
}

#: Broker to client.
DOWN_ACTIONS: dict[int, Action] = {
    amqp.BasicDeliver.INDEX: Action.DELIVER,
    amqp.BasicGetOk.INDEX: Action.CONTENT,
    amqp.BasicReturn.INDEX: Action.CONTENT,
    amqp.BasicGetEmpty.INDEX: Action.FORWARD,
    amqp.BasicAck.INDEX: Action.FORWARD,
    amqp.BasicNack.INDEX: Action.FORWARD,
}
