"""The codec of messages, compiled or, on machines without a compiler, plain."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqpgate.bridge.v0_10.copying import basic_ack, copy_frames, tagged
    from amqpgate.bridge.v0_10.quick_header import delivery_part, quick_header
else:
    try:
        from amqpgate.bridge.v0_10._codec import basic_ack, copy_frames, delivery_part, quick_header, tagged
    except ImportError:
        from amqpgate.bridge.v0_10.copying import basic_ack, copy_frames, tagged
        from amqpgate.bridge.v0_10.quick_header import delivery_part, quick_header

__all__ = ["basic_ack", "copy_frames", "delivery_part", "quick_header", "tagged"]
