"""Which scanner serves: the compiled one, or the plain one on machines without a compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqpgate.datapath.flows import flow_key
from amqpgate.datapath.framing import reframe

if TYPE_CHECKING:
    from amqpgate.datapath.by_channel import ByChannel
    from amqpgate.datapath.reference import (
        Bucket,
        CaptureGate,
        Channels,
        Flow,
        FlowTable,
        HeaderRules,
        Lane,
        Meter,
        Rewrite,
        scan,
    )

    COMPILED = True
else:
    try:
        from amqpgate.datapath._scan import (
            Bucket,
            ByChannel,
            CaptureGate,
            Channels,
            Flow,
            FlowTable,
            HeaderRules,
            Lane,
            Meter,
            Rewrite,
            scan,
        )

        COMPILED = True
    except ImportError:
        from amqpgate.datapath.by_channel import ByChannel
        from amqpgate.datapath.reference import (
            Bucket,
            CaptureGate,
            Channels,
            Flow,
            FlowTable,
            HeaderRules,
            Lane,
            Meter,
            Rewrite,
            scan,
        )

        COMPILED = False

__all__ = [
    "COMPILED",
    "Bucket",
    "ByChannel",
    "CaptureGate",
    "Channels",
    "Flow",
    "FlowTable",
    "HeaderRules",
    "Lane",
    "Meter",
    "Rewrite",
    "flow_key",
    "reframe",
    "scan",
]
