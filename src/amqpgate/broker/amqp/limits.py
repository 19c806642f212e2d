"""What one peer may make a :class:`~amqpgate.broker.amqp.connection.Connection` keep."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from amqpgate.protocol.frames import FRAME_MIN_SIZE


@frozen
class ConnectionLimits:
    """All sizes in bytes; the defaults are RabbitMQ 3.10's where it has one.

    At most ``body_total`` and one frame are held per connection, besides what the owner of the
    connection is given.
    """

    #: Largest frame before tune-ok (``initial_frame_max``); tokens as passwords may need more.
    frame_max_before_tune: int = FRAME_MIN_SIZE
    #: Largest frame where tune agreed on "no limit".
    frame_max: int = 131_072
    #: Open channels where tune agreed on "no limit".
    channel_max: int = 2047
    #: Largest message body; a larger one is 406 on its channel (``max_message_size``).
    body: int = 134_217_728
    #: Unfinished bodies of all channels together; more is 506.
    body_total: int = 536_870_912
    #: What a client may send ahead while the server's answer is awaited in the handshake; more is 506.
    ahead: int = 65_536
    #: Refuse channel numbers above channel-max (504). RabbitMQ does not: it counts open channels only.
    strict_channel_numbers: bool = False


DEFAULT_LIMITS: Final = ConnectionLimits()
