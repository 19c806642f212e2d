"""What an end of a relayed connection looks for, and how much may wait in it."""

from __future__ import annotations

from typing import Final

from amqpgate.protocol.v0_10.frames import control_frame
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10

#: Bytes for one peer that may wait before the other one is not read any more, and bytes that wait until a
#: session may begin.
MOST_UNSENT: Final = 1024 * 1024
#: Bytes of one peer that may wait for their copies before it is not read any more, or one message.
MOST_WAITING: Final = 4 * 1024 * 1024

#: How methods with content begin.
CONTENT: Final = frozenset(
    method.INDEX.to_bytes(4, "big") for method in (amqp.BasicPublish, amqp.BasicDeliver, amqp.BasicReturn)
)
#: How controls of the connection's begin.
CONNECTION: Final = bytes((amqp10.ConnectionHeartbeat.CLASS_CODE,))
#: connection.heartbeat, in its frame.
BEAT: Final = control_frame(0, amqp10.ConnectionHeartbeat().encode())
