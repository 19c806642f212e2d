"""What the broker says of itself at the start of a connection (section 1.4.2.1 of AMQP 0-9-1)."""

from __future__ import annotations

import platform
from typing import Final

from attrs import frozen

from amqpgate import __version__
from amqpgate.protocol.frames import FRAME_MIN_SIZE
from amqpgate.protocol.sasl import AMQPLAIN, PLAIN
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Table

PRODUCT: Final = "amqpgate embedded broker"

#: RabbitMQ's names. Not here: connection.blocked (publishers are refused, not stopped).
CAPABILITIES: Final = (
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
)

MECHANISMS: Final = (PLAIN, AMQPLAIN)

#: What a client may look for in vain, for people. The second sentence is for those of AMQP 0-10.
LACKS: Final = (
    "storage, expiry, dead letters, queue limits, message priorities, single active consumers, quorum queues,"
    " streams, permissions. AMQP 0-10: browsing, selectors, last-value queues, distributed transactions,"
    " resuming messages and sessions, names of sessions beyond their connection, management by messages,"
    " classes file and stream"
)


@frozen
class Greeting:
    """connection.start and connection.tune: bytes, channels, seconds."""

    frame_max: int = 131_072
    channel_max: int = 2047
    heartbeat: int = 60

    def __attrs_post_init__(self) -> None:
        if self.frame_max < FRAME_MIN_SIZE:
            raise ValueError(f"frame_max is at least {FRAME_MIN_SIZE}, not {self.frame_max}")

    def start(self) -> amqp.ConnectionStart:
        """connection.start."""
        properties = {
            "capabilities": dict.fromkeys(CAPABILITIES, True),
            "information": "In memory, for demonstrations and tests only: nothing survives a restart",
            "lacks": LACKS,
            "platform": f"Python {platform.python_version()}",
            "product": PRODUCT,
            "version": __version__,
        }
        return amqp.ConnectionStart(0, 9, Table.of(properties), " ".join(MECHANISMS).encode(), b"en_US")

    def tune(self) -> amqp.ConnectionTune:
        """connection.tune."""
        return amqp.ConnectionTune(self.channel_max, self.frame_max, self.heartbeat)
