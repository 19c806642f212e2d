"""Frames of channels that are held for a claim check, until they come again (`Pump.feed`)."""

from __future__ import annotations

from typing import Final

import attrs

from amqpgate.values import define

#: Bytes of frames that are kept of one session and side. With more, that side waits as a whole.
ROOM: Final = 1 << 20


@define(eq=False)
class KeptFrames:
    """Of one session and side, by channel."""

    room: int = ROOM
    _bytes: int = attrs.field(default=0, init=False)
    _frames: dict[int, bytearray] = attrs.field(factory=dict, init=False)

    def keep(self, channel: int, frame: memoryview) -> bool:
        """Keep it behind those of its channel; False: there is no room. The first one is always kept."""
        if self._bytes and self._bytes + len(frame) > self.room:
            return False
        self._frames.setdefault(channel, bytearray()).extend(frame)
        self._bytes += len(frame)
        return True

    def take(self, channel: int) -> bytes:
        """Those of a channel, which are not kept any more."""
        frames = self._frames.pop(channel, b"")
        self._bytes -= len(frames)
        return bytes(frames)
