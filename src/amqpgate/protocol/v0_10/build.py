"""The decoder of frames, compiled or, on machines without a compiler, plain."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqpgate.protocol.v0_10.frames import SegmentFrameDecoder
else:
    try:
        from amqpgate.protocol.v0_10._frames import SegmentFrameDecoder
    except ImportError:
        from amqpgate.protocol.v0_10.frames import SegmentFrameDecoder

__all__ = ["SegmentFrameDecoder"]
