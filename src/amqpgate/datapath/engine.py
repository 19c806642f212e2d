"""Which pump serves: the compiled one, or the plain one on machines without a compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqpgate.datapath.endpoint import RelayEndpoint
    from amqpgate.datapath.pump import Pump
    from amqpgate.datapath.shared import LinkEndpoint, PooledEndpoint

    COMPILED = True
else:
    try:
        from amqpgate.datapath._pump import LinkEndpoint, PooledEndpoint, Pump, RelayEndpoint

        COMPILED = True
    except ImportError:
        from amqpgate.datapath.endpoint import RelayEndpoint
        from amqpgate.datapath.pump import Pump
        from amqpgate.datapath.shared import LinkEndpoint, PooledEndpoint

        COMPILED = False

__all__ = ["COMPILED", "LinkEndpoint", "PooledEndpoint", "Pump", "RelayEndpoint"]
