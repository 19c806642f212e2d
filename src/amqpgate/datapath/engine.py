"""Which pump serves: the compiled one, or the plain one on machines without a compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqpgate.datapath.endpoint import Endpoint
    from amqpgate.datapath.pump import Pump
    from amqpgate.datapath.shared import LinkEndpoint, Rider

    COMPILED = True
else:
    try:
        from amqpgate.datapath._pump import Endpoint, LinkEndpoint, Pump, Rider

        COMPILED = True
    except ImportError:
        from amqpgate.datapath.endpoint import Endpoint
        from amqpgate.datapath.pump import Pump
        from amqpgate.datapath.shared import LinkEndpoint, Rider

        COMPILED = False

__all__ = ["COMPILED", "Endpoint", "LinkEndpoint", "Pump", "Rider"]
