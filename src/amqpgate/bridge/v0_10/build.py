"""The codec of messages, compiled or, on machines without a compiler, plain."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqpgate.bridge.v0_10.quick_header import delivery_part, quick_header
else:
    try:
        from amqpgate.bridge.v0_10._quick_header import delivery_part, quick_header
    except ImportError:
        from amqpgate.bridge.v0_10.quick_header import delivery_part, quick_header

__all__ = ["delivery_part", "quick_header"]
