"""What is compiled of AMQP 0-10, and which of it is there."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import amqpgate

#: By what chooses between each and its plain twin, and one of its names.
CHOSEN = {
    "amqpgate.bridge.v0_10._codec": ("amqpgate.bridge.v0_10.build", "quick_header"),
    "amqpgate.bridge.v0_10.native._native": ("amqpgate.bridge.v0_10.native.build", "Original"),
    "amqpgate.gateway.transport._translation": (
        "amqpgate.gateway.transport.translated_socket",
        "Translation",
    ),
    "amqpgate.protocol.v0_10._frames": ("amqpgate.protocol.v0_10.build", "SegmentFrameDecoder"),
}
MODULES = frozenset(CHOSEN)


def is_compiled(module: str) -> bool:
    """Whether it was compiled: a build that cannot be imported is there, too."""
    path = Path(amqpgate.__file__).parent.joinpath(*module.split(".")[1:])
    return path.with_name(path.name + (sysconfig.get_config_var("EXT_SUFFIX") or "")).exists()
