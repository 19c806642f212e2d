"""What both ends of a relayed connection share."""

from __future__ import annotations

from amqpgate.bridge.v0_10.native.build import Outgoing
from amqpgate.bridge.v0_10.native.channels import RelayedChannel
from amqpgate.protocol.v0_10.frames import MOST_FRAME_SIZE


class NativeRelay:
    """One client's connection and its broker's. ``frame_max`` is the largest frame of the gateway's on both
    hops, in bytes, ``channel_max`` the number of channels that the client may use."""

    __slots__ = (
        "channel_max",
        "channels",
        "frame_max",
        "most_to_broker",
        "most_to_client",
        "to_broker",
        "to_client",
    )

    def __init__(
        self,
        frame_max: int,
        channel_max: int,
        *,
        most_to_client: int = MOST_FRAME_SIZE,
        most_to_broker: int = MOST_FRAME_SIZE,
    ) -> None:
        self.frame_max = frame_max
        self.channel_max = channel_max
        #: The largest frame of 0-10 that each takes.
        self.most_to_client = most_to_client
        self.most_to_broker = most_to_broker
        self.to_client = Outgoing()
        self.to_broker = Outgoing()
        #: Those that were used.
        self.channels: dict[int, RelayedChannel] = {}

    def channel(self, number: int) -> RelayedChannel:
        """The one of that number of 0-10's; it is the gateway's number less one."""
        channel = self.channels.get(number)
        if channel is None:
            channel = self.channels[number] = RelayedChannel(number, self.to_broker, self.to_client)
        return channel
